/** Rules kept in a file: typed, checked as they are typed, tried, published; switched; changed by somebody else meanwhile. */
import { writeFileSync } from "node:fs";
import type { Server } from "node:http";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { browser, eventually, look } from "./browser";
import { Program, upstream } from "./program";

let program: Program;
let chromium: Browser;
let behind: Server;
let first: string;
beforeAll(async () => {
    const { address, server } = await upstream();
    behind = server;
    const rules = `upstreams:
  shop: { servers: ["http://${address}"] }
routes:
  - name: orders
    when: { path: "/orders/**" }
    upstream: shop
    rules:
      - name: per-client
        limits: [{ token_bucket: { rate: 1/h, burst: 3 }, key: [header.x-api-key] }]
`;
    [program, chromium] = await Promise.all([Program.serve(rules), browser()]);
    first = program.rules();
});
beforeEach(async () => {
    writeFileSync(program.file, first);
    const burst = async () => {
        const book = (await (await fetch(`${program.admin}/v1/rules`)).json()) as {
            rules: { enabled: boolean; limits: { summary: string }[] }[];
        };
        return `${book.rules[0]?.enabled} ${book.rules[0]?.limits[0]?.summary}`;
    };
    await eventually(
        burst,
        (told) => told.startsWith("true") && /\b3\b/.test(told),
        "the first rules are in force",
    );
});
afterAll(async () => {
    await chromium?.close();
    await program?.end();
    behind?.close();
});

const editor = (page: Page) => page.getByRole("textbox", { name: /^Text of/ });

async function retype(page: Page, from: string, to: string): Promise<void> {
    const text = await editor(page).inputValue();
    expect(text).toContain(from);
    await editor(page).fill(text.replace(from, to));
}

const statuses = async (key: string, n: number) => {
    const got: number[] = [];
    for (let i = 0; i < n; i++) {
        got.push((await fetch(`${program.gateway}/orders/1`, { headers: { "x-api-key": key } })).status);
    }
    return got;
};

describe("rules in a file", () => {
    test("are listed by route, and each has its switch", async () => {
        const { page, close } = await look(chromium, program.admin, "/rules");
        await page.getByRole("heading", { name: "orders" }).waitFor();
        const rule = page.getByRole("switch", { name: "Rule orders/per-client" });
        await rule.click();
        await eventually(
            () => rule.getAttribute("aria-checked"),
            (on) => on === "false",
            "it is off",
        );
        expect(program.rules()).toContain("enabled: false");
        expect(await statuses("switched-off", 6)).toEqual([200, 200, 200, 200, 200, 200]);
        await rule.click();
        await eventually(
            () => rule.getAttribute("aria-checked"),
            (on) => on === "true",
            "it is on",
        );
        expect((await statuses("switched-on", 6)).filter((status) => status === 429)).toHaveLength(3);
        await close();
    });

    test("are checked while they are typed, with each mistake at its line", async () => {
        const { page, close } = await look(chromium, program.admin, "/rules");
        await retype(page, "rate: 1/h", "rate: 0/h");
        const mistake = page.locator(".mistakes li").first();
        await mistake.waitFor();
        const line = first.split("\n").findIndex((text) => text.includes("rate: 1/h")) + 1;
        expect(await mistake.textContent()).toContain(`line ${line}:`);
        await page.locator(`.editor-lines li.wrong`, { hasText: String(line) }).waitFor();
        expect(await editor(page).getAttribute("aria-invalid")).toBe("true");
        await page.getByRole("link", { name: "Review and publish" }).click();
        expect(await page.getByRole("button", { name: "Publish", exact: true }).isDisabled()).toBe(true);
        // The mistake leads back to where it is.
        await page.locator(".mistakes a").first().click();
        await retype(page, "rate: 0/h", "rate: 1/h");
        await page.locator(".mistakes li").waitFor({ state: "detached" });
        expect(program.rules()).toBe(first);
        await close();
    });

    test("are tried on the requests that came, published, and remembered", async () => {
        await statuses("tried", 8);
        const { page, close } = await look(chromium, program.admin, "/rules");
        await retype(page, "burst: 3", "burst: 5");
        await page.getByText("no mistakes").waitFor();
        // The draft is still there after the page was loaded anew.
        await page.reload();
        expect(await editor(page).inputValue()).toContain("burst: 5");
        await editor(page).press("Control+Enter");
        await page.locator(".diff-line.new", { hasText: "burst: 5" }).waitFor();

        await page.getByRole("button", { name: "Try on recorded requests" }).click();
        const trial = page.locator(".card", { hasText: "What the draft would have done" });
        await trial.waitFor();
        // A request is recorded now and then; those that came may be too few to be among them.
        await trial.getByText(/recorded/).waitFor();

        await page.getByRole("button", { name: "Publish", exact: true }).click();
        await page.getByRole("dialog").getByText("all or nothing").waitFor();
        await page.getByRole("dialog").getByRole("button", { name: "Publish" }).click();
        await page.getByText("Published, and in force").waitFor();
        expect(program.rules()).toContain("burst: 5");
        expect((await statuses("published", 6)).filter((status) => status === 200)).toHaveLength(5);

        await page.getByRole("link", { name: "History" }).click();
        await page.locator(".history summary").first().click();
        await page.locator(".history .diff-line.gone", { hasText: "burst: 3" }).first().waitFor();
        await close();
    });

    test("that somebody else changed meanwhile are not overwritten unless one says so", async () => {
        const { page, close } = await look(chromium, program.admin, "/rules");
        await retype(page, "burst: 3", "burst: 4");
        await page.getByText("no mistakes").waitFor();
        writeFileSync(program.file, `${first}# somebody was here\n`);
        const note = page.locator(".stale");
        await note.waitFor();
        expect(await note.textContent()).toContain("while you worked on it");
        await page.getByRole("link", { name: "Review and publish" }).click();
        expect(await page.getByRole("button", { name: "Publish", exact: true }).isDisabled()).toBe(true);
        await note.locator("summary").click();
        await note.locator(".diff-line.new", { hasText: "somebody was here" }).waitFor();
        expect(program.rules()).toContain("burst: 3");

        await page.getByRole("button", { name: "Take theirs, drop mine" }).click();
        await page.getByText("There is no draft").waitFor();
        await page.getByRole("main").getByRole("link", { name: "Rules", exact: true }).first().click();
        expect(await editor(page).inputValue()).toContain("somebody was here");
        await close();
    });
});

test("a key that has used up what it had is as new after a reset", async () => {
    const { page, close } = await look(chromium, program.admin, "/keys");
    expect(await statuses("spent", 4)).toEqual([200, 200, 200, 429]);
    await page.getByRole("link", { name: "spent" }).first().click();
    const card = page.locator(".one-key");
    await card.getByText("would be refused").waitFor();
    await card.getByText("Passes again in").waitFor();
    await card.getByRole("button", { name: "Reset" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Reset" }).click();
    await card.getByText("would pass").waitFor();
    await card.locator(".level-value", { hasText: "3 left of 3" }).waitFor();
    expect(await statuses("spent", 1)).toEqual([200]);
    await close();
});
