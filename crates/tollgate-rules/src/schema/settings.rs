//! The keys of everything that is no rule: the file as a whole, listeners, the store, upstreams, logs.

use super::{
    Key,
    Kind::{self, Duration, Mapping, Positive, Size, Switch, Text, Word},
    NAMED_LIMIT, ROUTE, RULE, Shape, TELEMETRY,
};

/// A whole rule file.
pub(crate) static FILE: Shape = Shape {
    name: "file",
    about: "A rule file.",
    example: "version: 1",
    keys: &[&[
        Key::required("version", Kind::Version, "1", "The version of this format"),
        Key::defaulted(
            "enabled",
            Switch,
            "true",
            "The global switch: `false` refuses nothing and touches no store",
        ),
        Key::optional(
            "rules_from",
            Mapping(&RULES_FROM),
            "The database that has the rules: `enabled`, `limits`, `upstreams`, `everywhere` and `routes` are there then, not here",
        ),
        Key::optional("listen", Mapping(&LISTEN), "What is opened; only what is named"),
        Key::optional("store", Mapping(&STORE), "Where what was used is kept"),
        Key::optional("trusted_proxies", Kind::List(&Text("network")), "Whose X-Forwarded-For is believed"),
        Key::defaulted(
            "encoded_slash",
            Word(&["reject", "decode", "keep"]),
            "reject",
            "Encoded slashes (`%2F`) in paths, and backslashes: answered 400, read as slashes, or kept encoded",
        ),
        Key::defaulted(
            "on_repeat",
            Word(&["reject", "first", "last"]),
            "reject",
            "A header, cookie or query parameter that a key or condition names, given twice: answered 400, or the first \
             or last value counts",
        ),
        Key::defaulted(
            "headers",
            Word(&["draft-10", "x-ratelimit", "none"]),
            "draft-10",
            "How responses tell of limits",
        ),
        Key::defaulted(
            "refusal",
            Word(&["problem", "soul", "plain"]),
            "problem",
            "How a refusal reads: `application/problem+json`, as the Soul gateway answers, or a line of text",
        ),
        Key::optional("log", Mapping(&LOG), "What is logged"),
        Key::optional("telemetry", Mapping(&TELEMETRY), "Where traces are sent; nowhere where left out"),
        Key::optional(
            "limits",
            Kind::Named("name", &Mapping(&NAMED_LIMIT)),
            "Limits by name, for rules and doors",
        ),
        Key::optional("upstreams", Kind::Named("name", &Mapping(&UPSTREAM)), "Where requests go, by name"),
        Key::optional(
            "domains",
            Kind::Either(&[FILES, Mapping(&DOMAINS)]),
            "What the gRPC listener decides by: files of envoyproxy/ratelimit, read as they are",
        ),
        Key::optional("everywhere", Kind::List(&Mapping(&RULE)), "Rules of every route, before its own"),
        Key::optional(
            "routes",
            Kind::List(&Mapping(&ROUTE)),
            "The first that matches takes the request; none: 404",
        ),
    ]],
    exactly_one: &[],
};

/// The database that has the rules.
pub(crate) static RULES_FROM: Shape = Shape {
    name: "rules_from",
    about: "The database that has the rules, and how it is followed. See [rules in SQL](rules-in-sql.md).",
    example: "{ source: \"sqlite://rules.db\" }",
    keys: &[&[
        Key::required(
            "source",
            Text("address of a database"),
            "\"mysql://user:password@127.0.0.1/rules\"",
            "`mysql://` (or `mariadb://`), `postgres://` (or `postgresql://`) or `sqlite://`; never shown",
        ),
        Key::defaulted("poll", Duration, "2s", "How often it is asked for changes; from 50ms to 1h"),
        Key::defaulted(
            "table",
            Word(&["native", "t_ratelimite_conf"]),
            "native",
            "Our own tables, which are made where they are missing; or the table `t_ratelimite_conf`, read as it stands \
             beside the rules of this file",
        ),
        Key::optional(
            "cache",
            Text("file"),
            "Keeps the last good rules, for a start while the database is away",
        ),
    ]],
    exactly_one: &[],
};

const FILES: Kind = Kind::List(&Text("pattern of files"));

/// Envoy's descriptors.
pub(crate) static DOMAINS: Shape = Shape {
    name: "domains",
    about: "Files of envoyproxy/ratelimit, one domain each, and how they are understood. The list of files alone may stand for it. \
        A descriptor in them may have an `algorithm` in the place of its unit, such as `algorithm: { sliding_log: { limit: 5, window: 30s } }`.",
    example: "{ files: [ \"domains/*.yaml\" ] }",
    keys: &[&[
        Key::required(
            "files",
            FILES,
            "[ \"domains/*.yaml\" ]",
            "Which files; relative to this one, `*` is any part of a name",
        ),
        Key::defaulted(
            "atomic",
            Switch,
            "false",
            "Whether all descriptors of a request are charged or none is, and refused hits do not count (comes closest to `STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT`)",
        ),
        Key::defaulted(
            "shadow_mode",
            Switch,
            "false",
            "Whether requests pass whatever their descriptors say (`SHADOW_MODE`)",
        ),
        Key::defaulted(
            "quota_mode",
            Switch,
            "false",
            "Whether a request is refused only where all its descriptors are over (`QUOTA_MODE`)",
        ),
        Key::defaulted(
            "headers",
            Switch,
            "false",
            "Whether answers carry RateLimit headers for the response (`LIMIT_RESPONSE_HEADERS_ENABLED`)",
        ),
        Key::defaulted(
            "dynamic_metadata",
            Switch,
            "false",
            "Whether answers carry the request, and the `metadata` of the descriptors that are within their limits (`RESPONSE_DYNAMIC_METADATA`)",
        ),
        Key::defaulted(
            "merge",
            Switch,
            "false",
            "Whether a file may continue another's domain (`MERGE_DOMAIN_CONFIG`)",
        ),
        Key::defaulted(
            "count_refused",
            Switch,
            "true",
            "Whether a descriptor counts the hits that it refuses; other descriptors of the request are counted either way (see `atomic`)",
        ),
    ]],
    exactly_one: &[],
};

/// Which listeners there are.
pub(crate) static LISTEN: Shape = Shape {
    name: "listen",
    about: "What is opened; only what is named.",
    example: "{ gateway: 127.0.0.1:8080 }",
    keys: &[&[
        Key::optional("gateway", LISTENER_KIND, "The reverse proxy"),
        Key::optional("grpc", LISTENER_KIND, "Envoy's rate limit service, v3"),
        Key::optional("http", LISTENER_KIND, "JSON questions"),
        Key::optional("resp", LISTENER_KIND, "Any Redis client"),
        Key::optional("admin", LISTENER_KIND, "Health, metrics, API, console"),
    ]],
    exactly_one: &[],
};

const LISTENER_KIND: Kind = Kind::Either(&[Text("address"), Mapping(&LISTENER)]);

/// One listener, in full.
pub(crate) static LISTENER: Shape = Shape {
    name: "listener",
    about: "An address, and how much is taken there. The address alone may stand for it.",
    example: "{ address: 127.0.0.1:8080 }",
    keys: &[&[
        Key::required("address", Text("address"), "127.0.0.1:8080", "An IP address and a port"),
        Key::optional("tls", Mapping(&TLS), "With TLS, by these files"),
        Key::optional(
            "tokens",
            Kind::List(&Text("token")),
            "Words of which a client has to know one: `AUTH` of Redis, `authorization: Bearer` of HTTP and gRPC. `http`, \
             `grpc` and `resp` alone ask for them",
        ),
        Key::defaulted(
            "open",
            Switch,
            "false",
            "Lets `http`, `grpc` and `resp` listen beyond this machine without a token",
        ),
        Key::optional(
            "users",
            Kind::List(&Mapping(&USER)),
            "Who may look at `admin`, and do what there. Without any, whoever is on this machine may do everything",
        ),
        Key::defaulted(
            "proxied",
            Switch,
            "false",
            "Lets `admin` listen beyond this machine without TLS, since a proxy in front of it has that",
        ),
        Key::defaulted("max_connections", Positive, "10000", "Connections at once; more wait to be accepted"),
        Key::defaulted("max_in_flight", Positive, "2000", "Requests at once; more are answered 503"),
        Key::defaulted(
            "backlog",
            Positive,
            "1024",
            "Connections that the system holds until they are accepted",
        ),
        Key::defaulted("max_header", Size, "32KiB", "The longest head of a request"),
        Key::optional("max_body", Size, "The longest body of a request; any where left out"),
        Key::defaulted("header_timeout", Duration, "10s", "How long a client may take to send a head"),
        Key::defaulted(
            "idle_timeout",
            Duration,
            "75s",
            "How long a connection may lie idle, between requests or in a body. A client of `http` or `grpc` that answers the pings of HTTP/2 is not idle",
        ),
    ]],
    exactly_one: &[],
};

/// Somebody who may look at the admin listener.
pub(crate) static USER: Shape = Shape {
    name: "user",
    about: "Somebody who may look at the admin listener, and do there what the role allows.",
    example: "{ name: ann, role: operator, token: \"sha256:...\" }",
    keys: &[&[
        Key::required("name", Text("name"), "ann", "What the audit log calls them"),
        Key::required(
            "role",
            Word(&["viewer", "operator", "admin"]),
            "viewer",
            "`viewer` looks; `operator` also switches, resets, grants and bans; `admin` also changes the rules",
        ),
        Key::required(
            "token",
            Text("hash of a token"),
            "\"sha256:...\"",
            "The hash of the token they show; `tollgate token` makes both",
        ),
    ]],
    exactly_one: &[],
};

/// Files for TLS.
pub(crate) static TLS: Shape = Shape {
    name: "tls",
    about: "A certificate and its key.",
    example: "{ cert: cert.pem, key: key.pem }",
    keys: &[&[
        Key::required("cert", Text("file"), "cert.pem", "The certificate chain, in PEM"),
        Key::required("key", Text("file"), "key.pem", "Its key, in PEM"),
    ]],
    exactly_one: &[],
};

/// The store.
pub(crate) static STORE: Shape = Shape {
    name: "store",
    about: "Where what was used is kept.",
    example: "{ url: \"memory:\" }",
    keys: &[&[
        Key::defaulted(
            "url",
            Text("address of a store"),
            "memory:",
            "`memory:`, `redis://`, `rediss://`, `redis-cluster://`, `rediss-cluster://`, `redis-sentinel://` or `rediss-sentinel://`",
        ),
        Key::defaulted("max_keys", Positive, "1000000", "How many keys memory holds"),
        Key::defaulted(
            "when_full",
            Word(&["evict", "deny"]),
            "evict",
            "What a new key gets when memory is full of live ones: another's place, or a refusal",
        ),
        Key::defaulted("timeout", Duration, "20ms", "How long a question to Redis may take"),
        Key::defaulted(
            "on_failure",
            ON_FAILURE,
            "local",
            "While Redis does not answer: all pass, none passes, or this node decides by its share",
        ),
        Key::defaulted("nodes", Positive, "1", "How many nodes share the limits"),
        Key::optional(
            "lease",
            Duration,
            "How long units are taken ahead for; left out, every decision is Redis's own",
        ),
        Key::defaulted(
            "busy_poll",
            Switch,
            "true",
            "Under load, poll for an answer of a nearby Redis for up to 50 µs before sleeping",
        ),
    ]],
    exactly_one: &[],
};

pub(super) const ON_FAILURE: Kind = Word(&["open", "closed", "local"]);

const LEVEL: Kind = Word(&["error", "warn", "info", "debug", "trace"]);

/// The log.
pub(crate) static LOG: Shape = Shape {
    name: "log",
    about: "What is logged.",
    example: "{ level: info }",
    keys: &[&[
        Key::defaulted(
            "refusals",
            Word(&["sampled", "all", "off"]),
            "sampled",
            "Which refusals: a few a second and the number of those left out, every one, or none",
        ),
        Key::defaulted(
            "refusals_level",
            LEVEL,
            "info",
            "The level that refusals are told at, whatever `level` is",
        ),
        Key::defaulted("level", LEVEL, "info", "How much of everything else"),
        Key::defaulted(
            "format",
            Word(&["text", "json"]),
            "text",
            "How a line reads: for people, or one JSON object each",
        ),
        Key::defaulted("access", Word(&["off", "on"]), "off", "Whether every request gets a line"),
    ]],
    exactly_one: &[],
};

/// Where requests go.
pub(crate) static UPSTREAM: Shape = Shape {
    name: "upstream",
    about: "Servers that answer the same requests.",
    example: "{ servers: [ \"http://127.0.0.1:9001\" ] }",
    keys: &[&[
        Key::required(
            "servers",
            Kind::List(&Kind::Either(&[Text("address of a server"), Mapping(&SERVER)])),
            "[ \"http://127.0.0.1:9001\" ]",
            "Who answers; at least one",
        ),
        Key::defaulted("connect_timeout", Duration, "1s", "How long a connection may take"),
        Key::defaulted("timeout", Duration, "30s", "How long an answer may take to begin"),
        Key::defaulted(
            "idle_timeout",
            Duration,
            "1500ms",
            "How long an unused connection to a server is kept. Set it lower than the server's own keep-alive timeout",
        ),
        Key::defaulted(
            "abort_grace",
            Duration,
            "30s",
            "How long a request that its client aborted still counts while the server works on it",
        ),
        Key::defaulted("tunnel_timeout", Duration, "1h", "Idle timeout of a WebSocket or other upgrade"),
        Key::optional("health", Mapping(&HEALTH), "How servers are asked whether they are well"),
    ]],
    exactly_one: &[],
};

/// One server of an upstream, in full.
pub(crate) static SERVER: Shape = Shape {
    name: "server",
    about: "One server. The address alone may stand for it.",
    example: "{ url: \"http://127.0.0.1:9001\" }",
    keys: &[&[
        Key::required(
            "url",
            Text("address of a server"),
            "\"http://127.0.0.1:9001\"",
            "`http://`, `https://` or `h2c://`, a host and perhaps a port",
        ),
        Key::defaulted("weight", Positive, "1", "Its share of the requests, beside the others' weights"),
    ]],
    exactly_one: &[],
};

/// How servers are asked whether they are well.
pub(crate) static HEALTH: Shape = Shape {
    name: "health",
    about: "How servers are asked whether they are well.",
    example: "{ path: /ok }",
    keys: &[&[
        Key::required("path", Text("path"), "/ok", "What is asked for"),
        Key::defaulted("every", Duration, "5s", "How often"),
        Key::defaulted(
            "unhealthy_after",
            Positive,
            "3",
            "After how many failures in a row it gets no more requests",
        ),
        Key::defaulted(
            "healthy_after",
            Positive,
            "2",
            "After how many successes in a row it gets requests again",
        ),
    ]],
    exactly_one: &[],
};
