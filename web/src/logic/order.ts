/** Orders: a thing moved by a place, and the fewest moves that make one order of another. */

export function shifted(order: number[], id: number, by: -1 | 1): number[] {
    const from = order.indexOf(id);
    const to = from + by;
    if (from < 0 || to < 0 || to >= order.length) return order;
    const next = [...order];
    next.splice(from, 1);
    next.splice(to, 0, id);
    return next;
}

/** Moves that turn `now` into `wanted`, to be made in this order; `before: null` is last. */
export function movesTo(now: number[], wanted: number[]): { id: number; before: number | null }[] {
    const place = new Map(now.map((id, index) => [id, index]));
    const stays = longestRising(wanted.map((id) => place.get(id) ?? -1));
    const moves: { id: number; before: number | null }[] = [];
    // From the end: whatever follows has its place already.
    for (let i = wanted.length - 1; i >= 0; i--) {
        const id = wanted[i]!;
        if (!stays.has(i)) moves.push({ id, before: wanted[i + 1] ?? null });
    }
    return moves;
}

/** The indices of a longest rising run of numbers, gaps allowed. */
function longestRising(values: number[]): Set<number> {
    const best = values.map(() => 1);
    const from = values.map(() => -1);
    let end = -1;
    for (let i = 0; i < values.length; i++) {
        for (let j = 0; j < i; j++) {
            if (values[j]! < values[i]! && best[j]! + 1 > best[i]!) {
                best[i] = best[j]! + 1;
                from[i] = j;
            }
        }
        if (end < 0 || best[i]! > best[end]!) end = i;
    }
    const chosen = new Set<number>();
    for (let i = end; i >= 0; i = from[i]!) chosen.add(i);
    return chosen;
}
