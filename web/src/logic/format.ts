/** Numbers, times and spans, as the reader's language writes them. */

const cache = new Map<string, Intl.NumberFormat | Intl.DateTimeFormat | Intl.RelativeTimeFormat>();
function kept<T extends Intl.NumberFormat | Intl.DateTimeFormat | Intl.RelativeTimeFormat>(
    name: string,
    make: () => T,
): T {
    let found = cache.get(name) as T | undefined;
    if (!found) cache.set(name, (found = make()));
    return found;
}

export function whole(value: number, locale: string): string {
    return kept(`n0 ${locale}`, () => new Intl.NumberFormat(locale, { maximumFractionDigits: 0 })).format(
        value,
    );
}

/** Figures that move: one place after the point while they are small, none above. */
export function rate(value: number, locale: string): string {
    const places = value !== 0 && Math.abs(value) < 9.95 ? 1 : 0;
    const form = { minimumFractionDigits: places, maximumFractionDigits: places };
    return kept(`n${places}f ${locale}`, () => new Intl.NumberFormat(locale, form)).format(value);
}

/** At most three places, no trailing zeros. */
export function amount(value: number, locale: string): string {
    return kept(`n3 ${locale}`, () => new Intl.NumberFormat(locale, { maximumFractionDigits: 3 })).format(
        value,
    );
}

export function percent(part: number, all: number, locale: string): string {
    const form = { style: "percent", maximumFractionDigits: 1 } as const;
    return kept(`p ${locale}`, () => new Intl.NumberFormat(locale, form)).format(all === 0 ? 0 : part / all);
}

export function clock(ms: number, locale: string): string {
    const form = { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false } as const;
    return kept(`c ${locale}`, () => new Intl.DateTimeFormat(locale, form)).format(ms);
}

export function clockShort(ms: number, locale: string): string {
    const form = { hour: "2-digit", minute: "2-digit", hour12: false } as const;
    return kept(`cs ${locale}`, () => new Intl.DateTimeFormat(locale, form)).format(ms);
}

export function moment(ms: number, locale: string): string {
    const form = { dateStyle: "medium", timeStyle: "medium", hour12: false } as const;
    return kept(`m ${locale}`, () => new Intl.DateTimeFormat(locale, form)).format(ms);
}

const UNITS: [Intl.RelativeTimeFormatUnit, number][] = [
    ["day", 86_400_000],
    ["hour", 3_600_000],
    ["minute", 60_000],
    ["second", 1000],
];

export function ago(ms: number, now: number, locale: string): string {
    const form = kept(
        `r ${locale}`,
        () => new Intl.RelativeTimeFormat(locale, { numeric: "auto", style: "short" }),
    );
    const past = Math.max(0, now - ms);
    for (const [unit, length] of UNITS) {
        if (past >= length || unit === "second") return form.format(-Math.floor(past / length), unit);
    }
    return "";
}

/** A span in its two largest units: `1 h 5 m`, `2.4 s`, `350 ms`. */
export function span(ms: number, locale: string): string {
    const unit = (value: number, name: string, places = 0) =>
        kept(
            `u ${name} ${places} ${locale}`,
            () =>
                new Intl.NumberFormat(locale, {
                    style: "unit",
                    unit: name,
                    // Chinese has its own word for milliseconds in the longer form alone.
                    unitDisplay: locale.startsWith("zh") ? "short" : "narrow",
                    maximumFractionDigits: places,
                }),
        ).format(value);
    if (ms < 1000) return unit(Math.round(ms), "millisecond");
    if (ms < 60_000) return unit(ms / 1000, "second", ms < 10_000 ? 1 : 0);
    const two = (large: number, one: string, small: number, other: string) =>
        small === 0 ? unit(large, one) : `${unit(large, one)} ${unit(small, other)}`;
    const minutes = Math.floor(ms / 60_000);
    if (minutes < 60) return two(minutes, "minute", Math.floor((ms % 60_000) / 1000), "second");
    const hours = Math.floor(minutes / 60);
    if (hours < 48) return two(hours, "hour", minutes % 60, "minute");
    return two(Math.floor(hours / 24), "day", hours % 24, "hour");
}

/** A key for people: its parts, with a mark for one that is missing. */
export function keyText(key: string | (string | null)[], one: string, missing: string): string {
    const parts = typeof key === "string" ? [key] : key;
    if (parts.length === 0) return one;
    return parts.map((part) => (part === null ? missing : part === "" ? '""' : part)).join(" · ");
}
