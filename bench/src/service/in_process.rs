//! A window by key, asked within the program: next to limitador's library, which Envoy users have behind another such service.
//!
//! The peer is a program of its own with nothing else in it (`peers/limitador`), told by a line when it is its turn.

use super::server::limitador;
use crate::{
    effort::Effort,
    measure::{alternate, count, kept, nanos_a_call},
    report::Report,
    subject::{Identity, Load, our_table},
};
use std::{
    io::{BufRead, BufReader, Write},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    time::Duration,
};
use tollgate::FixedWindow;

const KEYS: usize = 100_000;
/// A stride that meets every key, as the peer has it.
const STRIDE: usize = 61_803;

pub(crate) fn run(report: &mut Report, effort: &Effort) {
    let name = "in process, fixed window of 1e5 keys, limitador";
    if effort.is_quick() || !report.wants(name) {
        return;
    }
    let calls = effort.keyed_calls;
    let mut limitador = Limitador::start(calls);
    let window = FixedWindow::new(1_000_000_000, Duration::from_secs(3600)).expect("a limit");
    let ours = our_table(window, 2 * KEYS);
    let keys: Vec<String> = (0..KEYS as u64).map(String::of).collect();
    for key in &keys {
        assert!(ours.check(key.key()).is_allow());
    }
    let mut at = 0;
    let round = |_| {
        let first = at;
        at = (at + calls * STRIDE) % KEYS;
        nanos_a_call(1, calls, Load::Allow, |_| {
            let mut at = first;
            count(calls, |_| {
                at = (at + STRIDE) % KEYS;
                kept(ours.check(keys[at].key())).is_allow()
            })
        })
    };
    let pair = alternate(effort.rounds, round, |_| limitador.round());
    report.compare(name, "ns/call", pair, None);
}

/// The peer, until dropped.
struct Limitador {
    child: Child,
    go: ChildStdin,
    told: BufReader<ChildStdout>,
}

impl Limitador {
    fn start(calls: usize) -> Self {
        let mut child = Command::new(limitador())
            .args([KEYS.to_string(), calls.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("`make bench` has built the peer");
        let (go, told) = (child.stdin.take().expect("piped"), child.stdout.take().expect("piped"));
        Self { child, go, told: BufReader::new(told) }
    }

    /// Nanoseconds a call.
    fn round(&mut self) -> f64 {
        self.go.write_all(b"go\n").expect("the peer listens");
        let mut told = String::new();
        self.told.read_line(&mut told).expect("the peer answers");
        told.trim().parse().expect("a number")
    }
}

impl Drop for Limitador {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
