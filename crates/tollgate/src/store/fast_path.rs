//! One charge on one key: on a word without a lock, or else under the slot's lock.

use super::{
    entry::Entry,
    landlord::Owner,
    memory::{MemoryStore, StoreError},
    slots::{BucketCharge, OpenSlot},
    table::{NoEntry, Print, Table},
};
use crate::{
    charge::Charge,
    clock::Clock,
    decision::{DecidedBy, Status},
    key::Key,
    slot::{LockedSlot, SingleWord, Version},
    step::{Ask, Mode, Words, taken::Taken},
    sync::Backoff,
    time::{Time, nanos},
};
use std::{sync::atomic::Ordering::Relaxed, time::Duration};

impl<C: Clock> MemoryStore<C> {
    /// Decides one charge.
    ///
    /// # Errors
    /// Where the store does not know the limit.
    pub fn check_one(&self, charge: &Charge<'_>) -> Result<Status, StoreError> {
        self.charge_one(charge, self.clock.now())
    }

    #[inline(always)]
    pub(super) fn charge_one(&self, charge: &Charge<'_>, now: Time) -> Result<Status, StoreError> {
        let entry = self.known(charge.limit)?;
        let print = self.print(entry, charge.key);
        let up_to = charge.up_to;
        // The lock-free tier lets nobody wait, and leaves charges that wait for the limit's own pace to the next tier.
        Ok(match up_to.is_none_or(|up_to| up_to.is_zero()) {
            true => self.decide_print(entry, &print, charge.cost, up_to, now),
            false => self.charge_print(entry, &print, charge.cost, up_to, now),
        })
    }

    /// One charge, by the shortest way there is.
    #[inline(always)]
    pub(crate) fn decide(&self, entry: &Entry, key: Key<'_>, cost: u32, now: Time) -> Status {
        self.decide_print(entry, &self.print(entry, key), cost, None, now)
    }

    /// One charge that does not say how long it waits, or says not at all.
    #[inline(always)]
    fn decide_print(
        &self,
        entry: &Entry,
        print: &Print,
        cost: u32,
        up_to: Option<Duration>,
        now: Time,
    ) -> Status {
        let now = entry.never_back(now);
        let Some(status) = self.try_single_word(entry, print, cost, now) else {
            return self.charge_print(entry, print, cost, up_to, now);
        };
        if !C::MONOTONIC && cost > 0 && !status.is_deny() {
            entry.remember(now);
        }
        status
    }

    /// A key that has a slot with its state in one word, while no other thread holds it and nothing else decides. `None` is
    /// not an answer: take the next tier.
    #[inline(always)]
    pub(super) fn try_single_word(
        &self,
        entry: &Entry,
        print: &Print,
        cost: u32,
        now: Time,
    ) -> Option<Status> {
        if entry.extras.any() {
            return None;
        }
        let parameters = &entry.parameters;
        let (version, narrow) = parameters.glance_settled()?;
        // After the parameters: a change of form leaves its heirs before it publishes.
        if entry.has_heirs() {
            return None;
        }
        let slot = entry.tables.narrow().locate(print)?;
        let value = slot.word().glance().filter(|word| *word > 0)?;
        let word = SingleWord { parameters, version, narrow, word: slot.word(), value };
        word.try_charge(cost, now, Mode::Charge, || slot.is_of(print)).ok()
    }

    /// What a charge on one key would be told, making none.
    pub(crate) fn peek_one(&self, entry: &Entry, key: Key<'_>, cost: u32) -> Status {
        let charge = BucketCharge { cost: cost.into(), ..BucketCharge::free(entry, self.print(entry, key)) };
        self.charge_single(&charge, self.clock.now(), Mode::Peek)
    }

    /// One charge that the lock-free tier does not decide. Its caller is inlined everywhere, so it does nothing for this.
    #[inline(never)]
    fn charge_print(
        &self,
        entry: &Entry,
        print: &Print,
        cost: u32,
        up_to: Option<Duration>,
        now: Time,
    ) -> Status {
        let charge = BucketCharge { entry, print: *print, cost: cost.into(), up_to: up_to.map(nanos) };
        self.charge_single(&charge, now, Mode::Charge)
    }

    fn charge_single(&self, charge: &BucketCharge<'_>, now: Time, mode: Mode) -> Status {
        let entry = charge.entry;
        let now = entry.never_back(now);
        // Extras count those who wait.
        if entry.extras.any()
            && let Some(statuses) = self.decide_behind_queues(std::slice::from_ref(charge), now)
        {
            return statuses[0];
        }
        let status =
            self.try_words(charge, now, mode).unwrap_or_else(|| self.charge_locked(charge, now, mode).0);
        if !C::MONOTONIC && mode == Mode::Charge && charge.cost > 0 && !status.is_deny() {
            entry.remember(now);
        }
        status
    }

    /// Charges one bucket under its slot's lock, whatever its state and its extras are; with what it consumes.
    #[inline(never)]
    pub(super) fn charge_locked(&self, charge: &BucketCharge<'_>, now: Time, mode: Mode) -> (Status, Taken) {
        let mut taken = Taken::default();
        let request = charge.request(mode);
        let needs_slot = |status: Option<&Status>, _: &OpenSlot<'_, '_>| {
            status.is_some_and(|status| charge.needs_slot(mode, status))
        };
        let act = |slot: &mut LockedSlot<'_>| slot.charge(&request, || self.next_permit(), Some(&mut taken));
        let status = self.with_slot(charge, now, needs_slot, act);
        self.count_refusal(&status);
        (status, taken)
    }

    /// Charges a state of one or two words under its slot's lock, where nothing else decides. `None` is not an answer: the bucket
    /// is to be opened. For fixed windows and for new keys this takes half the instructions of that.
    #[inline(always)]
    fn try_words(&self, charge: &BucketCharge<'_>, now: Time, mode: Mode) -> Option<Status> {
        let BucketCharge { entry, up_to, .. } = charge;
        let cost = u32::try_from(charge.cost).ok()?;
        let mut backoff = Backoff::default();
        loop {
            let (version, narrow) = entry.parameters.read();
            // After the parameters: a change of form leaves its heirs before it publishes.
            if entry.extras.any() || entry.has_heirs() {
                return None;
            }
            let tried = if let Some(narrow) = &narrow {
                if narrow.is_outgrown(now) {
                    self.rebase(entry, now);
                    continue;
                }
                self.charge_words(charge, entry.tables.narrow(), version, now, mode, |word, _| {
                    let (status, next) = narrow.ask_within(word, now, cost, *up_to);
                    (status, [next, 0])
                })
            } else {
                let step = entry.parameters.step();
                if step.is_boxed() {
                    return None;
                }
                let ask = Ask { at: self.moment(entry, now), cost, up_to: *up_to };
                self.charge_words(charge, entry.tables.wide(), version, now, mode, |word, second| {
                    let answer = step.ask_words([word >> 1, second], &ask);
                    (answer.status, [answer.next[0] << 1, answer.next[1]])
                })
            };
            match tried {
                Ok(status) => return Some(status),
                Err(NoEntry::Full(_)) => return None,
                Err(NoEntry::Changed) => backoff.wait(),
            }
        }
    }

    /// Charges the words that `answer` gives, in a table of such words.
    #[inline(always)]
    fn charge_words<const STRIDE: usize>(
        &self,
        charge: &BucketCharge<'_>,
        table: &Table<STRIDE>,
        version: Version,
        now: Time,
        mode: Mode,
        answer: impl Fn(u64, u64) -> (Status, Words),
    ) -> Result<Status, NoEntry> {
        let BucketCharge { entry, print, .. } = charge;
        let slot = match table.locate(print) {
            Some(slot) => slot,
            None => {
                let (status, _) = answer(0, 0);
                if !charge.needs_slot(mode, &status) {
                    return Ok(status);
                }
                let limits = self.limits.load();
                table.enter(
                    print,
                    &[],
                    &Owner { store: self, limits: &limits, entering: entry, version, now },
                )?
            }
        };
        let word = slot.word().lock();
        if !slot.is_of(print) || !entry.parameters.is_current(version) {
            slot.word().unlock(word);
            return Err(NoEntry::Changed);
        }
        let (status, next) = answer(word, slot.second());
        if mode.charges() && charge.cost > 0 && !status.is_deny() {
            slot.set_second(next[1]);
            slot.word().unlock(next[0]);
        } else {
            slot.word().unlock(word);
        }
        Ok(status)
    }

    /// One unit for each key, the first bucket of a few keys fetched at a time.
    pub(crate) fn decide_batch(
        &self,
        entry: &Entry,
        keys: &[Key<'_>],
        now: Time,
        statuses: &mut Vec<Status>,
    ) {
        const AT_A_TIME: usize = 16;
        statuses.reserve(keys.len());
        let narrow = entry.parameters.read().1.is_some();
        for keys in keys.chunks(AT_A_TIME) {
            let mut prints = [Print::new([0, 0], 0); AT_A_TIME];
            let prints = &mut prints[..keys.len()];
            for (print, key) in prints.iter_mut().zip(keys) {
                *print = self.print(entry, *key);
            }
            // Nothing but loads, so that all of them are under way at once.
            std::hint::black_box(match narrow {
                true => prints.iter().fold(0, |seen, print| seen ^ entry.tables.narrow().touch(print)),
                false => prints.iter().fold(0, |seen, print| seen ^ entry.tables.wide().touch(print)),
            });
            for print in prints.iter() {
                statuses.push(self.decide_print(entry, print, 1, None, now));
            }
        }
    }

    /// Counts a charge for whose key there was no room.
    pub(super) fn count_refusal(&self, status: &Status) {
        if status.decided_by() == DecidedBy::FullTable {
            self.refused_full.fetch_add(1, Relaxed);
        }
    }
}
