/** Users: nobody sees anything without a token, and everybody does what their role allows. */
import { createHash } from "node:crypto";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { browser, look } from "./browser";
import { Program } from "./program";

const TOKENS = { ann: "ann's long and secret token 4711", vic: "vic's long and secret token 0815" };
const hash = (token: string) => `sha256:${createHash("sha256").update(token).digest("hex")}`;

let program: Program;
let chromium: Browser;
beforeAll(async () => {
    const users = `[{ name: ann, role: admin, token: "${hash(TOKENS.ann)}" }, { name: vic, role: viewer, token: "${hash(TOKENS.vic)}" }]`;
    const listen = `{ gateway: 127.0.0.1:0, admin: { address: 127.0.0.1:0, users: ${users} } }`;
    const rules = "limits:\n  per-client: { token_bucket: { rate: 1/s, burst: 3 } }\n";
    [program, chromium] = await Promise.all([Program.serve(rules, listen), browser()]);
});
afterAll(async () => {
    await chromium?.close();
    await program?.end();
});

test("a wrong token is nobody's, a right one signs in, and out again", async () => {
    const { page, close } = await look(chromium, program.admin, "/nodes");
    await page.getByRole("heading", { name: "Sign in" }).waitFor();
    expect(await page.locator(".nav").count()).toBe(0);
    await page.getByLabel("Token").fill("nobody's");
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByText("Nobody has this token.").waitFor();
    await page.getByLabel("Token").fill(TOKENS.ann);
    await page.getByLabel("Token").press("Enter");
    // On to the page that was asked for.
    await page.getByRole("heading", { level: 1, name: "Nodes" }).waitFor();
    expect(
        await page.evaluate(() =>
            [document.cookie, JSON.stringify(localStorage), JSON.stringify(sessionStorage)].join(),
        ),
    ).not.toContain("token 4711");
    await page.reload();
    await page.getByRole("heading", { level: 1, name: "Nodes" }).waitFor();
    await page.getByRole("button", { name: "Menu" }).click();
    await page.getByText("ann", { exact: true }).waitFor();
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByRole("heading", { name: "Sign in" }).waitFor();
    await page.reload();
    await page.getByRole("heading", { name: "Sign in" }).waitFor();
    await close();
});

test("a viewer looks, and is told what takes more", async () => {
    const { page, close } = await look(chromium, program.admin);
    await page.getByLabel("Token").fill(TOKENS.vic);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("heading", { name: "Overview" }).waitFor();
    expect(await page.getByRole("switch", { name: "Limits" }).isDisabled()).toBe(true);
    await page.goto(`${program.admin}/keys?limit=per-client&key=a`);
    await page.locator(".one-key").getByText("would pass").waitFor();
    expect(await page.getByRole("button", { name: "Ban", exact: true }).isDisabled()).toBe(true);
    await page.locator(".one-key").getByText("This takes the role operator").waitFor();
    await page.goto(`${program.admin}/rules`);
    const text = page.getByRole("textbox", { name: /^Text of/ });
    await text.waitFor();
    expect(await text.getAttribute("readonly")).not.toBeNull();
    await close();
});
