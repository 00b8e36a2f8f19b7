//! The real HAProxy, which benchmarks compare the gateway with.
//!
//! One process in the foreground with one thread. `scripts/setup bench` installs it; `scripts/setup test` does not, so ask
//! [`Haproxy::is_installed`] first.

use crate::listening::Listening;
use std::{
    env, fs,
    net::SocketAddr,
    process::{Command, Stdio},
};

/// Stands for HAProxy's own address in a configuration: `bind LISTEN`.
const LISTEN: &str = "LISTEN";

/// An HAProxy on a free port of 127.0.0.1. Dropping it ends the process and removes its directory.
#[derive(Debug)]
pub struct Haproxy(Listening);

impl Haproxy {
    /// Whether the program can be started. `HAPROXY` names another one than `haproxy`.
    #[must_use]
    pub fn is_installed() -> bool {
        let version = Command::new(program()).arg("-v").stdout(Stdio::null()).stderr(Stdio::null()).status();
        version.is_ok_and(|status| status.success())
    }

    /// Starts HAProxy with these sections (`defaults`, `frontend`, `backend`) and waits until it accepts connections.
    /// `bind LISTEN` stands for its own address.
    ///
    /// # Panics
    ///
    /// If it does not start, with its output.
    #[must_use]
    pub fn start(sections: &str) -> Self {
        assert!(
            sections.matches("bind ").count() == sections.matches("bind LISTEN").count(),
            "HAProxy may listen at {LISTEN} only"
        );
        Self(Listening::start(&program(), |command, directory, address| {
            let sections = sections.replace(LISTEN, &address.to_string());
            let path = directory.join("haproxy.cfg");
            fs::write(&path, format!("global\n    nbthread 1\n    maxconn 4096\n{sections}\n"))
                .expect("a file can be written");
            command.arg("-db").arg("-f").arg(&path);
        }))
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.0.address()
    }

    /// Its only process.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.0.pid()
    }
}

/// Debian installs it in a directory that is not on every user's `PATH`.
fn program() -> String {
    env::var("HAPROXY").unwrap_or_else(|_| {
        let on_path = env::var_os("PATH")
            .is_some_and(|path| env::split_paths(&path).any(|dir| dir.join("haproxy").is_file()));
        if on_path { "haproxy".into() } else { "/usr/sbin/haproxy".into() }
    })
}
