//! Timing loops on one or more threads, and taking turns.
//!
//! A loop counts what it was allowed, and the count is held against what the load should have got: a limiter that
//! answers wrongly, or a loop that the optimiser emptied, does not get a figure.

use crate::subject::Load;
use std::{
    hint::{black_box, spin_loop},
    sync::atomic::{AtomicUsize, Ordering::SeqCst},
    thread,
    time::Instant,
};

/// The medians of a comparison.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pair {
    pub(crate) ours: f64,
    pub(crate) peer: f64,
    pub(crate) ratio: f64,
}

/// Has both sides take turns, each going first in every other round, after a round that does not count.
pub(crate) fn alternate(
    rounds: usize,
    mut ours: impl FnMut(usize) -> f64,
    mut peer: impl FnMut(usize) -> f64,
) -> Pair {
    let mut figures = Vec::with_capacity(rounds);
    for round in 0..=rounds {
        let (one, other);
        if round % 2 == 0 {
            one = ours(round);
            other = peer(round);
        } else {
            other = peer(round);
            one = ours(round);
        }
        if round > 0 {
            figures.push((one, other));
        }
    }
    Pair::of(&figures)
}

impl Pair {
    /// From what ours and the peer came to in every round.
    pub(crate) fn of(rounds: &[(f64, f64)]) -> Self {
        Self {
            ours: median(rounds.iter().map(|(ours, _)| *ours)),
            peer: median(rounds.iter().map(|(_, peer)| *peer)),
            ratio: median(rounds.iter().map(|(ours, peer)| ours / peer)),
        }
    }
}

fn median(figures: impl IntoIterator<Item = f64>) -> f64 {
    let mut figures: Vec<f64> = figures.into_iter().collect();
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

/// Nanoseconds a call: the time from the first thread's first call to the last one's last, over all calls.
///
/// `work` is one thread's whole loop of `calls` calls, given the thread's number; it returns how many were allowed.
///
/// # Panics
/// Where the load did not get the answers it should have.
pub(crate) fn nanos_a_call(
    threads: usize,
    calls: usize,
    load: Load,
    work: impl Fn(usize) -> usize + Sync,
) -> f64 {
    let (work, ready) = (&work, &AtomicUsize::new(0));
    let run = move |thread: usize| {
        // A blocking barrier would wake the threads one after the other.
        ready.fetch_add(1, SeqCst);
        while ready.load(SeqCst) < threads {
            spin_loop();
        }
        let begun = Instant::now();
        let allowed = work(thread);
        (begun, Instant::now(), allowed)
    };
    let runs: Vec<(Instant, Instant, usize)> = thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|thread| scope.spawn(move || run(thread))).collect();
        let mut runs = vec![run(0)];
        runs.extend(others.into_iter().map(|other| other.join().expect("a measuring thread panicked")));
        runs
    });
    load.must_fit(runs.iter().map(|(_, _, allowed)| allowed).sum(), calls * threads);
    let begun = runs.iter().map(|(begun, _, _)| *begun).min().expect("there is a thread");
    let ended = runs.iter().map(|(_, ended, _)| *ended).max().expect("there is a thread");
    (ended - begun).as_nanos() as f64 / (calls * threads) as f64
}

/// The answer, all of which the optimiser has to make: it may be looked at.
#[inline(always)]
pub(crate) fn kept<T>(answer: T) -> T {
    black_box(&answer);
    answer
}

/// How many of `calls` calls were allowed.
#[inline(always)]
pub(crate) fn count(calls: usize, mut call: impl FnMut(usize) -> bool) -> usize {
    let mut allowed = 0;
    for index in 0..calls {
        allowed += usize::from(call(index));
    }
    black_box(allowed)
}
