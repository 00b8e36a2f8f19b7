//! Everything in a rule file that is no rule: listeners, the store, upstreams, logs.

use std::{net::SocketAddr, path::PathBuf, time::Duration};
use tollgate::{OnFailure, WhenFull};

/// What is opened; only what is named.
#[derive(Clone, Debug, Default)]
pub struct Listen {
    /// The reverse proxy.
    pub gateway: Option<Listener>,
    /// Envoy's rate limit service.
    pub grpc: Option<Listener>,
    /// JSON questions.
    pub http: Option<Listener>,
    /// Any Redis client.
    pub resp: Option<Listener>,
    /// Health, metrics, console.
    pub admin: Option<Listener>,
}

/// An address that is listened on, and how much is taken there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listener {
    /// Where.
    pub address: SocketAddr,
    /// With TLS, by these files.
    pub tls: Option<TlsFiles>,
    /// Words that let a client in, where it has to know one.
    pub tokens: Vec<Token>,
    /// Whether everybody may come, also from other machines and without a word.
    pub open: bool,
    /// Who may look at the admin listener; whoever reaches it where there are none.
    pub users: Vec<User>,
    /// Whether a proxy in front of it has the TLS that it does not have itself.
    pub proxied: bool,
    /// Connections at once; more wait to be accepted.
    pub max_connections: u32,
    /// Requests at once over the whole listener; more are answered 503.
    pub max_in_flight: u32,
    /// Connections that the system holds until they are accepted.
    pub backlog: u32,
    /// The longest head of a request, in bytes.
    pub max_header: u32,
    /// The longest body of a request, in bytes; any where `None`.
    pub max_body: Option<u64>,
    /// How long a client may take to send a head.
    pub header_timeout: Duration,
    /// How long a connection may lie idle, between requests or in the middle of a body.
    pub idle_timeout: Duration,
}

impl Listener {
    /// On this address, with everything else as it is by default.
    #[must_use]
    pub fn on(address: SocketAddr) -> Self {
        crate::file::default_listener(address)
    }
}

/// A word that lets a client in. It is never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(pub String);

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token")
    }
}

/// Somebody who may look at the admin listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// What the audit log calls them.
    pub name: String,
    /// What they may do.
    pub role: Role,
    /// The hash of the token that they show.
    pub token: TokenHash,
}

/// What somebody may do: each may do what those before it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// Look.
    Viewer,
    /// Also switch, reset, grant and ban.
    Operator,
    /// Also change the rules.
    Admin,
}

impl Role {
    /// All of them, the least first.
    pub const ALL: [Self; 3] = [Self::Viewer, Self::Operator, Self::Admin];

    /// As it is called in files and answers.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Operator => "operator",
            Self::Admin => "admin",
        }
    }
}

/// The SHA-256 of a token. It is never printed: a short token could be found by trying.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct TokenHash(pub [u8; 32]);

impl std::fmt::Debug for TokenHash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("TokenHash")
    }
}

/// A certificate chain and its key, in PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The chain.
    pub cert: PathBuf,
    /// The key.
    pub key: PathBuf,
}

/// Where what was used is kept.
#[derive(Clone, PartialEq, Eq)]
pub struct StoreSettings {
    /// `memory:`, or how to reach Redis. May hold a password.
    pub url: String,
    /// Keys in memory.
    pub max_keys: u32,
    /// What happens to a new key when memory is full of live ones.
    pub when_full: WhenFull,
    /// How long a question to Redis may take.
    pub timeout: Duration,
    /// What is decided while Redis does not answer.
    pub on_failure: OnFailure,
    /// How many nodes share the limits.
    pub nodes: u32,
    /// How long units are taken ahead for; `None`: every decision is Redis's own.
    pub lease: Option<Duration>,
    /// Whether a nearby Redis is busy-polled under load.
    pub busy_poll: bool,
}

impl Default for StoreSettings {
    fn default() -> Self {
        crate::file::default_store()
    }
}

impl std::fmt::Debug for StoreSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The address may hold a password.
        f.debug_struct("StoreSettings")
            .field("max_keys", &self.max_keys)
            .field("when_full", &self.when_full)
            .field("timeout", &self.timeout)
            .field("on_failure", &self.on_failure)
            .field("nodes", &self.nodes)
            .field("lease", &self.lease)
            .field("busy_poll", &self.busy_poll)
            .finish_non_exhaustive()
    }
}

/// How responses tell of limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderStyle {
    /// `RateLimit` and `RateLimit-Policy`.
    Draft10,
    /// `X-RateLimit-Limit`, `-Remaining`, `-Reset`.
    XRateLimit,
    /// Not at all.
    None,
}

/// How a refusal reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusalStyle {
    /// `application/problem+json`.
    Problem,
    /// As the Soul gateway answers.
    Soul,
    /// A line of text.
    Plain,
}

/// What is logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogSettings {
    /// Which refusals.
    pub refusals: RefusalLog,
    /// The level that refusals are told at.
    pub refusals_level: LogLevel,
    /// How much of everything else.
    pub level: LogLevel,
    /// How a line reads.
    pub format: LogFormat,
    /// Whether every request is.
    pub access: AccessLog,
}

/// How a line of the log reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object each.
    Json,
}

/// Which refusals are logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusalLog {
    /// A few a second.
    Sampled,
    /// Every one.
    All,
    /// None.
    Off,
}

/// How much is logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the words are the levels'")]
pub enum LogLevel {
    Error,
    Warn,
    Info,
    Debug,
    Trace,
}

/// Whether every request is logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessLog {
    /// No.
    Off,
    /// A line each.
    On,
}

/// Where requests go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upstream {
    /// Its name.
    pub name: String,
    /// Who answers; at least one.
    pub servers: Vec<Server>,
    /// How long a connection may take.
    pub connect_timeout: Duration,
    /// How long an answer may take to begin.
    pub timeout: Duration,
    /// How long an unused connection to a server is kept.
    pub idle_timeout: Duration,
    /// How long a request that its client aborted keeps its slots while a server works on it.
    pub abort_grace: Duration,
    /// Idle timeout of tunnels: no byte in either direction.
    pub tunnel_timeout: Duration,
    /// How servers are asked whether they are well.
    pub health: Option<HealthCheck>,
}

/// One server of an upstream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// `http://`, `https://` or `h2c://`, a host and perhaps a port; no path.
    pub url: String,
    /// Its share of the requests, beside the others' weights.
    pub weight: u32,
}

/// How a server is asked whether it is well.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HealthCheck {
    /// What is asked for.
    pub path: String,
    /// How often.
    pub every: Duration,
    /// After how many failures in a row it gets no more requests.
    pub unhealthy_after: u32,
    /// After how many successes in a row it gets requests again.
    pub healthy_after: u32,
}

/// What becomes of encoded slashes (`%2F`) in paths, and of backslashes in any spelling: servers read both differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EncodedSlash {
    /// The request is answered 400.
    Reject,
    /// They are slashes; then slashes are merged and dot segments resolved.
    Decode,
    /// They stay encoded in what rules see and in what the upstream gets, and so does `%25`.
    Keep,
}

/// What becomes of a request that gives a header, cookie or query parameter twice that a key or a condition names:
/// applications differ in which value they take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OnRepeat {
    /// It is answered 400.
    #[default]
    Reject,
    /// The first value counts.
    First,
    /// The last value counts.
    Last,
}
