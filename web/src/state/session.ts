/** Who is here, and what they may. */
import { signal } from "@preact/signals";
import { whenUnknown } from "../api/ask";
import { api } from "../api/calls";
import { asProblem, type Problem } from "../api/problem";
import type { Me, Role } from "../api/types";

export type Session = { state: "asking" } | { state: "unknown" } | { state: "here"; me: Me };

export const session = signal<Session>({ state: "asking" });
export const sessionProblem = signal<Problem | null>(null);

whenUnknown(() => {
    if (session.value.state !== "unknown") session.value = { state: "unknown" };
});

const RANK: Record<Role, number> = { viewer: 0, operator: 1, admin: 2 };

export function may(role: Role): boolean {
    const now = session.value;
    return now.state === "here" && RANK[now.me.role] >= RANK[role];
}

/** Asks who this is, until somebody answers. */
export async function meet(): Promise<void> {
    for (;;) {
        try {
            session.value = { state: "here", me: await api.me() };
            sessionProblem.value = null;
            return;
        } catch (error) {
            const problem = asProblem(error);
            if (problem.status === 401) {
                sessionProblem.value = null;
                return;
            }
            sessionProblem.value = problem;
            await new Promise((done) => setTimeout(done, 2000));
        }
    }
}

export async function signIn(token: string): Promise<void> {
    session.value = { state: "here", me: await api.login(token) };
}

export async function signOut(): Promise<void> {
    await api.logout();
    session.value = { state: "unknown" };
}
