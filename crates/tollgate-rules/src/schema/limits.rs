//! The keys of limits: algorithms, and their numbers.

use super::{
    Key,
    Kind::{self, Count, Duration, Number, Positive, Rate, Size, Word},
    Shape,
};

const RATE: Key = Key::required("rate", Rate, "10/s", "How many units come back per time");
const LIMIT: Key = Key::required("limit", Positive, "100", "How many units in a window");
const WINDOW: Key = Key::required("window", Duration, "1m", "How long a window is");

pub(crate) static TOKEN_BUCKET: Shape = Shape {
    name: "token_bucket",
    about: "At most burst + rate * t in any time t.",
    example: "{ rate: 10/s, burst: 100 }",
    keys: &[&[
        RATE,
        Key::required("burst", Positive, "100", "The most that may come at once"),
        Key::otherwise("initial", Count, "the burst", "What a new key holds"),
        Key::defaulted(
            "refill",
            Word(&["continuous", "interval"]),
            "continuous",
            "Unit by unit, or the rate's whole amount every whole period",
        ),
    ]],
    exactly_one: &[],
};

pub(crate) static LEAKY_BUCKET: Shape = Shape {
    name: "leaky_bucket",
    about: "A charge fits where level + cost <= capacity; the level falls at the rate.",
    example: "{ rate: 10/s, capacity: 20 }",
    keys: &[&[
        RATE,
        Key::required("capacity", Positive, "20", "The highest level"),
        Key::defaulted(
            "delay",
            Kind::Either(&[Positive, Word(&["none"])]),
            "none",
            "How many pass at once, while the others wait for the pace; `none`: pass or refuse",
        ),
    ]],
    exactly_one: &[],
};

pub(crate) static SMOOTH_BURSTY: Shape = Shape {
    name: "smooth_bursty",
    about: "Guava's SmoothBursty: pay later.",
    example: "{ rate: 5/s }",
    keys: &[&[
        Key::required("rate", Rate, "5/s", "How many units per time"),
        Key::defaulted("max_burst", Duration, "1s", "How much unused time is kept"),
        Key::defaulted("initial", Count, "0", "What a new key has kept"),
    ]],
    exactly_one: &[],
};

pub(crate) static SMOOTH_WARMING_UP: Shape = Shape {
    name: "smooth_warming_up",
    about: "Guava's SmoothWarmingUp: slow when cold, at the rate once warm.",
    example: "{ rate: 5/s, warmup: 3s }",
    keys: &[&[
        Key::required("rate", Rate, "5/s", "How many units per time, once warm"),
        Key::required("warmup", Duration, "3s", "How long warming up takes"),
        Key::defaulted("cold_factor", Number, "3", "How many times slower a cold one is; 1 or more"),
    ]],
    exactly_one: &[],
};

pub(crate) static FIXED_WINDOW: Shape = Shape {
    name: "fixed_window",
    about: "At most limit in each window.",
    example: "{ limit: 100, window: 1m }",
    keys: &[&[
        LIMIT,
        Key::defaulted(
            "align",
            Word(&["epoch", "first_hit", "calendar"]),
            "epoch",
            "Where windows begin: at multiples since 1970, with a key's first charge, or with the calendar's units",
        ),
        Key::required(
            "window",
            Kind::Either(&[Duration, Word(&["forever", "hour", "day", "week", "month", "year"])]),
            "1m",
            "How long a window is; with `align: calendar` a unit of the calendar",
        ),
        Key::defaulted(
            "time_zone",
            Kind::Text("time zone"),
            "UTC",
            "Whose calendar; with `align: calendar` only",
        ),
    ]],
    exactly_one: &[],
};

pub(crate) static SLIDING_LOG: Shape = Shape {
    name: "sliding_log",
    about: "At most limit in any window, exactly.",
    example: "{ limit: 5, window: 1m }",
    keys: &[&[LIMIT, WINDOW]],
    exactly_one: &[],
};

pub(crate) static SLIDING_WINDOW: Shape = Shape {
    name: "sliding_window",
    about: "Never more than limit in any window; refuses at most `precision` longer than a log.",
    example: "{ limit: 100, window: 1m, precision: 1s }",
    keys: &[&[LIMIT, WINDOW, Key::required("precision", Duration, "1s", "How long a sub-window is")]],
    exactly_one: &[],
};

pub(crate) static SLIDING_COUNTER: Shape = Shape {
    name: "sliding_counter",
    about: "Two counters, weighted: little memory, a stated error.",
    example: "{ limit: 100, window: 1m }",
    keys: &[&[LIMIT, WINDOW]],
    exactly_one: &[],
};

pub(crate) static CONCURRENCY: Shape = Shape {
    name: "concurrency",
    about: "At most limit in flight.",
    example: "{ limit: 20, max_hold: 30s }",
    keys: &[&[
        Key::required("limit", Positive, "20", "How many at once"),
        Key::defaulted("max_hold", Duration, "1m", "After how long without renewal a slot counts as lost"),
        Key::defaulted("queue", Count, "0", "How many may wait for a slot"),
    ]],
    exactly_one: &[],
};

pub(crate) static BANDWIDTH: Shape = Shape {
    name: "bandwidth",
    about: "The pace of one response's body, on this node; nobody is charged. In a rule's limits only.",
    example: "{ rate: 50KiB/s, after: 1MiB }",
    keys: &[&[
        Key::required("rate", Rate, "50KiB/s", "How many bytes per time"),
        Key::defaulted("after", Size, "0", "How many bytes go at full speed first"),
    ]],
    exactly_one: &[],
};

const fn algorithm(shape: &'static Shape) -> Key {
    Key::optional(shape.name, Kind::Mapping(shape), shape.about)
}

/// The algorithms that requests are charged by, as keys.
pub(super) static CHARGES: [Key; 9] = [
    algorithm(&TOKEN_BUCKET),
    algorithm(&LEAKY_BUCKET),
    algorithm(&SMOOTH_BURSTY),
    algorithm(&SMOOTH_WARMING_UP),
    algorithm(&FIXED_WINDOW),
    algorithm(&SLIDING_LOG),
    algorithm(&SLIDING_WINDOW),
    algorithm(&SLIDING_COUNTER),
    algorithm(&CONCURRENCY),
];

/// Those of them that hold nothing.
static RATES: [Key; 8] = [
    algorithm(&TOKEN_BUCKET),
    algorithm(&LEAKY_BUCKET),
    algorithm(&SMOOTH_BURSTY),
    algorithm(&SMOOTH_WARMING_UP),
    algorithm(&FIXED_WINDOW),
    algorithm(&SLIDING_LOG),
    algorithm(&SLIDING_WINDOW),
    algorithm(&SLIDING_COUNTER),
];

pub(super) static PACE: [Key; 1] = [algorithm(&BANDWIDTH)];

/// One limit by itself, as `parse_limit` reads it.
pub(crate) static LIMIT_ALONE: Shape = Shape {
    name: "limit",
    about: "One algorithm and its numbers.",
    example: "token_bucket: { rate: 10/s, burst: 5 }",
    keys: &[&CHARGES, &PACE],
    exactly_one: &[],
};

/// A limit of an Envoy descriptor.
pub(crate) static DESCRIPTOR_LIMIT: Shape = Shape {
    name: "algorithm",
    about: "One algorithm and its numbers.",
    example: "{ sliding_log: { limit: 5, window: 30s } }",
    keys: &[&RATES],
    exactly_one: &[],
};

/// A limit with a name.
pub(crate) static NAMED_LIMIT: Shape = Shape {
    name: "named_limit",
    about: "One algorithm and its numbers; one budget wherever it is used with the same key.",
    example: "{ token_bucket: { rate: 10/s, burst: 100 } }",
    keys: &[
        &CHARGES,
        &[
            Key::optional(
                "overrides",
                Kind::Named(
                    "key, or list of a key's values",
                    &Kind::PartOf(&[
                        &TOKEN_BUCKET,
                        &LEAKY_BUCKET,
                        &SMOOTH_BURSTY,
                        &SMOOTH_WARMING_UP,
                        &FIXED_WINDOW,
                        &SLIDING_LOG,
                        &SLIDING_WINDOW,
                        &SLIDING_COUNTER,
                        &CONCURRENCY,
                    ]),
                ),
                "Other numbers for some keys; what is left out is the limit's own",
            ),
            Key::otherwise(
                "max_keys",
                Positive,
                "the store's",
                "How many keys it may have in memory; another number there begins the limit anew",
            ),
        ],
    ],
    exactly_one: &[
        "token_bucket",
        "leaky_bucket",
        "smooth_bursty",
        "smooth_warming_up",
        "fixed_window",
        "sliding_log",
        "sliding_window",
        "sliding_counter",
        "concurrency",
    ],
};
