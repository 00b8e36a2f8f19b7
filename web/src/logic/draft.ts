/**
 * Changes that are being prepared: what a book would be with them, and how the API is told.
 *
 * A draft remembers every piece as it was when work on it began. Where somebody else has changed it since, the draft is
 * stale there, and a person decides; nothing is merged by itself.
 */
import type { Book, Change, Piece, PieceKind } from "../api/types";
import { movesTo } from "./order";

export interface Drafted {
    base: Piece;
    text?: string;
    name?: string;
    enabled?: boolean;
    deleted?: boolean;
}
/** A piece that is not there yet. Its number is negative, and only ours. */
export interface Fresh {
    id: number;
    kind: PieceKind;
    route: string | null;
    name: string;
    text: string;
    enabled: boolean;
}
export interface Draft {
    pieces: Record<number, Drafted>;
    fresh: Fresh[];
    /** Wanted orders, by group. */
    orders: Record<string, number[]>;
}

export const EMPTY: Draft = { pieces: {}, fresh: [], orders: {} };

/** A piece as it would be. */
export interface Shown {
    id: number;
    kind: PieceKind;
    route: string | null;
    name: string;
    text: string;
    enabled: boolean;
    piece: Piece | null;
    state: "as it is" | "changed" | "new" | "deleted";
}

export const groupOf = (piece: { kind: PieceKind; route: string | null }) =>
    `${piece.kind}:${piece.route ?? ""}`;

export const aboutOf = (piece: { kind: PieceKind; route: string | null; name: string }) =>
    `${piece.kind} ${piece.route === null ? "" : `${piece.route}/`}${piece.name}`;

/** All pieces as they would be, each group in its wanted order. */
export function shownOf(book: Book, draft: Draft): Shown[] {
    const all: Shown[] = book.pieces.map((piece) => {
        const mine = draft.pieces[piece.id];
        return {
            id: piece.id,
            kind: piece.kind,
            route: piece.route,
            name: mine?.name ?? piece.name,
            text: mine?.text ?? piece.text,
            enabled: mine?.enabled ?? piece.enabled,
            piece,
            state: mine === undefined ? "as it is" : mine.deleted ? "deleted" : "changed",
        };
    });
    for (const fresh of draft.fresh) all.push({ ...fresh, piece: null, state: "new" });
    const groups = new Map<string, Shown[]>();
    for (const one of all) {
        const group = groupOf(one);
        groups.set(group, [...(groups.get(group) ?? []), one]);
    }
    return [...groups].flatMap(([group, members]) => {
        const order = orderOf(
            members.map((one) => one.id),
            draft.orders[group],
        );
        return [...members].sort((a, b) => order.indexOf(a.id) - order.indexOf(b.id));
    });
}

/** A wanted order over whoever is there now: others' new pieces go behind the one they stand behind, ours to the end. */
export function orderOf(now: number[], wanted: number[] | undefined): number[] {
    if (!wanted) return now;
    const out = wanted.filter((id) => now.includes(id));
    now.forEach((id, index) => {
        if (out.includes(id)) return;
        if (id < 0) return void out.push(id);
        const before = now[index - 1];
        out.splice(before === undefined ? 0 : out.indexOf(before) + 1, 0, id);
    });
    return out;
}

/** The draft in the API's words: moves, so that new pieces find their places, then those, edits, switches, and last what goes. */
export function changesOf(book: Book, draft: Draft): Change[] {
    const changes: Change[] = [];
    for (const group of Object.keys(draft.orders)) {
        const members = book.pieces.filter((piece) => groupOf(piece) === group);
        const now = members.map((piece) => piece.id);
        const wanted = orderOf(now, draft.orders[group]);
        for (const { id, before } of movesTo(now, wanted)) {
            const version =
                draft.pieces[id]?.base.version ?? members.find((piece) => piece.id === id)?.version ?? 0;
            changes.push({ change: "move", id, version, before });
        }
    }
    const rank: PieceKind[] = ["limit", "upstream", "route", "rule", "file"];
    const shown = shownOf(book, draft);
    for (const kind of rank) {
        for (const fresh of shown.filter((one) => one.state === "new" && one.kind === kind)) {
            const group = shown.filter((one) => groupOf(one) === groupOf(fresh));
            const later = group.slice(group.findIndex((one) => one.id === fresh.id) + 1);
            const before = later.find((one) => one.piece !== null)?.id ?? null;
            const { route, name, text, enabled } = fresh;
            changes.push({ change: "create", kind, route, name, text, enabled, before });
        }
    }
    const mine = Object.values(draft.pieces).filter(({ deleted }) => !deleted);
    for (const { base, text, name } of mine) {
        if (text === undefined && name === undefined) continue;
        const edit = { change: "edit" as const, id: base.id, version: base.version, text: text ?? base.text };
        changes.push(name === undefined ? edit : { ...edit, name });
    }
    for (const { base, enabled } of mine) {
        if (enabled !== undefined)
            changes.push({ change: "enable", id: base.id, version: base.version, enabled });
    }
    const gone = Object.values(draft.pieces).filter(({ deleted }) => deleted);
    for (const { base } of gone) {
        // A route takes its rules along.
        const along = gone.some((other) => other.base.kind === "route" && other.base.name === base.route);
        if (!along) changes.push({ change: "delete", id: base.id, version: base.version });
    }
    return changes;
}

/** Where somebody else was faster: the piece as it was, and as it is now, if it is. */
export function staleOf(book: Book, draft: Draft): { mine: Drafted; now: Piece | null }[] {
    return Object.values(draft.pieces).flatMap((mine) => {
        const now = book.pieces.find((piece) => piece.id === mine.base.id) ?? null;
        return now?.version === mine.base.version ? [] : [{ mine, now }];
    });
}

type Wish = Omit<Drafted, "base">;

/** Something wanted of a piece; a wish for what is so already is none. */
export function wishing(draft: Draft, piece: Piece, wish: Wish): Draft {
    const base = draft.pieces[piece.id]?.base ?? piece;
    const next: Drafted = { ...draft.pieces[piece.id], ...wish, base };
    if (next.text === base.text) delete next.text;
    if (next.name === base.name) delete next.name;
    if (next.enabled === base.enabled) delete next.enabled;
    if (!next.deleted) delete next.deleted;
    const pieces = { ...draft.pieces };
    if (Object.keys(next).length > 1) pieces[piece.id] = next;
    else delete pieces[piece.id];
    return { ...draft, pieces };
}

/** My work on what is there now: the last word is mine again. */
export function onTopOf(draft: Draft, now: Piece): Draft {
    const { base: _, ...wish } = draft.pieces[now.id] ?? { base: now };
    return wishing(without(draft, now.id), now, wish);
}

/** My work on a piece that is gone, as a new one. */
export function asNew(draft: Draft, id: number): Draft {
    const mine = draft.pieces[id];
    if (!mine) return draft;
    const { kind, route, name, text, enabled } = { ...mine.base, ...mine };
    const fresh: Fresh = { id: nextFresh(draft), kind, route, name, text, enabled };
    return { ...without(draft, id), fresh: [...draft.fresh, fresh] };
}

export function without(draft: Draft, id: number): Draft {
    const pieces = { ...draft.pieces };
    delete pieces[id];
    return { ...draft, pieces, fresh: draft.fresh.filter((one) => one.id !== id) };
}

export const nextFresh = (draft: Draft) => Math.min(0, ...draft.fresh.map((one) => one.id)) - 1;
