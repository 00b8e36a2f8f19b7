//! The keys of routes, rules, their conditions and charges.

use super::{
    Key,
    Kind::{self, Count, Duration, Mapping, Positive, Switch, Text, Word},
    Shape,
    limits::{CHARGES, PACE},
    settings::ON_FAILURE,
};

const NAME: Key = Key::required("name", Text("name"), "orders", "Its name; no sibling has it");
const ENABLED: Key = Key::defaulted("enabled", Switch, "true", "`false` keeps it and skips it");

/// A route.
pub(crate) static ROUTE: Shape = Shape {
    name: "route",
    about: "Which requests go where, and what they pay.",
    example: "{ name: orders, upstream: orders }",
    keys: &[&[
        NAME,
        ENABLED,
        Key::otherwise("when", Mapping(&WHEN), "every request", "Which requests"),
        Key::optional(
            "strip_prefix",
            Text("path"),
            "What is cut off the path's front before upstream sees it",
        ),
        Key::required("upstream", Text("name of an upstream"), "orders", "Where they go"),
        Key::optional(
            "rules",
            Kind::List(&Mapping(&RULE)),
            "All that match apply; their charges are one atomic set",
        ),
    ]],
    exactly_one: &[],
};

/// A rule.
pub(crate) static RULE: Shape = Shape {
    name: "rule",
    about: "Conditions, charges, and what the excess gets.",
    example: "{ name: per-ip, limits: [ { use: per-client, key: [ip] } ] }",
    keys: &[&[
        NAME,
        ENABLED,
        Key::otherwise("when", Mapping(&WHEN), "every request", "Which of the route's requests"),
        Key::required(
            "limits",
            Kind::List(&Mapping(&RULE_LIMIT)),
            "[ { use: per-client, key: [ip] } ]",
            "What is charged",
        ),
        Key::defaulted(
            "excess",
            Kind::Either(&[Word(&["reject", "shadow"]), Mapping(&EXCESS)]),
            "reject",
            "What becomes of requests that find no room; `shadow` counts, logs and lets pass",
        ),
        Key::otherwise(
            "on_failure",
            ON_FAILURE,
            "the store's",
            "What is decided while the store does not answer",
        ),
    ]],
    exactly_one: &[],
};

/// One charge of a rule, or its bandwidth.
pub(crate) static RULE_LIMIT: Shape = Shape {
    name: "rule_limit",
    about: "One charge: a named limit or an algorithm of the rule's own, and whose bucket. Or a bandwidth, without a key.",
    example: "{ use: per-client, key: [ip] }",
    keys: &[
        &[
            Key::optional("use", Text("name of a limit"), "A limit of `limits`"),
            Key::optional(
                "key",
                Kind::OneOrList(&Text("attribute")),
                "Whose bucket: `ip`, `ip/24`, `header.NAME`, `query.NAME`, `cookie.NAME`, `path.NAME`, `host`, `method`, `path`, `route`, `rule`; `[]` is one bucket for all. Required, except with `bandwidth`",
            ),
            Key::defaulted(
                "missing",
                Word(&["share", "skip", "deny"]),
                "share",
                "A request that lacks an attribute of the key: shares one bucket with its like, is not charged, is refused",
            ),
            Key::defaulted(
                "cost",
                Kind::Either(&[Positive, Word(&["content-length"]), Mapping(&HEADER_COST)]),
                "1",
                "How many units",
            ),
        ],
        &CHARGES,
        &PACE,
    ],
    exactly_one: &[
        "use",
        "token_bucket",
        "leaky_bucket",
        "smooth_bursty",
        "smooth_warming_up",
        "fixed_window",
        "sliding_log",
        "sliding_window",
        "sliding_counter",
        "concurrency",
        "bandwidth",
    ],
};

/// What the excess gets, where a word does not say it.
pub(crate) static EXCESS: Shape = Shape {
    name: "excess",
    about: "What becomes of requests that find no room. The words `reject` and `shadow` may stand for it.",
    example: "{ wait: 500ms }",
    keys: &[&[
        Key::optional("reject", Mapping(&REJECT), "Refused, with this answer"),
        Key::optional("wait", Duration, "Held in order, up to this long"),
        Key::optional("divert", Text("name of an upstream"), "Sent to this upstream"),
        Key::optional("degrade", Mapping(&DEGRADE), "Answered with this instead"),
    ]],
    exactly_one: &["reject", "wait", "divert", "degrade"],
};

const BODY: Key = Key::optional("body", Text("body"), "Its body");
const CONTENT_TYPE: Key = Key::optional("content_type", Text("media type"), "What the body is");

/// A refusal spelt out.
pub(crate) static REJECT: Shape = Shape {
    name: "reject",
    about: "A refusal spelt out. Without a body it reads as `refusal` says.",
    example: "{ status: 429, body: \"Slow down.\" }",
    keys: &[&[Key::defaulted("status", Positive, "429", "Its status, 200 to 599"), BODY, CONTENT_TYPE]],
    exactly_one: &[],
};

/// An answer instead of the real one.
pub(crate) static DEGRADE: Shape = Shape {
    name: "degrade",
    about: "An answer instead of the real one.",
    example: "{ status: 200, body: \"[]\" }",
    keys: &[&[Key::defaulted("status", Positive, "200", "Its status, 200 to 599"), BODY, CONTENT_TYPE]],
    exactly_one: &[],
};

const VALUE: Kind = Kind::OneOrList(&Kind::Either(&[Text("text"), Mapping(&MATCHER)]));

/// A condition.
pub(crate) static WHEN: Shape = Shape {
    name: "when",
    about: "A condition: every attribute that is named must match; a list means any of.",
    example: "{ path: \"/orders/**\", method: POST }",
    keys: &[&[
        Key::optional(
            "path",
            VALUE,
            "The path, decoded: a glob (`*` one segment, `**` any number, `{name}` one segment, captured)",
        ),
        Key::optional("method", VALUE, "The method, exactly"),
        Key::optional("host", VALUE, "The host asked for, without the port; letter case does not matter"),
        Key::optional(
            "header.NAME",
            VALUE,
            "A header. Lines of a header that is a list, such as `Accept`, are joined; for others see `on_repeat`. `Authorization` is read with its scheme as registered and one blank, and `Basic` in canonical base64",
        ),
        Key::optional(
            "query.NAME",
            VALUE,
            "A parameter of the query, decoded; where it is repeated see `on_repeat`",
        ),
        Key::optional(
            "cookie.NAME",
            VALUE,
            "A cookie without quotes and escapes, percent-decoded; where it is repeated see `on_repeat`",
        ),
        Key::optional("ip", VALUE, "The client's address: an address or a network such as 10.0.0.0/8"),
        Key::optional("time", Kind::OneOrList(&Mapping(&TIME)), "At some times only"),
        Key::optional("any", Kind::List(&Mapping(&WHEN)), "One of these holds"),
        Key::optional("all", Kind::List(&Mapping(&WHEN)), "All of these hold"),
        Key::optional("not", Mapping(&WHEN), "This does not hold"),
    ]],
    exactly_one: &[],
};

const TEXTS: Kind = Kind::OneOrList(&Text("text"));

/// What an attribute is compared with.
pub(crate) static MATCHER: Shape = Shape {
    name: "matcher",
    about: "What an attribute is compared with; several must all hold; a list means any of. Text alone stands for a glob of `path`, an address or network of `ip`, `exact` elsewhere.",
    example: "{ prefix: /orders/ }",
    keys: &[&[
        Key::optional("exact", TEXTS, "It is this, letter by letter"),
        Key::optional("prefix", TEXTS, "It begins with this"),
        Key::optional("suffix", TEXTS, "It ends with this"),
        Key::optional("contains", TEXTS, "This is somewhere in it"),
        Key::optional("regex", TEXTS, "All of it matches this regular expression"),
        Key::optional("glob", TEXTS, "The path has this shape; of `path` only"),
        Key::optional("exists", Switch, "It is there, or (`false`) it is not"),
        Key::optional(
            "blank",
            Switch,
            "It is not there, empty or all blanks; or (`false`) there is something in it",
        ),
    ]],
    exactly_one: &[],
};

/// A span of time.
pub(crate) static TIME: Shape = Shape {
    name: "time",
    about: "From when, until when: once (`2026-11-15T10:00:00Z`, or `2026-11-15 10:00:00` in the time zone) or every day (`09:00`, `09:00:30`; an `after` later than its `before` spans midnight).",
    example: "{ after: 09:00, before: 17:00, time_zone: Europe/Paris }",
    keys: &[&[
        Key::optional("after", Text("point in time"), "Not before this; it counts itself"),
        Key::optional("before", Text("point in time"), "Before this; it does not count itself"),
        Key::defaulted("time_zone", Text("time zone"), "UTC", "Where the clock hangs"),
    ]],
    exactly_one: &[],
};

/// A cost that a header tells.
pub(crate) static HEADER_COST: Shape = Shape {
    name: "header_cost",
    about: "A cost that a header tells. Whoever may send the header says what a request costs, between `min` and `max`.",
    example: "{ header: x-cost, default: 1, max: 100 }",
    keys: &[&[
        Key::required("header", Text("name of a header"), "x-cost", "Which header"),
        Key::otherwise(
            "default",
            Count,
            "1",
            "Where there is none, or no number in it; `min` where that is more and nothing is said",
        ),
        Key::defaulted(
            "min",
            Count,
            "1",
            "At least; what is below counts as this. With 0 a request may say that it is free",
        ),
        Key::defaulted("max", Positive, "4294967295", "At most; what is above counts as this"),
    ]],
    exactly_one: &[],
};
