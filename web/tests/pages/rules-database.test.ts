/** Rules kept in a database, piece by piece: drafted together, ordered, published; somebody else at the same time; two nodes. */
import type { Server } from "node:http";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Book, Change } from "../../src/api/types";
import { browser, eventually, look } from "./browser";
import { Program, upstream } from "./program";

let program: Program;
let other: Program;
let chromium: Browser;
let behind: Server;

const limit = (burst: number) =>
    `limits:\n  - { token_bucket: { rate: 1/h, burst: ${burst} }, key: [header.x-api-key] }\n`;

beforeAll(async () => {
    const { address, server } = await upstream();
    behind = server;
    program = await Program.serve('rules_from: { source: "sqlite://FOLDER/rules.db", poll: 200ms }\n');
    other = await Program.serve(
        `rules_from: { source: "sqlite://${program.folder}/rules.db", poll: 200ms }\n`,
    );
    chromium = await browser();
    await publish([
        { change: "create", kind: "upstream", name: "shop", text: `servers: ["http://${address}"]\n` },
        {
            change: "create",
            kind: "limit",
            name: "per-client",
            text: "token_bucket: { rate: 1/h, burst: 3 }\n",
        },
        {
            change: "create",
            kind: "route",
            name: "orders",
            text: 'when: { path: "/orders/**" }\nupstream: shop\n',
        },
        { change: "create", kind: "rule", route: "orders", name: "first", text: limit(3) },
        { change: "create", kind: "rule", route: "orders", name: "second", text: limit(50) },
        { change: "create", kind: "route", name: "old", text: "when: { path: /old }\nupstream: shop\n" },
        { change: "create", kind: "rule", route: "old", name: "old-rule", text: limit(9) },
    ]);
});
afterAll(async () => {
    await chromium?.close();
    await other?.end();
    await program?.end();
    behind?.close();
});

async function publish(changes: Change[]): Promise<Book> {
    const answer = await fetch(`${program.admin}/v1/changes`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ changes }),
    });
    expect(answer.status, await answer.clone().text()).toBe(200);
    return (await answer.json()) as Book;
}

const book = async () => (await (await fetch(`${program.admin}/v1/book`)).json()) as Book;
const rulesOf = async (route: string) =>
    (await book()).pieces.filter((one) => one.kind === "rule" && one.route === route).map((one) => one.name);
const piece = async (name: string) => (await book()).pieces.find((one) => one.name === name)!;
const editor = (page: Page) => page.getByRole("textbox", { name: /^Text of/ });

async function publishDraft(page: Page): Promise<void> {
    await page.getByRole("button", { name: "Publish", exact: true }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Publish" }).click();
    await page.getByText("Published, and in force").waitFor();
}

describe("rules in a database", () => {
    test("are drafted together, ordered by keys, and published all at once", async () => {
        const { page, close } = await look(chromium, program.admin, "/rules");
        await page.getByRole("link", { name: /^first/ }).click();
        await editor(page).fill(limit(4));
        await page.getByText("no mistakes").waitFor();
        await page.getByRole("link", { name: /^second/ }).focus();
        await page.keyboard.press("Alt+ArrowUp");
        await page.getByText("2 changes").waitFor();
        const card = page.locator(".card", {
            has: page.getByRole("heading", { name: "orders", exact: true }),
        });
        await card.getByRole("button", { name: "+ Rule" }).click();
        await page.getByRole("textbox", { name: "Name" }).fill("third");
        // A mistake in what is not there yet is shown at its line, too.
        await editor(page).fill(limit(7).replace("1/h", "0/h"));
        expect(await page.locator(".piece-editor .mistakes li").first().textContent()).toContain("line 2:");
        await editor(page).fill(limit(7));
        await page.getByText("no mistakes").waitFor();
        await page.getByRole("link", { name: "Review and publish" }).click();
        await page.getByText("3 changes").first().waitFor();
        expect(await rulesOf("orders")).toEqual(["first", "second"]);
        await publishDraft(page);
        expect(await rulesOf("orders")).toEqual(["second", "first", "third"]);
        expect((await piece("first")).text).toContain("burst: 4");
        await close();
    });

    test("that somebody else changed are explained, and the last word is a person's", async () => {
        const { page, close } = await look(chromium, program.admin, "/rules");
        await page.getByRole("link", { name: /^first/ }).click();
        await editor(page).fill(limit(11));
        await page.getByText("no mistakes").waitFor();
        const now = await piece("first");
        await publish([{ change: "edit", id: now.id, version: now.version, text: limit(12) }]);
        const note = page.locator(".piece-editor .stale");
        await note.waitFor();
        await note.locator("summary").click();
        await note.locator(".diff-line.new", { hasText: "burst: 12" }).waitFor();
        await page.getByRole("link", { name: "Review and publish" }).click();
        expect(await page.getByRole("button", { name: "Publish", exact: true }).isDisabled()).toBe(true);
        await page.getByRole("button", { name: "Put mine in its place" }).click();
        await publishDraft(page);
        expect((await piece("first")).text).toContain("burst: 11");
        await page.getByRole("link", { name: "History" }).click();
        await page.locator(".history summary", { hasText: "orders/first" }).first().click();
        await page.locator(".history .diff-line.new", { hasText: "burst: 11" }).waitFor();
        await close();
    });

    test("are switched at once, and deleted with the draft; a route takes its rules along", async () => {
        const { page, close } = await look(chromium, program.admin, "/rules");
        const first = page.getByRole("switch", { name: "Rule orders/first" });
        await first.click();
        await eventually(
            async () => (await piece("first")).enabled,
            (on) => !on,
            "it is off",
        );
        await eventually(
            () => first.getAttribute("aria-checked"),
            (on) => on === "false",
            "and shown so",
        );
        const card = page.locator(".card", { has: page.getByRole("heading", { name: "old", exact: true }) });
        await card.getByRole("link", { name: /the route itself/ }).click();
        await page.getByRole("button", { name: "Delete" }).click();
        await page.getByRole("link", { name: "Review and publish" }).click();
        await publishDraft(page);
        expect(await rulesOf("old")).toEqual([]);
        await close();
    });

    test("are followed by every node, and the page says who has the newest", async () => {
        const { page, close } = await look(chromium, program.admin, "/nodes");
        await page.getByText("SQLite").waitFor();
        const rows = page.getByRole("row").filter({ hasText: "current" });
        await eventually(
            () => rows.count(),
            (n) => n === 2,
            "both nodes are current",
        );
        await close();
    });
});
