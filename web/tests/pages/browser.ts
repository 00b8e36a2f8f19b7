/** The real browser, and what no page may ever do: fail, or ask anybody else. */
import { type Browser, type BrowserContextOptions, chromium, type Page } from "playwright-core";
import { expect } from "vitest";
import { LONG_MS } from "./program";

const FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
];

export function browser(): Promise<Browser> {
    return chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: FLAGS });
}

export interface Looked {
    page: Page;
    /** What went wrong unasked; a test that breaks something itself clears it. */
    wrong: string[];
    close: () => Promise<void>;
}

/** A window of its own, with nothing remembered. */
export async function look(
    browser: Browser,
    address: string,
    path = "/",
    options: BrowserContextOptions = {},
): Promise<Looked> {
    const context = await browser.newContext({
        locale: "en-GB",
        viewport: { width: 1280, height: 900 },
        ...options,
    });
    const page = await context.newPage();
    page.setDefaultTimeout(LONG_MS);
    const wrong: string[] = [];
    page.on("pageerror", (error) => wrong.push(`error: ${error.message}`));
    page.on("console", (message) => {
        // A refusal of the API is logged by the browser; pages show it as a sentence.
        if (message.type() === "error" && !message.text().startsWith("Failed to load resource")) {
            wrong.push(`console: ${message.text()}`);
        }
    });
    page.on("request", (request) => {
        if (!request.url().startsWith(`${address}/`)) wrong.push(`asked somebody else: ${request.url()}`);
    });
    page.on("dialog", (dialog) => {
        wrong.push(`a dialog: ${dialog.message()}`);
        void dialog.dismiss();
    });
    await page.goto(address + path);
    return {
        page,
        wrong,
        close: async () => {
            expect(wrong).toEqual([]);
            await context.close();
        },
    };
}

/** Waits until something is so. */
export async function eventually<T>(
    what: () => Promise<T> | T,
    isSo: (value: T) => boolean,
    about: string,
): Promise<T> {
    const until = Date.now() + LONG_MS;
    let last: T | undefined;
    for (;;) {
        last = await what();
        if (isSo(last)) return last;
        if (Date.now() > until) throw new Error(`${about}; the last was ${JSON.stringify(last)}`);
        await new Promise((done) => setTimeout(done, 100));
    }
}
