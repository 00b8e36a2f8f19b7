/** Light or dark: as the system says, or as somebody chose. */
import { computed, effect, signal } from "@preact/signals";
import { remembered } from "./remembered";

export type Choice = "system" | "light" | "dark";
const dark = window.matchMedia("(prefers-color-scheme: dark)");
const system = signal(dark.matches);
dark.addEventListener("change", () => (system.value = dark.matches));

export const choice = signal<Choice>(first());
export const theme = computed(() =>
    choice.value === "system" ? (system.value ? "dark" : "light") : choice.value,
);
effect(() => {
    document.documentElement.dataset.theme = theme.value;
});

export function choose(next: Choice): void {
    choice.value = next;
    remembered.set("theme", next === "system" ? null : next);
}

function first(): Choice {
    const kept = remembered.get("theme");
    return kept === "light" || kept === "dark" ? kept : "system";
}
