import { expect, test } from "vitest";
import { keyFromQuery, keyQuery } from "../../src/api/calls";
import { ago, keyText, percent, rate, span, whole } from "../../src/logic/format";
import { ALGORITHMS, written } from "../../src/logic/limits";
import { binned } from "../../src/logic/played";
import { coloured } from "../../src/logic/yaml";

test("figures are as long as they need to be", () => {
    expect([0, 0.04, 3.14, 9.94, 9.96, 12.6, 12_345].map((n) => rate(n, "en-GB"))).toEqual([
        "0",
        "0.0",
        "3.1",
        "9.9",
        "10",
        "13",
        "12,345",
    ]);
    expect(whole(1234567, "de-DE")).toBe("1.234.567");
    expect(percent(1, 3, "en-GB")).toBe("33.3%");
    expect(percent(0, 0, "en-GB")).toBe("0%");
});

test("spans have two units at most", () => {
    expect(
        [5, 1500, 59_000, 60_000, 65_000, 3_600_000, 3_900_000, 200_000_000].map((ms) => span(ms, "en-GB")),
    ).toEqual(["5ms", "1.5s", "59s", "1m", "1m 5s", "1h", "1h 5m", "2d 7h"]);
    expect([27, 2000, 65_000].map((ms) => span(ms, "zh-CN"))).toEqual(["27毫秒", "2秒", "1分钟 5秒"]);
    expect(ago(0, 61_000, "en-GB")).toBe("1 min ago");
    expect(ago(5000, 0, "en-GB")).toBe("now");
});

test("a key survives its address", () => {
    for (const key of [[], ["a"], [""], [null], ["a&b=c", null, "", "é 中"]]) {
        expect(keyFromQuery(new URLSearchParams(keyQuery("per client", key)))).toEqual({
            limit: "per client",
            key,
        });
    }
    expect(keyFromQuery(new URLSearchParams(""))).toBeNull();
    expect(keyText(["a", null, ""], "all", "missing")).toBe('a · missing · ""');
    expect(keyText([], "all", "missing")).toBe("all");
});

test("limits are written as a rule file has them", () => {
    expect(written("token_bucket", { rate: "10/s", burst: "20", initial: "" })).toBe(
        "token_bucket: { rate: 10/s, burst: 20 }",
    );
    expect(written("fixed_window", { limit: "5", window: "" })).toBe(
        'fixed_window: { limit: 5, window: "" }',
    );
    expect(written("sliding_log", { limit: "5 }", window: "1s" })).toBe(
        'sliding_log: { limit: "5 }", window: 1s }',
    );
    expect(new Set(ALGORITHMS.map((one) => one.kind)).size).toBe(9);
});

test("arrivals are counted once each, the last one too", () => {
    const arrivals = [0, 1_999_999, 2_000_000].map((at_us, i) => ({
        at_us,
        decision: (["allow", "wait", "deny"] as const)[i]!,
        wait_us: 0,
    }));
    const bins = binned(arrivals, 2);
    expect([bins.widthMs, bins.passed[0], bins.delayed.at(-1), bins.refused.at(-1)]).toEqual([50, 1, 1, 1]);
    expect(bins.stacked[1]?.at(-1)).toBe(2);
});

test("colours never change a text", () => {
    const lines = [
        "",
        "# a comment",
        "limits: # after",
        '  - { use: "per # client", key: [header.x-api-key], cost: 2 }',
        "'it''s': \"a \\\" b\" # c",
        "window: 1m30s",
        'unclosed: "quote',
        "a#b: c",
        "中文: é",
        "<script>alert(1)</script>",
        '"\\',
    ];
    for (const line of lines)
        expect(
            coloured(line)
                .map(({ text }) => text)
                .join(""),
        ).toBe(line);
    expect(coloured("rate: 10/s # x").filter(({ kind }) => kind !== "plain")).toEqual([
        { kind: "name", text: "rate" },
        { kind: "number", text: "10/s" },
        { kind: "comment", text: "# x" },
    ]);
});
