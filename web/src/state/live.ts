/**
 * The live stream: one connection for the whole console, open while somebody looks.
 *
 * A browser has six connections to a server; a hidden tab gives its own back. Whatever was missed is asked for again when
 * the stream opens.
 */
import { effect, signal } from "@preact/signals";
import { reachable } from "../api/ask";
import { api } from "../api/calls";
import type { Refusal, Second } from "../api/types";
import { fromUsage, isAhead, type Traffic, withSecond } from "../logic/traffic";
import { loadStatus } from "./status";
import { session } from "./session";

/** `open`: heard; `half`: calls are answered, the stream is not; `lost`: nobody answers. */
export type Link = "opening" | "open" | "half" | "lost";

export const link = signal<Link>("opening");
export const lostSince = signal<number | null>(null);
export const traffic = signal<Traffic | null>(null);
export const refusals = signal<(Refusal & { number: number })[]>([]);
/** Refusals of the last second that were only counted. */
export const leftOut = signal(0);
/** The revision that was told last, so that pages know when to read again. */
export const told = signal(0);

const SPAN_SECONDS = 300;
const REFUSALS = 40;
const RETRY_MS = [500, 1000, 2000, 4000];

let source: EventSource | null = null;
let tries = 0;
let timer = 0;
let number = 0;

export function startLive(): void {
    effect(() => {
        const here = session.value.state === "here";
        if (here) open();
        else close();
    });
    document.addEventListener("visibilitychange", () => {
        if (document.hidden) close();
        else if (session.value.state === "here") open();
    });
}

function open(): void {
    if (source || document.hidden) return;
    window.clearTimeout(timer);
    const stream = new EventSource("/v1/events");
    source = stream;
    stream.onopen = () => {
        tries = 0;
        reachable.value = true;
        link.value = "open";
        lostSince.value = null;
        void catchUp();
    };
    stream.onerror = () => void broken(stream);
    const on = <T>(name: string, then: (data: T) => void) => {
        stream.addEventListener(name, (event) => {
            try {
                then(JSON.parse((event as MessageEvent<string>).data) as T);
            } catch {
                // What cannot be read is not worth the stream.
            }
        });
    };
    on<Second>("second", (second) => {
        const before = traffic.value;
        if (!before) return;
        traffic.value = withSecond(before, second, SPAN_SECONDS);
        // Seconds that the stream did not tell are known to usage.
        if (isAhead(before, second)) void loadTraffic();
    });
    on<Refusal>("refused", (refusal) => {
        refusals.value = [{ ...refusal, number: ++number }, ...refusals.value].slice(0, REFUSALS);
        leftOut.value = refusal.left_out ?? 0;
    });
    on("rules", () => {
        told.value++;
        void loadStatus();
    });
    on("switch", () => {
        told.value++;
        void loadStatus();
    });
    on("store", () => void loadStatus());
    stream.addEventListener("lost", () => void catchUp());
}

function close(): void {
    window.clearTimeout(timer);
    source?.close();
    source = null;
}

/** Says what is known, and tries again: a browser gives up by itself where the answer was no stream. */
async function broken(stream: EventSource): Promise<void> {
    if (source !== stream) return;
    close();
    const wait = RETRY_MS[Math.min(tries++, RETRY_MS.length - 1)]!;
    timer = window.setTimeout(open, wait);
    try {
        await api.me();
        if (source === null || source.readyState !== EventSource.OPEN)
            link.value = tries > 1 ? "half" : link.value;
        if (tries > 1) await catchUp();
    } catch {
        if (session.value.state !== "here") return;
        link.value = "lost";
        lostSince.value ??= Date.now();
    }
}

async function catchUp(): Promise<void> {
    told.value++;
    void loadStatus();
    await loadTraffic();
}

async function loadTraffic(): Promise<void> {
    try {
        traffic.value = fromUsage(await api.usage(SPAN_SECONDS));
    } catch {
        // The page says that nobody answers.
    }
}
