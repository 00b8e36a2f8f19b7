//! A running `tollgate serve` with whatever listeners its file names.

use rustix::process::{Pid, Signal, kill_process};
use std::{
    collections::HashMap,
    io::{BufRead, BufReader},
    net::SocketAddr,
    process::{Child, Command, ExitStatus, Stdio},
    sync::{Arc, Mutex, mpsc},
    thread,
    time::Duration,
};
use testkit::eventually;

/// Ended when dropped.
pub(crate) struct Opened {
    child: Child,
    addresses: HashMap<String, SocketAddr>,
    log: Arc<Mutex<String>>,
}

impl Opened {
    /// Serves a file, which names these listeners.
    pub(crate) fn start(file: &str, listeners: &[&str]) -> Self {
        Self::start_in(&[], file, listeners)
    }

    /// The same, in an environment that has these besides.
    pub(crate) fn start_in(environment: &[(&str, &str)], file: &str, listeners: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_tollgate"))
            .args(["serve", "--workers", "2", "--drain-pause", "100ms", "-c", file])
            .envs(environment.iter().copied())
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let log = Arc::new(Mutex::new(String::new()));
        let (found, finds) = mpsc::channel();
        let (stderr, kept) = (child.stderr.take().unwrap(), Arc::clone(&log));
        thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                if let Some((name, address)) = line.split_once(' ')
                    && let Ok(address) = address.trim().parse::<SocketAddr>()
                {
                    // Nobody listens any more once all are known.
                    let _ = found.send((name.to_owned(), address));
                }
                let mut kept = kept.lock().unwrap();
                kept.push_str(&line);
                kept.push('\n');
            }
        });
        let mut addresses = HashMap::new();
        while !listeners.iter().all(|name| addresses.contains_key(*name)) {
            let told = finds.recv_timeout(Duration::from_secs(30));
            addresses.extend([told.unwrap_or_else(|_| panic!("{}", log.lock().unwrap()))]);
        }
        Self { child, addresses, log }
    }

    pub(crate) fn address(&self, listener: &str) -> SocketAddr {
        self.addresses[listener]
    }

    /// What it has logged so far.
    pub(crate) fn log(&self) -> String {
        self.log.lock().unwrap().clone()
    }

    /// Waits until the log tells this.
    pub(crate) fn says(&self, words: &str) {
        eventually(words, || self.log.lock().unwrap().contains(words).then_some(()));
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

    pub(crate) fn ended(&mut self) -> ExitStatus {
        eventually("it ends", || self.child.try_wait().unwrap())
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
