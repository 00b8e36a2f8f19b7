import { expect, test } from "vitest";
import { movesTo, shifted } from "../../src/logic/order";

test("a thing is moved by a place, and not over an end", () => {
    expect(shifted([1, 2, 3], 2, -1)).toEqual([2, 1, 3]);
    expect(shifted([1, 2, 3], 2, 1)).toEqual([1, 3, 2]);
    expect(shifted([1, 2, 3], 1, -1)).toEqual([1, 2, 3]);
    expect(shifted([1, 2, 3], 3, 1)).toEqual([1, 2, 3]);
});

/** Makes moves as the keeper of a book does. */
function made(order: number[], moves: { id: number; before: number | null }[]): number[] {
    for (const { id, before } of moves) {
        order = order.filter((one) => one !== id);
        order.splice(before === null ? order.length : order.indexOf(before), 0, id);
    }
    return order;
}

test("moves make the wanted order, and no more than it takes", () => {
    let seed = 3;
    const random = (n: number) => (seed = (seed * 1103515245 + 12345) % 2147483648) % n;
    for (let round = 0; round < 300; round++) {
        const now = Array.from({ length: 1 + random(7) }, (_, i) => i + 1);
        const wanted = [...now].sort(() => random(3) - 1);
        const moves = movesTo(now, wanted);
        expect(made(now, moves)).toEqual(wanted);
        expect(moves.length).toBeLessThan(now.length);
    }
    expect(movesTo([1, 2, 3], [1, 2, 3])).toEqual([]);
    expect(movesTo([1, 2, 3, 4], [4, 1, 2, 3])).toEqual([{ id: 4, before: 1 }]);
});
