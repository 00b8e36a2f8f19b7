//! `tollgate serve`, the binary that users run, and the upstream behind it and its peers.
//!
//! Ours has one worker and a limit per client address that no client reaches, so that every request is charged and passes. As by
//! default it has an admin listener, keeps metrics, sends clients the limit's headers and forwards the client's address.

use super::peers::NGINX_COMMON;
use crate::{effort::Effort, process};
use rustix::process::{Pid, Signal, kill_process};
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
pub(super) const SMALL_BODY: &str = "hello, this is a small body\n";
pub(super) const PAGE: (&str, usize) = ("/page", 10 << 10);
pub(super) const LARGE: (&str, usize) = ("/large", 1 << 20);

/// The upstream behind every gateway.
pub(super) fn upstream() -> Nginx {
    let nginx = Nginx::start(
        &"server { listen LISTEN backlog=4096; COMMON
            location /small { return 200 'BODY'; }
            location / { root html; } }"
            .replace("COMMON", NGINX_COMMON)
            .replace("BODY", SMALL_BODY),
    );
    for (path, size) in [PAGE, LARGE] {
        nginx.file(&path[1..], &vec![b'x'; size]);
    }
    nginx
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
    /// Starts it in front of `upstream`, with its rule file in the upstream's directory.
    pub(super) fn start(binary: &Path, upstream: &Nginx, metrics: Metrics) -> Self {
        Self::start_command(Command::new(binary), upstream, metrics).unwrap_or_else(|why| panic!("{why}"))
    }

    /// The same, by a command to which only the arguments are added: the binary, or a tool that runs it.
    pub(super) fn start_command(
        mut command: Command,
        upstream: &Nginx,
        metrics: Metrics,
    ) -> Result<Self, String> {
        let file = upstream.directory().join(format!("{metrics:?}.yaml"));
        fs::write(&file, rules(upstream.address())).expect("a place for a rule file");
        command.args(["serve", "--workers", "1", "--config"]).arg(file).stderr(Stdio::piped());
        if metrics == Metrics::Not {
            command.arg("--without-metrics");
        }
        let program = command.get_program().display().to_string();
        let mut child = command.spawn().map_err(|error| format!("{program}: {error}"))?;
        let mut said = BufReader::new(child.stderr.take().expect("it was asked for"));
        let mut lines = String::new();
        let address = loop {
            let line = lines.len();
            let read = said.read_line(&mut lines).unwrap_or(0);
            if let Some(address) = lines[line..].strip_prefix("gateway ") {
                break address.trim().parse().expect("an address");
            }
            if read == 0 {
                let _ = child.wait();
                return Err(format!("{program}: tollgate did not start: {lines}"));
            }
        };
        Ok(Self { child, address, _said: said })
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Has it drain and exit, and waits for that.
    pub(super) fn stop(mut self) {
        kill_process(Pid::from_child(&self.child), Signal::TERM).expect("a child that runs");
        let status = self.child.wait().expect("a child can be waited for");
        assert!(status.success(), "tollgate ended with {status}");
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
