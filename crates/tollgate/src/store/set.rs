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
    extras::Held,
    memory::{MemoryStore, StoreError},
    places::{Body, Full, Locked, Part, Place},
    table::Print,
};
use crate::{
    charge::Charge,
    clock::Clock,
    decision::{SetStatus, Status, Verdict},
    step::{Answer, Ask, Mode, Step, concurrency::PermitId, taken::Taken},
    sync::Backoff,
    time::{Time, nanos},
};
use std::sync::MutexGuard;

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
        if mode == Mode::Charge
            && let [charge] = charges
        {
            return self.charge_one(charge, now).map(SetStatus::one);
        }
        if mode == Mode::Charge
            && let Some(set) = self.try_set_shortly(charges, now)
        {
            return Ok(set);
        }
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
        if let Some(statuses) = self.decide_behind_queues(parts, now) {
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
            .map(|((part, place), body)| self.tell(part, place, body, given.as_deref(), now, mode))
            .collect();

        let refused = told.iter().any(|told| told.status.is_deny());
        let charges = mode.charges() && !refused;
        let enters = |place: &Place<'_>| matches!(*place.step, Step::Concurrency(_));
        // What a grant pays for holds no slot.
        let enters_any = places.iter().zip(&told).any(|(place, told)| enters(place) && told.ask.cost > 0);
        let permit = (charges && enters_any).then(|| self.next_permit());

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
                    told.taken.granted = told.granted;
                    told.taken.epoch = self.epoch(part.entry, &part.print);
                    told.taken.returned = self.returned.of(part.print.meta());
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
        mode: Mode,
    ) -> Told {
        let extra = given.and_then(|given| given.get(&part.holder()).cloned()).unwrap_or_default();
        let granted = u32::try_from(part.cost).unwrap_or(u32::MAX).min(extra.granted);
        let cost = u32::try_from(part.cost - u64::from(granted)).unwrap_or(u32::MAX);
        let ask = Ask { at: place.at, cost, up_to: part.up_to };

        if let Err(Full(left)) = place.slot {
            return Told::no(self.full(part.entry, left), ask, 0);
        }
        if part.cost - u64::from(granted) > u64::from(cost) {
            // Beyond 32 bits no limit gives that much.
            let idle = place.step.ask(body.state(), &Ask { cost: 0, ..ask }).status;
            let mut status = Status { verdict: Verdict::Never, ..idle };
            status.add_remaining(extra.granted);
            return Told::no(status, ask, extra.granted);
        }
        if extra.banned_for(now) > 0 && part.cost > 0 {
            let idle = place.step.ask(body.state(), &Ask { cost: 0, ..ask }).status;
            let mut status = place.step.ask(body.state(), &ask).status.banned(idle, extra.banned_for(now));
            status.add_remaining(extra.granted);
            return Told::no(status, ask, extra.granted);
        }
        let answer = place.step.ask_to(mode, body.state(), &ask);
        let mut status = answer.status;
        let left = if status.is_deny() { extra.granted } else { extra.granted - granted };
        status.add_remaining(left);
        let taken = Taken::default();
        Told { status, taken, answer: Some(answer), ask, granted, held: extra.granted }
    }
}

impl Told {
    fn no(status: Status, ask: Ask, held: u32) -> Self {
        Self { status, taken: Taken::default(), answer: None, ask, granted: 0, held }
    }
}
