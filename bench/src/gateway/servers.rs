//! Who is measured: `tollgate serve`, the binary that people run, and nginx with `limit_req`; behind both the same upstream.
//!
//! Each has one worker and a limit on every address that nobody reaches, so that every request is charged and passes. Both tell the
//! upstream who asks. Ours has its admin listener open, keeps its metrics and tells clients of the limit, as it does by default.

use crate::{effort::Effort, process};
use std::{
    ffi::OsStr,
    fs,
    io::{BufRead, BufReader},
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{Child, ChildStderr, Command, Stdio},
    time::Duration,
};
use testkit::Nginx;

/// What is asked for, and how many bytes it has.
pub(super) const SMALL: &str = "/small";
pub(super) const PAGE: (&str, usize) = ("/page", 10 << 10);
pub(super) const LARGE: (&str, usize) = ("/large", 1 << 20);

/// Many requests a connection, as many connections, and no log: as one sets nginx up to be fast.
const COMMON: &str = "access_log off; keepalive_requests 1000000000; keepalive_timeout 300;
    open_file_cache max=16; open_file_cache_valid 1h; sendfile on; tcp_nopush on;";

/// What stands behind both.
pub(super) fn upstream() -> Nginx {
    let nginx = Nginx::start(
        &"server { listen LISTEN backlog=4096; COMMON
            location /small { return 200 'hello, this is a small body\n'; }
            location / { root html; } }"
            .replace("COMMON", COMMON),
    );
    for (path, size) in [PAGE, LARGE] {
        nginx.file(&path[1..], &vec![b'x'; size]);
    }
    nginx
}

/// nginx as a gateway to `upstream`.
pub(super) fn peer(upstream: SocketAddr) -> Nginx {
    Nginx::start(
        &"limit_req_zone $binary_remote_addr zone=z:10m rate=1000000r/s;
          upstream u { server UPSTREAM; keepalive 256; keepalive_requests 1000000000; }
          server { listen LISTEN backlog=4096; COMMON
            location / {
                limit_req zone=z burst=1000000 nodelay;
                proxy_pass http://u;
                proxy_http_version 1.1;
                proxy_set_header Connection '';
                proxy_set_header Host $host;
                proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
                proxy_set_header X-Forwarded-Proto $scheme;
                proxy_set_header X-Forwarded-Host $host;
            } }"
        .replace("UPSTREAM", &upstream.to_string())
        .replace("COMMON", COMMON),
    )
}

/// The process that works: nginx's master only waits.
pub(super) fn worker_of(nginx: &Nginx) -> u32 {
    let text = fs::read_to_string(nginx.directory().join("nginx.pid")).expect("nginx says its pid");
    let master = text.trim();
    let children = fs::read_to_string(format!("/proc/{master}/task/{master}/children"));
    let children = children.expect("a Linux that tells children");
    children.split_whitespace().next().and_then(|pid| pid.parse().ok()).expect("nginx has a worker")
}

/// `tollgate serve`, until dropped.
pub(super) struct Tollgate {
    child: Child,
    pub(super) address: SocketAddr,
    /// Kept open, so that it may go on writing.
    _said: BufReader<ChildStderr>,
}

/// Whether ours keeps its metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Metrics {
    Kept,
    Not,
}

impl Tollgate {
    /// Starts it with its file in `directory`.
    pub(super) fn start(binary: &Path, directory: &Path, upstream: SocketAddr, metrics: Metrics) -> Self {
        let file = directory.join(format!("{metrics:?}.yaml"));
        fs::write(&file, rules(upstream)).expect("a place for a rule file");
        let mut command = Command::new(binary);
        command.args(["serve", "--workers", "1", "--config"]).arg(file).stderr(Stdio::piped());
        if metrics == Metrics::Not {
            command.arg("--without-metrics");
        }
        let mut child = command.spawn().expect("tollgate starts");
        let mut said = BufReader::new(child.stderr.take().expect("it was asked for"));
        let mut lines = String::new();
        let address = loop {
            let line = lines.len();
            let read = said.read_line(&mut lines).unwrap_or(0);
            if let Some(address) = lines[line..].strip_prefix("gateway ") {
                break address.trim().parse().expect("an address");
            }
            assert!(read > 0, "tollgate did not start: {lines}");
        };
        Self { child, address, _said: said }
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Tollgate {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn rules(upstream: SocketAddr) -> String {
    format!(
        "version: 1
listen:
  gateway: {{ address: '127.0.0.1:0', max_connections: 19000 }}
  admin: 127.0.0.1:0
upstreams:
  u: {{ servers: ['http://{upstream}'] }}
routes:
  - name: all
    upstream: u
    rules:
      - name: per-client
        limits: [{{ token_bucket: {{ rate: 1000000/s, burst: 1000000 }}, key: [ip] }}]
"
    )
}

/// Builds the binary, in the way this one was built, and says where it is; or why it could not be.
pub(super) fn build(effort: &Effort) -> Result<PathBuf, String> {
    let this = std::env::current_exe().map_err(|error| error.to_string())?;
    // Cargo keeps what it builds for `bench` and for `release` in the same place.
    let profile = match this.parent().and_then(Path::file_name).and_then(OsStr::to_str) {
        Some("release") | None if effort.is_quick() => "release",
        Some("release") | None => "bench",
        Some("debug") => "dev",
        Some(own) => own,
    };
    // A smoke run takes what `scripts/test` has built, asked for in the same words: else cargo would choose other features.
    let what: &[&str] = match profile {
        "dev" => &["--workspace", "--all-features", "--bins", "--tests"],
        _ => &["--package", "tollgate-cli"],
    };
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let built = Command::new(cargo)
        .args(["build", "--locked", "--quiet", "--profile", profile])
        .args(what)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .status();
    match built {
        Ok(status) if status.success() => Ok(this.with_file_name("tollgate")),
        Ok(status) => Err(format!("`cargo build -p tollgate-cli --profile {profile}` ended with {status}")),
        Err(error) => Err(format!("cargo could not be started to build `tollgate`: {error}")),
    }
}

/// What a process spends on some work.
pub(super) fn spent<T>(pid: u32, work: impl FnOnce() -> T) -> (T, Duration) {
    let before = process::processor_time(&pid.to_string());
    let done = work();
    (done, process::processor_time(&pid.to_string()).saturating_sub(before))
}
