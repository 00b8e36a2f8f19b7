/**
 * A stand-in of the API, for `npm run dev` alone: believable data that moves, for work on how things look. Nothing of it
 * is in what is built, and no test trusts it; pages are tested against the real program.
 *
 * TOLLGATE=http://127.0.0.1:9090 npm run dev    asks a real one instead
 * STANDIN=file npm run dev                      rules kept in a file; otherwise in a database
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Plugin } from "vite";
import type { Arrival, Change, Piece, Play, Second } from "../src/api/types.ts";
import { FILE, PIECES, inForceOf } from "./rules.ts";

const STEPS = 300;
const started = Date.now() - 3 * 3_600_000;

export function standIn(): Plugin {
    const real = process.env.TOLLGATE;
    return {
        name: "stand-in",
        apply: "serve",
        config: () => (real ? { server: { proxy: { "/v1": real } } } : {}),
        configureServer(server) {
            if (real || process.env.VITEST) return;
            const world = new World(process.env.STANDIN === "file");
            server.middlewares.use((request, response, next) => {
                if (!request.url?.startsWith("/v1/")) return next();
                void world.answer(request, response);
            });
        },
    };
}

const RULES = [
    { route: null, rule: "per-ip", rate: 62, share: [1, 0, 0.01] },
    { route: "orders", rule: "per-client", rate: 41, share: [0.72, 0, 0.28] },
    { route: "checkout", rule: "checkout", rate: 9, share: [0.5, 0.4, 0.1] },
    { route: "login", rule: "login", rate: 5, share: [0.6, 0, 0.4] },
    { route: null, rule: null, door: "resp", limit: "per-client", rate: 14, share: [0.97, 0, 0.03] },
];

function second(at: number): Second {
    const rules = RULES.map(({ rate, share, ...whose }, i) => {
        const wave =
            1 + 0.35 * Math.sin(at / 23_000 + i) + 0.2 * Math.sin(at / 4100 + i * 2) + 0.1 * Math.random();
        const [passed, delayed, refused] = share.map((part) => Math.round(part * rate * wave));
        return { ...whose, passed: passed!, delayed: delayed!, refused: refused! };
    });
    const total = (name: "passed" | "delayed" | "refused") =>
        rules.reduce((sum, rule) => sum + rule[name], 0);
    return {
        at_ms: at,
        passed: total("passed"),
        delayed: total("delayed"),
        refused: total("refused"),
        rules,
    };
}

class World {
    private seconds: Second[] = [];
    private listeners = new Set<ServerResponse>();
    private enabled = true;
    private pieces: Piece[];
    private revision = 12;
    private spent = new Map<string, { used: number; at: number; granted: number; until: number }>();
    private audit: object[] = [];

    constructor(private isFile: boolean) {
        this.pieces = isFile ? [FILE] : PIECES;
        const now = Math.floor(Date.now() / 1000) * 1000;
        for (let i = STEPS; i > 0; i--) this.seconds.push(second(now - i * 1000));
        this.note(
            "edit",
            "rule orders/per-client",
            "limits:\n  - { use: per-client, key: [ip] }\n",
            this.pieces[0]!.text,
        );
        this.note("ban", "limit per-client key mallory");
        setInterval(() => this.tick(), 1000).unref();
    }

    private tick(): void {
        const now = second(Math.floor(Date.now() / 1000) * 1000);
        this.seconds = [...this.seconds.slice(-STEPS + 1), now];
        this.tell("second", now);
        for (let i = 0; i < 3; i++) {
            const key = ["greedy", "cron-7", "203.0.113.9"][Math.floor(Math.random() * 3)]!;
            this.tell("refused", {
                at_ms: Date.now() - i * 200,
                route: "orders",
                rule: "per-client",
                method: "GET",
                path: `/orders/${Math.floor(Math.random() * 900)}`,
                ip: "203.0.113.9",
                limit: "per-client",
                key: [key],
                left_out: i === 2 ? 4 : 0,
            });
        }
    }

    private tell(event: string, data: unknown): void {
        for (const one of this.listeners) one.write(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
    }

    private note(
        action: string,
        about: string,
        before: string | null = null,
        after: string | null = null,
    ): void {
        this.audit.unshift({
            number: this.audit.length + 1,
            at_ms: Date.now() - 60_000,
            by: "local",
            action,
            about,
            before,
            after,
        });
    }

    async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
        const url = new URL(request.url!, "http://x");
        const asked = `${request.method} ${url.pathname}`;
        const body = request.method === "GET" ? {} : await read(request);
        const json = (value: unknown, status = 200) => {
            response.statusCode = status;
            response.setHeader(
                "content-type",
                status < 400 ? "application/json" : "application/problem+json",
            );
            response.end(JSON.stringify(value));
        };
        switch (asked) {
            case "GET /v1/events":
                response.writeHead(200, { "content-type": "text/event-stream" });
                response.write(": here\n\n");
                this.listeners.add(response);
                request.on("close", () => this.listeners.delete(response));
                return;
            case "GET /v1/me":
                return json({ name: "local", role: "admin", login: false });
            case "GET /v1/overview":
                return json(this.overview());
            case "GET /v1/rules":
                return json({
                    ...inForceOf(this.pieces),
                    revision: String(this.revision),
                    enabled: this.enabled,
                });
            case "GET /v1/book":
                return json(this.book());
            case "GET /v1/usage":
                return json(this.usage(Number(url.searchParams.get("last"))));
            case "GET /v1/nodes":
                return json({ nodes: this.nodes() });
            case "GET /v1/audit":
                return json({ entries: this.audit });
            case "GET /v1/top":
                return json(this.top());
            case "GET /v1/keys":
                return json(this.key(url.searchParams.get("limit")!, url.searchParams.getAll("key")));
            case "PUT /v1/switch":
                this.enabled = body.enabled;
                this.tell("switch", { enabled: this.enabled });
                return json({ enabled: this.enabled });
            case "PUT /v1/switch/rule":
                for (const piece of this.pieces) {
                    if (piece.name === body.rule && piece.route === body.route)
                        Object.assign(piece, { enabled: body.enabled, version: piece.version + 1 });
                }
                return json({ enabled: body.enabled });
            case "POST /v1/changes/check":
                return json({ mistakes: this.mistakes(body.changes) });
            case "POST /v1/changes/try":
                return json(trial());
            case "POST /v1/changes":
                return json(this.publish(body.changes));
            case "POST /v1/play":
                return /: ("|0\b)/.test(body.limit)
                    ? json(
                          {
                              title: "Unprocessable",
                              status: 422,
                              detail: "1 mistake",
                              mistakes: [
                                  {
                                      line: 1,
                                      column: 1,
                                      path: "token_bucket.rate",
                                      message: "must be greater than zero",
                                  },
                              ],
                          },
                          422,
                      )
                    : json(play(body));
        }
        const act = /^POST \/v1\/keys\/(reset|grant|ban)$/.exec(asked)?.[1];
        if (act) {
            const key = [body.key].flat();
            const one = this.bucket(body.limit, key);
            if (act === "reset") Object.assign(one, { used: 0, granted: 0, until: 0 });
            if (act === "grant") one.granted += body.units;
            if (act === "ban") one.until = Date.now() + body.seconds * 1000;
            return json(this.key(body.limit, key));
        }
        json({ title: "Not Found", status: 404, detail: `there is no ${asked}` }, 404);
    }

    private overview() {
        return {
            node: "booth-1:9090",
            version: "0.1.0",
            started_ms: started,
            now_ms: Date.now(),
            enabled: this.enabled,
            ready: true,
            rules: {
                source: this.source(),
                revision: String(this.revision),
                generation: 3,
                loaded_ms: Date.now() - 700_000,
                failure: null,
            },
            store: { mode: "memory", last_error: null, keys: 1284, evictions: 0 },
            listeners: [
                { name: "gateway", address: "127.0.0.1:8080", connections: 31, in_flight: 4 },
                { name: "resp", address: "127.0.0.1:6380", connections: 3, in_flight: 0 },
                { name: "admin", address: "127.0.0.1:9090", connections: 2, in_flight: 1 },
            ],
            upstreams: [
                {
                    name: "shop",
                    servers: [
                        { url: "http://127.0.0.1:3000", weight: 1, healthy: true },
                        { url: "http://127.0.0.1:3001", weight: 2, healthy: false },
                    ],
                },
            ],
            problems: ["upstream shop: http://127.0.0.1:3001 does not answer: connection refused"],
        };
    }

    private source() {
        return this.isFile
            ? { kind: "file", name: "/etc/tollgate/tollgate.yaml", read_only: null }
            : { kind: "sqlite", name: "/var/lib/tollgate/rules.db", read_only: null };
    }

    private book() {
        return {
            revision: String(this.revision),
            enabled: this.enabled,
            source: this.source(),
            pieces: this.pieces,
        };
    }

    private nodes() {
        const now = Date.now();
        return [
            { node: "booth-1:9090", revision: String(this.revision), failure: null, at_ms: now - 900 },
            { node: "booth-2:9090", revision: String(this.revision), failure: null, at_ms: now - 1500 },
            {
                node: "booth-3:9090",
                revision: String(this.revision - 1),
                failure: "rule orders/per-client:2:5: unknown limit",
                at_ms: now - 2100,
            },
        ];
    }

    private usage(last: number) {
        const pick = (
            name: "passed" | "delayed" | "refused",
            from: (second: Second) => Record<string, unknown> | undefined,
        ) => this.seconds.map((one) => Number(from(one)?.[name] ?? 0));
        const series = (from: (second: Second) => object | undefined) => ({
            passed: pick("passed", from as never),
            delayed: pick("delayed", from as never),
            refused: pick("refused", from as never),
        });
        const step = last <= 300 ? 1000 : last <= 3600 ? 10_000 : 300_000;
        return {
            step_ms: step,
            from_ms: step === 1000 ? this.seconds[0]!.at_ms : Date.now() - this.seconds.length * step,
            rules: RULES.map(({ rate: _, share: __, ...whose }, i) => ({
                ...whose,
                ...series((one) => one.rules[i]),
                ...(whose.rule === "per-ip" && {
                    shadow: this.seconds.map((one) => Math.round(one.rules[i]!.passed / 9)),
                }),
            })),
            total: series((one) => one),
        };
    }

    private top() {
        const one = (limit: string, key: unknown, refused: number, used: number) => ({
            limit,
            key,
            key_cut: false,
            refused_per_second: refused + Math.round(Math.random() * 100) / 100,
            used_per_second: used,
            at_least: 0,
            at_most: 0,
        });
        const some = [
            one("per-client", "greedy", 18.2, 20),
            one("orders/per-client/1", "203.0.113.9", 3.1, 60),
            one("login/login/0", ["198.51.100.7"], 1.4, 0.5),
            one("per-client", ["acme", null], 0.4, 12),
            one("per-client", "<b>bold</b>", 0.1, 3),
        ];
        return {
            half_life_seconds: 60,
            limited: some,
            used: [...some].sort((a, b) => b.used_per_second - a.used_per_second),
            lost: 0,
        };
    }

    private bucket(limit: string, key: (string | null)[]) {
        const name = JSON.stringify([limit, key]);
        const now = Date.now();
        const one = this.spent.get(name) ?? { used: 10, at: now, granted: 0, until: 0 };
        const passed = (now - one.at) / 1000;
        one.used = Math.min(40, Math.max(0, one.used + passed * (25 * Math.random() - 11)));
        one.at = now;
        this.spent.set(name, one);
        return one;
    }

    private key(limit: string, key: (string | null)[]) {
        const one = this.bucket(limit, key);
        const remaining = Math.floor(40 - one.used + one.granted);
        const banned = one.until > Date.now();
        return {
            limit,
            key,
            decision: banned || remaining < 1 ? "deny" : "allow",
            remaining: banned ? 0 : remaining,
            of: 40,
            reset_after_ms: one.used * 50,
            retry_after_ms: banned ? one.until - Date.now() : remaining < 1 ? 50 : null,
            decided_by: "store",
            refused_per_second: 1.2,
            used_per_second: 17.4,
        };
    }

    private mistakes(changes: Change[]) {
        return changes.flatMap((change) => {
            if (!("text" in change)) return [];
            return change.text.split("\n").flatMap((line, i) => {
                const at = line.search(/rate: 0\b/);
                const piece = "id" in change ? change.id : null;
                const about =
                    "id" in change
                        ? `rule ${change.id}`
                        : `${change.kind} ${change.route ? `${change.route}/` : ""}${change.name}`;
                return at < 0
                    ? []
                    : [
                          {
                              piece,
                              about,
                              line: i + 1,
                              column: at + 1,
                              path: "limits[0].token_bucket.rate",
                              message: "must be greater than zero",
                          },
                      ];
            });
        });
    }

    private publish(changes: Change[]) {
        for (const change of changes) {
            const piece = "id" in change ? this.pieces.find((one) => one.id === change.id) : undefined;
            if (change.change === "edit" && piece)
                Object.assign(piece, {
                    text: change.text,
                    name: change.name ?? piece.name,
                    version: piece.version + 1,
                });
            if (change.change === "enable" && piece) piece.enabled = change.enabled;
            if (change.change === "delete") this.pieces = this.pieces.filter((one) => one !== piece);
        }
        this.revision++;
        this.tell("rules", { revision: String(this.revision), by: "local" });
        return this.book();
    }
}

function trial() {
    const now = Date.now();
    const differ = Array.from({ length: 12 }, (_, i) => ({
        at_ms: now - i * 1300,
        method: "GET",
        path: `/orders/${i * 37}`,
        ip: "203.0.113.9",
        now: { decision: "deny", rule: "orders/per-client" },
        draft: { decision: "allow", rule: null },
    }));
    return {
        recorded: { requests: 5000, of: 20000, from_ms: now - 120_000, to_ms: now },
        now: { passed: 3911, delayed: 41, refused: 1048 },
        draft: { passed: 4660, delayed: 41, refused: 299 },
        differ,
    };
}

function play({ traffic, wait_ms }: Play) {
    const arrivals: Arrival[] = [];
    let tokens = 20;
    let last = 0;
    for (let at = 0; at < traffic.seconds && arrivals.length < 10_000;) {
        const wave = traffic.shape === "wave" ? 1 + 0.9 * Math.sin((at / traffic.seconds) * 12) : 1;
        at += 1 / Math.max(0.5, traffic.rate * wave);
        tokens = Math.min(20, tokens + (at - last) * 10);
        last = at;
        const short = traffic.cost - tokens;
        const wait = (short / 10) * 1e6;
        const decision = short <= 0 ? "allow" : wait <= wait_ms * 1000 ? "wait" : "deny";
        if (decision !== "deny") tokens -= traffic.cost;
        arrivals.push({
            at_us: Math.round(at * 1e6),
            decision,
            wait_us: decision === "wait" ? Math.round(wait) : 0,
        });
    }
    const of = (decision: string) => arrivals.filter((one) => one.decision === decision).length;
    return {
        arrivals,
        passed: of("allow"),
        delayed: of("wait"),
        refused: of("deny"),
        summary: "10/s, burst 20",
    };
}

async function read(request: IncomingMessage): Promise<any> {
    let text = "";
    for await (const part of request) text += part;
    return text ? JSON.parse(text) : {};
}
