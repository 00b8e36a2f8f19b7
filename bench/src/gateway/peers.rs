//! The gateways that ours is compared with: nginx and HAProxy, each with one worker and a limit per client address.
//!
//! Both are configured for speed, as their users would for the responses measured here: connections to clients and to the
//! upstream are kept alive, nothing is logged, and buffers hold the largest response. Both charge every request to a limit
//! that no client reaches, and forward the client's address, protocol and host.

use std::{fs, net::SocketAddr};
use testkit::{Haproxy, Nginx};

/// nginx, without a log and with as many requests per connection as a client sends.
pub(super) const NGINX_COMMON: &str = "access_log off; keepalive_requests 1000000000; keepalive_timeout 300;
    open_file_cache max=16; open_file_cache_valid 1h; sendfile on; tcp_nopush on;";

/// With its default of eight 4 KiB buffers nginx writes 8 KiB at a time, and writes to a temporary file when a client reads
/// slowly. These buffers hold 1.25 MiB.
const NGINX: &str = "limit_req_zone $binary_remote_addr zone=z:10m rate=1000000r/s;
    upstream u { server UPSTREAM; keepalive 256; keepalive_requests 1000000000; }
    server { listen LISTEN backlog=4096; COMMON
        location / {
            limit_req zone=z burst=1000000 nodelay;
            proxy_pass http://u;
            proxy_http_version 1.1;
            proxy_buffer_size 16k;
            proxy_buffers 40 32k;
            proxy_busy_buffers_size 256k;
            proxy_max_temp_file_size 0;
            proxy_set_header Connection '';
            proxy_set_header Host $host;
            proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
            proxy_set_header X-Forwarded-Proto $scheme;
            proxy_set_header X-Forwarded-Host $host;
        } }";

const HAPROXY: &str = "
defaults
    mode http
    timeout connect 5s
    timeout client 300s
    timeout server 300s
    http-reuse always
frontend gateway
    bind LISTEN backlog 4096
    stick-table type ip size 100k expire 10s store http_req_rate(1s)
    http-request track-sc0 src
    http-request deny deny_status 429 if { sc_http_req_rate(0) gt 1000000 }
    option forwardfor
    http-request set-header X-Forwarded-Proto http
    http-request set-header X-Forwarded-Host %[req.hdr(host)]
    default_backend u
backend u
    server u UPSTREAM
";

/// A gateway to compare with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Peer {
    Nginx,
    Haproxy,
}

impl Peer {
    pub(super) const ALL: [Self; 2] = [Self::Nginx, Self::Haproxy];

    /// Its name in rows.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Nginx => "nginx with limit_req",
            Self::Haproxy => "HAProxy with a stick table",
        }
    }

    /// Whether it can be started. A test run installs nginx only.
    pub(super) fn is_installed(self) -> bool {
        self == Self::Nginx || Haproxy::is_installed()
    }

    /// Starts it in front of `upstream`.
    pub(super) fn start(self, upstream: SocketAddr) -> PeerServer {
        let configured = |text: &str| text.replace("UPSTREAM", &upstream.to_string());
        match self {
            Self::Nginx => {
                PeerServer::Nginx(Nginx::start(&configured(NGINX).replace("COMMON", NGINX_COMMON)))
            }
            Self::Haproxy => PeerServer::Haproxy(Haproxy::start(&configured(HAPROXY))),
        }
    }
}

/// A running peer. It ends when dropped.
pub(super) enum PeerServer {
    Nginx(Nginx),
    Haproxy(Haproxy),
}

impl PeerServer {
    pub(super) fn address(&self) -> SocketAddr {
        match self {
            Self::Nginx(nginx) => nginx.address(),
            Self::Haproxy(haproxy) => haproxy.address(),
        }
    }

    /// The process that serves requests. nginx's master only waits for its worker.
    pub(super) fn pid(&self) -> u32 {
        match self {
            Self::Nginx(nginx) => child_of(nginx.pid()),
            Self::Haproxy(haproxy) => haproxy.pid(),
        }
    }

    /// Panics if nginx wrote a response to a temporary file: its figures would be those of a wrong configuration.
    pub(super) fn assert_no_temporary_files(&self) {
        if let Self::Nginx(nginx) = self {
            let log = nginx.error_log();
            let warning = log.lines().find(|line| line.contains("buffered to a temporary file"));
            assert!(warning.is_none(), "nginx has too few buffers: {}", warning.unwrap_or_default());
        }
    }
}

fn child_of(pid: u32) -> u32 {
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
    let children = children.expect("a Linux that lists a process's children");
    children.split_whitespace().next().and_then(|pid| pid.parse().ok()).expect("nginx has a worker")
}
