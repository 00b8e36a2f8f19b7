//! The real HAProxy, which benchmarks compare the gateway with.
//!
//! One process in the foreground with one thread. `scripts/setup bench` installs it; `scripts/setup test` does not, so ask
//! [`Haproxy::is_installed`] first.

use crate::{directory::Directory, port::Port, process::Process};
use std::{
    env,
    fs::{self, File},
    net::{Ipv4Addr, SocketAddr, TcpStream},
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

const START_WITHIN: Duration = Duration::from_secs(10);

/// Stands for HAProxy's own address in a configuration: `bind LISTEN`.
const LISTEN: &str = "LISTEN";

/// An HAProxy on a free port of 127.0.0.1. Dropping it ends the process and removes its directory.
#[derive(Debug)]
pub struct Haproxy {
    // Before the directory, so that the process has ended when its directory is removed.
    process: Process,
    _directory: Directory,
    port: Port,
}

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
        let (directory, port) = (Directory::new(), Port::free());
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port.number()));
        let sections = sections.replace(LISTEN, &address.to_string());
        let path = directory.join("haproxy.cfg");
        fs::write(&path, format!("global\n    nbthread 1\n    maxconn 4096\n{sections}\n"))
            .expect("a file can be written");
        let log = directory.join("log");
        let (out, err) = File::create(&log).and_then(|file| Ok((file.try_clone()?, file))).expect("a log");
        let mut process = Process::start(&program(), |command| {
            command.arg("-db").arg("-f").arg(&path).stdout(out).stderr(err);
        });
        let begun = Instant::now();
        while TcpStream::connect(address).is_err() {
            let is_late = process.has_ended() || begun.elapsed() > START_WITHIN;
            assert!(!is_late, "haproxy did not start:\n{}", fs::read_to_string(&log).unwrap_or_default());
            thread::sleep(Duration::from_millis(5));
        }
        Self { process, _directory: directory, port }
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        SocketAddr::from((Ipv4Addr::LOCALHOST, self.port.number()))
    }

    /// Its only process.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.process.pid()
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
