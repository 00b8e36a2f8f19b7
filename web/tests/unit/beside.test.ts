import { expect, test } from "vitest";
import type { RuleInForce } from "../../src/api/types";
import { othersMayRefuse } from "../../src/logic/beside";

const rule = (route: string | null, limits: string[], more: Partial<RuleInForce> = {}): RuleInForce => ({
    route,
    rule: limits.join(),
    route_enabled: true,
    enabled: true,
    when: "",
    limits: limits.map((limit) => ({ limit, kind: "token_bucket", summary: "", key: [], cost: "1" })),
    excess: "reject",
    ...more,
});

test("another limit may refuse what this one lets pass, where one request meets both", () => {
    const mine = rule("a", ["mine"]);
    expect(othersMayRefuse([mine], "mine")).toBe(false);
    expect(othersMayRefuse([mine, rule("a", ["other"])], "mine")).toBe(true);
    expect(othersMayRefuse([mine, rule(null, ["other"])], "mine")).toBe(true);
    expect(othersMayRefuse([rule(null, ["mine"]), rule("b", ["other"])], "mine")).toBe(true);
    expect(othersMayRefuse([rule("a", ["mine", "other"])], "mine")).toBe(true);
    expect(othersMayRefuse([mine, rule("b", ["other"])], "mine")).toBe(false);
});

test("a rule that is off or in shadow refuses nobody", () => {
    const mine = rule("a", ["mine"]);
    expect(othersMayRefuse([mine, rule("a", ["other"], { enabled: false })], "mine")).toBe(false);
    expect(othersMayRefuse([mine, rule(null, ["other"], { excess: "shadow" })], "mine")).toBe(false);
});
