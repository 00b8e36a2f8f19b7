/** The playground's algorithms: their numbers, and how a limit of theirs is written. */

export interface Setting {
    name: string;
    value: string;
    /** Left out where it is empty. */
    optional?: boolean;
}
export interface Algorithm {
    kind: string;
    settings: Setting[];
    holds?: boolean;
    /** Whether it can book turns, so that a wait makes sense. */
    books?: boolean;
}

export const ALGORITHMS: Algorithm[] = [
    {
        kind: "token_bucket",
        books: true,
        settings: [
            { name: "rate", value: "10/s" },
            { name: "burst", value: "20" },
            { name: "initial", value: "", optional: true },
        ],
    },
    {
        kind: "leaky_bucket",
        books: true,
        settings: [
            { name: "rate", value: "10/s" },
            { name: "capacity", value: "20" },
            { name: "delay", value: "", optional: true },
        ],
    },
    {
        kind: "smooth_bursty",
        books: true,
        settings: [
            { name: "rate", value: "10/s" },
            { name: "max_burst", value: "1s", optional: true },
        ],
    },
    {
        kind: "smooth_warming_up",
        books: true,
        settings: [
            { name: "rate", value: "10/s" },
            { name: "warmup", value: "3s" },
            { name: "cold_factor", value: "", optional: true },
        ],
    },
    {
        kind: "fixed_window",
        settings: [
            { name: "limit", value: "20" },
            { name: "window", value: "2s" },
            { name: "align", value: "", optional: true },
        ],
    },
    {
        kind: "sliding_log",
        settings: [
            { name: "limit", value: "20" },
            { name: "window", value: "2s" },
        ],
    },
    {
        kind: "sliding_window",
        settings: [
            { name: "limit", value: "20" },
            { name: "window", value: "2s" },
            { name: "precision", value: "200ms" },
        ],
    },
    {
        kind: "sliding_counter",
        settings: [
            { name: "limit", value: "20" },
            { name: "window", value: "2s" },
        ],
    },
    {
        kind: "concurrency",
        holds: true,
        settings: [
            { name: "limit", value: "3" },
            { name: "max_hold", value: "10s" },
            { name: "queue", value: "", optional: true },
        ],
    },
];

/** A limit as a rule file has it. Values are written as they are: the server says what is wrong with them. */
export function written(kind: string, values: Record<string, string>): string {
    const algorithm = ALGORITHMS.find((one) => one.kind === kind);
    const parts = (algorithm?.settings ?? [])
        .map(({ name, optional }) => ({ name, optional, value: (values[name] ?? "").trim() }))
        .filter(({ value, optional }) => value !== "" || !optional)
        .map(({ name, value }) => `${name}: ${value === "" ? '""' : plain(value)}`);
    return `${kind}: { ${parts.join(", ")} }`;
}

/** What YAML would read as something else goes in quotes. */
function plain(value: string): string {
    return /^[\w.+/-]+$/.test(value) ? value : JSON.stringify(value);
}
