/** The rules of the stand-in. */
import type { Piece, RulesInForce } from "../src/api/types.ts";

const changed = { at_ms: Date.now() - 86_400_000, by: "ann" };
let id = 0;
const piece = (kind: Piece["kind"], route: string | null, name: string, text: string): Piece => ({
    id: ++id,
    kind,
    route,
    name,
    text,
    enabled: true,
    version: 3,
    changed,
});

const PER_CLIENT =
    "token_bucket: { rate: 20/s, burst: 40 }\noverrides:\n  vip: { rate: 200/s, burst: 400 } # whoever sends `x-api-key: vip`\n";

export const PIECES: Piece[] = [
    piece(
        "rule",
        "orders",
        "per-client",
        "# One bucket an API key.\nlimits:\n  - { use: per-client, key: [header.x-api-key] }\nexcess: reject\n",
    ),
    piece(
        "rule",
        "orders",
        "smaller-plan",
        "limits:\n  - { token_bucket: { rate: 10/s, burst: 20 }, key: [header.x-api-key] }\nexcess: shadow\n",
    ),
    piece("limit", null, "per-client", PER_CLIENT),
    piece("upstream", null, "shop", 'servers: ["http://127.0.0.1:3000"]\n'),
    piece("rule", null, "per-ip", "limits:\n  - { token_bucket: { rate: 60/s, burst: 100 }, key: [ip] }\n"),
    piece("route", null, "login", "when: { path: /login, method: POST }\nupstream: shop\n"),
    piece("rule", "login", "login", "limits:\n  - { sliding_log: { limit: 5, window: 10s }, key: [ip] }\n"),
    piece("route", null, "orders", 'when: { path: "/orders/**" }\nupstream: shop\n'),
];

export const FILE: Piece = {
    ...piece("file", null, "tollgate.yaml", ""),
    text: `# The rules of this demo.\nversion: 1\nlisten:\n  gateway: 127.0.0.1:8080\n  admin: 127.0.0.1:9090\n\nlimits:\n  per-client:\n    ${PER_CLIENT.replaceAll("\n", "\n    ").trim()}\n\nroutes:\n  - name: orders\n    when: { path: "/orders/**" }\n    upstream: shop\n    rules:\n      - name: per-client\n        limits: [{ use: per-client, key: [header.x-api-key] }]\n`,
};

export function inForceOf(pieces: Piece[]): Omit<RulesInForce, "revision" | "enabled"> {
    const isOn = (route: string | null, name: string) =>
        pieces.find((one) => one.kind === "rule" && one.route === route && one.name === name)?.enabled ??
        true;
    const bucket = (limit: string, kind: string, summary: string, key: string[]) => ({
        limit,
        kind,
        summary,
        key,
        cost: "1",
    });
    const rule = (
        route: string | null,
        rule: string,
        limits: ReturnType<typeof bucket>[],
        excess = "reject",
    ) => ({
        route,
        rule,
        route_enabled: true,
        enabled: isOn(route, rule),
        when: "",
        limits,
        excess,
    });
    return {
        rules: [
            rule(null, "per-ip", [bucket("per-ip/0", "token_bucket", "60/s, burst 100", ["ip"])]),
            rule("login", "login", [bucket("login/login/0", "sliding_log", "5 in 10s", ["ip"])]),
            rule("orders", "per-client", [
                bucket("per-client", "token_bucket", "20/s, burst 40", ["header.x-api-key"]),
            ]),
            rule(
                "orders",
                "smaller-plan",
                [bucket("orders/smaller-plan/0", "token_bucket", "10/s, burst 20", ["header.x-api-key"])],
                "shadow",
            ),
        ],
        routes: [
            {
                name: "login",
                enabled: true,
                when: "path /login, method POST",
                upstream: "shop",
                strip_prefix: null,
            },
            { name: "orders", enabled: true, when: "path /orders/**", upstream: "shop", strip_prefix: null },
        ],
        limits: [
            {
                name: "per-client",
                kind: "token_bucket",
                summary: "20/s, burst 40",
                overrides: 1,
                max_keys: null,
            },
        ],
        upstreams: ["shop"],
    };
}
