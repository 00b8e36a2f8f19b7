//! A running `tollgate serve`, on ports that were free.

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::{
    io::{BufRead, BufReader},
    net::SocketAddr,
    process::{Child, ChildStderr, Command, ExitStatus, Stdio},
    sync::{Arc, Mutex, mpsc},
    thread,
    time::{Duration, Instant},
};
use testkit::{Arrival, Arrivals, Seen, eventually};

/// Ended when dropped.
pub(crate) struct Serving {
    child: Child,
    pub(crate) gateway: SocketAddr,
    pub(crate) admin: SocketAddr,
    log: Arc<Mutex<String>>,
}

impl Serving {
    /// Serves a file that opens both listeners.
    pub(crate) fn start(file: &str, more: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_tollgate"))
            .args(["serve", "--workers", "1", "-c", file])
            .args(more)
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let log = Arc::new(Mutex::new(String::new()));
        let (found, finds) = mpsc::channel();
        let (stderr, kept) = (child.stderr.take().unwrap(), Arc::clone(&log));
        thread::spawn(move || read(stderr, &kept, &found));
        let next = |name: &str| -> SocketAddr {
            loop {
                let told = finds.recv_timeout(Duration::from_secs(30));
                let (told, address) = told.unwrap_or_else(|_| panic!("{}", log.lock().unwrap()));
                // Others may be open too, and stand in the log.
                if told == name {
                    return address;
                }
            }
        };
        let (gateway, admin) = (next("gateway"), next("admin"));
        Self { child, gateway, admin, log }
    }

    /// What it said so far.
    pub(crate) fn log(&self) -> String {
        self.log.lock().unwrap().clone()
    }

    /// Where a door beside these two listens.
    pub(crate) fn door(&self, name: &str) -> SocketAddr {
        let log = self.log();
        let line = log.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
        line.unwrap_or_else(|| panic!("{name} is not open:\n{log}"))
    }

    /// A request to the gateway.
    pub(crate) fn get(&self, path: &str) -> Seen {
        get(self.gateway, path)
    }

    /// `/readyz`: its status, and what it tells.
    pub(crate) fn ready(&self) -> (u16, Value) {
        let seen = get(self.admin, "/readyz");
        (seen.status(), serde_json::from_str(&seen.text()).unwrap())
    }

    /// What a series of the metrics came to so far.
    pub(crate) fn metric(&self, series: &str) -> u64 {
        let page = get(self.admin, "/metrics").text();
        let told = page.lines().find_map(|line| line.strip_prefix(series)).map(str::trim);
        told.unwrap_or_else(|| panic!("no {series} in\n{page}")).parse().expect("a whole number")
    }

    /// Asks until `/readyz` tells this generation of the rules, or a later one; how long that took.
    pub(crate) fn generation(&self, wanted: u64) -> Duration {
        let begun = Instant::now();
        eventually("other rules", || {
            let (_, told) = self.ready();
            (told["components"]["rules"]["generation"].as_u64()? >= wanted).then(|| begun.elapsed())
        })
    }

    /// SIGTERM.
    pub(crate) fn stop(&self) {
        self.signal(Signal::TERM);
    }

    /// SIGHUP.
    pub(crate) fn hang_up(&self) {
        self.signal(Signal::HUP);
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    pub(crate) fn is_over(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().unwrap()
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn get(address: SocketAddr, path: &str) -> Seen {
    Arrivals::new([Arrival::at_ms(0).path(path)]).play(address).remove(0)
}

/// Lines such as `gateway  127.0.0.1:8080` are addresses; all are kept.
fn read(stderr: ChildStderr, log: &Mutex<String>, found: &mpsc::Sender<(String, SocketAddr)>) {
    for line in BufReader::new(stderr).lines().map_while(Result::ok) {
        if let Some((name, address)) = line.split_once(' ')
            && let Ok(address) = address.trim().parse()
        {
            // Nobody listens any more once both are known.
            let _ = found.send((name.to_owned(), address));
        }
        let mut log = log.lock().unwrap();
        log.push_str(&line);
        log.push('\n');
    }
}
