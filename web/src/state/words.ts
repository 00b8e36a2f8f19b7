/** Which language is spoken, and the words of it. */
import { effect, signal } from "@preact/signals";
import { en } from "../words/en";
import { zh } from "../words/zh";
import { remembered } from "./remembered";

export type WordKey = keyof typeof en;
export type Language = "en" | "zh";
type Values = Record<string, string | number>;

const DICTIONARIES: Record<Language, Record<WordKey, string>> = { en, zh };

export const language = signal<Language>(first());
effect(() => {
    document.documentElement.lang = language.value === "zh" ? "zh-CN" : "en";
});

/** For numbers and dates: the reader's own variety of the language, where the browser names one. */
export function locale(): string {
    const own = navigator.languages.find((name) => name.toLowerCase().startsWith(language.value));
    return own ?? (language.value === "zh" ? "zh-CN" : "en-GB");
}

export function speak(next: Language): void {
    language.value = next;
    remembered.set("language", next);
}

export function t(key: WordKey, values?: Values): string {
    return filled(DICTIONARIES[language.value][key], values);
}

/** A word that depends on a number: `x.one` or `x.other`. */
export type CountKey = { [K in WordKey]: K extends `${infer Stem}.other` ? Stem : never }[WordKey];
export function count(stem: CountKey, n: number, values?: Values): string {
    const form = new Intl.PluralRules(locale()).select(n) === "one" ? "one" : "other";
    return t(`${stem}.${form}` as WordKey, { n: new Intl.NumberFormat(locale()).format(n), ...values });
}

export function filled(text: string, values: Values = {}): string {
    return text.replace(/\{(\w+)\}/g, (whole, name: string) => String(values[name] ?? whole));
}

function first(): Language {
    const kept = remembered.get("language");
    if (kept === "en" || kept === "zh") return kept;
    return navigator.language.toLowerCase().startsWith("zh") ? "zh" : "en";
}
