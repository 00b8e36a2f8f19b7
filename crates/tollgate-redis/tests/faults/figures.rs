//! The table: one line of figures for a case and a policy.

use crate::load::{Node, Sample, TIMEOUT, name_of};
use std::{ops::Range, time::Duration};

/// What happened to one node in one fault.
pub(crate) struct Figures {
    pub(crate) policy: &'static str,
    pub(crate) calls: usize,
    /// Decided without Redis, and of those admitted.
    pub(crate) by_policy: usize,
    pub(crate) admitted: usize,
    /// While it lasted, and from its end on.
    pub(crate) during: Latency,
    pub(crate) after: Latency,
    /// Calls that it cost the timeout, or nearly.
    pub(crate) felt: usize,
    /// Questions put to Redis while it lasted.
    pub(crate) asked: u64,
    pub(crate) outages: u64,
    pub(crate) recovered: Duration,
    /// Calls in the first moment after Redis answered again, and how many of them went there.
    pub(crate) at_return: Option<(usize, usize)>,
    pub(crate) lines: u64,
}

#[derive(Clone, Copy, Default)]
pub(crate) struct Latency {
    pub(crate) p50: Duration,
    pub(crate) p99: Duration,
    pub(crate) max: Duration,
}

impl Latency {
    pub(crate) fn of<'a>(samples: impl Iterator<Item = &'a Sample>) -> Self {
        let mut took: Vec<Duration> = samples.map(|sample| sample.took).collect();
        took.sort_unstable();
        let at = |share: f64| {
            let last = took.len().checked_sub(1)?;
            took.get((last as f64 * share).round() as usize).copied()
        };
        let [p50, p99, max] = [0.5, 0.99, 1.0].map(|share| at(share).unwrap_or_default());
        Self { p50, p99, max }
    }

    fn shown(self) -> String {
        let Self { p50, p99, max } = self;
        format!("{} / {} / {}", millis(p50), millis(p99), millis(max))
    }
}

impl Figures {
    pub(crate) fn header() {
        println!(
            "{:22} {:7} {:>6} {:>10} {:>9} {:>21} {:>21} {:>5} {:>6} {:>8} {:>9} {:>8} {:>5}",
            "fault",
            "policy",
            "calls",
            "by policy",
            "admitted",
            "during, ms 50/99/max",
            "after, ms 50/99/max",
            "felt",
            "asked",
            "outages",
            "recovered",
            "return",
            "lines"
        );
    }

    pub(crate) fn print(&self, fault: &str) {
        let at_return = self.at_return.map_or("-".to_owned(), |(calls, asked)| format!("{asked}/{calls}"));
        println!(
            "{fault:22} {:7} {:>6} {:>10} {:>9} {:>21} {:>21} {:>5} {:>6} {:>8} {:>9} {at_return:>8} {:>5}",
            self.policy,
            self.calls,
            self.by_policy,
            self.admitted,
            self.during.shown(),
            self.after.shown(),
            self.felt,
            self.asked,
            self.outages,
            format!("{:.2} s", self.recovered.as_secs_f64()),
            self.lines,
        );
    }
}

/// Judges nothing, only counts.
pub(crate) fn count(node: &Node, samples: &[Sample], during: &Range<Duration>) -> Figures {
    let by_policy = || samples.iter().filter(|sample| sample.is_by_policy());
    let within = || samples.iter().filter(|sample| during.contains(&sample.at));
    Figures {
        policy: name_of(node.policy),
        calls: samples.len(),
        by_policy: by_policy().count(),
        admitted: by_policy().filter(|sample| sample.is_allow()).count(),
        during: Latency::of(within()),
        after: Latency::of(samples.iter().filter(|sample| sample.at >= during.end)),
        felt: samples
            .iter()
            .filter(|sample| sample.at >= during.start && sample.took >= TIMEOUT * 9 / 10)
            .count(),
        asked: 0,
        outages: node.store.health().outages,
        recovered: Duration::ZERO,
        at_return: None,
        lines: 0,
    }
}

pub(crate) fn millis(time: Duration) -> String {
    format!("{:.1}", time.as_secs_f64() * 1_000.0)
}

/// A line for a case that is not an outage.
pub(crate) fn say(case: &str, what: &str) {
    println!("{case:22} {what}");
}
