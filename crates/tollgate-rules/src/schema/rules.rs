//! The keys of routes, rules, their conditions and charges.

use super::{
    Key,
    Kind::{self, Count, Duration, Mapping, Positive, Switch, Text, Word},
    Shape,
    limits::{CHARGES, PACE},
    settings::ON_FAILURE,
};

const NAME: Key = Key::required("name", Text("name"), "orders", "Name, unique among its siblings");
const ENABLED: Key = Key::defaulted("enabled", Switch, "true", "`false` turns it off without removing it");

/// A route.
pub(crate) static ROUTE: Shape = Shape {
    name: "route",
    about: "Selects requests, applies rules to them, and forwards them to an upstream.",
    example: "{ name: orders, upstream: orders }",
    keys: &[&[
        NAME,
        ENABLED,
        Key::otherwise("when", Mapping(&WHEN), "every request", "Condition for requests"),
        Key::optional(
            "strip_prefix",
            Text("path"),
            "Prefix that is removed from the path before the request is forwarded",
        ),
        Key::required(
            "upstream",
            Text("name of an upstream"),
            "orders",
            "Upstream that requests are forwarded to",
        ),
        Key::optional(
            "rules",
            Kind::List(&Mapping(&RULE)),
            "Rules of the route. All that match apply, and their charges are decided as one atomic set",
        ),
    ]],
    exactly_one: &[],
};

/// A rule.
pub(crate) static RULE: Shape = Shape {
    name: "rule",
    about: "A condition, limits to charge, and the action on denied requests.",
    example: "{ name: per-ip, limits: [ { use: per-client, key: [ip] } ] }",
    keys: &[&[
        NAME,
        ENABLED,
        Key::otherwise("when", Mapping(&WHEN), "every request", "Condition for requests of the route"),
        Key::required(
            "limits",
            Kind::List(&Mapping(&RULE_LIMIT)),
            "[ { use: per-client, key: [ip] } ]",
            "Limits to charge",
        ),
        Key::defaulted(
            "excess",
            Kind::Either(&[Word(&["reject", "shadow"]), Mapping(&EXCESS)]),
            "reject",
            "Action on denied requests; `shadow` counts, logs and allows them",
        ),
        Key::otherwise(
            "on_failure",
            ON_FAILURE,
            "that of the store",
            "Decision while the store does not answer, as `store.on_failure`",
        ),
    ]],
    exactly_one: &[],
};

/// One charge of a rule, or its bandwidth.
pub(crate) static RULE_LIMIT: Shape = Shape {
    name: "rule_limit",
    about: "One charge: a named limit (`use`) or an algorithm of the rule's own, and the key to charge. Or a `bandwidth`, without a key.",
    example: "{ use: per-client, key: [ip] }",
    keys: &[
        &[
            Key::optional("use", Text("name of a limit"), "Name of a limit in `limits`"),
            Key::optional(
                "key",
                Kind::OneOrList(&Text("attribute")),
                "Attributes that select the bucket to charge: `ip`, `ip/24`, `header.NAME`, `query.NAME`, `cookie.NAME`, `path.NAME`, `host`, `method`, `path`, `route`, `rule`; `[]` is one bucket for all requests. Required, except with `bandwidth`",
            ),
            Key::defaulted(
                "missing",
                Word(&["share", "skip", "deny"]),
                "share",
                "For requests without an attribute of the key: `share` charges one bucket for all that lack it, `skip` charges nothing, `deny` answers 400",
            ),
            Key::defaulted(
                "cost",
                Kind::Either(&[Positive, Word(&["content-length"]), Mapping(&HEADER_COST)]),
                "1",
                "Units to charge: a number, the announced length of the body (`content-length`), or a number from a header",
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

/// The action on denied requests, in full.
pub(crate) static EXCESS: Shape = Shape {
    name: "excess",
    about: "Action on denied requests. Short forms: the words `reject` and `shadow`.",
    example: "{ wait: 500ms }",
    keys: &[&[
        Key::optional("reject", Mapping(&REJECT), "Deny with this response"),
        Key::optional("wait", Duration, "Queue the request for at most this time, in order of arrival"),
        Key::optional("divert", Text("name of an upstream"), "Forward the request to this upstream instead"),
        Key::optional("degrade", Mapping(&DEGRADE), "Respond with this instead of forwarding the request"),
    ]],
    exactly_one: &["reject", "wait", "divert", "degrade"],
};

const BODY: Key = Key::optional("body", Text("body"), "Response body");
const CONTENT_TYPE: Key = Key::optional("content_type", Text("media type"), "Content type of the body");

/// The response to denied requests.
pub(crate) static REJECT: Shape = Shape {
    name: "reject",
    about: "The response to denied requests. Without `body` it has the format that `refusal` sets.",
    example: "{ status: 429, body: \"Slow down.\" }",
    keys: &[&[Key::defaulted("status", Positive, "429", "Response status, 200 to 599"), BODY, CONTENT_TYPE]],
    exactly_one: &[],
};

/// A substitute response.
pub(crate) static DEGRADE: Shape = Shape {
    name: "degrade",
    about: "A substitute response for denied requests.",
    example: "{ status: 200, body: \"[]\" }",
    keys: &[&[Key::defaulted("status", Positive, "200", "Response status, 200 to 599"), BODY, CONTENT_TYPE]],
    exactly_one: &[],
};

const VALUE: Kind = Kind::OneOrList(&Kind::Either(&[Text("text"), Mapping(&MATCHER)]));

/// A condition.
pub(crate) static WHEN: Shape = Shape {
    name: "when",
    about: "A condition. Every attribute that is named must match; a list matches if one of its values does.",
    example: "{ path: \"/orders/**\", method: POST }",
    keys: &[&[
        Key::optional(
            "path",
            VALUE,
            "Decoded path. Text is a glob: `*` matches one segment, `**` any number of segments, `{name}` one segment, which it captures",
        ),
        Key::optional("method", VALUE, "Method, case-sensitive"),
        Key::optional("host", VALUE, "Requested host without the port, case-insensitive"),
        Key::optional(
            "header.NAME",
            VALUE,
            "Header value. Lines of a header that is a list, such as `Accept`, are joined; for other headers see `on_repeat`. `Authorization` is normalized: the scheme as registered, one space, and canonical base64 after `Basic`",
        ),
        Key::optional("query.NAME", VALUE, "Decoded query parameter; if it is repeated, see `on_repeat`"),
        Key::optional(
            "cookie.NAME",
            VALUE,
            "Cookie value without quotes and escapes, percent-decoded; if it is repeated, see `on_repeat`",
        ),
        Key::optional("ip", VALUE, "Client address: an IP address or a network such as `10.0.0.0/8`"),
        Key::optional("time", Kind::OneOrList(&Mapping(&TIME)), "Times at which the condition holds"),
        Key::optional("any", Kind::List(&Mapping(&WHEN)), "At least one of these conditions holds"),
        Key::optional("all", Kind::List(&Mapping(&WHEN)), "All of these conditions hold"),
        Key::optional("not", Mapping(&WHEN), "This condition does not hold"),
    ]],
    exactly_one: &[],
};

const TEXTS: Kind = Kind::OneOrList(&Text("text"));

/// How an attribute is compared.
pub(crate) static MATCHER: Shape = Shape {
    name: "matcher",
    about: "How an attribute is compared. All keys that are given must hold; a list matches if one of its values does. Short form: text alone, which is a glob for `path`, an address or network for `ip`, and `exact` for all others.",
    example: "{ prefix: /orders/ }",
    keys: &[&[
        Key::optional("exact", TEXTS, "The value equals this text"),
        Key::optional("prefix", TEXTS, "The value starts with this text"),
        Key::optional("suffix", TEXTS, "The value ends with this text"),
        Key::optional("contains", TEXTS, "The value contains this text"),
        Key::optional("regex", TEXTS, "The whole value matches this regular expression"),
        Key::optional("glob", TEXTS, "The path matches this glob; only for `path`"),
        Key::optional("exists", Switch, "`true`: the attribute is present; `false`: it is absent"),
        Key::optional(
            "blank",
            Switch,
            "`true`: the attribute is absent, empty or only blanks; `false`: it has other content",
        ),
    ]],
    exactly_one: &[],
};

/// A time interval.
pub(crate) static TIME: Shape = Shape {
    name: "time",
    about: "A time interval: once (`2026-11-15T10:00:00Z`, or `2026-11-15 10:00:00` in the time zone) or every day (`09:00`, `09:00:30`; if `after` is later than `before`, the interval spans midnight).",
    example: "{ after: 09:00, before: 17:00, time_zone: Europe/Paris }",
    keys: &[&[
        Key::optional("after", Text("point in time"), "Start, inclusive"),
        Key::optional("before", Text("point in time"), "End, exclusive"),
        Key::defaulted("time_zone", Text("time zone"), "UTC", "Time zone of `after` and `before`"),
    ]],
    exactly_one: &[],
};

/// A cost from a request header.
pub(crate) static HEADER_COST: Shape = Shape {
    name: "header_cost",
    about: "A cost from a request header. Clients that can send the header choose their cost between `min` and `max`, so use it only for trusted ones.",
    example: "{ header: x-cost, default: 1, max: 100 }",
    keys: &[&[
        Key::required("header", Text("name of a header"), "x-cost", "Name of the header"),
        Key::otherwise(
            "default",
            Count,
            "1",
            "Cost of a request without the header, or with a value that is not a whole number. If left out and `min` is greater, it is `min`",
        ),
        Key::defaulted(
            "min",
            Count,
            "1",
            "Minimum cost; smaller values are raised to it. With 0, requests can be free",
        ),
        Key::defaulted("max", Positive, "4294967295", "Maximum cost; greater values are lowered to it"),
    ]],
    exactly_one: &[],
};
