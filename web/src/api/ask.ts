/** The one place that speaks HTTP with the API. Calls by name are in `calls.ts`. */
import { signal } from "@preact/signals";
import { Problem, refusal } from "./problem";

/** Whether the last question reached anybody; the live stream and every call tell. */
export const reachable = signal(true);

/** Called when the API wants somebody to sign in. */
let onUnknown: () => void = () => {};
export function whenUnknown(then: () => void): void {
    onUnknown = then;
}

const PATIENCE_MS = 15_000;

export async function ask<T>(method: string, path: string, body?: unknown, signal?: AbortSignal): Promise<T> {
    const patience = AbortSignal.timeout(PATIENCE_MS);
    const init: RequestInit = {
        method,
        credentials: "same-origin",
        cache: "no-store",
        signal: signal ? AbortSignal.any([signal, patience]) : patience,
        headers: { accept: "application/json" },
    };
    if (body !== undefined) {
        init.headers = { accept: "application/json", "content-type": "application/json" };
        init.body = JSON.stringify(body);
    }
    let response: Response;
    try {
        response = await fetch(path, init);
    } catch (error) {
        if (signal?.aborted) throw error;
        reachable.value = false;
        throw new Problem(0, "");
    }
    reachable.value = true;
    if (!response.ok) {
        const problem = await refusal(response);
        if (response.status === 401 && path !== "/v1/login") onUnknown();
        throw problem;
    }
    if (response.status === 204) return undefined as T;
    return (await response.json()) as T;
}
