/** Arrivals counted in bins, stacked for a chart. */
import type { Arrival } from "../api/types";

export interface Bins {
    widthMs: number;
    passed: number[];
    delayed: number[];
    refused: number[];
    /** x in seconds, then all, passed with delayed, passed alone: drawn over one another, `null` where nothing is added. */
    stacked: [number[], ...(number | null)[][]];
}

const WIDTHS_MS = [20, 50, 100, 200, 250, 500, 1000, 2000, 5000, 10_000];
const BINS = 60;

export function binned(arrivals: Arrival[], seconds: number): Bins {
    const widthMs = WIDTHS_MS.find((width) => (seconds * 1000) / width <= BINS) ?? 20_000;
    const length = Math.max(1, Math.ceil((seconds * 1000) / widthMs));
    const make = () => new Array<number>(length).fill(0);
    const counted = { allow: make(), wait: make(), deny: make() };
    for (const { at_us, decision } of arrivals) {
        const bin = Math.min(length - 1, Math.floor(at_us / 1000 / widthMs));
        counted[decision][bin]! += 1;
    }
    const { allow: passed, wait: delayed, deny: refused } = counted;
    // A bar that would be hidden wholly is none: its edge would show.
    const more = passed.map((n, i) => (delayed[i]! > 0 ? n + delayed[i]! : null));
    const all = passed.map((n, i) => (refused[i]! > 0 ? n + delayed[i]! + refused[i]! : null));
    const x = passed.map((_, i) => ((i + 0.5) * widthMs) / 1000);
    return { widthMs, passed, delayed, refused, stacked: [x, all, more, passed] };
}
