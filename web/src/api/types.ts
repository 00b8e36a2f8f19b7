/** What the API says, shape by shape. `docs/console.md` has the pages; `/v1/openapi.json` the whole contract. */

export type Role = "viewer" | "operator" | "admin";
export interface Me {
    name: string;
    role: Role;
    login: boolean;
}

export type SourceKind = "file" | "mysql" | "postgres" | "sqlite";
export interface Source {
    kind: SourceKind;
    name: string;
    read_only: string | null;
}

export interface Mistake {
    line: number;
    column: number;
    path: string;
    message: string;
}
export interface PieceMistake extends Mistake {
    piece: number | null;
    about: string;
}

export interface Overview {
    node: string;
    version: string;
    started_ms: number;
    now_ms: number;
    enabled: boolean;
    ready: boolean;
    rules: {
        source: Source;
        revision: string;
        generation: number;
        loaded_ms: number;
        failure: { at_ms: number; why: string; mistakes: Mistake[] } | null;
    };
    store: { mode: string; last_error: string | null; keys: number; evictions: number };
    listeners: { name: string; address: string; connections: number; in_flight: number }[];
    upstreams: { name: string; servers: { url: string; weight: number; healthy: boolean }[] }[];
    problems: string[];
}

export interface RuleLimit {
    limit: string;
    kind: string;
    summary: string;
    key: string[];
    cost: string;
}
export interface RuleInForce {
    route: string | null;
    rule: string;
    route_enabled: boolean;
    enabled: boolean;
    when: string;
    limits: RuleLimit[];
    excess: string;
}
export interface RouteInForce {
    name: string;
    enabled: boolean;
    when: string;
    upstream: string | null;
    strip_prefix: string | null;
}
export interface NamedLimit {
    name: string;
    kind: string;
    summary: string;
    overrides: number;
    max_keys: number | null;
}
export interface RulesInForce {
    revision: string;
    enabled: boolean;
    rules: RuleInForce[];
    routes: RouteInForce[];
    limits: NamedLimit[];
    upstreams: string[];
}

export interface NodeSeen {
    node: string;
    revision: string;
    failure: string | null;
    at_ms: number;
}

export type PieceKind = "limit" | "upstream" | "route" | "rule" | "file";
export interface Piece {
    id: number;
    kind: PieceKind;
    route: string | null;
    name: string;
    text: string;
    enabled: boolean;
    version: number;
    changed: { at_ms: number; by: string };
}
export interface Book {
    revision: string;
    enabled: boolean;
    source: Source;
    pieces: Piece[];
}

export type Change =
    | {
          change: "create";
          kind: PieceKind;
          route?: string | null;
          name: string;
          text: string;
          enabled?: boolean;
          before?: number | null;
      }
    | { change: "edit"; id: number; version: number; name?: string; text: string }
    | { change: "enable"; id: number; version: number; enabled: boolean }
    | { change: "move"; id: number; version: number; before: number | null }
    | { change: "delete"; id: number; version: number };

export interface Stale {
    id: number;
    made_on: number;
    there_is: number | null;
    by: string | null;
}

export interface Tally {
    passed: number;
    delayed: number;
    refused: number;
}
export interface TrialTally extends Tally {
    /** Answered 400 before any rule is asked. */
    invalid: number;
}
export interface Verdict {
    decision: "allow" | "wait" | "deny" | "invalid";
    rule: string | null;
    /** Why it would be answered 400. */
    reason: string | null;
}
export interface Trial {
    recorded: { requests: number; of: number; from_ms: number; to_ms: number };
    now: TrialTally;
    draft: TrialTally;
    differ: { at_ms: number; method: string; path: string; ip: string; now: Verdict; draft: Verdict }[];
}

export interface AuditEntry {
    number: number;
    at_ms: number;
    by: string;
    action: string;
    about: string;
    before: string | null;
    after: string | null;
}

export interface Series {
    passed: number[];
    delayed: number[];
    refused: number[];
}
/** Whose traffic: a rule of a route, a rule of every route, or a limit asked for at a door. */
export interface Whose {
    route: string | null;
    rule: string | null;
    door?: string;
    limit?: string;
}
export interface Usage {
    step_ms: number;
    from_ms: number;
    /** `shadow`: of those that passed, how many a rule in shadow would have refused; only where there were any. */
    rules: (Whose & Series & { shadow?: number[] })[];
    total: Series;
}
export interface Second extends Tally {
    at_ms: number;
    rules: (Whose & Tally)[];
}
export interface Refusal {
    at_ms: number;
    route: string | null;
    rule: string | null;
    door?: string;
    method?: string;
    path?: string;
    ip?: string;
    /** None where it was no limit that refused. */
    limit: string | null;
    key: (string | null)[];
    left_out?: number;
}

export type KeyName = string | (string | null)[];
export interface HeavyKey {
    limit: string;
    key: KeyName;
    key_cut: boolean;
    refused_per_second: number;
    used_per_second: number;
    at_least: number;
    at_most: number;
}
export interface Top {
    half_life_seconds: number;
    limited: HeavyKey[];
    used: HeavyKey[];
    lost: number;
}
export interface KeyState {
    limit: string;
    key: (string | null)[];
    decision: "allow" | "wait" | "deny";
    remaining: number;
    of: number;
    reset_after_ms: number | null;
    retry_after_ms: number | null;
    decided_by: string;
    refused_per_second: number;
    used_per_second: number;
}

export type Shape = "steady" | "burst" | "wave" | "poisson" | "spike";
export interface Play {
    limit: string;
    traffic: { shape: Shape; rate: number; seconds: number; cost: number; seed: number };
    wait_ms: number;
    hold_ms?: number;
}
export interface Arrival {
    at_us: number;
    decision: "allow" | "wait" | "deny";
    wait_us: number;
}
export interface Played extends Tally {
    arrivals: Arrival[];
    summary: string;
}
