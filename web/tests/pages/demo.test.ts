/** As a new user would: the demo runs, somebody opens the console, finds who is refused, and lets them pass. */
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { browser, eventually, look } from "./browser";
import { Program } from "./program";

let demo: Program;
let chromium: Browser;
beforeAll(async () => {
    [demo, chromium] = await Promise.all([Program.demo(), browser()]);
});
afterAll(async () => {
    await chromium?.close();
    await demo?.end();
});

const number = (text: string | null) => Number((text ?? "").replace(/[^\d.]/g, ""));

describe("the demo's console", () => {
    test("shows what passes and what is refused, live and by rule", async () => {
        const { page, close } = await look(chromium, demo.admin);
        await page.getByRole("heading", { name: "Overview" }).waitFor();
        await page.getByText("Ready", { exact: true }).waitFor();
        await page.locator(".link.open").waitFor();
        const passed = page.locator(".figure.passed .figure-value");
        const refused = page.locator(".figure.refused .figure-value");
        await eventually(
            () => passed.textContent(),
            (text) => number(text) > 0,
            "something passes",
        );
        await eventually(
            () => refused.textContent(),
            (text) => number(text) > 0,
            "somebody is refused",
        );
        const first = await page.locator(".figure.passed .figure-note").textContent();
        await eventually(
            () => page.locator(".figure.passed .figure-note").textContent(),
            (now) => now !== first,
            "it goes on live",
        );
        await page.getByRole("row").filter({ hasText: "orders / per-client" }).waitFor();
        // The demo's rule in shadow says what it would refuse, in a column that others leave empty.
        await page.getByRole("columnheader", { name: "Would refuse" }).waitFor();
        const shadow = page
            .getByRole("row")
            .filter({ hasText: "orders / smaller-plan" })
            .locator("td.shadow");
        await eventually(
            () => shadow.first().textContent(),
            (text) => number(text) > 0,
            "the rule in shadow would refuse",
        );
        await page.locator(".chart canvas").first().waitFor();
        expect(await page.locator(".chart").first().getAttribute("aria-label")).toMatch(
            /\d+ passed, .* refused/,
        );
        await page.getByRole("radio", { name: "1 h" }).check();
        await page.locator(".chart canvas").first().waitFor();
        await close();
    });

    test("leads from somebody who was refused to their key, and a grant lets them pass", async () => {
        const { page, close } = await look(chromium, demo.admin);
        await page.locator(".refused-list a", { hasText: "greedy" }).first().click();
        await page.getByRole("heading", { name: "Keys" }).waitFor();
        expect(page.url()).toContain("key=greedy");
        const card = page.locator(".one-key");
        await card.getByText("left of 40").waitFor();
        await card.locator(".chart canvas").waitFor();

        await card.getByLabel("How many units").fill("100000");
        await card.getByRole("button", { name: "Grant units" }).click();
        await page.getByRole("dialog").getByText("100,000 units").waitFor();
        await page.getByRole("dialog").getByRole("button", { name: "Grant" }).click();
        await page.getByRole("dialog").waitFor({ state: "detached" });
        await card.getByText("would pass").waitFor();
        const left = card.locator(".level-value");
        await eventually(
            () => left.textContent(),
            (text) => number(text?.split("left")[0] ?? "") > 40,
            "there is more than the limit",
        );
        await card.getByText("The limit is 40; more was granted").waitFor();
        await card.getByText("other limits of the same request").waitFor();
        await card.getByText("fades by half in a minute").first().waitFor();
        await close();
    });

    test("bans somebody, and lifts it", async () => {
        const { page, close } = await look(chromium, demo.admin, "/keys");
        await page.getByLabel("Limit", { exact: true }).fill("per-client");
        await page.getByLabel("header.x-api-key").fill("nobody-yet");
        await page.getByRole("button", { name: "Look up" }).click();
        const card = page.locator(".one-key");
        await card.getByText("would pass").waitFor();
        await card.getByRole("button", { name: "Ban", exact: true }).click();
        await page.getByRole("dialog").getByRole("button", { name: "Ban" }).click();
        await card.getByText("would be refused").waitFor();
        await card.getByRole("button", { name: "Lift a ban" }).click();
        await page.getByRole("dialog").getByRole("button", { name: "Lift" }).click();
        await card.getByText("would pass").waitFor();
        await close();
    });

    test("lists the busiest keys", async () => {
        const { page, close } = await look(chromium, demo.admin, "/keys");
        await page.getByRole("heading", { name: "Most limited" }).waitFor();
        await page.getByRole("link", { name: "greedy" }).first().waitFor();
        await page.getByRole("heading", { name: "Most used" }).waitFor();
        await close();
    });

    test("says in place that there is no such limit", async () => {
        const { page, close } = await look(chromium, demo.admin, "/keys?limit=per-clinet&key=a");
        const sentence = page.locator(".one-key .sentence");
        await sentence.waitFor();
        expect(await sentence.textContent()).toContain("per-client");
        await close();
    });

    test("turns all limits off and on, after asking", async () => {
        const { page, close } = await look(chromium, demo.admin);
        const main = page.getByRole("switch", { name: "Limits" });
        await main.click();
        await page.getByRole("dialog").getByRole("button", { name: "Cancel" }).click();
        expect(await main.getAttribute("aria-checked")).toBe("true");
        await main.click();
        await page.getByRole("dialog").getByRole("button", { name: "Turn off" }).click();
        await page.getByText("The gate is up").waitFor();
        expect(await main.getAttribute("aria-checked")).toBe("false");
        await main.click();
        await page.getByText("The gate is up").waitFor({ state: "detached" });
        await page.goto(`${demo.admin}/rules/history`);
        const turns = page.locator(".history > li", { hasText: "everything" });
        await turns.first().waitFor();
        const told = await turns.allTextContents();
        expect(told[0]).toContain("off → on");
        expect(told[1]).toContain("on → off");
        await close();
    });

    test("plays every algorithm on every shape of traffic, by the server's own code", async () => {
        const { page, close } = await look(chromium, demo.admin, "/playground");
        const sums = page.locator(".play-sums");
        await sums.waitFor();
        const kinds = await page.getByLabel("Algorithm").locator("option").allTextContents();
        for (const kind of kinds) {
            await page.getByLabel("Algorithm").selectOption(kind);
            const answer = await page.waitForResponse((response) => response.url().endsWith("/v1/play"));
            expect(answer.status(), `${kind}: ${await answer.text()}`).toBe(200);
        }
        for (const shape of ["steady", "burst", "wave", "poisson", "spike"]) {
            const answer = page.waitForResponse((response) => response.url().endsWith("/v1/play"));
            await page.getByLabel("Seed").fill(String(7 + shape.length));
            await page.getByLabel("Shape").selectOption(shape);
            expect((await answer).status(), shape).toBe(200);
        }
        await page.getByLabel("Algorithm").selectOption("token_bucket");
        await page.getByLabel("rate", { exact: true }).fill("0/s");
        await page.locator(".mistakes li").first().waitFor();
        await page.getByLabel("rate", { exact: true }).fill("5/s");
        await page.locator(".mistakes").waitFor({ state: "detached" });
        await page.locator(".strip canvas").waitFor();
        await close();
    });

    test("shows the node, its store, listeners and upstreams", async () => {
        const { page, close } = await look(chromium, demo.admin, "/nodes");
        await page.getByText("Decided in this process").waitFor();
        await page
            .getByRole("row")
            .filter({ hasText: "gateway" })
            .filter({ hasText: demo.addresses.get("gateway") })
            .waitFor();
        await page.getByText("shop", { exact: true }).waitFor();
        await page.getByText("healthy").first().waitFor();
        await page.getByRole("heading", { name: "Nodes that follow these rules" }).waitFor();
        await page.getByText(/\(this one\)|the only one that is known/).waitFor();
        await close();
    });
});
