//! Runs a history against the library and the model, and compares them after every operation.
//!
//! The executor polls a waiter once on arrival and then only when its waker was called. A lost wake-up therefore shows as a
//! waiter that the model has released and the library has not. The clock stops at every timer, or leaps past many of them.

use super::{
    history::{Ending, History, Numbers, Op, Polling},
    library::{Api, Library, Outcome},
    limit_models::{Kind, LimitModel},
    model::{CheckResult, End, Model},
};
use crate::tasks::Tasks;
use proptest::{prelude::*, sample::Index};
use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};
use tollgate::{Clock, Decision, ManualClock, Permit, Reason, Retry, Time};

/// How the clock advances.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ClockSteps {
    /// It stops at every timer.
    Fine,
    /// It leaps over any number of timers, as if all of them were late.
    Coarse,
    /// As `Coarse`, and the executor polls the newest waiter first.
    CoarseReversed,
}

struct Harness<'a> {
    clock: ManualClock,
    library: &'a Library,
    limits: Vec<Numbers>,
    model: Model,
    tasks: Tasks<'a, Outcome<'a>>,
    steps: ClockSteps,
    unit: u64,
    costs: BTreeMap<usize, (Vec<u32>, u64)>,
    /// Waiters whose result the library has returned, or that were dropped.
    told: BTreeSet<usize>,
    /// Waiters that are no longer polled.
    unpolled: BTreeSet<usize>,
    /// Whether turns have moved up. A waiter behind several futures that are never polled may then be polled late.
    has_moved_up: bool,
    held: BTreeMap<usize, Permit<'a>>,
    admitted: Vec<Admission>,
    /// Whether the limits were changed, reset or refunded: the plain bound does not hold across that.
    is_altered: bool,
    /// Intervals over which the clock leapt without a poll.
    leaps: Vec<(u64, u64)>,
}

/// An admission as the library reports it.
struct Admission {
    at: u64,
    costs: Vec<u32>,
    /// The waiter, numbered by arrival; `None` for a check.
    waiter: Option<usize>,
}

/// Runs a history, then ends it as it says.
pub(super) fn agree(
    api: Api,
    limits: &[Numbers],
    steps: ClockSteps,
    history: History,
) -> Result<(), TestCaseError> {
    let clock = ManualClock::new();
    let library = Library::new(api, limits, &clock);
    let most_waiting = limits.iter().map(|numbers| numbers.most_waiting()).min().unwrap_or(usize::MAX);
    let models: Vec<LimitModel> = limits.iter().map(|numbers| numbers.model()).collect();
    let mut harness = Harness {
        tasks: Tasks::on(&clock),
        clock,
        library: &library,
        limits: limits.to_vec(),
        model: Model::new(models, most_waiting),
        steps,
        unit: limits.iter().map(|numbers| numbers.unit()).max().unwrap_or(1),
        costs: BTreeMap::new(),
        told: BTreeSet::new(),
        unpolled: BTreeSet::new(),
        has_moved_up: false,
        held: BTreeMap::new(),
        admitted: Vec::new(),
        is_altered: false,
        leaps: Vec::new(),
    };
    harness.tasks.newest_first = steps == ClockSteps::CoarseReversed;
    for op in history.ops {
        harness.run(op)?;
        harness.compare()?;
    }
    harness.end(history.ending)?;
    prop_assert_eq!(harness.clock.next_sleeper(), None, "a timer is left behind");
    harness.within_bound()
}

impl<'a> Harness<'a> {
    fn now(&self) -> u64 {
        self.clock.now().as_nanos()
    }

    /// Converts thousandths of a unit's time to nanoseconds.
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
            Op::Wait { costs, up_to, polling } => self.wait(&costs, up_to, polling),
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
                self.alter(now, limit, |model| model.change(now, &to.model()));
                if self.limits.len() == 1 {
                    self.unit = to.unit();
                }
            }
            Op::Reset => self.alter_each(now, Library::reset, LimitModel::reset),
            Op::Refund(units) => {
                self.alter_each(now, |it, limit| it.refund(limit, units), |model| model.refund(now, units));
            }
            Op::Grant(units) => {
                self.alter_each(now, |it, limit| it.grant(limit, units), |model| model.grant(units));
            }
            Op::Ban(thousandths) => {
                let nanos = self.nanos(thousandths);
                let lasting = Duration::from_nanos(nanos);
                self.alter_each(now, |it, limit| it.ban(limit, lasting), |model| model.ban(now + nanos));
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
            ClockSteps::Fine => self.tasks.pass(Duration::from_nanos(to - self.now())),
            ClockSteps::Coarse | ClockSteps::CoarseReversed => {
                self.leap_to(to);
                self.tasks.run();
            }
        }
        self.model.serve(to);
    }

    /// Moves the clock without polling.
    fn leap_to(&mut self, to: u64) {
        self.leaps.push((self.now(), to));
        self.clock.set(Time::from_nanos(to));
    }

    fn wait(&mut self, costs: &[u32], up_to: Option<u64>, polling: Polling) {
        let now = self.now();
        let costs: Vec<u32> =
            costs.iter().zip(&self.model.limits).map(|(it, of)| (*it).min(of.capacity())).collect();
        let up_to = up_to.map(|thousandths| self.nanos(thousandths));
        let task = self.tasks.start(self.library.wait(&costs, up_to.map(Duration::from_nanos)));
        self.model.arrive(task, now, &costs, up_to);
        if polling == Polling::Never {
            self.tasks.stop_polling(task);
            self.unpolled.insert(task);
        }
        self.costs.insert(task, (costs, now));
    }

    fn drop_waiter(&mut self, task: usize) {
        self.has_moved_up = true;
        self.model.leave(task, self.now());
        self.tasks.abort(task);
        // The library reports nothing about it.
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
        // Waiters ahead of it may have timed out, so it may have been released already.
        if self.tasks.is_running(task) {
            self.drop_waiter(task);
        } else {
            self.tasks.run();
        }
    }

    fn check(&mut self, cost: u32) -> Result<(), TestCaseError> {
        let now = self.now();
        let costs: Vec<u32> = self.model.limits.iter().map(|model| cost.min(model.capacity())).collect();
        let said = self.library.check(&costs);
        let after = |nanos: u64| Retry::After(Duration::from_micros(nanos.div_ceil(1_000)));
        match self.model.check(usize::MAX, now, &costs) {
            CheckResult::Allowed => {
                prop_assert_eq!(said, Decision::Allow);
                self.admitted.push(Admission { at: now, costs, waiter: None });
            }
            CheckResult::Never => prop_assert_eq!(said, Decision::Deny(Retry::Never)),
            CheckResult::Denied(nanos) if self.limits.len() == 1 => {
                prop_assert_eq!(said, Decision::Deny(after(nanos)), "when it would pass behind the queue");
            }
            CheckResult::Denied(_) | CheckResult::DeniedUntilRelease => {
                prop_assert!(matches!(said, Decision::Deny(_)), "it overtook: {:?}", said);
            }
        }
        Ok(())
    }

    fn alter(&mut self, now: u64, limit: usize, alter: impl FnOnce(&mut LimitModel)) {
        self.has_moved_up = true;
        self.model.alter(now, limit, alter);
        self.is_altered = true;
        self.tasks.run();
    }

    /// Alters one limit after the other: a waiter may be released in between.
    fn alter_each(&mut self, now: u64, library: impl Fn(&Library, usize), model: impl Fn(&mut LimitModel)) {
        for limit in 0..self.limits.len() {
            library(self.library, limit);
            self.alter(now, limit, &model);
        }
    }

    /// Checks that the library has returned the model's results at the model's times, and that the limits are in the same state.
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
            let polled_at = match self.may_look_late() {
                true => at.as_nanos().max(end.at()),
                false => self.polled_at(end.at()),
            };
            prop_assert_eq!(at.as_nanos(), polled_at, "waiter {} was told then, of {:?}", task, end);
            self.told.insert(task);
        }
        for (task, end) in &self.model.ends {
            let is_told = self.told.contains(task) || self.unpolled.contains(task) || self.may_look_late();
            prop_assert!(is_told, "waiter {} was not told: {:?}, and it is {} ns now", task, end, now);
        }
        if self.model.turns().is_empty() { self.peek() } else { Ok(()) }
    }

    fn may_look_late(&self) -> bool {
        self.has_moved_up && self.unpolled.len() > 1
    }

    /// Compares what remains of every limit. Waiters have consumed nothing.
    fn peek(&self) -> Result<(), TestCaseError> {
        for (index, model) in self.model.limits.iter().enumerate() {
            let left = model.remaining(self.now());
            prop_assert_eq!(self.library.remaining(index), left, "left at limit {}", index);
        }
        Ok(())
    }

    fn judge(&mut self, task: usize, outcome: Outcome<'a>, end: End) -> Result<(), TestCaseError> {
        let (costs, arrived) = self.costs[&task].clone();
        match (outcome, end) {
            (Ok(went), End::Released { waited, .. }) => {
                prop_assert_eq!(went.waited.as_nanos(), u128::from(waited), "waiter {} waited", task);
                self.admitted.push(Admission { at: arrived + waited, costs, waiter: Some(task) });
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

    /// When the executor polls a waiter whose wait ends at `at`.
    fn polled_at(&self, at: u64) -> u64 {
        let leap = self.leaps.iter().find(|(from, to)| *from < at && at <= *to);
        leap.map_or(at, |(_, to)| *to)
    }

    /// Checks the order of arrival and the limits' bounds without the model. The bounds are skipped after a change or a
    /// reset, which may return any amount.
    fn within_bound(&self) -> Result<(), TestCaseError> {
        let mut released: Vec<(usize, u64)> =
            self.admitted.iter().filter_map(|it| it.waiter.map(|waiter| (waiter, it.at))).collect();
        released.sort_unstable();
        prop_assert!(released.is_sorted_by_key(|(_, at)| at), "not in the order of arrival: {:?}", released);
        for (limit, model) in self.model.limits.iter().enumerate().filter(|_| !self.is_altered) {
            let mut uses: Vec<(u64, u32)> = self.admitted.iter().map(|it| (it.at, it.costs[limit])).collect();
            uses.sort_unstable();
            for first in 0..uses.len() {
                let mut units = 0;
                for (at, cost) in &uses[first..] {
                    units += cost;
                    let (time, most) = (at - uses[first].0, most_within(model, uses[first].0, *at));
                    prop_assert!(u128::from(units) <= most, "{} units within {} ns: {:?}", units, time, uses);
                }
            }
        }
        Ok(())
    }
}

/// The most units that a limit admits from `from` to `to`, both included.
fn most_within(model: &LimitModel, from: u64, to: u64) -> u128 {
    match &model.kind {
        // The exact release lies between two nanoseconds and is dated at the later one, so one more nanosecond may count.
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
