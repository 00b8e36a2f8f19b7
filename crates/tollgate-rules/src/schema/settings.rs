//! The keys of the top level and of settings: listeners, users, the store, the log, upstreams, domains.

use super::{
    Key,
    Kind::{self, Duration, Mapping, Positive, Size, Switch, Text, Word},
    NAMED_LIMIT, ROUTE, RULE, Shape, TELEMETRY,
};

/// A whole rule file.
pub(crate) static FILE: Shape = Shape {
    name: "file",
    about: "The top level of a rule file.",
    example: "version: 1",
    keys: &[&[
        Key::required("version", Kind::Version, "1", "Version of the rule file format"),
        Key::defaulted(
            "enabled",
            Switch,
            "true",
            "Global switch. `false` turns all limits off: every request is allowed, and the store is not used",
        ),
        Key::optional(
            "rules_from",
            Mapping(&RULES_FROM),
            "Database that has the rules. `enabled`, `limits`, `upstreams`, `everywhere` and `routes` are then in the database and are errors in this file, except with `table: t_ratelimite_conf`",
        ),
        Key::optional("listen", Mapping(&LISTEN), "Listeners; only those that are named are opened"),
        Key::optional("store", Mapping(&STORE), "Where the state of limits is stored"),
        Key::optional(
            "trusted_proxies",
            Kind::List(&Text("network")),
            "Proxies whose `X-Forwarded-For` is trusted",
        ),
        Key::defaulted(
            "encoded_slash",
            Word(&["reject", "decode", "keep"]),
            "reject",
            "Handling of encoded slashes (`%2F`) and backslashes in paths: `reject` answers 400, `decode` treats them as slashes, `keep` keeps them encoded",
        ),
        Key::defaulted(
            "on_repeat",
            Word(&["reject", "first", "last"]),
            "reject",
            "Handling of requests that repeat a header, cookie or query parameter that a key or condition names: `reject` \
             answers 400, `first` and `last` use the first or last value",
        ),
        Key::defaulted(
            "headers",
            Word(&["draft-10", "x-ratelimit", "none"]),
            "draft-10",
            "Rate limit headers in responses: `RateLimit` and `RateLimit-Policy` as in the IETF draft 10, `X-RateLimit-*`, or none",
        ),
        Key::defaulted(
            "refusal",
            Word(&["problem", "soul", "plain"]),
            "problem",
            "Format of responses to denied requests: `application/problem+json`, the format of the Soul gateway, or a line of text",
        ),
        Key::optional("log", Mapping(&LOG), "Log settings"),
        Key::optional("telemetry", Mapping(&TELEMETRY), "Tracing settings. Without them no traces are sent"),
        Key::optional(
            "limits",
            Kind::Named("name", &Mapping(&NAMED_LIMIT)),
            "Limits by name, for rules and the decision APIs",
        ),
        Key::optional(
            "upstreams",
            Kind::Named("name", &Mapping(&UPSTREAM)),
            "Upstreams by name: the servers that requests are forwarded to",
        ),
        Key::optional(
            "domains",
            Kind::Either(&[FILES, Mapping(&DOMAINS)]),
            "Limits of the `grpc` listener: files of envoyproxy/ratelimit, read unchanged",
        ),
        Key::optional(
            "everywhere",
            Kind::List(&Mapping(&RULE)),
            "Rules that apply to every route, before its own rules",
        ),
        Key::optional(
            "routes",
            Kind::List(&Mapping(&ROUTE)),
            "Routes in order: the first that matches takes the request; if none does, the response is 404",
        ),
    ]],
    exactly_one: &[],
};

/// The database with the rules.
pub(crate) static RULES_FROM: Shape = Shape {
    name: "rules_from",
    about: "The database with the rules, and how the node follows its changes. See [rules in SQL](rules-in-sql.md).",
    example: "{ source: \"sqlite://rules.db\" }",
    keys: &[&[
        Key::required(
            "source",
            Text("address of a database"),
            "\"mysql://user:password@127.0.0.1/rules\"",
            "`mysql://` (or `mariadb://`), `postgres://` (or `postgresql://`) or `sqlite://`. The password and everything after a `?` are never shown",
        ),
        Key::defaulted("poll", Duration, "2s", "Poll interval for changes, from 50ms to 1h"),
        Key::defaulted(
            "table",
            Word(&["native", "t_ratelimite_conf"]),
            "native",
            "`native`: Tollgate's own tables, which it creates if they are missing. `t_ratelimite_conf`: an existing table of \
             that name, read unchanged, in addition to the rules of this file",
        ),
        Key::optional(
            "cache",
            Text("file"),
            "File for the last valid rules, used to start while the database is unavailable",
        ),
    ]],
    exactly_one: &[],
};

const FILES: Kind = Kind::List(&Text("pattern of files"));

/// Envoy's descriptors.
pub(crate) static DOMAINS: Shape = Shape {
    name: "domains",
    about: "Files of envoyproxy/ratelimit, one domain each, and how they are evaluated. Short form: the list of files alone. \
        A descriptor in these files can have an `algorithm` in place of a unit, such as `algorithm: { sliding_log: { limit: 5, window: 30s } }`.",
    example: "{ files: [ \"domains/*.yaml\" ] }",
    keys: &[&[
        Key::required(
            "files",
            FILES,
            "[ \"domains/*.yaml\" ]",
            "File names relative to this file; `*` matches any part of a name",
        ),
        Key::defaulted(
            "atomic",
            Switch,
            "false",
            "Charge all descriptors of a request or none, and do not count denied hits (closest to `STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT`)",
        ),
        Key::defaulted(
            "shadow_mode",
            Switch,
            "false",
            "Allow every request, whatever its descriptors decide (`SHADOW_MODE`)",
        ),
        Key::defaulted(
            "quota_mode",
            Switch,
            "false",
            "Deny a request only if all its descriptors are over their limits (`QUOTA_MODE`)",
        ),
        Key::defaulted(
            "headers",
            Switch,
            "false",
            "Return RateLimit headers for Envoy to add to the response (`LIMIT_RESPONSE_HEADERS_ENABLED`)",
        ),
        Key::defaulted(
            "dynamic_metadata",
            Switch,
            "false",
            "Return the request, and the `metadata` of descriptors within their limits, as dynamic metadata (`RESPONSE_DYNAMIC_METADATA`)",
        ),
        Key::defaulted(
            "merge",
            Switch,
            "false",
            "Allow several files to define one domain (`MERGE_DOMAIN_CONFIG`)",
        ),
        Key::defaulted(
            "count_refused",
            Switch,
            "true",
            "Count the hits that a descriptor denies. Other descriptors of the request are counted either way (see `atomic`)",
        ),
    ]],
    exactly_one: &[],
};

/// The listeners.
pub(crate) static LISTEN: Shape = Shape {
    name: "listen",
    about: "Listeners. Only those that are named are opened.",
    example: "{ gateway: 127.0.0.1:8080 }",
    keys: &[&[
        Key::optional("gateway", LISTENER_KIND, "Reverse proxy"),
        Key::optional("grpc", LISTENER_KIND, "Envoy's rate limit service (v3)"),
        Key::optional("http", LISTENER_KIND, "JSON API"),
        Key::optional("resp", LISTENER_KIND, "Redis protocol (RESP), for Redis clients"),
        Key::optional("admin", LISTENER_KIND, "Health, metrics, admin API, console"),
    ]],
    exactly_one: &[],
};

const LISTENER_KIND: Kind = Kind::Either(&[Text("address"), Mapping(&LISTENER)]);

/// One listener, in full.
pub(crate) static LISTENER: Shape = Shape {
    name: "listener",
    about: "An address, and the limits on its connections and requests. Short form: the address alone.",
    example: "{ address: 127.0.0.1:8080 }",
    keys: &[&[
        Key::required("address", Text("address"), "127.0.0.1:8080", "An IP address and a port"),
        Key::optional("tls", Mapping(&TLS), "Serve TLS with this certificate"),
        Key::optional(
            "tokens",
            Kind::List(&Text("token")),
            "Accepted tokens. Clients authenticate with one of them: `AUTH` of Redis, `authorization: Bearer` of HTTP and gRPC. \
             Only for `http`, `grpc` and `resp`",
        ),
        Key::defaulted(
            "open",
            Switch,
            "false",
            "Allow `http`, `grpc` and `resp` to listen beyond loopback without tokens",
        ),
        Key::optional(
            "users",
            Kind::List(&Mapping(&USER)),
            "Users of `admin` and their roles. Without users, `admin` must listen on loopback, and everyone who reaches it has every permission",
        ),
        Key::defaulted(
            "proxied",
            Switch,
            "false",
            "Allow `admin` to listen beyond loopback without TLS, because a proxy in front of it provides TLS",
        ),
        Key::defaulted(
            "max_connections",
            Positive,
            "10000",
            "Maximum number of connections; further ones wait to be accepted",
        ),
        Key::defaulted(
            "max_in_flight",
            Positive,
            "2000",
            "Maximum number of requests in flight; further ones are answered 503",
        ),
        Key::defaulted(
            "backlog",
            Positive,
            "1024",
            "Maximum number of connections that the system queues until they are accepted",
        ),
        Key::defaulted("max_header", Size, "32KiB", "Maximum size of a request head"),
        Key::optional("max_body", Size, "Maximum size of a request body; unlimited if left out"),
        Key::defaulted("header_timeout", Duration, "10s", "Timeout for receiving a request head"),
        Key::defaulted(
            "idle_timeout",
            Duration,
            "75s",
            "Timeout for idle connections, between requests or within a body. A client of `http` or `grpc` that answers HTTP/2 pings is not idle",
        ),
    ]],
    exactly_one: &[],
};

/// A user of the admin listener.
pub(crate) static USER: Shape = Shape {
    name: "user",
    about: "A user of the admin listener.",
    example: "{ name: ann, role: operator, token: \"sha256:...\" }",
    keys: &[&[
        Key::required("name", Text("name"), "ann", "Name in the audit log"),
        Key::required(
            "role",
            Word(&["viewer", "operator", "admin"]),
            "viewer",
            "`viewer` can read; `operator` can also turn switches and reset, grant and ban keys; `admin` can also change the rules",
        ),
        Key::required(
            "token",
            Text("hash of a token"),
            "\"sha256:...\"",
            "Hash of the user's token; `tollgate token` creates both",
        ),
    ]],
    exactly_one: &[],
};

/// Files for TLS.
pub(crate) static TLS: Shape = Shape {
    name: "tls",
    about: "A certificate and its private key.",
    example: "{ cert: cert.pem, key: key.pem }",
    keys: &[&[
        Key::required("cert", Text("file"), "cert.pem", "Certificate chain in PEM format"),
        Key::required("key", Text("file"), "key.pem", "Private key in PEM format"),
    ]],
    exactly_one: &[],
};

/// The store.
pub(crate) static STORE: Shape = Shape {
    name: "store",
    about: "Where the state of limits is stored: in memory or in Redis.",
    example: "{ url: \"memory:\" }",
    keys: &[&[
        Key::defaulted(
            "url",
            Text("address of a store"),
            "memory:",
            "`memory:`, `redis://`, `rediss://`, `redis-cluster://`, `rediss-cluster://`, `redis-sentinel://` or `rediss-sentinel://`",
        ),
        Key::defaulted("max_keys", Positive, "1000000", "Maximum number of keys in memory"),
        Key::defaulted(
            "when_full",
            Word(&["evict", "deny"]),
            "evict",
            "For a new key when memory is full of keys in use: `evict` removes another key, `deny` denies the request",
        ),
        Key::defaulted("timeout", Duration, "20ms", "Timeout of a call to Redis"),
        Key::defaulted(
            "on_failure",
            ON_FAILURE,
            "local",
            "Decision while Redis does not answer: `open` allows, `closed` denies, `local` decides on this node with its share of the limit",
        ),
        Key::defaulted("nodes", Positive, "1", "Number of nodes that share the limits"),
        Key::optional(
            "lease",
            Duration,
            "Duration of leases: for keys that are used often, a node takes units ahead and spends them without a call to Redis. If left out, Redis makes every decision",
        ),
        Key::defaulted(
            "busy_poll",
            Switch,
            "true",
            "Under load, poll for the reply of a nearby Redis for up to 50 µs before sleeping",
        ),
    ]],
    exactly_one: &[],
};

pub(super) const ON_FAILURE: Kind = Word(&["open", "closed", "local"]);

const LEVEL: Kind = Word(&["error", "warn", "info", "debug", "trace"]);

/// The log.
pub(crate) static LOG: Shape = Shape {
    name: "log",
    about: "Log settings.",
    example: "{ level: info }",
    keys: &[&[
        Key::defaulted(
            "refusals",
            Word(&["sampled", "all", "off"]),
            "sampled",
            "Which denied requests are logged: `sampled` logs a few a second and the number of those left out, `all` every one, `off` none",
        ),
        Key::defaulted(
            "refusals_level",
            LEVEL,
            "info",
            "Level of the lines about denied requests; `level` does not affect them",
        ),
        Key::defaulted("level", LEVEL, "info", "Level of all other lines, except access lines"),
        Key::defaulted(
            "format",
            Word(&["text", "json"]),
            "text",
            "`text` for people, `json` for one JSON object a line",
        ),
        Key::defaulted("access", Word(&["off", "on"]), "off", "`on` logs a line for every request"),
    ]],
    exactly_one: &[],
};

/// An upstream.
pub(crate) static UPSTREAM: Shape = Shape {
    name: "upstream",
    about: "A group of servers that handle the same requests.",
    example: "{ servers: [ \"http://127.0.0.1:9001\" ] }",
    keys: &[&[
        Key::required(
            "servers",
            Kind::List(&Kind::Either(&[Text("address of a server"), Mapping(&SERVER)])),
            "[ \"http://127.0.0.1:9001\" ]",
            "Servers; at least one",
        ),
        Key::defaulted("connect_timeout", Duration, "1s", "Timeout for connecting to a server"),
        Key::defaulted("timeout", Duration, "30s", "Timeout for the start of a response"),
        Key::defaulted(
            "idle_timeout",
            Duration,
            "1500ms",
            "How long an unused connection to a server is kept open. Set it lower than the server's own keep-alive timeout",
        ),
        Key::defaulted(
            "abort_grace",
            Duration,
            "30s",
            "How long a request that its client aborted keeps its slots and counts as in flight while the server works on it",
        ),
        Key::defaulted("tunnel_timeout", Duration, "1h", "Idle timeout of a WebSocket or other upgrade"),
        Key::optional("health", Mapping(&HEALTH), "Health checks of the servers"),
    ]],
    exactly_one: &[],
};

/// One server of an upstream, in full.
pub(crate) static SERVER: Shape = Shape {
    name: "server",
    about: "One server. Short form: the address alone.",
    example: "{ url: \"http://127.0.0.1:9001\" }",
    keys: &[&[
        Key::required(
            "url",
            Text("address of a server"),
            "\"http://127.0.0.1:9001\"",
            "`http://`, `https://` or `h2c://`, a host and an optional port",
        ),
        Key::defaulted(
            "weight",
            Positive,
            "1",
            "Share of the requests, relative to the weights of the other servers",
        ),
    ]],
    exactly_one: &[],
};

/// Health checks of an upstream's servers.
pub(crate) static HEALTH: Shape = Shape {
    name: "health",
    about: "Health checks of an upstream's servers.",
    example: "{ path: /ok }",
    keys: &[&[
        Key::required("path", Text("path"), "/ok", "Path to request"),
        Key::defaulted("every", Duration, "5s", "Interval between checks"),
        Key::defaulted(
            "unhealthy_after",
            Positive,
            "3",
            "Failed checks in a row after which a server gets no more requests",
        ),
        Key::defaulted(
            "healthy_after",
            Positive,
            "2",
            "Successful checks in a row after which it gets requests again",
        ),
    ]],
    exactly_one: &[],
};
