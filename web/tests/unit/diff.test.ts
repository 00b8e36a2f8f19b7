import { describe, expect, test } from "vitest";
import { diffLines, folded } from "../../src/logic/diff";

const told = (before: string, after: string) =>
    diffLines(before, after).map(
        ({ kind, text }) => `${kind === "same" ? " " : kind === "new" ? "+" : "-"}${text}`,
    );

describe("a diff", () => {
    test("keeps what is the same and says what is gone and new", () => {
        expect(told("a\nb\nc\n", "a\nx\nc\n")).toEqual([" a", "-b", "+x", " c"]);
        expect(told("", "a\nb\n")).toEqual(["+a", "+b"]);
        expect(told("a\nb\n", "")).toEqual(["-a", "-b"]);
        expect(told("a\n", "a\n")).toEqual([" a"]);
        expect(told("a\na\nb\n", "a\nb\na\n")).toEqual([" a", "-a", " b", "+a"]);
    });

    test("numbers lines as each text has them", () => {
        const lines = diffLines("a\nb\nc\n", "b\nc\nd\n");
        expect(lines.map((line) => [line.old, line.new])).toEqual([
            [1, null],
            [2, 1],
            [3, 2],
            [null, 3],
        ]);
    });

    test("makes the one of the other, whatever they are", () => {
        let seed = 7;
        const random = (n: number) => (seed = (seed * 1103515245 + 12345) % 2147483648) % n;
        for (let round = 0; round < 300; round++) {
            const text = () => Array.from({ length: random(12) }, () => "abc"[random(3)]).join("\n");
            const [before, after] = [text(), text()];
            const lines = diffLines(before, after);
            const side = (skip: string) =>
                lines
                    .filter(({ kind }) => kind !== skip)
                    .map((line) => line.text)
                    .join("\n");
            expect(side("new")).toBe(before);
            expect(side("gone")).toBe(after);
        }
    });

    test("of large texts without a common line ends", () => {
        const text = (name: string) => Array.from({ length: 5000 }, (_, i) => `${name} ${i}`).join("\n");
        expect(diffLines(text("a"), text("b"))).toHaveLength(10_000);
    });

    test("folds what is far from every difference", () => {
        const before = Array.from({ length: 20 }, (_, i) => `${i}`).join("\n");
        const parts = folded(diffLines(before, before.replace("10", "x")), 1);
        expect(parts.map((part) => part.kind)).toEqual(["skipped", "same", "gone", "new", "same", "skipped"]);
        expect(parts[0]).toEqual({ kind: "skipped", lines: 9 });
    });
});
