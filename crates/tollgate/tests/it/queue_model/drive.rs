//! Runs a history against the library and the model, and compares them after everything that happens.
//!
//! A waiter is polled when it comes and when its waker was called, and never else: a wake-up that is lost shows as somebody who
//! was released by the model and has not been told. The clock stops wherever somebody wakes, or leaps past all of them.

use super::{
    history::{Ending, History, Numbers, Op, Then},
    library::{Library, Outcome, Way},
    meters::{Kind, Meter},
    model::{End, Model, Told},
};
use crate::tasks::Tasks;
use proptest::{prelude::*, sample::Index};
use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};
use tollgate::{Clock, Decision, ManualClock, Permit, Reason, Retry, Time};

/// How the clock goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Steps {
    /// It stops wherever somebody wakes.
    Fine,
    /// It leaps over any number of releases, as if timers were late by as much.
    Coarse,
    /// The same, and whoever came last is polled first.
    Reversed,
}

struct Drive<'a> {
    clock: ManualClock,
    library: &'a Library,
    limits: Vec<Numbers>,
    model: Model,
    tasks: Tasks<'a, Outcome<'a>>,
    steps: Steps,
    unit: u64,
    costs: BTreeMap<usize, (Vec<u32>, u64)>,
    /// Who has been told how its wait ended.
    told: BTreeSet<usize>,
    /// Who is not polled any more.
    forgotten: BTreeSet<usize>,
    held: BTreeMap<usize, Permit<'a>>,
    passed: Vec<Passage>,
    /// Whether something was done to the limits, so that more may have passed than they give.
    is_altered: bool,
    /// Stretches of time in which nobody was polled.
    leaps: Vec<(u64, u64)>,
}

/// What passed, as the library tells it.
struct Passage {
    at: u64,
    costs: Vec<u32>,
    /// As told by a wait, in the order of arrival; or by a check.
    waiter: Option<usize>,
}

/// Runs it all; what is left waiting is dropped, the first first, and must leave no trace.
pub(super) fn agree(
    way: Way,
    limits: &[Numbers],
    steps: Steps,
    history: History,
) -> Result<(), TestCaseError> {
    let clock = ManualClock::new();
    let library = Library::new(way, limits, &clock);
    let most_waiting = limits.iter().map(|numbers| numbers.most_waiting()).min().unwrap_or(usize::MAX);
    let meters: Vec<Meter> = limits.iter().map(|numbers| numbers.meter()).collect();
    let mut drive = Drive {
        tasks: Tasks::on(&clock),
        clock,
        library: &library,
        limits: limits.to_vec(),
        model: Model::new(meters, most_waiting),
        steps,
        unit: limits.iter().map(|numbers| numbers.unit()).max().unwrap_or(1),
        costs: BTreeMap::new(),
        told: BTreeSet::new(),
        forgotten: BTreeSet::new(),
        held: BTreeMap::new(),
        passed: Vec::new(),
        is_altered: false,
        leaps: Vec::new(),
    };
    drive.tasks.newest_first = steps == Steps::Reversed;
    for op in history.ops {
        drive.run(op)?;
        drive.compare()?;
    }
    drive.end(history.ending)?;
    prop_assert_eq!(drive.clock.next_sleeper(), None, "somebody who left still sleeps");
    drive.within_bound()
}

impl<'a> Drive<'a> {
    fn now(&self) -> u64 {
        self.clock.now().as_nanos()
    }

    /// In nanoseconds, from thousandths of what a unit takes.
    fn nanos(&self, thousandths: u64) -> u64 {
        u64::try_from(u128::from(self.unit) * u128::from(thousandths) / 1_000).unwrap()
    }

    fn run(&mut self, op: Op) -> Result<(), TestCaseError> {
        let now = self.now();
        match op {
            Op::Pass(thousandths) => self.pass_to(now + self.nanos(thousandths)),
            Op::PassToTurn(which, by) => {
                if let Some(turn) = pick(&self.model.turns(), which) {
                    self.pass_to(turn.saturating_add_signed(by).max(now));
                }
            }
            Op::Wait { costs, up_to, then } => self.wait(&costs, up_to, then),
            Op::Unpolled => drop(self.library.wait(&[1; 3], None)),
            Op::Drop(which) => {
                if let Some(task) = pick(&self.tasks.running(), which) {
                    self.drop_waiter(task);
                }
            }
            Op::DropAtTurn(which, by) => self.drop_at_turn(which, by),
            Op::Leave(which) => {
                let holders: Vec<usize> = self.held.keys().copied().collect();
                if let Some(holder) = pick(&holders, which) {
                    self.model.leave(holder, now);
                    self.held.remove(&holder);
                    self.tasks.run();
                }
            }
            Op::Check(cost) => self.check(cost)?,
            Op::Peek => self.peek()?,
            Op::Change(which, by) => {
                let limit = which.index(self.limits.len());
                let to = self.limits[limit].varied(by);
                self.library.change(limit, to);
                self.alter(now, |meters| meters[limit].change(now, &to.meter()));
                if self.limits.len() == 1 {
                    self.unit = to.unit();
                }
            }
            Op::Reset => {
                self.library.reset();
                self.alter(now, |meters| meters.iter_mut().for_each(Meter::reset));
            }
            Op::Refund(units) => {
                self.library.refund(units);
                self.alter(now, |meters| meters.iter_mut().for_each(|meter| meter.refund(now, units)));
            }
            Op::Grant(units) => {
                self.library.grant(units);
                self.alter(now, |meters| meters.iter_mut().for_each(|meter| meter.grant(units)));
            }
            Op::Ban(thousandths) => {
                let lasting = self.nanos(thousandths);
                self.library.ban(Duration::from_nanos(lasting));
                self.alter(now, |meters| meters.iter_mut().for_each(|meter| meter.ban(now + lasting)));
            }
        }
        Ok(())
    }

    fn end(&mut self, ending: Ending) -> Result<(), TestCaseError> {
        if ending == Ending::Served {
            let last = self.model.turns().last().copied();
            self.pass_to(last.unwrap_or(0).max(self.now()));
            self.compare()?;
        }
        while let Some(first) = self.tasks.running().first().copied() {
            self.drop_waiter(first);
            self.compare()?;
        }
        Ok(())
    }

    fn pass_to(&mut self, to: u64) {
        match self.steps {
            Steps::Fine => self.tasks.pass(Duration::from_nanos(to - self.now())),
            Steps::Coarse | Steps::Reversed => {
                self.leap_to(to);
                self.tasks.run();
            }
        }
        self.model.serve(to);
    }

    /// Moves the clock, and polls nobody.
    fn leap_to(&mut self, to: u64) {
        self.leaps.push((self.now(), to));
        self.clock.set(Time::from_nanos(to));
    }

    fn wait(&mut self, costs: &[u32], up_to: Option<u64>, then: Then) {
        let now = self.now();
        let costs: Vec<u32> =
            costs.iter().zip(&self.model.meters).map(|(it, of)| (*it).min(of.capacity())).collect();
        let up_to = up_to.map(|thousandths| self.nanos(thousandths));
        let task = self.tasks.start(self.library.wait(&costs, up_to.map(Duration::from_nanos)));
        self.model.arrive(task, now, &costs, up_to);
        if then == Then::IsForgotten {
            self.tasks.put_aside(task);
            self.forgotten.insert(task);
        }
        self.costs.insert(task, (costs, now));
    }

    fn drop_waiter(&mut self, task: usize) {
        self.model.leave(task, self.now());
        self.tasks.abort(task);
        // Nobody will tell what became of it.
        self.told.insert(task);
    }

    fn drop_at_turn(&mut self, which: Index, by: i64) {
        let Some(task) = pick(&self.tasks.running(), which) else { return };
        let waiting: Vec<usize> =
            self.tasks.running().into_iter().filter(|task| self.model.is_waiting(*task)).collect();
        if let Some(place) = waiting.iter().position(|waiter| *waiter == task) {
            let (now, turn) = (self.now(), self.model.turns()[place]);
            self.pass_to((turn - 1).max(now));
            self.leap_to(turn.saturating_add_signed(by).max(now));
        }
        // Those in front of it may have timed out, and it is gone already.
        if self.tasks.is_running(task) {
            self.drop_waiter(task);
        }
    }

    fn check(&mut self, cost: u32) -> Result<(), TestCaseError> {
        let now = self.now();
        let costs: Vec<u32> = self.model.meters.iter().map(|meter| cost.min(meter.capacity())).collect();
        let said = self.library.check(&costs);
        let after = |nanos: u64| Retry::After(Duration::from_micros(nanos.div_ceil(1_000)));
        match self.model.check(usize::MAX, now, &costs) {
            Told::Allowed => {
                prop_assert_eq!(said, Decision::Allow);
                self.passed.push(Passage { at: now, costs, waiter: None });
            }
            Told::Never => prop_assert_eq!(said, Decision::Deny(Retry::Never)),
            Told::Denied(nanos) if self.limits.len() == 1 => {
                prop_assert_eq!(said, Decision::Deny(after(nanos)), "when it would pass behind the queue");
            }
            Told::Denied(_) | Told::DeniedForNow => {
                prop_assert!(matches!(said, Decision::Deny(_)), "it overtook: {:?}", said);
            }
        }
        Ok(())
    }

    fn alter(&mut self, now: u64, alter: impl FnOnce(&mut [Meter])) {
        self.model.alter(now, alter);
        self.is_altered = true;
        self.tasks.run();
    }

    /// Everybody has been told what the model says, when the model says, and the limits stand as they do there.
    fn compare(&mut self) -> Result<(), TestCaseError> {
        let now = self.now();
        self.model.serve(now);
        for (task, at, outcome) in std::mem::take(&mut self.tasks.done) {
            let Some(end) = self.model.end_of(task) else {
                let what = if outcome.is_ok() { "released" } else { "refused" };
                return Err(TestCaseError::fail(format!(
                    "waiter {task} was {what} at {} ns; its turn in the queue: {:?}",
                    at.as_nanos(),
                    self.model.turns(),
                )));
            };
            self.judge(task, outcome, end)?;
            prop_assert_eq!(
                at.as_nanos(),
                self.polled_at(end.at()),
                "waiter {} was told then, of {:?}",
                task,
                end
            );
            self.told.insert(task);
        }
        for (task, end) in &self.model.ends {
            let is_told = self.told.contains(task) || self.forgotten.contains(task);
            prop_assert!(is_told, "waiter {} was not told: {:?}, and it is {} ns now", task, end, now);
        }
        if self.model.turns().is_empty() { self.peek() } else { Ok(()) }
    }

    /// What is left of every limit. Whoever waits has taken nothing of it.
    fn peek(&self) -> Result<(), TestCaseError> {
        for (index, meter) in self.model.meters.iter().enumerate() {
            let left = meter.remaining(self.now());
            prop_assert_eq!(self.library.remaining(index), left, "left at limit {}", index);
        }
        Ok(())
    }

    fn judge(&mut self, task: usize, outcome: Outcome<'a>, end: End) -> Result<(), TestCaseError> {
        let (costs, arrived) = self.costs[&task].clone();
        match (outcome, end) {
            (Ok(went), End::Released { waited, .. }) => {
                prop_assert_eq!(went.waited.as_nanos(), u128::from(waited), "waiter {} waited", task);
                self.passed.push(Passage { at: arrived + waited, costs, waiter: Some(task) });
                if let Some(permit) = went.permit {
                    self.held.insert(task, permit);
                }
            }
            (Err(refused), End::Late { by, .. }) => {
                let late = Duration::from_micros(by.div_ceil(1_000));
                prop_assert_eq!(refused.reason(), Reason::Late { retry_after: late }, "waiter {}", task);
            }
            (Err(refused), End::TimedOut { .. }) => {
                prop_assert!(
                    matches!(refused.reason(), Reason::TimedOut { .. }),
                    "waiter {}: {}",
                    task,
                    refused
                );
            }
            (Err(refused), End::QueueFull { .. }) => {
                prop_assert!(
                    matches!(refused.reason(), Reason::QueueFull { .. }),
                    "waiter {}: {}",
                    task,
                    refused
                );
            }
            (Err(refused), End::Never { .. }) => {
                prop_assert!(
                    matches!(refused.reason(), Reason::Never { .. }),
                    "waiter {}: {}",
                    task,
                    refused
                );
            }
            (Ok(_), end) => prop_assert!(false, "waiter {} was released, not {:?}", task, end),
            (Err(refused), end) => prop_assert!(false, "waiter {}: {}, not {:?}", task, refused, end),
        }
        Ok(())
    }

    /// When somebody is polled whose wait ends then.
    fn polled_at(&self, at: u64) -> u64 {
        let leap = self.leaps.iter().find(|(from, to)| *from < at && at <= *to);
        leap.map_or(at, |(_, to)| *to)
    }

    /// Whatever the model says: in the order of arrival, and no stretch of time has more than the limits give, unless
    /// something was done to them: what a reset gives back is not bounded.
    fn within_bound(&self) -> Result<(), TestCaseError> {
        let mut released: Vec<(usize, u64)> =
            self.passed.iter().filter_map(|it| it.waiter.map(|waiter| (waiter, it.at))).collect();
        released.sort_unstable();
        prop_assert!(released.is_sorted_by_key(|(_, at)| at), "not in the order of arrival: {:?}", released);
        for (limit, meter) in self.model.meters.iter().enumerate().filter(|_| !self.is_altered) {
            let mut uses: Vec<(u64, u32)> = self.passed.iter().map(|it| (it.at, it.costs[limit])).collect();
            uses.sort_unstable();
            for first in 0..uses.len() {
                let mut units = 0;
                for (at, cost) in &uses[first..] {
                    units += cost;
                    let (time, most) = (at - uses[first].0, most_within(meter, uses[first].0, *at));
                    prop_assert!(u128::from(units) <= most, "{} units within {} ns: {:?}", units, time, uses);
                }
            }
        }
        Ok(())
    }
}

/// The most that a limit lets pass from one time to another, both included.
fn most_within(meter: &Meter, from: u64, to: u64) -> u128 {
    match &meter.kind {
        // A release lies between two nanoseconds, and is dated at the second; so up to one more has passed.
        Kind::Bucket(it) => {
            let rounding = u128::from(it.earn > 1);
            u128::from(it.burst) + (u128::from(to - from) + rounding) * it.earn / it.price
        }
        Kind::Log(it) => u128::from(it.limit) * u128::from((to - from) / it.window + 1),
        Kind::Window(it) if it.first_hit => u128::from(it.limit) * u128::from((to - from) / it.length + 2),
        Kind::Window(it) => u128::from(it.limit) * u128::from(to / it.length - from / it.length + 1),
        Kind::Slots(_) => u128::MAX,
    }
}

fn pick<T: Copy>(from: &[T], which: Index) -> Option<T> {
    (!from.is_empty()).then(|| from[which.index(from.len())])
}
