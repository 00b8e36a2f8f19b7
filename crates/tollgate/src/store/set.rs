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
    memory::{MemoryStore, StoreError},
    slots::{BucketCharge, FoundSlot, OpenSlot},
};
use crate::{
    charge::Charge,
    clock::Clock,
    decision::{SetStatus, Status},
    few::Few,
    slot::ChargeOutcome,
    step::{Mode, Step, concurrency::PermitId, taken::Taken},
    sync::Backoff,
    time::{Time, nanos},
};

/// How every charge stands, and the permit that holds the slots they entered.
pub(super) struct Decided {
    pub(super) statuses: Few<Status>,
    /// What every charge consumed, once it is made.
    pub(super) taken: Few<Taken>,
    pub(super) permit: Option<PermitId>,
}

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
            && let Some(set) = self.try_word_set(charges, now)
        {
            return Ok(set);
        }
        let (parts, part_of) = self.merge(charges, Step::patience)?;
        // Charges that do not wait do not overtake those who do.
        let (statuses, permit) = match self.decide_behind_queues(&parts, now) {
            Some(statuses) => (Few::Many(statuses), None),
            None => {
                let Decided { statuses, permit, .. } = self.charge_set(&parts, now, mode);
                (statuses, permit)
            }
        };
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
    ) -> Result<(Vec<BucketCharge<'a>>, Vec<usize>), StoreError> {
        let mut parts: Vec<BucketCharge<'_>> = Vec::with_capacity(charges.len());
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
                    let said =
                        |up_to: Option<u64>| up_to.unwrap_or_else(|| patience(&entry.parameters.step()));
                    if part.up_to.is_some() || up_to.is_some() {
                        part.up_to = Some(said(part.up_to).min(said(up_to)));
                    }
                }
                None => parts.push(BucketCharge { entry, print, cost: charge.cost.into(), up_to }),
            }
        }
        Ok((parts, part_of))
    }

    /// Charges several buckets under the locks of their slots: all of them, or none.
    pub(super) fn charge_set(&self, charges: &[BucketCharge<'_>], now: Time, mode: Mode) -> Decided {
        if let [charge] = charges {
            let (status, taken) = self.charge_locked(charge, now, mode);
            return Decided { permit: status.permit, statuses: Few::One(status), taken: Few::One(taken) };
        }
        let mut backoff = Backoff::default();
        let mut enters = false;
        loop {
            let found = self.find_set(charges, now, enters);
            let mut held = self.lock_extras(charges, now);
            let Some(mut slots) = self.open_set(&found, &held, now) else {
                backoff.wait();
                continue;
            };
            let asked = charges.iter().zip(&slots);
            let mut outcomes: Vec<ChargeOutcome> =
                asked.map(|(charge, slot)| slot.locked.ask(&charge.request(mode))).collect();
            let is_denied = outcomes.iter().any(|outcome| outcome.status.is_deny());
            let lacks =
                |((charge, slot), outcome): ((&BucketCharge<'_>, &OpenSlot<'_, '_>), &ChargeOutcome)| {
                    !slot.has_slot() && charge.needs_slot(mode, &outcome.status)
                };
            // A denied set takes nobody's place: keys enter when every charge would pass.
            let waits = !enters && !is_denied && charges.iter().zip(&slots).zip(&outcomes).any(lacks);
            let (mut permit, mut taken) = (None, Vec::new());
            if is_denied {
                slots
                    .iter()
                    .zip(&mut outcomes)
                    .for_each(|(slot, outcome)| slot.locked.show_untouched(outcome));
            } else if mode.charges() && !waits {
                let takes =
                    |(slot, outcome): (&OpenSlot<'_, '_>, &ChargeOutcome)| slot.locked.needs_permit(outcome);
                permit = slots.iter().zip(&outcomes).any(takes).then(|| self.next_permit());
                taken =
                    slots.iter().zip(&outcomes).map(|(slot, outcome)| slot.locked.taken(outcome)).collect();
                let charged = slots.iter_mut().zip(&mut outcomes);
                charged.for_each(|(slot, outcome)| slot.locked.commit(outcome, permit));
            }
            slots.iter_mut().for_each(|slot| self.close(slot, &mut held, now));
            if !waits {
                let statuses: Vec<Status> = outcomes.into_iter().map(|outcome| outcome.status).collect();
                statuses.iter().for_each(|status| self.count_refusal(status));
                return Decided { statuses: Few::Many(statuses), taken: Few::Many(taken), permit };
            }
            enters = true;
        }
    }

    /// The slots of a set. Where it enters, every key that is charged gets one, as far as there is room.
    fn find_set<'a>(&'a self, charges: &[BucketCharge<'a>], now: Time, enters: bool) -> Vec<FoundSlot<'a>> {
        let mut spared = Vec::with_capacity(charges.len());
        let find = |charge: &BucketCharge<'a>| {
            let mut found = self.find_slot(charge, now);
            let enters = enters && charge.cost > 0 && !charge.entry.is_retired();
            while enters && found.slot.is_none() && !self.enter_slot(&mut found, now, &spared) {
                found = self.find_slot(charge, now);
            }
            spared.extend(found.slot.map(|slot| slot.address()));
            found
        };
        charges.iter().map(find).collect()
    }
}
