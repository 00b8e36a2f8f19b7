/** Which limits are asked beside another: one that lets a request pass does not speak for the rest. */
import type { RuleInForce } from "../api/types";

/** Whether a request that is charged on this limit may be refused by another one. */
export function othersMayRefuse(rules: RuleInForce[], limit: string): boolean {
    const inForce = rules.filter((rule) => rule.enabled && rule.route_enabled);
    const charges = (rule: RuleInForce) => rule.limits.some((one) => one.limit === limit);
    // A rule in shadow refuses nobody, and bandwidth slows down what has passed.
    const refusesElse = (rule: RuleInForce) =>
        rule.excess !== "shadow" &&
        rule.limits.some((one) => one.limit !== limit && one.kind !== "bandwidth");
    const meet = (one: RuleInForce, other: RuleInForce) =>
        one.route === null || other.route === null || one.route === other.route;
    return inForce
        .filter(charges)
        .some((rule) => inForce.some((other) => meet(rule, other) && refusesElse(other)));
}
