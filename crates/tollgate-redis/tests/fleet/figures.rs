//! What a case shows besides that it passed.

use crate::history::{Ask, By};
use std::{cell::RefCell, fmt::Write};

/// What is collected over all cases.
#[derive(Default)]
pub(crate) struct Figures {
    memory: RefCell<Vec<(String, u64)>>,
}

/// One line: name, mode, and what is worth knowing.
pub(crate) struct Line(String);

impl Figures {
    pub(crate) fn remember(&self, kind: &str, bytes: u64) {
        self.memory.borrow_mut().push((kind.to_owned(), bytes));
    }

    pub(crate) fn print_memory(&self) {
        let memory = self.memory.borrow();
        if memory.is_empty() {
            return;
        }
        println!("\nmemory a key, at the end of a storm        bytes");
        for (kind, bytes) in memory.iter() {
            println!("  {kind:<38} {bytes:>7}");
        }
    }
}

impl Line {
    pub(crate) fn new(name: &str, mode: &str) -> Self {
        Self(format!("{name:<24} {mode:<7} ok:"))
    }

    pub(crate) fn add(mut self, what: &str) -> Self {
        let _ = write!(self.0, " {what};");
        self
    }

    pub(crate) fn print(self) {
        println!("{}", self.0.trim_end_matches(';'));
    }
}

/// How long answers took: what the checker cannot see is hidden in that.
pub(crate) fn latency(asks: &[Ask]) -> String {
    let mut widths: Vec<u64> = asks.iter().map(|ask| ask.answered - ask.asked).collect();
    widths.sort_unstable();
    let at = |part: usize| widths.get((widths.len() * part / 100).min(widths.len().saturating_sub(1)));
    let millis = |part| at(part).map_or(0.0, |nanos| *nanos as f64 / 1e6);
    format!("answers in {:.2} ms, 99% in {:.1}", millis(50), millis(99))
}

/// How much of it was decided without asking.
pub(crate) fn leased(asks: &[Ask]) -> String {
    let by_lease = asks.iter().filter(|ask| ask.by == By::Lease).count();
    match by_lease {
        0 => "no lease was in force".to_owned(),
        _ => format!("{:.0}% by lease", by_lease as f64 * 100.0 / asks.len() as f64),
    }
}
