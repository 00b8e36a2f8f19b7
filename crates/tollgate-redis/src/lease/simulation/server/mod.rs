//! The server's half of leasing, as a model. The script restates it; all numbers are whole, all times microseconds of the
//! server's clock.
//!
//! ```text
//! kept with a bucket     out = [(id, units, until)], ordered by until;   units_out = sum of units
//! a call's lines         bucket, cost, settle [(id, used)], wish (id, units) or none;  with it: life, nodes
//!
//! now = max(now, the latest time this bucket was called at)
//! 1. bring   every line's bucket to now: leases with until <= now lapse, in that order, and count as used
//! 2. settle  each (id, used) that is still out: take it off the list, used = min(used, units), give back units - used.
//!            An id that is not out is ignored: it lapsed, or was settled, or its state is lost.
//! 3. decide  every line exactly; a cost of 0 passes. If any is denied, nothing is charged or leased: answer
//! 4. charge  every line
//! 5. lease   n = min(wish, remaining / (4 * nodes)) rounded down; until as the kind says
//!            if n >= 1, the id is not out and fewer than 4 * nodes leases are: put (id, n, until) on the list, count n as used
//! 6. answer  denied, limit, remaining, reset_after, n, until - now
//! ```
//!
//! Settling comes first and stays, whatever is decided: it is the node's report of what happened. What the kinds do is in
//! [`level`] (token_bucket, leaky_bucket), [`window`] (fixed_window, sliding_counter) and [`log`] (sliding_window). The
//! invariant of all is: *what was truly used, and what may still be used of leases, is at most what is counted*.
//!
//! **By hand, while leases are out.** A refund takes off what was used and never what is out. A reset forgets what was used
//! and keeps what is out. Changed numbers keep both; a change of kind, window, precision or align starts anew and forgets
//! what is out too. So after a limit is lowered at most the units then out are admitted above it, for at most one lease's
//! life; they are at most half of what the old limit gave (two leases a node, each a `4 * nodes`th of what remained).

pub(super) mod level;
pub(super) mod log;
pub(super) mod window;

use super::super::{Answer, BucketId, LeaseId, Line};
use level::Level;
use log::Log;
use std::{collections::HashMap, time::Duration};
use tollgate::Retry;
use window::{Counter, Fixed};

/// A limit's numbers, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Numbers {
    /// token_bucket and leaky_bucket: a microsecond earns `earn`, a unit costs `price`.
    Level {
        earn: u64,
        price: u64,
        capacity: u32,
        initial: u32,
    },
    Fixed {
        limit: u32,
        window: u64,
        align: Align,
    },
    Sliding {
        limit: u32,
        window: u64,
        precision: u64,
    },
    Counter {
        limit: u32,
        window: u64,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Align {
    Epoch,
    FirstHit,
}

/// A lease that is out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Out {
    pub(super) id: LeaseId,
    pub(super) units: u32,
    pub(super) until: u64,
    /// Only a broken server looks at it.
    pub(super) since: u64,
}

/// What can be wrong with a server, to see whether the checker notices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// A bucket drains below the units that are out.
    NoFloor,
    /// A lease lives on beyond its window.
    PastTheEdge,
    /// A sliding window dates what was used at the lease's beginning.
    DatedEarly,
    /// A lease that lapses counts as unused.
    LapsedIsUnused,
    /// A reset forgets what is out.
    ForgetfulReset,
}

/// How a kind counts. `out` is what is out at that moment; `now` never goes back.
pub(super) trait Counted {
    /// Brings the count to `now`; the leases that lapse on the way are taken off the list.
    fn bring(&mut self, now: u64, out: &mut Vec<Out>);
    /// When `cost` would pass, if it does not now.
    fn refuses(&self, now: u64, cost: u32, out: &[Out]) -> Option<Retry>;
    /// Counts `units` as used: charged, or leased.
    fn count(&mut self, now: u64, units: u32);
    /// Counts a lease, and says until when; `None` where none can be given.
    fn lease(&mut self, now: u64, units: u32, life: u64) -> Option<u64>;
    /// A lease comes back; it is not on the list any more.
    fn settle(&mut self, now: u64, lease: &Out, used: u32, out: &[Out]);
    fn remaining(&self, now: u64, out: &[Out]) -> u32;
    fn reset_after(&self, now: u64, out: &[Out]) -> u64;
    fn limit(&self) -> u32;
    fn refund(&mut self, now: u64, units: u32, out: &[Out]);
    fn reset(&mut self, now: u64, out: &[Out]);
    /// Takes new numbers on, or says that they are of another kind, window, precision or align.
    fn change(&mut self, now: u64, to: &Numbers, out: &[Out]) -> bool;
    /// When first_hit windows were opened.
    fn opened(&self) -> &[u64] {
        &[]
    }
}

/// One bucket's state.
struct Bucket {
    counted: Box<dyn Counted>,
    out: Vec<Out>,
    latest: u64,
}

pub(super) struct Server {
    buckets: HashMap<BucketId, Bucket>,
    nodes: u32,
    life: u64,
    fault: Option<Fault>,
}

impl Numbers {
    fn counted(&self, fault: Option<Fault>) -> Box<dyn Counted> {
        match *self {
            Self::Level { earn, price, capacity, initial } => {
                Box::new(Level::new(earn, price, capacity, initial, fault))
            }
            Self::Fixed { limit, window, align } => Box::new(Fixed::new(limit, window, align, fault)),
            Self::Sliding { limit, window, precision } => Box::new(Log::new(limit, window, precision, fault)),
            Self::Counter { limit, window } => Box::new(Counter::new(limit, window, fault)),
        }
    }
}

impl Server {
    pub(super) fn new(nodes: u32, life: Duration, fault: Option<Fault>) -> Self {
        Self { buckets: HashMap::new(), nodes, life: life.as_micros() as u64, fault }
    }

    pub(super) fn add(&mut self, bucket: BucketId, numbers: &Numbers) {
        let counted = numbers.counted(self.fault);
        self.buckets.insert(bucket, Bucket { counted, out: Vec::new(), latest: 0 });
    }

    /// One call. The lines name different buckets, all of which are known.
    pub(super) fn ask(&mut self, now: u64, lines: &[Line]) -> Vec<Answer> {
        let nows: Vec<u64> = lines.iter().map(|line| self.bring(now, line)).collect();
        let refusals: Vec<Option<Retry>> =
            lines.iter().zip(&nows).map(|(line, now)| self.refuses(*now, line)).collect();
        let denied = refusals.iter().any(Option::is_some);
        let answers = lines.iter().zip(&nows).zip(refusals);
        answers.map(|((line, now), refusal)| self.answer(*now, line, refusal, denied)).collect()
    }

    fn bring(&mut self, now: u64, line: &Line) -> u64 {
        let bucket = self.bucket(line.bucket);
        bucket.latest = now.max(bucket.latest);
        let now = bucket.latest;
        bucket.counted.bring(now, &mut bucket.out);
        for settled in line.settle.iter().flatten() {
            let place = bucket.out.iter().position(|lease| lease.id == settled.lease);
            if let Some(lease) = place.map(|place| bucket.out.remove(place)) {
                bucket.counted.settle(now, &lease, settled.used.min(lease.units), &bucket.out);
            }
        }
        now
    }

    fn refuses(&mut self, now: u64, line: &Line) -> Option<Retry> {
        let bucket = self.bucket(line.bucket);
        if line.cost == 0 { None } else { bucket.counted.refuses(now, line.cost, &bucket.out) }
    }

    fn answer(&mut self, now: u64, line: &Line, refusal: Option<Retry>, denied: bool) -> Answer {
        let (nodes, life) = (self.nodes, self.life);
        let bucket = self.bucket(line.bucket);
        let mut leased = None;
        if !denied {
            if line.cost > 0 {
                bucket.counted.count(now, line.cost);
            }
            leased = line.wish.and_then(|wish| bucket.lease(now, wish.lease, wish.units, nodes, life));
        }
        Answer {
            denied: refusal,
            limit: bucket.counted.limit(),
            remaining: bucket.counted.remaining(now, &bucket.out),
            reset_after: Some(Duration::from_micros(bucket.counted.reset_after(now, &bucket.out))),
            leased: leased.map_or(0, |lease| lease.units),
            life: Duration::from_micros(leased.map_or(0, |lease| lease.until - now)),
        }
    }

    pub(super) fn refund(&mut self, now: u64, bucket: BucketId, units: u32) {
        self.by_hand(now, bucket, |counted, now, out| counted.refund(now, units, out));
    }

    pub(super) fn reset(&mut self, now: u64, bucket: BucketId) {
        let nothing = self.fault == Some(Fault::ForgetfulReset);
        self.by_hand(now, bucket, |counted, now, out| counted.reset(now, if nothing { &[] } else { out }));
    }

    pub(super) fn change(&mut self, now: u64, bucket: BucketId, to: &Numbers) {
        let fault = self.fault;
        let it = self.bucket(bucket);
        it.latest = now.max(it.latest);
        it.counted.bring(it.latest, &mut it.out);
        if !it.counted.change(it.latest, to, &it.out) {
            *it = Bucket { counted: to.counted(fault), out: Vec::new(), latest: it.latest };
        }
    }

    pub(super) fn units_out(&self, bucket: BucketId) -> u32 {
        units(&self.buckets[&bucket].out)
    }

    pub(super) fn opened(&self, bucket: BucketId) -> &[u64] {
        self.buckets[&bucket].counted.opened()
    }

    fn by_hand(&mut self, now: u64, bucket: BucketId, act: impl Fn(&mut dyn Counted, u64, &[Out])) {
        let it = self.bucket(bucket);
        it.latest = now.max(it.latest);
        it.counted.bring(it.latest, &mut it.out);
        act(&mut *it.counted, it.latest, &it.out);
    }

    fn bucket(&mut self, bucket: BucketId) -> &mut Bucket {
        self.buckets.get_mut(&bucket).unwrap()
    }
}

impl Bucket {
    fn lease(&mut self, now: u64, id: LeaseId, wish: u32, nodes: u32, life: u64) -> Option<Out> {
        let units = wish.min(self.counted.remaining(now, &self.out) / (4 * nodes));
        let is_out = self.out.iter().any(|lease| lease.id == id);
        if units == 0 || is_out || self.out.len() >= 4 * nodes as usize {
            return None;
        }
        let until = self.counted.lease(now, units, life)?;
        let lease = Out { id, units, until, since: now };
        let place = self.out.partition_point(|other| other.until <= until);
        self.out.insert(place, lease);
        Some(lease)
    }
}

/// What is out.
pub(super) fn units(out: &[Out]) -> u32 {
    out.iter().map(|lease| lease.units).sum()
}
