/** Traffic over time: what `/v1/usage` told, going on with every second of the live stream. */
import type { Second, Series, Tally, Usage, Whose } from "../api/types";

export interface Row extends Whose, Series {}
export interface Traffic {
    stepMs: number;
    /** When the first step began. */
    fromMs: number;
    total: Series;
    rows: Row[];
}

export function fromUsage(usage: Usage): Traffic {
    return { stepMs: usage.step_ms, fromMs: usage.from_ms, total: usage.total, rows: usage.rules };
}

/**
 * One second more, and one less at the other end. Seconds that were told before are taken as told; those that were missed
 * count as nothing until usage is asked for again.
 */
export function withSecond(traffic: Traffic, second: Second, keep = 300): Traffic {
    const length = traffic.total.passed.length;
    const index = Math.floor((second.at_ms - traffic.fromMs) / traffic.stepMs);
    if (index < 0 || traffic.stepMs !== 1000) return traffic;
    const longer = Math.max(length, index + 1);
    const cut = Math.max(0, longer - keep);
    const set = (series: Series, tally: Tally | undefined): Series => ({
        passed: put(series.passed, index, tally?.passed, longer, cut),
        delayed: put(series.delayed, index, tally?.delayed, longer, cut),
        refused: put(series.refused, index, tally?.refused, longer, cut),
    });
    const told = new Map(second.rules.map((rule) => [nameOf(rule), rule]));
    const rows = traffic.rows.map((row) => {
        const name = nameOf(row);
        const tally = told.get(name);
        told.delete(name);
        return { ...row, ...set(row, tally) };
    });
    for (const fresh of told.values()) {
        const { route, rule, door, limit } = fresh;
        rows.push({ route, rule, door, limit, ...set({ passed: [], delayed: [], refused: [] }, fresh) });
    }
    return {
        ...traffic,
        fromMs: traffic.fromMs + cut * traffic.stepMs,
        total: set(traffic.total, second),
        rows,
    };
}

function put(
    values: number[],
    index: number,
    value: number | undefined,
    length: number,
    cut: number,
): number[] {
    const next = values.slice();
    while (next.length < length) next.push(0);
    if (value !== undefined) next[index] = value;
    return cut > 0 ? next.slice(cut) : next;
}

/** Whether seconds are missing between what is known and this one. */
export function isAhead(traffic: Traffic, second: Second): boolean {
    return Math.floor((second.at_ms - traffic.fromMs) / traffic.stepMs) > traffic.total.passed.length;
}

/** A name for people, and one that tells rows apart. */
export function nameOf(whose: Whose): string {
    if (whose.door) return whose.limit ? `${whose.door}: ${whose.limit}` : whose.door;
    if (whose.rule === null) return whose.route ?? "";
    return whose.route === null ? whose.rule : `${whose.route}/${whose.rule}`;
}

/** How much a second, on average over the last `steps` steps. */
export function rateOf(values: number[], stepMs: number, steps: number): number {
    const last = values.slice(-steps);
    if (last.length === 0) return 0;
    return last.reduce((sum, value) => sum + value, 0) / ((last.length * stepMs) / 1000);
}

/** How much a second the rules in shadow would have refused, by the name of the row; those that would have lately. */
export function shadowsOf(usage: Usage, steps: number): Map<string, number> {
    const shadows = new Map<string, number>();
    for (const row of usage.rules) {
        if (row.shadow) shadows.set(nameOf(row), rateOf(row.shadow, usage.step_ms, steps));
    }
    return shadows;
}

export function sum(values: number[]): number {
    return values.reduce((total, value) => total + value, 0);
}

/** The busiest first, those who refuse before those who do not. */
export function ranked(rows: Row[]): Row[] {
    const weight = (row: Row) => [
        sum(row.refused.slice(-60)),
        sum(row.delayed.slice(-60)),
        sum(row.passed.slice(-60)),
    ];
    return [...rows]
        .map((row) => ({ row, weight: weight(row) }))
        .sort((a, b) => {
            for (let i = 0; i < 3; i++) if (a.weight[i] !== b.weight[i]) return b.weight[i]! - a.weight[i]!;
            return nameOf(a.row).localeCompare(nameOf(b.row));
        })
        .map(({ row }) => row);
}
