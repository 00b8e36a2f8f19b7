/** What every page has: keys, themes, languages, a phone's width; a connection that is lost and found; names that mean harm. */
import type { Server } from "node:http";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { browser, eventually, look } from "./browser";
import { Program, upstream } from "./program";

/** No phone has room for these in one line. */
const LONG = "a-name-that-nobody-would-choose-and-somebody-did-all-the-same-on-a-friday";
const LONG_KEY = `${LONG}_${LONG}`;
const PATHS = [
    "/",
    "/rules",
    "/rules/draft",
    "/rules/history",
    "/keys",
    "/keys?limit=per-client&key=a",
    `/keys?limit=${LONG}&key=${LONG_KEY}`,
    "/playground",
    "/nodes",
];
const EVIL = `<img src=x onerror="document.title='owned'">`;

let program: Program;
let chromium: Browser;
let behind: Server;
beforeAll(async () => {
    const { address, server } = await upstream();
    behind = server;
    const rules = `upstreams:
  shop: { servers: ["http://${address}"] }
limits:
  ${LONG}: { token_bucket: { rate: 1/h, burst: 2 } }
  per-client: { token_bucket: { rate: 1/h, burst: 2 } }
  '${EVIL.replaceAll("'", "''")}': { token_bucket: { rate: 1/h, burst: 2 } }
routes:
  - name: ${LONG}
    when: { path: "/long/**" }
    upstream: shop
    rules:
      - name: ${LONG}
        limits: [{ use: ${LONG}, key: [header.x-api-key] }]
  - name: all
    when: { path: "/**" }
    upstream: shop
    rules:
      - name: per-client
        limits: [{ use: per-client, key: [header.x-api-key] }]
`;
    [program, chromium] = await Promise.all([Program.serve(rules), browser()]);
});
afterAll(async () => {
    await chromium?.close();
    await program?.end();
    behind?.close();
});

describe("every page", () => {
    test("fits a phone, light and dark, in both languages, whatever the names", async () => {
        for (const key of [LONG_KEY, "greedy"]) {
            const headers = { "x-api-key": key };
            for (let i = 0; i < 4; i++) await fetch(`${program.gateway}/long/1`, { headers });
        }
        for (const options of [
            { locale: "en-GB", colorScheme: "dark" },
            { locale: "en-GB", colorScheme: "light" },
            { locale: "zh-CN", colorScheme: "dark" },
            { locale: "zh-CN", colorScheme: "light" },
        ] as const) {
            const { page, close } = await look(chromium, program.admin, "/", {
                ...options,
                viewport: { width: 360, height: 700 },
            });
            for (const path of PATHS) {
                await page.goto(program.admin + path);
                await page.locator("main h1").waitFor();
                await page
                    .locator(".waiting", { hasText: /One moment|请稍候/ })
                    .first()
                    .waitFor({ state: "detached" });
                // Lists without anybody in them would fit anything.
                if (path.startsWith("/keys")) await page.locator(".heavy tbody tr").first().waitFor();
                if (path.includes("&key=")) await page.locator(".one-key .level").waitFor();
                const [over, outside] = await page.evaluate(() => {
                    const root = document.scrollingElement!;
                    const tables = [...document.querySelectorAll(".card > table")].filter(
                        (table) =>
                            table.getBoundingClientRect().right >
                            table.parentElement!.getBoundingClientRect().right,
                    );
                    return [root.scrollWidth - root.clientWidth, tables.length];
                });
                const where = `${path}, ${options.locale}`;
                expect(over, `${where} is as wide as the phone`).toBeLessThanOrEqual(0);
                expect(outside, `${where} keeps its tables inside their cards`).toBe(0);
                expect(await page.evaluate(() => document.documentElement.dataset.theme)).toBe(
                    options.colorScheme,
                );
            }
            await close();
        }
    });

    test("is reached by keys, which are listed under ?", async () => {
        const { page, close } = await look(chromium, program.admin);
        await page.locator("main h1").waitFor();
        for (const [key, name] of [
            ["r", "Rules"],
            ["k", "Keys"],
            ["p", "Playground"],
            ["n", "Nodes"],
            ["o", "Overview"],
        ] as const) {
            await page.keyboard.press("g");
            await page.keyboard.press(key);
            await page.getByRole("heading", { level: 1, name }).waitFor();
        }
        await page.keyboard.press("Shift+?");
        const help = page.getByRole("dialog", { name: "Keyboard" });
        await help.waitFor();
        // The focus stays inside.
        for (let i = 0; i < 6; i++) {
            await page.keyboard.press("Tab");
            const inside = await page.evaluate(() => {
                const at = document.activeElement;
                return at === document.body || Boolean(at?.closest("dialog"));
            });
            expect(inside).toBe(true);
        }
        await page.keyboard.press("Escape");
        await help.waitFor({ state: "detached" });
        await close();
    });

    test("has a way past the frame, and a name for everything that can be pressed", async () => {
        const { page, close } = await look(chromium, program.admin);
        await page.locator("main h1").waitFor();
        await page.keyboard.press("Tab");
        expect(await page.evaluate(() => document.activeElement?.textContent)).toBe("Skip to the page");
        for (const path of PATHS) {
            await page.goto(program.admin + path);
            await page.locator("main h1").waitFor();
            const nameless = await page.evaluate(() =>
                [...document.querySelectorAll<HTMLElement>("button, a, input, select, textarea")]
                    .filter((one) => {
                        const label = (one as HTMLInputElement).labels?.[0]?.textContent;
                        return !(one.textContent?.trim() || one.getAttribute("aria-label") || label?.trim());
                    })
                    .map((one) => one.outerHTML),
            );
            expect(nameless, path).toEqual([]);
            expect(await page.locator("div[onclick], span[onclick]").count()).toBe(0);
        }
        await close();
    });

    test("speaks the language and has the theme that somebody chose, also next time", async () => {
        const { page, close } = await look(chromium, program.admin);
        await page.getByRole("button", { name: "Menu" }).click();
        await page.getByRole("radio", { name: "中文" }).check();
        await page.getByRole("heading", { name: "总览" }).waitFor();
        await page.getByRole("radio", { name: "深色" }).check();
        await page.reload();
        await page.getByRole("heading", { name: "总览" }).waitFor();
        expect(
            await page.evaluate(() => [
                document.documentElement.lang,
                document.documentElement.dataset.theme,
            ]),
        ).toEqual(["zh-CN", "dark"]);
        await close();
    });

    test("that is none is told as that, and by the server as 404", async () => {
        expect((await fetch(`${program.admin}/nothing`)).status).toBe(404);
        expect((await fetch(`${program.admin}/rules`)).headers.get("content-type")).toContain("text/html");
    });
});

test("names that mean harm are text", async () => {
    const { page, close } = await look(chromium, program.admin);
    await page.locator(".link.open").waitFor();
    const send = () =>
        fetch(`${program.gateway}/${encodeURIComponent(EVIL)}`, { headers: { "x-api-key": EVIL } });
    for (let i = 0; i < 4; i++) await send();
    await page.locator(".refused-list", { hasText: EVIL }).waitFor();
    await page.locator(".refused-list a", { hasText: EVIL }).first().click();
    await page.locator(".one-key h2", { hasText: EVIL }).waitFor();
    await page.getByRole("heading", { name: "Most limited" }).waitFor();
    await page.getByRole("button", { name: "Reset" }).click();
    await page.getByRole("dialog").getByText(EVIL).first().waitFor();
    await page.getByRole("dialog").getByRole("button", { name: "Cancel" }).click();
    await page.goto(`${program.admin}/rules`);
    await page.locator(".piece", { hasText: EVIL }).waitFor();
    expect(await page.title()).not.toBe("owned");
    expect(await page.locator("img").count()).toBe(0);
    await close();
});

test("a lost connection is told, and heals by itself", async () => {
    const looked = await look(chromium, program.admin);
    const { page, wrong } = looked;
    await page.locator(".link.open").waitFor();
    await program.stop();
    await page.getByText("Tollgate has not answered since").waitFor();
    await page.getByRole("link", { name: "Nodes" }).click();
    await page.getByRole("heading", { level: 1, name: "Nodes" }).waitFor();
    await page.getByText("Tollgate did not answer").first().waitFor();
    program = await program.again();
    await page.locator(".link.open").waitFor();
    await page.getByText("Tollgate has not answered since").waitFor({ state: "detached" });
    await eventually(
        () => page.getByText("Tollgate did not answer").count(),
        (n) => n === 0,
        "the sentence goes",
    );
    // A browser logs what it could not reach.
    wrong.splice(
        0,
        wrong.length,
        ...wrong.filter((text) => !text.includes("ERR_CONNECTION") && !text.includes("ERR_INCOMPLETE")),
    );
    await looked.close();
});
