//! The keys of limits: algorithms and their parameters.

use super::{
    Key,
    Kind::{self, Count, Duration, Number, Positive, Rate, Size, Word},
    Shape,
};

const LIMIT: Key = Key::required("limit", Positive, "100", "Maximum number of units in a window");
const WINDOW: Key = Key::required("window", Duration, "1m", "Length of the window");

pub(crate) static TOKEN_BUCKET: Shape = Shape {
    name: "token_bucket",
    about: "Refills at `rate`, up to `burst` units: allows at most burst + rate * t units in any time t.",
    example: "{ rate: 10/s, burst: 100 }",
    keys: &[&[
        Key::required("rate", Rate, "10/s", "Refill rate"),
        Key::required("burst", Positive, "100", "Bucket size: the largest burst"),
        Key::otherwise("initial", Count, "the value of `burst`", "Units in the bucket of a new key"),
        Key::defaulted(
            "refill",
            Word(&["continuous", "interval"]),
            "continuous",
            "`continuous` adds units one by one; `interval` adds the whole amount of the rate at the end of every period",
        ),
    ]],
    exactly_one: &[],
};

pub(crate) static LEAKY_BUCKET: Shape = Shape {
    name: "leaky_bucket",
    about: "Allows a charge if level + cost <= capacity; the level drains at `rate`.",
    example: "{ rate: 10/s, capacity: 20 }",
    keys: &[&[
        Key::required("rate", Rate, "10/s", "Drain rate"),
        Key::required("capacity", Positive, "20", "Maximum level"),
        Key::defaulted(
            "delay",
            Kind::Either(&[Positive, Word(&["none"])]),
            "none",
            "Units that are allowed at once; units above it are delayed to the pace of `rate`. `none`: no charge is delayed",
        ),
    ]],
    exactly_one: &[],
};

pub(crate) static SMOOTH_BURSTY: Shape = Shape {
    name: "smooth_bursty",
    about: "Guava's SmoothBursty: a charge is allowed at once, and the next one waits for its cost.",
    example: "{ rate: 5/s }",
    keys: &[&[
        Key::required("rate", Rate, "5/s", "Units per time"),
        Key::defaulted("max_burst", Duration, "1s", "Idle time whose units are stored for a later burst"),
        Key::defaulted("initial", Count, "0", "Stored units of a new key"),
    ]],
    exactly_one: &[],
};

pub(crate) static SMOOTH_WARMING_UP: Shape = Shape {
    name: "smooth_warming_up",
    about: "Guava's SmoothWarmingUp: slow after idle time, then faster up to `rate`.",
    example: "{ rate: 5/s, warmup: 3s }",
    keys: &[&[
        Key::required("rate", Rate, "5/s", "Units per time when warm"),
        Key::required("warmup", Duration, "3s", "Duration of the warm-up"),
        Key::defaulted(
            "cold_factor",
            Number,
            "3",
            "How many times slower than `rate` a cold limiter is; at least 1",
        ),
    ]],
    exactly_one: &[],
};

pub(crate) static FIXED_WINDOW: Shape = Shape {
    name: "fixed_window",
    about: "At most `limit` units in each window.",
    example: "{ limit: 100, window: 1m }",
    keys: &[&[
        LIMIT,
        Key::defaulted(
            "align",
            Word(&["epoch", "first_hit", "calendar"]),
            "epoch",
            "Start of the windows: `epoch` at multiples of the window since 1970, `first_hit` at a key's first charge, `calendar` at the units of the calendar",
        ),
        Key::required(
            "window",
            Kind::Either(&[Duration, Word(&["forever", "hour", "day", "week", "month", "year"])]),
            "1m",
            "Length of the window; with `align: calendar` a unit of the calendar",
        ),
        Key::defaulted(
            "time_zone",
            Kind::Text("time zone"),
            "UTC",
            "Time zone of the calendar; only with `align: calendar`",
        ),
    ]],
    exactly_one: &[],
};

pub(crate) static SLIDING_LOG: Shape = Shape {
    name: "sliding_log",
    about: "At most `limit` units in any window, exactly; memory per key grows up to `limit` entries.",
    example: "{ limit: 5, window: 1m }",
    keys: &[&[LIMIT, WINDOW]],
    exactly_one: &[],
};

pub(crate) static SLIDING_WINDOW: Shape = Shape {
    name: "sliding_window",
    about: "At most `limit` units in any window; a unit counts for up to `precision` longer than in a log.",
    example: "{ limit: 100, window: 1m, precision: 1s }",
    keys: &[&[LIMIT, WINDOW, Key::required("precision", Duration, "1s", "Length of a sub-window")]],
    exactly_one: &[],
};

pub(crate) static SLIDING_COUNTER: Shape = Shape {
    name: "sliding_counter",
    about: "Approximates a sliding window with two weighted counters: little memory, a bounded error.",
    example: "{ limit: 100, window: 1m }",
    keys: &[&[LIMIT, WINDOW]],
    exactly_one: &[],
};

pub(crate) static CONCURRENCY: Shape = Shape {
    name: "concurrency",
    about: "At most `limit` units in flight.",
    example: "{ limit: 20, max_hold: 30s }",
    keys: &[&[
        Key::required("limit", Positive, "20", "Maximum number of units in flight"),
        Key::defaulted(
            "max_hold",
            Duration,
            "1m",
            "How long a slot is held without renewal before it is released",
        ),
        Key::defaulted("queue", Count, "0", "Maximum number of requests that wait for a slot"),
    ]],
    exactly_one: &[],
};

pub(crate) static BANDWIDTH: Shape = Shape {
    name: "bandwidth",
    about: "Limits the speed of each response body on this node. It has no key and charges nothing. Only in the limits of a rule.",
    example: "{ rate: 50KiB/s, after: 1MiB }",
    keys: &[&[
        Key::required("rate", Rate, "50KiB/s", "Bytes per time"),
        Key::defaulted("after", Size, "0", "Bytes that are sent at full speed first"),
    ]],
    exactly_one: &[],
};

const fn algorithm(shape: &'static Shape) -> Key {
    Key::optional(shape.name, Kind::Mapping(shape), shape.about)
}

/// The algorithms that charge requests, as keys.
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

/// The algorithms without slots.
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

/// A single limit, as `parse_limit` reads it.
pub(crate) static LIMIT_ALONE: Shape = Shape {
    name: "limit",
    about: "One algorithm and its parameters.",
    example: "token_bucket: { rate: 10/s, burst: 5 }",
    keys: &[&CHARGES, &PACE],
    exactly_one: &[],
};

/// A limit of an Envoy descriptor.
pub(crate) static DESCRIPTOR_LIMIT: Shape = Shape {
    name: "algorithm",
    about: "One algorithm and its parameters.",
    example: "{ sliding_log: { limit: 5, window: 30s } }",
    keys: &[&RATES],
    exactly_one: &[],
};

/// A limit with a name.
pub(crate) static NAMED_LIMIT: Shape = Shape {
    name: "named_limit",
    about: "One algorithm and its parameters. The limit is one budget wherever it is used with the same key.",
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
                "Other parameters for some keys; parameters that are left out keep the limit's values",
            ),
            Key::otherwise(
                "max_keys",
                Positive,
                "`store.max_keys`, shared with other limits",
                "Maximum number of keys of this limit in memory, in a table of its own. A change starts the limit anew",
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
