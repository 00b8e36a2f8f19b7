import { ask } from "./ask";
import type {
    AuditEntry,
    Book,
    Change,
    KeyName,
    KeyState,
    Me,
    NodeSeen,
    Overview,
    PieceMistake,
    Play,
    Played,
    RulesInForce,
    Top,
    Trial,
    Usage,
} from "./types";

type KeyParts = (string | null)[];

export const api = {
    me: () => ask<Me>("GET", "/v1/me"),
    login: (token: string) => ask<Me>("POST", "/v1/login", { token }),
    logout: () => ask<void>("POST", "/v1/logout", {}),

    overview: () => ask<Overview>("GET", "/v1/overview"),
    rules: () => ask<RulesInForce>("GET", "/v1/rules"),
    nodes: () => ask<{ nodes: NodeSeen[] }>("GET", "/v1/nodes"),
    usage: (last: number) => ask<Usage>("GET", `/v1/usage?last=${last}`),
    top: (n: number) => ask<Top>("GET", `/v1/top?n=${n}`),

    book: () => ask<Book>("GET", "/v1/book"),
    publish: (changes: Change[]) => ask<Book>("POST", "/v1/changes", { changes }),
    check: (changes: Change[], signal?: AbortSignal) =>
        ask<{ mistakes: PieceMistake[] }>("POST", "/v1/changes/check", { changes }, signal),
    try: (changes: Change[]) => ask<Trial>("POST", "/v1/changes/try", { changes }),
    audit: (before: number | null, n: number) =>
        ask<{ entries: AuditEntry[] }>(
            "GET",
            `/v1/audit?n=${n}${before === null ? "" : `&before=${before}`}`,
        ),

    turn: (enabled: boolean) => ask<{ enabled: boolean }>("PUT", "/v1/switch", { enabled }),
    turnRule: (route: string | null, rule: string, enabled: boolean) =>
        ask<{ enabled: boolean }>("PUT", "/v1/switch/rule", { route, rule, enabled }),

    key: (limit: string, key: KeyParts) => ask<KeyState>("GET", `/v1/keys?${keyQuery(limit, key)}`),
    reset: (limit: string, key: KeyName) => ask<KeyState>("POST", "/v1/keys/reset", { limit, key }),
    grant: (limit: string, key: KeyName, units: number) =>
        ask<KeyState>("POST", "/v1/keys/grant", { limit, key, units }),
    ban: (limit: string, key: KeyName, seconds: number) =>
        ask<KeyState>("POST", "/v1/keys/ban", { limit, key, seconds }),

    play: (play: Play, signal?: AbortSignal) => ask<Played>("POST", "/v1/play", play, signal),
};

/** A key in an address: the parts that it has, in order, and the places of those that are missing. */
export function keyQuery(limit: string, key: KeyParts): string {
    const query = new URLSearchParams({ limit });
    key.forEach((part, index) => {
        if (part === null) query.append("missing", String(index));
        else query.append("key", part);
    });
    return query.toString();
}

/** The other way round, for the address of this page. */
export function keyFromQuery(query: URLSearchParams): { limit: string; key: KeyParts } | null {
    const limit = query.get("limit");
    if (!limit) return null;
    const key: KeyParts = query.getAll("key");
    const missing = query
        .getAll("missing")
        .map(Number)
        .sort((a, b) => a - b);
    for (const place of missing) if (place >= 0 && place <= key.length) key.splice(place, 0, null);
    return { limit, key };
}
