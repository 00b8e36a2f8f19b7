// Pictures of every page, to be looked at: node dev/shots.mjs http://127.0.0.1:5173 shots
// Light, dark, on a phone, in Chinese. Reports whatever the browser complained about.
import { mkdirSync } from "node:fs";
import { chromium } from "playwright-core";

const [address = "http://127.0.0.1:5173", folder = "shots", only = ""] = process.argv.slice(2);
mkdirSync(folder, { recursive: true });
const browser = await chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
    ],
});
const FORMS = {
    light: { colorScheme: "light", locale: "en-GB", viewport: { width: 1280, height: 860 } },
    dark: { colorScheme: "dark", locale: "en-GB", viewport: { width: 1280, height: 860 } },
    phone: {
        colorScheme: "light",
        locale: "en-GB",
        viewport: { width: 375, height: 740 },
        deviceScaleFactor: 2,
    },
    chinese: { colorScheme: "light", locale: "zh-CN", viewport: { width: 1280, height: 860 } },
};
const PAGES = {
    overview: "/",
    rules: "/rules",
    piece: "/rules?piece=1",
    history: "/rules/history",
    keys: "/keys",
    key: "/keys?limit=per-client&key=greedy",
    playground: "/playground",
    nodes: "/nodes",
};
for (const [form, options] of Object.entries(FORMS)) {
    const context = await browser.newContext(options);
    const page = await context.newPage();
    page.on("console", (message) => message.type() === "error" && console.log(form, message.text()));
    page.on("pageerror", (error) => console.log(form, error.message));
    for (const [name, path] of Object.entries(PAGES)) {
        if (only && !`${name}-${form}`.includes(only)) continue;
        await page.goto(address + path);
        await page.waitForTimeout(name === "key" ? 6000 : 2200);
        const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
        if (wide > 0) console.log(form, name, `is ${wide} px too wide`);
        await page.screenshot({ path: `${folder}/${name}-${form}.png`, fullPage: form === "phone" });
    }
    await context.close();
}
await browser.close();
