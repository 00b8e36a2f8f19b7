import { describe, expect, test } from "vitest";
import type { Book, Piece } from "../../src/api/types";
import {
    asNew,
    changesOf,
    EMPTY,
    onTopOf,
    orderOf,
    shownOf,
    staleOf,
    wishing,
    without,
} from "../../src/logic/draft";

const piece = (id: number, kind: Piece["kind"], route: string | null, name: string): Piece => ({
    id,
    kind,
    route,
    name,
    text: `text ${id}\n`,
    enabled: true,
    version: 3,
    changed: { at_ms: 0, by: "ann" },
});
const [limit, route, first, second, third] = [
    piece(1, "limit", null, "per-client"),
    piece(2, "route", null, "orders"),
    piece(3, "rule", "orders", "create"),
    piece(4, "rule", "orders", "read"),
    piece(5, "rule", "orders", "list"),
] as [Piece, Piece, Piece, Piece, Piece];
const book: Book = {
    revision: "1",
    enabled: true,
    source: { kind: "sqlite", name: "x", read_only: null },
    pieces: [limit, route, first, second, third],
};

describe("a draft", () => {
    test("is empty again when a text is as it was", () => {
        const typed = wishing(EMPTY, first, { text: "other" });
        expect(changesOf(book, typed)).toEqual([{ change: "edit", id: 3, version: 3, text: "other" }]);
        expect(wishing(typed, first, { text: first.text })).toEqual(EMPTY);
    });

    test("tells moves, edits, switches and what goes, in this order", () => {
        let draft = wishing(EMPTY, limit, { text: "a", name: "b" });
        draft = wishing(draft, first, { enabled: false });
        draft = wishing(draft, third, { deleted: true });
        draft = { ...draft, orders: { "rule:orders": [4, 3, 5] } };
        expect(changesOf(book, draft)).toEqual([
            { change: "move", id: 3, version: 3, before: 5 },
            { change: "edit", id: 1, version: 3, text: "a", name: "b" },
            { change: "enable", id: 3, version: 3, enabled: false },
            { change: "delete", id: 5, version: 3 },
        ]);
    });

    test("creates what others stand on first, each in its place", () => {
        const fresh = (id: number, kind: Piece["kind"], route: string | null, name: string) => ({
            id,
            kind,
            route,
            name,
            text: "",
            enabled: true,
        });
        const draft = {
            ...EMPTY,
            fresh: [fresh(-1, "rule", "orders", "new"), fresh(-2, "limit", null, "small")],
            orders: { "rule:orders": [3, -1, 4, 5] },
        };
        const told = changesOf(book, draft).map((one) =>
            one.change === "create" ? [one.kind, one.name, one.before] : one,
        );
        expect(told).toEqual([
            ["limit", "small", null],
            ["rule", "new", 4],
        ]);
        expect(
            shownOf(book, draft)
                .filter((one) => one.route === "orders")
                .map((one) => one.id),
        ).toEqual([3, -1, 4, 5]);
    });

    test("puts what is new behind what was ordered before", () => {
        const fresh = [
            { id: -1, kind: "rule" as const, route: "orders", name: "new", text: "", enabled: true },
        ];
        const draft = { ...EMPTY, fresh, orders: { "rule:orders": [5, 4, 3] } };
        expect(
            shownOf(book, draft)
                .filter((one) => one.route === "orders")
                .map((one) => one.id),
        ).toEqual([5, 4, 3, -1]);
        expect(changesOf(book, draft).at(-1)).toMatchObject({ change: "create", name: "new", before: null });
    });

    test("does not delete a rule that its route takes along", () => {
        let draft = wishing(EMPTY, first, { deleted: true });
        draft = wishing(draft, route, { deleted: true });
        expect(changesOf(book, draft)).toEqual([{ change: "delete", id: 2, version: 3 }]);
    });

    test("is stale where somebody else was faster, until somebody decides", () => {
        const draft = wishing(EMPTY, first, { text: "mine" });
        const theirs = { ...first, text: "theirs", version: 4 };
        const later = { ...book, pieces: [limit, route, theirs, second, third] };
        expect(staleOf(book, draft)).toEqual([]);
        expect(staleOf(later, draft).map(({ now }) => now)).toEqual([theirs]);
        // Typing on does not hide it: the draft stays on the version it was begun on.
        expect(staleOf(later, wishing(draft, theirs, { text: "mine too" }))).toHaveLength(1);

        const mine = onTopOf(draft, theirs);
        expect(staleOf(later, mine)).toEqual([]);
        expect(changesOf(later, mine)).toEqual([{ change: "edit", id: 3, version: 4, text: "mine" }]);
        expect(changesOf(later, without(draft, 3))).toEqual([]);
    });

    test("of a piece that is gone can be made anew", () => {
        const draft = wishing(EMPTY, first, { text: "mine" });
        const later = { ...book, pieces: [limit, route, second, third] };
        expect(staleOf(later, draft).map(({ now }) => now)).toEqual([null]);
        const told = changesOf(later, asNew(draft, 3));
        expect(told).toMatchObject([
            { change: "create", kind: "rule", route: "orders", name: "create", text: "mine" },
        ]);
    });

    test("keeps its order when others come and go", () => {
        expect(orderOf([1, 2, 3], [3, 1, 2])).toEqual([3, 1, 2]);
        expect(orderOf([1, 2, 9, 3], [3, 1, 2])).toEqual([3, 1, 2, 9]);
        expect(orderOf([2, 3], [3, 1, 2])).toEqual([3, 2]);
    });
});
