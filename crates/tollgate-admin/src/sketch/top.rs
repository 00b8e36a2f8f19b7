//! The heaviest keys, read from all shards.
//!
//! A key may be in several: whoever sends its requests comes on any thread. What is known about it in each is added up. Every
//! shard is held for some microseconds, twice: once to see who is there, once to look up the few that are told.

use super::{HeavyKey, Inner, Sketch, hold, summary::Bounds};
use std::{collections::HashMap, sync::atomic::Ordering::Relaxed};

/// Who has less than this has done nothing of late: one request, three minutes and a half ago.
const FORGOTTEN: f64 = 0.1;

/// By what keys are heavy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ranking {
    /// Refusals.
    Refused,
    /// Units used.
    Used,
}

/// A heavy key.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Heavy {
    /// The limit's name.
    pub limit: String,
    /// The key.
    pub key: HeavyKey,
    /// What it has at least by the ranking asked for, faded with a half-life of a minute.
    pub at_least: f64,
    /// What it has at most.
    pub at_most: f64,
    /// Refusals a second, of late: at least so many.
    pub refused_per_second: f64,
    /// Units used a second, of late: at least so many.
    pub used_per_second: f64,
}

impl Ranking {
    pub(super) const ALL: [Self; 2] = [Self::Refused, Self::Used];
}

pub(super) fn top(inner: &Inner, ranking: Ranking, n: usize) -> Vec<Heavy> {
    let mut sums: HashMap<u64, f64> = HashMap::new();
    for shard in &inner.shards {
        for (print, least) in hold(&shard.0)[ranking as usize].all() {
            *sums.entry(print).or_default() += least;
        }
    }
    let mut heaviest: Vec<(u64, f64)> = sums.into_iter().filter(|(_, sum)| *sum >= FORGOTTEN).collect();
    // By print where they weigh the same, so that the order is always the same.
    heaviest.sort_unstable_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    heaviest.truncate(n);
    let per_second = per_second(inner.fades.load(Relaxed));
    // Who was displaced between the two looks was light.
    heaviest.into_iter().filter_map(|(print, _)| look_up(inner, ranking, print, per_second)).collect()
}

fn look_up(inner: &Inner, ranking: Ranking, print: u64, per_second: f64) -> Option<Heavy> {
    let mut name = None;
    let mut known = Ranking::ALL.map(|_| Bounds::default());
    for shard in &inner.shards {
        let summaries = hold(&shard.0);
        for (known, summary) in known.iter_mut().zip(summaries.iter()) {
            let here = summary.bounds(print);
            known.least += here.least;
            known.most += here.most;
        }
        if name.is_none() {
            name = summaries[ranking as usize].name(print).map(|name| (name.limit(), name.key()));
        }
    }
    let (limit, key) = name?;
    let of = |ranking: Ranking| known[ranking as usize];
    Some(Heavy {
        limit: inner.limit_name(limit)?,
        key,
        at_least: of(ranking).least,
        at_most: of(ranking).most,
        refused_per_second: of(Ranking::Refused).least * per_second,
        used_per_second: of(Ranking::Used).least * per_second,
    })
}

/// Refusals and units used a second of one key.
pub(super) fn rates(inner: &Inner, print: u64) -> (f64, f64) {
    let mut known = [0.0; Ranking::ALL.len()];
    for shard in &inner.shards {
        let summaries = hold(&shard.0);
        known
            .iter_mut()
            .zip(summaries.iter())
            .for_each(|(known, summary)| *known += summary.bounds(print).least);
    }
    let per_second = per_second(inner.fades.load(Relaxed));
    let of = |ranking: Ranking| (known[ranking as usize] * per_second * 1000.0).round() / 1000.0;
    (of(Ranking::Refused), of(Ranking::Used))
}

/// What a faded count is to be multiplied with for a rate: a steady stream of one a fade is worth
/// `1 + keep + keep^2 + ... + keep^fades` by now.
fn per_second(fades: u64) -> f64 {
    let keep = 0.5_f64.powf(1.0 / 12.0);
    let worth = (1.0 - keep.powf(fades as f64 + 1.0)) / (1.0 - keep);
    1.0 / (worth * Sketch::FADE_EVERY.as_secs_f64())
}
