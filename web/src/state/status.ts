/** How this node is: read every few seconds, and when the stream says that something changed. */
import { signal } from "@preact/signals";
import { api } from "../api/calls";
import { asProblem, type Problem } from "../api/problem";
import type { Overview } from "../api/types";
import { session } from "./session";

export const status = signal<Overview | null>(null);
export const statusProblem = signal<Problem | null>(null);

const EVERY_MS = 3000;

export async function loadStatus(): Promise<void> {
    try {
        status.value = await api.overview();
        statusProblem.value = null;
    } catch (error) {
        statusProblem.value = asProblem(error);
    }
}

export function startStatus(): void {
    const round = async () => {
        if (!document.hidden && session.value.state === "here") await loadStatus();
        setTimeout(round, EVERY_MS);
    };
    void round();
}

/** The global switch. The answer is shown before the next reading. */
export async function turn(enabled: boolean): Promise<void> {
    await api.turn(enabled);
    if (status.value) status.value = { ...status.value, enabled };
    await loadStatus();
}
