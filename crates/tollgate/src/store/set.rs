//! Sets: several charges decided as one. All are charged, or none is.
//!
//! 1. Charges on one bucket are merged, costs added.
//! 2. Every key gets its slot, while no lock is held.
//! 3. The slots are locked in address order, and looked at again: still the key's, still these numbers? If not, begin
//!    again.
//! 4. Every step is asked; the most restrictive answer wins.
//! 5. If it is not a refusal every step commits; then all locks are given back.
//!
//! Single charges honour the same locks, so no other thread sees a set half made.

use super::{
    entry::Entry,
    extras::{Held, Holder},
    memory::{MemoryStore, StoreError},
    numbers::Edition,
    short::Mode,
    table::{NoEntry, Print, Slot},
};
use crate::{
    charge::Charge,
    clock::Clock,
    decision::{SetStatus, Status, Verdict},
    step::{Answer, Ask, Moment, State, Step, concurrency::PermitId, narrow::Narrow, taken::Taken},
    sync::Backoff,
    time::{Time, nanos},
};
use std::sync::{Arc, MutexGuard};

/// Charges on one bucket.
pub(super) struct Part<'a> {
    pub(super) entry: &'a Entry,
    pub(super) print: Print,
    pub(super) cost: u64,
    pub(super) up_to: Option<u64>,
}

/// A part's numbers as they were read, and its slot.
pub(super) struct Place<'a> {
    edition: Edition,
    narrow: Option<Narrow>,
    pub(super) step: Arc<Step>,
    pub(super) at: Moment,
    birth: Time,
    pub(super) slot: Result<Option<Slot<'a>>, Full>,
}

/// No slot could be had; one will be free in so many nanoseconds.
#[derive(Clone, Copy)]
pub(super) struct Full(u64);

/// A locked slot's state.
pub(super) enum Body<'a> {
    Owned(State),
    Kept(MutexGuard<'a, State>),
}

/// What a part is told, and what it takes.
pub(super) struct Told {
    pub(super) status: Status,
    /// What the charge took, if it was made.
    pub(super) taken: Taken,
    answer: Option<Answer>,
    ask: Ask,
    /// Granted units that the charge spends.
    granted: u32,
    /// Granted units that the key has.
    held: u32,
}

/// How every part stands, and the permit that holds the slots they entered.
pub(super) struct Decided {
    pub(super) told: Vec<Told>,
    pub(super) permit: Option<PermitId>,
}

type Given<'a> = Option<MutexGuard<'a, Held>>;

impl<C: Clock> MemoryStore<C> {
    /// Decides a set of charges now: all are charged, or none is.
    ///
    /// # Errors
    /// Where the store does not know one of the limits.
    pub fn check(&self, charges: &[Charge<'_>]) -> Result<SetStatus, StoreError> {
        let now = self.clock.now();
        if C::MONOTONIC { self.decide_set(charges, now, Mode::Charge) } else { self.check_at(charges, now) }
    }

    /// Decides a set of charges at the caller's own time, which is a point on this store's clock. A time before one
    /// already charged at counts as that one.
    ///
    /// # Errors
    /// Where the store does not know one of the limits.
    pub fn check_at(&self, charges: &[Charge<'_>], now: Time) -> Result<SetStatus, StoreError> {
        let set = self.decide_set(charges, now, Mode::Charge)?;
        if !set.is_deny() {
            charges.iter().filter(|charge| charge.cost > 0).for_each(|charge| charge.limit.0.remember(now));
        }
        Ok(set)
    }

    /// What [`check`](Self::check) would answer, charging nothing.
    ///
    /// # Errors
    /// Where the store does not know one of the limits.
    pub fn peek(&self, charges: &[Charge<'_>]) -> Result<SetStatus, StoreError> {
        self.decide_set(charges, self.clock.now(), Mode::Peek)
    }

    fn decide_set(&self, charges: &[Charge<'_>], now: Time, mode: Mode) -> Result<SetStatus, StoreError> {
        let (parts, part_of) = self.merge(charges, Step::patience)?;
        let (statuses, permit) = self.decide_in_order(&parts, now, mode);
        let mut set = SetStatus::of(part_of.into_iter().map(|part| statuses[part]).collect());
        set.permit = permit;
        Ok(set)
    }

    /// Charges on one bucket are one part; and which part each charge is of. `patience` is how long a charge may wait that
    /// does not say.
    pub(super) fn merge<'a>(
        &self,
        charges: &'a [Charge<'_>],
        patience: fn(&Step) -> u64,
    ) -> Result<(Vec<Part<'a>>, Vec<usize>), StoreError> {
        let mut parts: Vec<Part<'_>> = Vec::with_capacity(charges.len());
        let mut part_of = Vec::with_capacity(charges.len());
        for charge in charges {
            let entry = self.known(charge.limit)?;
            let print = self.print(entry, charge.key);
            let up_to = charge.up_to.map(nanos);
            let same = parts.iter().position(|part| part.print == print);
            part_of.push(same.unwrap_or(parts.len()));
            match same {
                Some(index) => {
                    let part = &mut parts[index];
                    part.cost += u64::from(charge.cost);
                    // The least patient of them has to be content.
                    let said = |up_to: Option<u64>| up_to.unwrap_or_else(|| patience(&entry.numbers.step()));
                    if part.up_to.is_some() || up_to.is_some() {
                        part.up_to = Some(said(part.up_to).min(said(up_to)));
                    }
                }
                None => parts.push(Part { entry, print, cost: charge.cost.into(), up_to }),
            }
        }
        Ok((parts, part_of))
    }

    /// One charge, whatever its state looks like.
    #[cold]
    pub(super) fn decide_alone(
        &self,
        entry: &Entry,
        print: &Print,
        cost: u32,
        up_to: Option<u64>,
        now: Time,
        mode: Mode,
    ) -> Status {
        let part = Part { entry, print: *print, cost: cost.into(), up_to };
        self.decide_in_order(std::slice::from_ref(&part), now, mode).0[0]
    }

    /// Decides parts that do not wait: they do not overtake those who do.
    fn decide_in_order(&self, parts: &[Part<'_>], now: Time, mode: Mode) -> (Vec<Status>, Option<PermitId>) {
        if let Some(statuses) = self.decide_behind_lines(parts, now) {
            return (statuses, None);
        }
        let Decided { told, permit } = self.decide_parts(parts, now, mode);
        (told.into_iter().map(|told| told.status).collect(), permit)
    }

    pub(super) fn decide_parts(&self, parts: &[Part<'_>], now: Time, mode: Mode) -> Decided {
        let mut backoff = Backoff::default();
        let mut enters = false;
        loop {
            let places = self.find_places(parts, now, if enters { mode } else { Mode::Peek });
            let given = parts.iter().any(|part| part.entry.extras.any()).then(|| self.extras.lock(now));
            let Some(locked) = Locked::lock(parts, &places) else {
                backoff.wait();
                continue;
            };
            // A set that would be refused takes nobody's place: the keys that are not there enter when all would pass.
            let lacks = places.iter().zip(parts).any(|(place, part)| part.cost > 0 && place.is_unplaced());
            if mode == Mode::Peek || enters || !lacks {
                return self.settle(parts, &places, locked, given, now, mode);
            }
            let foretold = self.settle(parts, &places, locked, given, now, Mode::Peek);
            if foretold.told.iter().any(|told| told.status.is_deny()) {
                return foretold;
            }
            enters = true;
        }
    }

    pub(super) fn find_places<'a>(&self, parts: &[Part<'a>], now: Time, mode: Mode) -> Vec<Place<'a>> {
        let mut spared = Vec::with_capacity(parts.len());
        parts
            .iter()
            .map(|part| {
                loop {
                    let (edition, narrow) = part.entry.numbers.read();
                    part.entry.forget_heirs(now);
                    let at = self.moment(part.entry, now);
                    if narrow
                        .is_some_and(|narrow| narrow.ask(0, part.entry.never_back(now), 0, None).is_err())
                    {
                        self.rebase(part.entry, now);
                        continue;
                    }
                    let enters = mode == Mode::Charge && part.cost > 0;
                    let slot = match self.find_slot(part, narrow.is_some(), enters, edition, now, &spared) {
                        Ok(slot) => Ok(slot),
                        Err(NoEntry::Full(left)) => Err(Full(left)),
                        Err(NoEntry::Changed) => continue,
                    };
                    spared.extend(slot.iter().flatten().map(Slot::address));
                    let step = Arc::clone(&part.entry.numbers.step());
                    break Place { edition, narrow, step, at, birth: part.entry.birth, slot };
                }
            })
            .collect()
    }

    fn find_slot<'a>(
        &self,
        part: &Part<'a>,
        narrow: bool,
        enters: bool,
        edition: Edition,
        now: Time,
        spared: &[usize],
    ) -> Result<Option<Slot<'a>>, NoEntry> {
        let (entry, print) = (part.entry, &part.print);
        let enters = enters && !entry.is_retired();
        let found =
            if narrow { entry.tables.narrow().locate(print) } else { entry.tables.wide().locate(print) };
        match found {
            Some(slot) => Ok(Some(slot)),
            None if !enters => Ok(None),
            None if narrow => {
                self.enter_key(entry, entry.tables.narrow(), print, edition, now, spared).map(Some)
            }
            None => self.enter_key(entry, entry.tables.wide(), print, edition, now, spared).map(Some),
        }
    }

    /// Asks every step and commits all or none.
    fn settle(
        &self,
        parts: &[Part<'_>],
        places: &[Place<'_>],
        locked: Locked<'_>,
        mut given: Given<'_>,
        now: Time,
        mode: Mode,
    ) -> Decided {
        let mut bodies: Vec<Body<'_>> = parts
            .iter()
            .zip(places)
            .zip(&locked.values)
            .map(|((part, place), value)| self.body(part, place, *value, mode))
            .collect();
        let mut told: Vec<Told> = parts
            .iter()
            .zip(places)
            .zip(&bodies)
            .map(|((part, place), body)| self.tell(part, place, body, given.as_deref(), now))
            .collect();

        let refused = told.iter().any(|told| told.status.is_deny());
        let charges = mode == Mode::Charge && !refused;
        let enters = |place: &Place<'_>| matches!(*place.step, Step::Concurrency(_));
        let permit = (charges
            && places.iter().zip(parts).any(|(place, part)| enters(place) && part.cost > 0))
        .then(|| self.next_permit());

        for (((part, place), body), told) in parts.iter().zip(places).zip(&mut bodies).zip(&mut told) {
            match &told.answer {
                Some(answer) if charges => {
                    if told.ask.cost > 0 {
                        told.status.permit = permit.filter(|_| enters(place));
                        told.taken = place.step.taken(body.state(), &told.ask, answer);
                        place.step.commit(
                            body.state_mut(),
                            &told.ask,
                            answer,
                            permit.unwrap_or(PermitId::FIRST),
                        );
                    }
                    (told.taken.granted, told.taken.epoch) = (told.granted, part.entry.epoch());
                    if told.granted > 0
                        && let Some(given) = &mut given
                    {
                        given.change(part.holder(), &part.entry.extras, now, |extra| {
                            extra.granted -= told.granted;
                        });
                    }
                }
                Some(_) if refused && !told.status.is_deny() => {
                    // The set was refused, so this charge was not made and shows what is left untouched.
                    let idle = place.step.ask(body.state(), &Ask { cost: 0, ..told.ask }).status;
                    told.status = Status { verdict: told.status.verdict, ..idle };
                    told.status.add_remaining(told.held);
                }
                _ => {}
            }
        }
        for (place, (body, value)) in places.iter().zip(bodies.into_iter().zip(locked.values)) {
            if let (Ok(Some(slot)), Some(value)) = (place.slot, value) {
                self.put_back(&slot, place, body, value);
            }
        }
        Decided { told, permit }
    }

    fn tell(
        &self,
        part: &Part<'_>,
        place: &Place<'_>,
        body: &Body<'_>,
        given: Option<&Held>,
        now: Time,
    ) -> Told {
        let extra = given.and_then(|given| given.get(&part.holder()).cloned()).unwrap_or_default();
        let granted = u32::try_from(part.cost).unwrap_or(u32::MAX).min(extra.granted);
        let cost = u32::try_from(part.cost - u64::from(granted)).unwrap_or(u32::MAX);
        let ask = Ask { at: place.at, cost, up_to: part.up_to };

        if let Err(Full(left)) = place.slot {
            return Told::no(self.full(part.entry, left), ask, 0);
        }
        if extra.banned_for(now) > 0 && part.cost > 0 {
            let idle = place.step.ask(body.state(), &Ask { cost: 0, ..ask }).status;
            let mut status = place.step.ask(body.state(), &ask).status.banned(idle, extra.banned_for(now));
            status.add_remaining(extra.granted);
            return Told::no(status, ask, extra.granted);
        }
        let answer = place.step.ask(body.state(), &ask);
        let mut status = answer.status;
        let left = if status.is_deny() { extra.granted } else { extra.granted - granted };
        status.add_remaining(left);
        // Beyond 32 bits no limit gives that much.
        if part.cost - u64::from(granted) > u64::from(cost) {
            status.verdict = Verdict::Never;
        }
        let taken = Taken::default();
        Told { status, taken, answer: Some(answer), ask, granted, held: extra.granted }
    }

    /// The state in a locked slot, or of a key that has none.
    pub(super) fn body(
        &self,
        part: &Part<'_>,
        place: &Place<'_>,
        value: Option<u64>,
        mode: Mode,
    ) -> Body<'_> {
        let (Ok(Some(slot)), Some(value)) = (&place.slot, value) else {
            let inherited = part.entry.inherited().get(&part.print.meta()).cloned();
            return Body::Owned(inherited.unwrap_or_else(|| place.step.unseen()));
        };
        let second = slot.second();
        if value == 0 && second == 0 {
            // The slot is new, or as good as: what a change of form left for the key is its state now.
            let inherited = match mode {
                Mode::Charge => part.entry.inherit(&part.print),
                Mode::Peek => part.entry.inherited().get(&part.print.meta()).cloned(),
            };
            if let Some(state) = inherited {
                return Body::Owned(state);
            }
        }
        match (&place.narrow, place.step.is_boxed()) {
            (Some(narrow), _) => Body::Owned(State::Words(narrow.widen(value, part.entry.birth))),
            (None, true) if second != 0 => Body::Kept(self.arena.state(second)),
            (None, true) => Body::Owned(place.step.unseen()),
            (None, false) => Body::Owned(State::Words([value >> 1, second])),
        }
    }

    /// Writes the state and gives the lock back.
    pub(super) fn put_back(&self, slot: &Slot<'_>, place: &Place<'_>, body: Body<'_>, value: u64) {
        let next = match (body, &place.narrow) {
            (Body::Kept(_), _) => value,
            (Body::Owned(State::Words(words)), Some(narrow)) => narrow.narrow(words, place.birth),
            (Body::Owned(State::Words(words)), None) => {
                slot.set_second(words[1]);
                words[0] << 1
            }
            (Body::Owned(state), _) => {
                if state != place.step.unseen() {
                    slot.set_second(self.arena.keep(state));
                }
                value
            }
        };
        slot.word().unlock(next);
    }
}

/// Every slot of a set, locked, with the value each had.
pub(super) struct Locked<'a> {
    pub(super) values: Vec<Option<u64>>,
    _slots: std::marker::PhantomData<&'a ()>,
}

impl<'a> Locked<'a> {
    /// Locks in address order. `None`, with nothing locked, where a slot has another key now or numbers changed.
    pub(super) fn lock(parts: &[Part<'_>], places: &'a [Place<'_>]) -> Option<Self> {
        let mut order: Vec<(usize, usize)> = places
            .iter()
            .enumerate()
            .filter_map(|(index, place)| Some((place.slot.ok()??.address(), index)))
            .collect();
        order.sort_unstable();
        let mut values = vec![None; places.len()];
        for (position, (address, index)) in order.iter().copied().enumerate() {
            // Two keys that fingerprints cannot tell apart have one slot; it is locked once.
            if position > 0 && order[position - 1].0 == address {
                continue;
            }
            let (part, place) = (&parts[index], &places[index]);
            let Ok(Some(slot)) = place.slot else { continue };
            values[index] = Some(slot.word().lock());
            if !slot.is_of(&part.print) || !part.entry.numbers.is_current(place.edition) {
                for (place, value) in places.iter().zip(values) {
                    if let (Ok(Some(slot)), Some(value)) = (place.slot, value) {
                        slot.word().unlock(value);
                    }
                }
                return None;
            }
        }
        Some(Self { values, _slots: std::marker::PhantomData })
    }
}

impl Told {
    fn no(status: Status, ask: Ask, held: u32) -> Self {
        Self { status, taken: Taken::default(), answer: None, ask, granted: 0, held }
    }
}

impl Place<'_> {
    fn is_unplaced(&self) -> bool {
        matches!(self.slot, Ok(None))
    }
}

impl Part<'_> {
    pub(super) fn holder(&self) -> Holder {
        (self.entry.tag, self.print.full())
    }
}

impl Body<'_> {
    fn state(&self) -> &State {
        match self {
            Self::Owned(state) => state,
            Self::Kept(state) => state,
        }
    }

    pub(super) fn state_mut(&mut self) -> &mut State {
        match self {
            Self::Owned(state) => state,
            Self::Kept(state) => state,
        }
    }
}
