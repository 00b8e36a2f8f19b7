import { describe, expect, test } from "vitest";
import {
    fromUsage,
    isAhead,
    nameOf,
    ranked,
    rateOf,
    shadowsOf,
    type Traffic,
    withSecond,
} from "../../src/logic/traffic";

const begun: Traffic = fromUsage({
    step_ms: 1000,
    from_ms: 10_000,
    rules: [{ route: "a", rule: "r", passed: [1, 1], delayed: [0, 0], refused: [0, 2] }],
    total: { passed: [1, 1], delayed: [0, 0], refused: [0, 2] },
});
const second = (at_ms: number, passed: number, rule = "r") => ({
    at_ms,
    passed,
    delayed: 0,
    refused: 1,
    rules: [{ route: "a", rule, passed, delayed: 0, refused: 1 }],
});

describe("traffic", () => {
    test("goes on with every second", () => {
        const next = withSecond(begun, second(12_300, 5));
        expect(next.total.passed).toEqual([1, 1, 5]);
        expect(next.rows[0]?.refused).toEqual([0, 2, 1]);
    });

    test("forgets the oldest", () => {
        const next = withSecond(begun, second(12_000, 5), 2);
        expect(next.fromMs).toBe(11_000);
        expect(next.total.passed).toEqual([1, 5]);
    });

    test("takes a second that is told again as told, and none that is too old", () => {
        expect(withSecond(begun, second(11_000, 9)).total.passed).toEqual([1, 9]);
        expect(withSecond(begun, second(9000, 9))).toBe(begun);
    });

    test("knows that seconds are missing", () => {
        expect(isAhead(begun, second(12_000, 5))).toBe(false);
        expect(isAhead(begun, second(13_000, 5))).toBe(true);
        expect(withSecond(begun, second(13_000, 5)).total.passed).toEqual([1, 1, 0, 5]);
    });

    test("gives a rule that is new a past without traffic", () => {
        const next = withSecond(begun, second(12_000, 5, "new"));
        expect(next.rows.map((row) => [nameOf(row), row.passed])).toEqual([
            ["a/r", [1, 1, 0]],
            ["a/new", [0, 0, 5]],
        ]);
        expect(ranked(next.rows).map(nameOf)).toEqual(["a/r", "a/new"]);
    });

    test("has a mean a second", () => {
        expect(rateOf([10, 20, 30], 1000, 2)).toBe(25);
        expect(rateOf([100], 10_000, 5)).toBe(10);
        expect(rateOf([], 1000, 5)).toBe(0);
    });

    test("has what rules in shadow would have refused, of those that would", () => {
        const series = { passed: [9, 9, 9], delayed: [0, 0, 0], refused: [0, 0, 0] };
        const rules = [
            { route: "a", rule: "r", ...series, shadow: [9, 2, 4] },
            { route: "a", rule: "quiet of late", ...series, shadow: [1, 0, 0] },
            { route: "a", rule: "enforced", ...series },
        ];
        expect([...shadowsOf({ step_ms: 1000, from_ms: 0, rules, total: series }, 2)]).toEqual([
            ["a/r", 3],
            ["a/quiet of late", 0],
        ]);
    });

    test("names rows of doors", () => {
        expect(nameOf({ route: null, rule: null, door: "resp", limit: "x" })).toBe("resp: x");
        expect(nameOf({ route: null, rule: "per-ip" })).toBe("per-ip");
    });
});
