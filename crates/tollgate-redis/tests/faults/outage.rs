//! One fault, met by three nodes under load: before, while it lasts, after; and what has to be true of each.
//!
//! - **open** admits everything it decides by itself, **closed** nothing, **local** at most this node's share.
//! - What Redis admits stays within the limit, once more for every time that the server lost the key.
//! - A fault costs a few calls the timeout, and the others nothing; while it lasts Redis is asked a few questions.
//! - After it Redis decides again, without being met by everybody at once.
//! - Every call returns, nothing is left running, every key has a TTL, and the log has a few lines.
//!
//! Bounds are generous, because machines that run tests are busy; the figures are exact.

use crate::{
    figures::{Figures, count},
    load::{BURST, Fleet, NODES, Node, RATE, Sample, TIMEOUT, WORKERS, asked},
    logs,
};
use std::{
    thread,
    time::{Duration, Instant},
};
use tollgate::{DecidedBy, OnFailure};
use tollgate_redis::HealthState;

/// A fault to come.
pub(crate) struct Outage<'a> {
    pub(crate) name: &'static str,
    /// The key that is charged.
    pub(crate) key: &'a str,
    pub(crate) lasting: Duration,
    pub(crate) extent: Extent,
    /// How often the server may forget the key.
    pub(crate) losses: u32,
    pub(crate) begins: Begins,
    pub(crate) returns: Returns,
}

/// How much of the service a fault takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    /// While it lasts nothing is decided by Redis.
    Total,
    /// Something may be.
    Partial,
}

/// How things are when the load begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Begins {
    Well,
    Broken,
}

/// How traffic comes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Returns {
    /// To the server that was given up.
    StepByStep,
    /// To another, which was there all the time and was never given up.
    AtOnce,
}

/// Failures in a row until Redis is given up, and the calls that are under way then; and those of a return that failed.
const FEW_CALLS: usize = 5 + WORKERS + 2 * 4;
/// Log lines of one node in one fault, those of its first connections included.
const FEW_LINES: u64 = 16;
/// The longest pause before a probe, an attempt to connect that finds nobody, the return; and a busy machine.
const RECOVERS_WITHIN: Duration = Duration::from_secs(8);
/// Above the timeout, for a machine that lets nobody run for a while.
const SLACK: Duration = Duration::from_millis(400);
const FIRST_MOMENT: Duration = Duration::from_millis(100);

impl<'a> Outage<'a> {
    pub(crate) const fn total(name: &'static str, lasting: Duration) -> Self {
        let (extent, begins, returns) = (Extent::Total, Begins::Well, Returns::StepByStep);
        Self { name, key: "k", lasting, extent, losses: 0, begins, returns }
    }

    pub(crate) const fn partial(name: &'static str, lasting: Duration) -> Self {
        Self { extent: Extent::Partial, ..Self::total(name, lasting) }
    }

    pub(crate) const fn losing(self, losses: u32) -> Self {
        Self { losses, ..self }
    }

    pub(crate) const fn at_start(self) -> Self {
        Self { begins: Begins::Broken, ..self }
    }

    pub(crate) const fn elsewhere(self) -> Self {
        Self { returns: Returns::AtOnce, ..self }
    }

    pub(crate) const fn at_key(self, key: &'a str) -> Self {
        Self { key, ..self }
    }

    /// Charges at this address, breaks it, and mends it. When `mend` returns the service is there again.
    pub(crate) fn run(&self, url: &str, break_it: impl FnOnce(), mend: impl FnOnce()) -> Result<(), String> {
        let lines = logs::lines();
        let mut fleet = Fleet::new(url);
        if self.begins == Begins::Broken {
            break_it();
            fleet.charge(self.key);
            let marks = self.endure(&mut fleet, || (), mend)?;
            return self.finish(fleet, &marks, lines);
        }
        fleet.charge(self.key);
        let begun = Instant::now();
        while !fleet.nodes.iter().all(|node| node.is_well(Duration::ZERO)) {
            if begun.elapsed() > RECOVERS_WITHIN {
                return Err("nobody was answered before the fault".to_owned());
            }
            thread::sleep(Duration::from_millis(1));
        }
        // What a charge takes while all is well, to be compared with.
        thread::sleep(Duration::from_millis(150));
        let marks = self.endure(&mut fleet, break_it, mend)?;
        self.finish(fleet, &marks, lines)
    }

    /// Lives through the fault, until all is well again.
    fn endure(
        &self,
        fleet: &mut Fleet,
        break_it: impl FnOnce(),
        mend: impl FnOnce(),
    ) -> Result<Marks, String> {
        let from = fleet.now();
        break_it();
        let broken = fleet.now();
        let questions = |fleet: &Fleet| -> Vec<u64> {
            fleet.nodes.iter().map(|node| asked(&node.store.health())).collect()
        };
        let before = questions(fleet);
        thread::sleep(self.lasting);
        let mending = fleet.now();
        mend();
        let mended = fleet.now();
        let asked = questions(fleet).iter().zip(before).map(|(after, before)| after - before).collect();
        let mut returning = vec![None; fleet.nodes.len()];
        let mut well = vec![None; fleet.nodes.len()];
        while well.iter().any(Option::is_none) {
            let now = fleet.now();
            if now > mended + RECOVERS_WITHIN {
                let states: Vec<_> = fleet.nodes.iter().map(|node| node.store.health()).collect();
                return Err(format!("not well again within {RECOVERS_WITHIN:?}: {states:?}"));
            }
            for (index, node) in fleet.nodes.iter().enumerate() {
                if node.store.health().state == HealthState::Recovering {
                    returning[index].get_or_insert(now);
                }
                if well[index].is_none() && node.is_well(mended) {
                    well[index] = Some(now);
                }
            }
            thread::sleep(Duration::from_millis(1));
        }
        // And once all is well again.
        thread::sleep(Duration::from_millis(100));
        fleet.stop()?;
        Ok(Marks { from, broken, mending, mended, returning, well, asked })
    }

    fn finish(&self, fleet: Fleet, marks: &Marks, lines: u64) -> Result<(), String> {
        let lines = (logs::lines() - lines).div_ceil(fleet.nodes.len() as u64);
        let mut violations = Vec::new();
        for (index, node) in fleet.nodes.iter().enumerate() {
            let samples = node.samples();
            let mut figures = count(node, &samples, &(marks.from..marks.mended));
            figures.asked = marks.asked[index];
            figures.recovered = marks.well[index].unwrap_or(marks.mended) - marks.mended;
            figures.at_return = marks.returning[index].map(|from| {
                let moment = samples.iter().filter(|sample| (from..from + FIRST_MOMENT).contains(&sample.at));
                let (all, asked): (Vec<_>, Vec<_>) = moment.map(|it| ((), it.is_by_store())).unzip();
                (all.len(), asked.into_iter().filter(|asked| *asked).count())
            });
            figures.lines = lines;
            figures.print(self.name);
            let found = self.violations(node, &samples, marks, &figures);
            violations.extend(found.into_iter().map(|it| format!("{}: {it}", figures.policy)));
        }
        if let Err(left) = fleet.end() {
            violations.push(left);
        }
        if violations.is_empty() { Ok(()) } else { Err(violations.join("\n    ")) }
    }

    fn violations(&self, node: &Node, samples: &[Sample], marks: &Marks, figures: &Figures) -> Vec<String> {
        let mut found = Vec::new();
        let mut must = |holds: bool, what: String| {
            if !holds {
                found.push(what);
            }
        };
        if let Some(error) = samples.iter().find_map(|sample| sample.told.as_ref().err()) {
            must(false, format!("a call failed instead of being decided: {error}"));
        }
        let expected = DecidedBy::Failure(node.policy);
        let is_foreign = |sample: &&Sample| !matches!(&sample.told, Ok((_, by)) if *by == DecidedBy::Store || *by == expected);
        must(!samples.iter().any(|it| is_foreign(&it)), "decided by somebody else".to_owned());
        let Figures { by_policy, admitted, .. } = *figures;
        let promise = match node.policy {
            OnFailure::Open => admitted == by_policy,
            OnFailure::Closed => admitted == 0,
            OnFailure::Local => admitted as f64 <= share(samples),
        };
        must(promise, format!("admitted {admitted} of {by_policy} by itself"));
        let by_store = samples.iter().filter(|sample| sample.is_by_store() && sample.is_allow()).count();
        let most = bound(samples, f64::from(BURST * (1 + self.losses)), f64::from(RATE));
        must(by_store as f64 <= most, format!("Redis admitted {by_store}, above {most:.0}"));
        if self.extent == Extent::Total {
            let within = |sample: &&Sample| (marks.broken..marks.mending).contains(&sample.at);
            let answered = samples.iter().filter(within).filter(|sample| sample.is_by_store()).count();
            must(answered == 0, format!("{answered} calls were decided by a server that was not there"));
            must(by_policy > 0, "nothing was decided without Redis".to_owned());
            must(figures.asked <= FEW_CALLS as u64, format!("{} questions asked in vain", figures.asked));
        }
        must(figures.felt <= FEW_CALLS, format!("{} calls felt the timeout", figures.felt));
        let slowest = figures.during.max.max(figures.after.max);
        must(slowest <= TIMEOUT + SLACK, format!("a call took {slowest:?}"));
        must(figures.during.p50 <= TIMEOUT / 4, format!("half of the calls took {:?}", figures.during.p50));
        if let (Some((calls, asked)), Returns::StepByStep) = (figures.at_return, self.returns) {
            must(asked <= calls / 3 + 8, format!("a stampede: {asked} of {calls} calls in the first moment"));
        }
        must(figures.lines <= FEW_LINES, format!("{} lines in the log", figures.lines));
        let health = node.store.health();
        must(health.without_redis == by_policy as u64, format!("counted otherwise: {health:?}"));
        found
    }
}

/// When what happened, from the beginning of the load; and what every node did.
struct Marks {
    from: Duration,
    broken: Duration,
    mending: Duration,
    mended: Duration,
    returning: Vec<Option<Duration>>,
    well: Vec<Option<Duration>>,
    asked: Vec<u64>,
}

/// What a node may admit by itself.
fn share(samples: &[Sample]) -> f64 {
    let own: Vec<Sample> = samples.iter().filter(|sample| sample.is_by_policy()).cloned().collect();
    bound(&own, f64::from(BURST / NODES), f64::from(RATE) / f64::from(NODES))
}

/// What a bucket admits from the first of these calls to the end of the last.
fn bound(samples: &[Sample], burst: f64, rate: f64) -> f64 {
    let first = samples.iter().map(|sample| sample.at).min().unwrap_or_default();
    let last = samples.iter().map(|sample| sample.at + sample.took).max().unwrap_or_default();
    burst + rate * (last - first).as_secs_f64() + 1.0
}
