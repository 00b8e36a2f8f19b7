//! What an upstream is made of: plain values, checked when the upstream is made.

use std::time::Duration;

/// An upstream: a name for servers that all answer the same requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UpstreamSettings {
    /// Its name, for logs and metrics.
    pub name: String,
    /// Its servers, at least one.
    pub servers: Vec<ServerSettings>,
    /// How long a connection may take to be made, TLS included.
    pub connect_timeout: Duration,
    /// How long the head of an answer may take, from when the request was sent; and how long the upstream may be silent
    /// within a body.
    pub timeout: Duration,
    /// How long an exchange that was abandoned keeps its permits and its slot while the upstream still works on it.
    pub abort_grace: Duration,
    /// How long a tunnel may be idle: no byte in either direction.
    pub tunnel_timeout: Duration,
    /// Whether servers are asked now and then if they are well.
    pub health: Option<HealthSettings>,
    /// How many connections are kept for the next request, for every server and worker.
    pub max_idle: usize,
    /// For how long they are kept. Choose less than the servers' own keep-alive timeout: a request that is sent in the
    /// moment in which the server closes the connection fails, and only a GET, HEAD or OPTIONS can be tried again.
    pub idle_timeout: Duration,
}

impl UpstreamSettings {
    /// These servers, and the usual numbers: a second to connect, 30 seconds to answer, 30 seconds for an aborted
    /// request, an hour for an idle tunnel, no active checks, 256 idle connections for every server and worker, kept for
    /// 1.5 seconds. That is less than the keep-alive timeout of common servers: gunicorn 2 s, Node, Apache and uvicorn
    /// 5 s, nginx 75 s.
    #[must_use]
    pub fn new(name: impl Into<String>, servers: Vec<ServerSettings>) -> Self {
        Self {
            name: name.into(),
            servers,
            connect_timeout: Duration::from_secs(1),
            timeout: Duration::from_secs(30),
            abort_grace: Duration::from_secs(30),
            tunnel_timeout: Duration::from_secs(3_600),
            health: None,
            max_idle: 256,
            idle_timeout: Duration::from_millis(1500),
        }
    }
}

/// One server of an upstream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerSettings {
    /// `http://host:port`, `https://host:port` (HTTP/2 or HTTP/1.1, as the server likes), or `h2c://host:port` (HTTP/2
    /// in clear, as for gRPC).
    pub url: String,
    /// Its share of the requests, relative to the others.
    pub weight: u32,
}

impl ServerSettings {
    /// A server with the weight 1.
    #[must_use]
    pub fn new(url: impl Into<String>) -> Self {
        Self { url: url.into(), weight: 1 }
    }
}

/// How servers are asked if they are well: `GET path`, which is to be answered with a status below 400.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HealthSettings {
    /// What is asked for.
    pub path: String,
    /// How often.
    pub every: Duration,
    /// After how many failures in a row a server gets no more requests.
    pub unhealthy_after: u32,
    /// After how many successes in a row it gets them again.
    pub healthy_after: u32,
}

/// An upstream cannot be made of these settings.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UpstreamError {
    /// An upstream without servers.
    #[error("upstream {upstream} has no servers: name at least one")]
    NoServers {
        /// Which.
        upstream: String,
    },
    /// A server's weight is zero.
    #[error("upstream {upstream}: the weight of {url} is 0: give it 1 or more, or remove the server")]
    ZeroWeight {
        /// Which.
        upstream: String,
        /// Which server.
        url: String,
    },
    /// A server's URL cannot be used.
    #[error("upstream {upstream}: {url}: {reason}")]
    Url {
        /// Which.
        upstream: String,
        /// As it was written.
        url: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// A health check that cannot be made.
    #[error("upstream {upstream}: health: {reason}")]
    Health {
        /// Which.
        upstream: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// TLS cannot be used at all.
    #[error("TLS to upstreams cannot be set up: {reason}")]
    Tls {
        /// What was said.
        reason: String,
    },
}
