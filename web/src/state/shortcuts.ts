/** Keys that go somewhere. They can be turned off, for whoever speaks to the computer. */
import { signal } from "@preact/signals";
import { go } from "./place";
import { remembered } from "./remembered";
import { choose, theme } from "./theme";
import { language, speak } from "./words";

export const helpShown = signal(false);
export const shortcutsOn = signal(remembered.get("shortcuts") !== "off");

export function letShortcuts(on: boolean): void {
    shortcutsOn.value = on;
    remembered.set("shortcuts", on ? null : "off");
}

/** After `g`. */
const GO: Record<string, string> = {
    o: "/",
    r: "/rules",
    d: "/rules/draft",
    h: "/rules/history",
    k: "/keys",
    p: "/playground",
    n: "/nodes",
};
const LEADER_MS = 1500;

export function startShortcuts(): void {
    let leading = 0;
    window.addEventListener("keydown", (event) => {
        if (!shortcutsOn.value || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
        if (typing(event.target) || document.querySelector("dialog[open]")) return;
        const isLed = Date.now() - leading < LEADER_MS;
        leading = 0;
        const address = isLed ? GO[event.key] : undefined;
        if (address) go(address);
        else if (event.key === "g") leading = Date.now();
        else if (event.key === "?") helpShown.value = true;
        else if (event.key === "t") choose(theme.value === "dark" ? "light" : "dark");
        else if (event.key === "l") speak(language.value === "en" ? "zh" : "en");
        else if (event.key === "/") document.querySelector<HTMLElement>("main [data-find]")?.focus();
        else return;
        event.preventDefault();
    });
}

function typing(target: EventTarget | null): boolean {
    return (
        target instanceof HTMLElement &&
        (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName))
    );
}
