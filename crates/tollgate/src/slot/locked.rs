//! A slot under its lock: every operation on a bucket that needs more than one word.

use super::Parameters;
use crate::{
    decision::{DecidedBy, Status, Verdict},
    step::{
        Answer, Ask, Mode, Moment, State, Step, Words,
        concurrency::PermitId,
        narrow::Narrow,
        taken::{LaterCharges, ReturnReason, Taken, Trace},
    },
    time::Time,
    wait::View,
};
use arc_swap::Guard;
use std::{
    cell::OnceCell,
    sync::{
        Arc, MutexGuard,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

/// A charge on one bucket.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChargeRequest {
    /// Charges of a set on one bucket are merged, so their sum may exceed 32 bits.
    pub(crate) cost: u64,
    /// How long it may wait, in nanoseconds; `None` for what the limit prescribes.
    pub(crate) up_to: Option<u64>,
    pub(crate) mode: Mode,
}

/// The decision on a charge, and what committing it needs.
#[derive(Debug)]
pub(crate) struct ChargeOutcome {
    pub(crate) status: Status,
    /// The words that follow, in the form in which the state is kept.
    next: Words,
    /// Units of the limit's own that it costs.
    cost: u32,
    /// Granted units that it spends.
    granted: u32,
}

/// What is kept beside a bucket's state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SlotExtras {
    /// Units above the limit, spent before the limit's own.
    pub(crate) granted: u32,
    pub(crate) banned_until: Option<Time>,
}

impl SlotExtras {
    /// Nanoseconds that the ban lasts; zero where there is none.
    pub(crate) fn banned_for(&self, now: Time) -> u64 {
        self.banned_until.map_or(0, |until| until.nanos_since(now))
    }
}

/// Two counters that decide what can be given back, see [`EPOCH`] and [`RETURNED`]. Read and changed under the slot's lock.
pub(crate) type SlotCounters = [AtomicU64; 2];

/// Counts what ends the life of a bucket's consumption: resets and evictions. What was charged before is not given back
/// afterwards. (A change of parameters ends that of all buckets, and is counted by them.)
pub(crate) const EPOCH: usize = 0;
/// Counts the units that were given back.
const RETURNED: usize = 1;

/// The state of a locked slot.
#[derive(Debug)]
pub(crate) enum SlotState<'a> {
    /// In one word.
    Word(u64),
    Words(Words),
    /// Of any size; the owner writes it back.
    Owned(State),
    /// Of any size, in place.
    Kept(MutexGuard<'a, State>),
}

impl SlotState<'_> {
    /// A state in the form in which it is kept.
    pub(crate) fn of(state: State, narrow: Option<&Narrow>, birth: Time) -> Self {
        match (state, narrow) {
            (State::Words(words), Some(narrow)) => Self::Word(narrow.narrow(words, birth)),
            (State::Words(words), None) => Self::Words(words),
            (state, _) => Self::Owned(state),
        }
    }
}

/// A slot whose lock is held. Its owner opens it, and writes state and extras back when it gives the lock back.
pub struct LockedSlot<'a> {
    parameters: &'a Parameters,
    /// How a state of one word is read.
    narrow: Option<&'a Narrow>,
    step: OnceCell<Guard<Arc<Step>>>,
    counters: &'a SlotCounters,
    pub(crate) now: Time,
    at: Moment,
    pub(crate) state: SlotState<'a>,
    pub(crate) extras: SlotExtras,
    /// Where the bucket needs a slot and there is none for it: in how many nanoseconds one will be free.
    pub(crate) full: Option<u64>,
}

impl<'a> LockedSlot<'a> {
    /// A slot with this state. `step` is for an owner that has read it already; `unix` is the wall clock at `now`, which a state of
    /// one word does not need.
    #[inline(always)]
    pub(crate) fn new(
        (parameters, narrow): (&'a Parameters, Option<&'a Narrow>),
        step: Option<Guard<Arc<Step>>>,
        counters: &'a SlotCounters,
        (state, extras): (SlotState<'a>, SlotExtras),
        now: Time,
        unix: impl FnOnce() -> u64,
    ) -> Self {
        let unix = if matches!(state, SlotState::Word(_)) { 0 } else { unix() };
        let at = Moment::new(now.nanos_since(parameters.birth()), unix);
        let step = step.map_or_else(OnceCell::new, OnceCell::from);
        Self { parameters, narrow, step, counters, now, at, state, extras, full: None }
    }

    /// Decides a charge, and makes it unless it is denied or only asked for. `taken` is for what it consumed.
    #[inline(always)]
    pub(crate) fn charge(
        &mut self,
        request: &ChargeRequest,
        next_permit: impl FnOnce() -> PermitId,
        taken: Option<&mut Taken>,
    ) -> Status {
        let mut outcome = self.ask(request);
        if request.mode.charges() && !outcome.status.is_deny() {
            if let Some(taken) = taken {
                *taken = self.taken(&outcome);
            }
            let permit = self.needs_permit(&outcome).then(next_permit);
            self.commit(&mut outcome, permit);
        }
        outcome.status
    }

    /// Decides a charge. Nothing is changed.
    #[inline(always)]
    pub(crate) fn ask(&self, request: &ChargeRequest) -> ChargeOutcome {
        let cost = u32::try_from(request.cost).unwrap_or(u32::MAX);
        let is_plain = self.extras == SlotExtras::default() && self.full.is_none();
        if is_plain && u64::from(cost) == request.cost {
            let Answer { status, next } = self.answer(cost, request);
            return ChargeOutcome { status, next, cost, granted: 0 };
        }
        self.ask_with_extras(request)
    }

    #[cold]
    fn ask_with_extras(&self, request: &ChargeRequest) -> ChargeOutcome {
        let granted = u32::try_from(request.cost).unwrap_or(u32::MAX).min(self.extras.granted);
        let rest = request.cost - u64::from(granted);
        let cost = u32::try_from(rest).unwrap_or(u32::MAX);
        if let Some(left) = self.full {
            let idle = Status::plain(Verdict::Allow, self.step().limit(), 0, left);
            let status = idle.refused(left, DecidedBy::FullTable);
            return ChargeOutcome { status, next: [0, 0], cost: 0, granted: 0 };
        }
        let banned_for = self.banned_for();
        let Answer { mut status, next } = self.answer(cost, request);
        if rest > u64::from(cost) {
            // No limit gives more than 32 bits.
            status = Status { verdict: Verdict::Never, ..self.untouched() };
        } else if banned_for > 0 && request.cost > 0 {
            status = status.banned(self.untouched(), banned_for);
        }
        let spent = if status.is_deny() { 0 } else { granted };
        status.add_remaining(self.extras.granted - spent);
        ChargeOutcome { status, next, cost, granted }
    }

    /// Makes a charge that was not denied.
    #[inline(always)]
    pub(crate) fn commit(&mut self, outcome: &mut ChargeOutcome, permit: Option<PermitId>) {
        let ChargeOutcome { next, cost, .. } = *outcome;
        self.extras.granted -= outcome.granted;
        if cost == 0 {
            return;
        }
        let ask = Ask { at: self.at, cost, up_to: None };
        match &mut self.state {
            SlotState::Word(word) => *word = next[0],
            SlotState::Words(words) => *words = next,
            SlotState::Owned(_) | SlotState::Kept(_) => {
                outcome.status.permit = permit.filter(|_| self.needs_permit(outcome));
                let permit = permit.unwrap_or(PermitId::FIRST);
                self.update(|step, state, _| step.commit(state, &ask, next, permit));
            }
        }
    }

    /// What a charge consumes once it is committed.
    pub(crate) fn taken(&self, outcome: &ChargeOutcome) -> Taken {
        let ChargeOutcome { next, cost, granted, .. } = *outcome;
        let ask = Ask { at: self.at, cost, up_to: None };
        let taken = match &self.state {
            SlotState::Word(_) if cost == 0 => Taken::default(),
            SlotState::Word(_) => {
                Taken { units: cost, trace: Trace::After(self.widen(next[0])), ..Taken::default() }
            }
            SlotState::Words(words) => self.step().taken(&State::Words(*words), &ask, next),
            SlotState::Owned(state) => self.step().taken(state, &ask, next),
            SlotState::Kept(state) => self.step().taken(state, &ask, next),
        };
        Taken { granted, ..self.parameters.date(taken, self.counters) }
    }

    /// How a charge of a denied set stands: as decided, with what is left untouched.
    pub(crate) fn show_untouched(&self, outcome: &mut ChargeOutcome) {
        if !outcome.status.is_deny() {
            outcome.status = Status { verdict: outcome.status.verdict, ..self.untouched() };
            outcome.status.add_remaining(self.extras.granted);
        }
    }

    /// Whether the charge takes slots of a concurrency limit. What a grant pays for takes none.
    #[inline(always)]
    pub(crate) fn needs_permit(&self, outcome: &ChargeOutcome) -> bool {
        matches!(self.state, SlotState::Owned(_) | SlotState::Kept(_))
            && outcome.cost > 0
            && matches!(**self.step(), Step::Concurrency(_))
    }

    fn untouched(&self) -> Status {
        self.answer(0, &ChargeRequest { cost: 0, up_to: None, mode: Mode::Peek }).status
    }

    /// What the step answers.
    #[inline(always)]
    fn answer(&self, cost: u32, request: &ChargeRequest) -> Answer {
        let ask = Ask { at: self.at, cost, up_to: request.up_to };
        if let (SlotState::Word(word), Some(narrow)) = (&self.state, self.narrow) {
            let answer = match request.mode {
                Mode::Charge | Mode::Peek => narrow.ask(*word, self.now, cost, ask.up_to).ok(),
                Mode::Release => narrow.ask_release(*word, self.now, cost, ask.up_to),
            };
            if let Some((status, next)) = answer {
                return Answer { status, next: [next, 0] };
            }
        }
        match (&self.state, request.mode) {
            (SlotState::Word(word), mode) => self.answer_widened(*word, &ask, mode),
            (SlotState::Words(words), Mode::Charge | Mode::Peek) => self.step().ask_words(*words, &ask),
            (SlotState::Words(words), mode) => self.step().ask_to(mode, &State::Words(*words), &ask),
            (SlotState::Owned(state), mode) => self.step().ask_to(mode, state, &ask),
            (SlotState::Kept(state), mode) => self.step().ask_to(mode, state, &ask),
        }
    }

    fn answer_widened(&self, word: u64, ask: &Ask, mode: Mode) -> Answer {
        let answer = self.step().ask_to(mode, &State::Words(self.widen(word)), ask);
        Answer { next: [self.narrow(answer.next), 0], ..answer }
    }

    /// A word in the form of two, and back.
    fn widen(&self, word: u64) -> Words {
        self.narrow.map_or([0, 0], |narrow| narrow.widen(word, self.parameters.birth()))
    }

    fn narrow(&self, words: Words) -> u64 {
        self.narrow.map_or(0, |narrow| narrow.narrow(words, self.parameters.birth()))
    }

    /// Changes the state.
    pub(crate) fn update<R>(&mut self, change: impl FnOnce(&Step, &mut State, Moment) -> R) -> R {
        let at = self.at;
        let mut widened = match &self.state {
            SlotState::Word(word) => State::Words(self.widen(*word)),
            SlotState::Words(words) => State::Words(*words),
            SlotState::Owned(_) | SlotState::Kept(_) => State::Words([0, 0]),
        };
        let step = self.step.get_or_init(|| self.parameters.step());
        let changed = match &mut self.state {
            SlotState::Owned(state) => return change(step, state, at),
            SlotState::Kept(state) => return change(step, state, at),
            SlotState::Word(_) | SlotState::Words(_) => change(step, &mut widened, at),
        };
        if let State::Words(words) = widened {
            self.state = match self.state {
                SlotState::Word(_) => SlotState::Word(self.narrow(words)),
                _ => SlotState::Words(words),
            };
        }
        changed
    }

    /// Takes up to `units` off the newest live consumption.
    pub(crate) fn refund(&mut self, units: u32) {
        self.update(|step, state, at| step.refund(state, at, units));
    }

    /// Forgets what was consumed. Grants and bans stay.
    pub(crate) fn reset(&mut self) {
        self.update(|step, state, _| *state = step.unseen());
        self.counters[EPOCH].fetch_add(1, Relaxed);
    }

    /// Gives units above the limit.
    pub(crate) const fn grant(&mut self, units: u32) {
        self.extras.granted = self.extras.granted.saturating_add(units);
    }

    /// Denies everything for this long from now.
    pub(crate) fn ban(&mut self, lasting: Duration) {
        self.extras.banned_until = Some(self.now + lasting);
    }

    /// Gives back the slots that a permit holds; how many.
    pub(crate) fn leave(&mut self, permit: PermitId) -> u32 {
        self.update(|_, state, at| match state {
            State::Holders(holders) => holders.leave(at, permit),
            _ => 0,
        })
    }

    /// Lets a permit hold its slots for another `max_hold`. Whether it still held them; `None` where the limit has no slots.
    pub(crate) fn renew(&mut self, permit: PermitId) -> Option<bool> {
        self.update(|step, state, at| match (step, state) {
            (Step::Concurrency(it), State::Holders(holders)) => Some(it.renew(holders, at, permit)),
            (Step::Concurrency(_), _) => Some(false),
            _ => None,
        })
    }

    /// Gives back what a charge consumed, as far as that is still there; how many units.
    pub(crate) fn give_back(&mut self, taken: &Taken, reason: ReturnReason) -> u32 {
        self.grant(taken.granted);
        let Taken { epoch, returned, .. } = self.parameters.date(*taken, self.counters);
        if epoch != taken.epoch {
            return taken.granted;
        }
        let later = LaterCharges { returned: taken.returned_since(returned), reason };
        let back = self.update(|step, state, at| step.give_back(state, at, taken, later));
        self.counters[RETURNED].fetch_add(back.counted, Relaxed);
        taken.granted + back.units
    }

    /// Charges units whether there is room or not.
    pub(crate) fn owe(&mut self, units: u32) {
        self.update(|step, state, at| step.owe(state, at, units));
    }

    /// In how many nanoseconds the first holder of slots loses them.
    pub(crate) fn first_expiry(&mut self) -> Option<u64> {
        self.update(|_, state, at| match state {
            State::Holders(holders) => holders.first_in(at),
            _ => None,
        })
    }

    /// A copy on which waiters are foreseen.
    pub(crate) fn view(&mut self) -> View {
        let state = self.update(|_, state, _| state.clone());
        let (step, granted) = (Arc::clone(self.step()), self.extras.granted);
        let mut view = View { step, state, now: self.now, at: self.at, granted };
        view.skip(self.banned_for());
        view
    }

    fn step(&self) -> &Arc<Step> {
        self.step.get_or_init(|| self.parameters.step())
    }

    /// Nanoseconds that a ban lasts; zero where there is none.
    fn banned_for(&self) -> u64 {
        self.extras.banned_for(self.now)
    }
}

impl Parameters {
    /// What a charge consumed, with the counters as they are now.
    pub(crate) fn date(&self, taken: Taken, counters: &SlotCounters) -> Taken {
        let epoch = self.changes().wrapping_add(counters[EPOCH].load(Relaxed));
        Taken { epoch, returned: counters[RETURNED].load(Relaxed), ..taken }
    }
}
