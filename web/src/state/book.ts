/** The rules: as they are kept (the book), as they are in force, and the draft over them. */
import { computed, effect, signal } from "@preact/signals";
import { api } from "../api/calls";
import { asProblem, type Problem } from "../api/problem";
import type { Book, PieceMistake, RulesInForce } from "../api/types";
import { aboutOf, changesOf, type Draft, EMPTY, shownOf, staleOf } from "../logic/draft";
import { forThisTab } from "./remembered";

export const book = signal<Book | null>(null);
export const inForce = signal<RulesInForce | null>(null);
export const bookProblem = signal<Problem | null>(null);

export const draft = signal<Draft>(kept());
effect(() => forThisTab.set("draft", draft.value === EMPTY ? null : JSON.stringify(draft.value)));

export const shown = computed(() => (book.value ? shownOf(book.value, draft.value) : []));
export const changes = computed(() => (book.value ? changesOf(book.value, draft.value) : []));
export const stale = computed(() => (book.value ? staleOf(book.value, draft.value) : []));

export type Checked = {
    state: "none" | "asking" | "asked";
    mistakes: PieceMistake[];
    problem: Problem | null;
};
export const checked = signal<Checked>({ state: "none", mistakes: [], problem: null });

/** The mistakes in one piece's text; of a new piece by its name, for it has no number yet. */
export function mistakesIn(id: number): PieceMistake[] {
    const one = shown.value.find((piece) => piece.id === id);
    if (!one) return [];
    return checked.value.mistakes.filter(({ piece, about }) =>
        piece === null || piece < 0 ? one.piece === null && about === aboutOf(one) : piece === id,
    );
}

export async function loadBook(): Promise<void> {
    try {
        const [kept, rules] = await Promise.all([api.book(), api.rules()]);
        book.value = kept;
        inForce.value = rules;
        bookProblem.value = null;
    } catch (error) {
        bookProblem.value = asProblem(error);
    }
}

export function discard(): void {
    draft.value = EMPTY;
}

/** All of the draft, or nothing. */
export async function publish(): Promise<void> {
    const answer = await api.publish(changes.value);
    draft.value = EMPTY;
    book.value = { ...answer, source: answer.source ?? book.value?.source };
    await loadBook();
}

const TYPING_MS = 250;

/** Asks about the draft whenever it has been left alone for a moment. The last question wins. */
export function startChecking(): void {
    let timer = 0;
    let asking = new AbortController();
    effect(() => {
        const now = changes.value;
        window.clearTimeout(timer);
        asking.abort();
        asking = new AbortController();
        if (now.length === 0) {
            checked.value = { state: "none", mistakes: [], problem: null };
            return;
        }
        const { signal } = asking;
        checked.value = { ...checked.peek(), state: "asking" };
        timer = window.setTimeout(async () => {
            try {
                const { mistakes } = await api.check(now, signal);
                if (!signal.aborted) checked.value = { state: "asked", mistakes, problem: null };
            } catch (error) {
                if (signal.aborted) return;
                const problem = asProblem(error);
                checked.value = { state: "asked", mistakes: problem.mistakes, problem };
            }
        }, TYPING_MS);
    });
}

function kept(): Draft {
    try {
        const draft = JSON.parse(forThisTab.get("draft") ?? "null") as Draft | null;
        if (draft?.pieces && draft.fresh && draft.orders) return draft;
    } catch {
        // An older console's draft.
    }
    return EMPTY;
}
