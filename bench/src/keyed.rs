//! A bucket a key: random keys of tables small and large, batches, and one hot key.
//!
//! Each thread goes through its own part of the shuffled keys, a different stretch in every round.

use crate::{
    effort::{Effort, short},
    growth,
    measure::{alternate, count, kept, nanos_a_call},
    report::{Report, Target},
    subject::{Identity, Load, Tables, shuffled},
};
use std::hint::black_box;

const BATCH: usize = 16;

pub(crate) fn run(report: &mut Report, effort: &Effort) {
    only_key(report, effort);
    for keys in effort.populations {
        Bench { report, effort, load: Load::Allow, keys }.run::<String>();
    }
    let keys = effort.usual();
    Bench { report, effort, load: Load::Deny, keys }.run::<String>();
    Bench { report, effort, load: Load::Allow, keys }.run::<u64>();
}

/// The rows of one table. Batches, one hot key and growth are asked of tables of text under an allowing load.
struct Bench<'a> {
    report: &'a mut Report,
    effort: &'a Effort,
    load: Load,
    keys: usize,
}

impl Bench<'_> {
    fn run<K: Identity>(mut self) {
        let usual = self.keys == self.effort.usual();
        let allowed_text = K::NAME == "String" && self.load == Load::Allow;
        let random = self.names::<K>("random");
        let (mut batches, mut hot) = (Vec::new(), Vec::new());
        if usual && allowed_text {
            batches = self.names::<K>("batches of 16");
            hot = self.names::<K>("one hot key");
        }
        let growth = if allowed_text { growth::names(self.keys).to_vec() } else { Vec::new() };
        let names = random.iter().chain(&batches).chain(&hot).map(|(name, _)| name).chain(&growth);
        if !self.report.wants_any(names) {
            return;
        }
        let tables = Tables::<K>::new(self.load, self.keys);
        let order = shuffled::<K>(self.keys);
        let target = (usual && K::NAME == "String").then_some(Target::Ratio(0.35));
        self.random(&random, &tables, &order, target);
        self.batches(&batches, &tables, &order);
        for (name, threads) in hot {
            hot_key(self.report, self.effort, &name, threads, &tables, self.load, Some(Target::Ratio(0.6)));
        }
        if !growth.is_empty() {
            growth::run(self.report, self.effort, &tables.ours, &order);
        }
    }

    /// A row on one thread and one on two.
    fn names<K: Identity>(&self, what: &str) -> Vec<(String, usize)> {
        let keys = format!("{} {} keys", short(self.keys), K::NAME);
        let name = |threads| format!("{what} of {keys}, {}, {threads} thr, governor", self.load.name());
        [1, 2].map(|threads| (name(threads), threads)).to_vec()
    }

    fn random<K: Identity>(
        &mut self,
        names: &[(String, usize)],
        tables: &Tables<K>,
        order: &[K],
        target: Option<Target>,
    ) {
        for (name, threads) in names {
            if self.report.wants(name) {
                let access = self.access(order, *threads);
                let pair = alternate(
                    self.effort.rounds,
                    |round| access.ours(round, tables),
                    |round| access.governors(round, tables),
                );
                self.report.compare(name, "ns/call", pair, target);
            }
        }
    }

    fn batches<K: Identity>(&mut self, names: &[(String, usize)], tables: &Tables<K>, order: &[K]) {
        for (name, threads) in names {
            if self.report.wants(name) {
                let access = self.access(order, *threads);
                let pair = alternate(
                    self.effort.rounds,
                    |round| access.ours_in_batches(round, tables),
                    |round| access.governors(round, tables),
                );
                self.report.compare(name, "ns/key", pair, Some(Target::Ratio(0.2)));
            }
        }
    }

    fn access<'k, K>(&self, order: &'k [K], threads: usize) -> Access<'k, K> {
        let calls = self.effort.keyed_calls.min(order.len()) / threads;
        Access { order, calls, threads, load: self.load }
    }
}

/// Calls over stretches of keys in the order of `order`.
struct Access<'a, K> {
    order: &'a [K],
    /// A thread's calls in a round.
    calls: usize,
    threads: usize,
    load: Load,
}

impl<K: Identity> Access<'_, K> {
    fn stretch(&self, round: usize, thread: usize) -> &[K] {
        let stretches = self.order.len() / self.calls;
        let first = (round * self.threads + thread) % stretches * self.calls;
        &self.order[first..first + self.calls]
    }

    fn ours(&self, round: usize, tables: &Tables<K>) -> f64 {
        nanos_a_call(self.threads, self.calls, self.load, |thread| {
            let keys = self.stretch(round, thread);
            count(keys.len(), |index| kept(tables.ours.check(keys[index].key())).is_allow())
        })
    }

    fn governors(&self, round: usize, tables: &Tables<K>) -> f64 {
        nanos_a_call(self.threads, self.calls, self.load, |thread| {
            let keys = self.stretch(round, thread);
            count(keys.len(), |index| kept(tables.governor.check_key(&keys[index])).is_ok())
        })
    }

    fn ours_in_batches(&self, round: usize, tables: &Tables<K>) -> f64 {
        nanos_a_call(self.threads, self.calls, self.load, |thread| {
            let (mut keys, mut statuses) = (Vec::with_capacity(BATCH), Vec::with_capacity(BATCH));
            let mut allowed = 0;
            for batch in self.stretch(round, thread).chunks(BATCH) {
                keys.clear();
                keys.extend(batch.iter().map(K::key));
                statuses.clear();
                tables.ours.check_batch(&keys, &mut statuses);
                allowed += black_box(&statuses).iter().filter(|status| status.is_allow()).count();
            }
            allowed
        })
    }
}

fn only_key(report: &mut Report, effort: &Effort) {
    for load in Load::BOTH {
        for threads in [1, 2] {
            let name = format!("the only String key, {}, {threads} thr, governor", load.name());
            hot_key(report, effort, &name, threads, &Tables::<String>::new(load, 1), load, None);
        }
    }
}

fn hot_key<K: Identity>(
    report: &mut Report,
    effort: &Effort,
    name: &str,
    threads: usize,
    tables: &Tables<K>,
    load: Load,
    target: Option<Target>,
) {
    if !report.wants(name) {
        return;
    }
    let hot = K::of(0);
    let calls = effort.direct_calls / threads;
    let pair = alternate(
        effort.rounds,
        |_| {
            nanos_a_call(threads, calls, load, |_| {
                count(calls, |_| kept(tables.ours.check(black_box(&hot).key())).is_allow())
            })
        },
        |_| {
            nanos_a_call(threads, calls, load, |_| {
                count(calls, |_| kept(tables.governor.check_key(black_box(&hot))).is_ok())
            })
        },
    );
    report.compare(name, "ns/call", pair, target);
}
