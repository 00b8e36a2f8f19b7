//! Paced bytes: what went when, over every window; who slept, and how often.

#[cfg(feature = "http-body")]
mod body;
#[cfg(feature = "tokio")]
mod io;
#[cfg(any(feature = "tokio", feature = "http-body"))]
mod lazy;
mod pacer;

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};
use tollgate::{Bandwidth, Rate, Time};

/// What went when. Clones share one record.
#[derive(Clone, Debug, Default)]
struct Record(Arc<Mutex<Vec<(Time, u64)>>>);

impl Record {
    fn note(&self, at: Time, bytes: usize) {
        self.0.lock().unwrap().push((at, bytes as u64));
    }

    fn total(&self) -> u64 {
        self.0.lock().unwrap().iter().map(|(_, bytes)| bytes).sum()
    }

    /// Between every two instants no more went than the largest burst and the rate allow, not counting the first `after`
    /// bytes of all.
    fn check(&self, rate: Rate, mut after: u64) {
        let mut went = self.0.lock().unwrap().clone();
        for (_, bytes) in &mut went {
            let free = after.min(*bytes);
            (*bytes, after) = (*bytes - free, after - free);
        }
        let burst = Bandwidth::new(rate).largest_burst();
        for (first, (from, _)) in went.iter().enumerate() {
            let mut sum = 0;
            for (to, bytes) in &went[first..] {
                sum += u128::from(*bytes);
                let most = u128::from(burst) + flown(rate, *to - *from);
                assert!(sum <= most, "{sum} bytes between {from} and {to}, where {most} may go");
            }
        }
    }
}

/// The whole bytes that come at that rate in that time.
fn flown(rate: Rate, time: Duration) -> u128 {
    time.as_nanos() * u128::from(rate.amount().get()) / rate.period().as_nanos()
}
