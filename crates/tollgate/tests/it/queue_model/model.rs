//! One queue, served in order: the first waiter goes as soon as all its limits have room, and nobody goes before it.
//!
//! The model is run up to a time by [`Model::serve`], and everything that happens, happens to a queue that has been served up
//! to then. So an arrival, a drop or a change at the very instant of a release comes after it.

use super::meters::{Kind, Meter};

/// The limits, and who waits for all of them.
#[derive(Clone, Debug)]
pub(super) struct Model {
    pub(super) meters: Vec<Meter>,
    queue: Vec<Waiter>,
    /// How many may wait, where slots are among the limits.
    pub(super) most_waiting: usize,
    /// What became of whom, in the order it did.
    pub(super) ends: Vec<(usize, End)>,
    /// Up to when the queue has been served.
    now: u64,
}

#[derive(Clone, Debug)]
struct Waiter {
    id: usize,
    arrived: u64,
    costs: Vec<u32>,
    deadline: Option<u64>,
}

/// How a wait ended that was not dropped before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Released {
        at: u64,
        waited: u64,
    },
    /// Its turn would come later than the deadline by so much.
    Late {
        at: u64,
        by: u64,
    },
    /// Its deadline came first.
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

/// What a charge is told that does not wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Told {
    Allowed,
    /// It would pass after so long.
    Denied(u64),
    /// It would pass when a slot comes back.
    DeniedForNow,
    Never,
}

impl Model {
    pub(super) fn new(meters: Vec<Meter>, most_waiting: usize) -> Self {
        Self { meters, queue: Vec::new(), most_waiting, ends: Vec::new(), now: 0 }
    }

    /// Lets time pass: whoever may go by then goes, each at its own time.
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

    /// Somebody comes who wants so many units of each limit, and may wait for so long.
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

    /// Somebody gives up, or drops what it got. Before its release that leaves no trace.
    pub(super) fn leave(&mut self, id: usize, now: u64) {
        self.serve(now);
        self.queue.retain(|waiter| waiter.id != id);
        self.meters.iter_mut().for_each(|meter| meter.leave(id));
        self.serve(now);
    }

    /// A charge that does not wait. It does not overtake the queue.
    pub(super) fn check(&mut self, id: usize, now: u64, costs: &[u32]) -> Told {
        self.serve(now);
        if self.can_never_give(costs) {
            return Told::Never;
        }
        let charge = Waiter { id, arrived: now, costs: costs.to_vec(), deadline: None };
        match self.turn_behind_all(&charge) {
            turn if turn == now && self.queue.is_empty() => {
                self.release(&charge, now);
                self.ends.pop();
                Told::Allowed
            }
            _ if self.has_slots() => Told::DeniedForNow,
            turn => Told::Denied(turn - now),
        }
    }

    /// Something is done to the limits, which everybody in the queue feels at once: some may go now, and some can no longer be
    /// in time.
    pub(super) fn alter(&mut self, now: u64, alter: impl FnOnce(&mut [Meter])) {
        self.serve(now);
        alter(&mut self.meters);
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

    /// When each of those who wait will go, if nothing more happens.
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
        self.meters.iter().any(|meter| matches!(meter.kind, Kind::Slots(_)))
    }

    fn can_never_give(&self, costs: &[u32]) -> bool {
        self.meters.iter().zip(costs).any(|(meter, cost)| meter.never_gives(*cost))
    }

    /// When it goes as the first in the queue: room at one limit may be over when there is room at another, so it is looked
    /// for until all agree.
    fn turn_of(&self, waiter: &Waiter) -> u64 {
        let mut at = self.now.max(waiter.arrived);
        loop {
            let rooms = self.meters.iter().zip(&waiter.costs).map(|(meter, cost)| meter.room_at(at, *cost));
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
        for (meter, cost) in self.meters.iter_mut().zip(&waiter.costs) {
            meter.charge(from, at, *cost, waiter.id);
        }
        self.ends.push((waiter.id, End::Released { at, waited: at - waiter.arrived }));
    }
}
