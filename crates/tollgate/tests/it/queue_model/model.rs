//! The queue: its head is released as soon as all its limits have room, and no waiter before the head.
//!
//! [`Model::serve`] runs the model up to a time. Every operation serves the queue up to its own time first, so an arrival, a
//! drop or a change at the instant of a release comes after the release.

use super::limit_models::{Kind, LimitModel};

/// Limits, and a queue of waiters for all of them.
#[derive(Clone, Debug)]
pub(super) struct Model {
    pub(super) limits: Vec<LimitModel>,
    queue: Vec<Waiter>,
    /// The longest queue allowed, which slots define.
    pub(super) most_waiting: usize,
    /// Ended waits in the order in which they ended.
    pub(super) ends: Vec<(usize, End)>,
    /// The time up to which the queue has been served.
    now: u64,
}

#[derive(Clone, Debug)]
struct Waiter {
    id: usize,
    arrived: u64,
    costs: Vec<u32>,
    deadline: Option<u64>,
}

/// How a wait ended, unless it was dropped before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Released {
        at: u64,
        waited: u64,
    },
    /// The release would come later than the deadline, by so much.
    Late {
        at: u64,
        by: u64,
    },
    /// The deadline came before the release.
    TimedOut {
        at: u64,
    },
    QueueFull {
        at: u64,
    },
    Never {
        at: u64,
    },
}

impl End {
    pub(super) fn at(self) -> u64 {
        match self {
            Self::Released { at, .. }
            | Self::Late { at, .. }
            | Self::TimedOut { at }
            | Self::QueueFull { at }
            | Self::Never { at } => at,
        }
    }
}

/// The answer to a charge that does not wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CheckResult {
    Allowed,
    /// Denied; it would pass after so long.
    Denied(u64),
    /// Denied until a slot is returned.
    DeniedUntilRelease,
    Never,
}

impl Model {
    pub(super) fn new(limits: Vec<LimitModel>, most_waiting: usize) -> Self {
        Self { limits, queue: Vec::new(), most_waiting, ends: Vec::new(), now: 0 }
    }

    /// Releases every waiter whose release is due by `now`, each at its own time.
    pub(super) fn serve(&mut self, now: u64) {
        loop {
            let release = self.queue.first().map(|first| self.turn_of(first));
            let deadline = self.queue.iter().filter_map(|waiter| waiter.deadline).min();
            let at = release.into_iter().chain(deadline).min().filter(|at| *at <= now);
            let Some(at) = at else { break };
            if release == Some(at) {
                let first = self.queue.remove(0);
                self.release(&first, at);
            } else {
                let late = self.queue.iter().position(|waiter| waiter.deadline == Some(at));
                let late = self.queue.remove(late.expect("it is somebody's"));
                self.ends.push((late.id, End::TimedOut { at }));
            }
            self.now = at;
        }
        self.now = self.now.max(now);
    }

    /// Adds a waiter with a cost for each limit, and judges its deadline.
    pub(super) fn arrive(&mut self, id: usize, now: u64, costs: &[u32], up_to: Option<u64>) {
        self.serve(now);
        if self.can_never_give(costs) {
            self.ends.push((id, End::Never { at: now }));
            return;
        }
        let waiter = Waiter {
            id,
            arrived: now,
            costs: costs.to_vec(),
            deadline: up_to.map(|up_to| now.saturating_add(up_to)),
        };
        let goes_now = self.queue.is_empty() && self.turn_of(&waiter) == now;
        if !goes_now && self.queue.len() >= self.most_waiting {
            self.ends.push((id, End::QueueFull { at: now }));
            return;
        }
        if let Some(deadline) = waiter.deadline.filter(|_| !self.has_slots())
            && let turn = self.turn_behind_all(&waiter)
            && turn > deadline
        {
            self.ends.push((id, End::Late { at: now, by: turn - deadline }));
            return;
        }
        self.queue.push(waiter);
        self.serve(now);
    }

    /// Drops a waiter or, after its release, its permit.
    pub(super) fn leave(&mut self, id: usize, now: u64) {
        self.serve(now);
        self.queue.retain(|waiter| waiter.id != id);
        self.limits.iter_mut().for_each(|limit| limit.leave(id));
        self.serve(now);
    }

    /// Makes a charge that does not wait and does not overtake the queue.
    pub(super) fn check(&mut self, id: usize, now: u64, costs: &[u32]) -> CheckResult {
        self.serve(now);
        if self.can_never_give(costs) {
            return CheckResult::Never;
        }
        let charge = Waiter { id, arrived: now, costs: costs.to_vec(), deadline: None };
        match self.turn_behind_all(&charge) {
            turn if turn == now && self.queue.is_empty() => {
                self.release(&charge, now);
                self.ends.pop();
                CheckResult::Allowed
            }
            _ if self.has_slots() => CheckResult::DeniedUntilRelease,
            turn => CheckResult::Denied(turn - now),
        }
    }

    /// Alters a limit. The change applies to the whole queue at once: some waiters are released now, and those whose deadline
    /// became unreachable are refused now.
    pub(super) fn alter(&mut self, now: u64, limit: usize, alter: impl FnOnce(&mut LimitModel)) {
        self.serve(now);
        alter(&mut self.limits[limit]);
        self.serve(now);
        let mut trial = self.clone();
        let judged = !self.has_slots();
        for waiter in std::mem::take(&mut self.queue) {
            if self.can_never_give(&waiter.costs) {
                self.ends.push((waiter.id, End::Never { at: now }));
                continue;
            }
            let turn = trial.turn_of(&waiter);
            match waiter.deadline.filter(|deadline| judged && turn > *deadline) {
                Some(deadline) => self.ends.push((waiter.id, End::Late { at: now, by: turn - deadline })),
                None => {
                    trial.release(&waiter, turn);
                    trial.now = turn;
                    self.queue.push(waiter);
                }
            }
        }
        self.serve(now);
    }

    pub(super) fn is_waiting(&self, id: usize) -> bool {
        self.queue.iter().any(|waiter| waiter.id == id)
    }

    pub(super) fn end_of(&self, id: usize) -> Option<End> {
        self.ends.iter().find(|(who, _)| *who == id).map(|(_, end)| *end)
    }

    /// The release times of the queue if nothing else happens.
    pub(super) fn turns(&self) -> Vec<u64> {
        let mut trial = self.clone();
        let mut turns = Vec::new();
        for waiter in &self.queue {
            let turn = trial.turn_of(waiter);
            trial.release(waiter, turn);
            trial.now = turn;
            turns.push(turn);
        }
        turns
    }

    fn has_slots(&self) -> bool {
        self.limits.iter().any(|limit| matches!(limit.kind, Kind::Slots(_)))
    }

    fn can_never_give(&self, costs: &[u32]) -> bool {
        self.limits.iter().zip(costs).any(|(limit, cost)| limit.never_gives(*cost))
    }

    /// The release time of the head of the queue: the earliest time at which all limits have room.
    fn turn_of(&self, waiter: &Waiter) -> u64 {
        let mut at = self.now.max(waiter.arrived);
        loop {
            let rooms = self.limits.iter().zip(&waiter.costs).map(|(limit, cost)| limit.room_at(at, *cost));
            let later = rooms.max().unwrap_or(at);
            if later == at {
                return at;
            }
            at = later;
        }
    }

    fn turn_behind_all(&self, waiter: &Waiter) -> u64 {
        let mut trial = self.clone();
        let queue = std::mem::take(&mut trial.queue);
        for ahead in &queue {
            let turn = trial.turn_of(ahead);
            trial.release(ahead, turn);
            trial.now = turn;
        }
        trial.turn_of(waiter)
    }

    fn release(&mut self, waiter: &Waiter, at: u64) {
        let from = self.now.max(waiter.arrived);
        for (limit, cost) in self.limits.iter_mut().zip(&waiter.costs) {
            limit.charge(from, at, *cost, waiter.id);
        }
        self.ends.push((waiter.id, End::Released { at, waited: at - waiter.arrived }));
    }
}
