//! The short ways: one charge on one key, decided at its slot.
//!
//! Three ways, from the shortest. A state of one word that is there already: refused without a lock, charged under the
//! slot's own. A state of one or two words, with all that may come between: a key to enter, another thread, numbers that
//! change. Everything else is a [set](super::set) of one charge.

use super::{
    entry::Entry,
    landlord::Owner,
    memory::{MemoryStore, StoreError},
    numbers::Edition,
    places::Part,
    table::{NoEntry, Print, Slot, Table},
};
use crate::{
    charge::Charge,
    clock::Clock,
    decision::{DecidedBy, Status, Verdict},
    key::Key,
    step::{
        Ask, Mode,
        taken::{Taken, Trace},
    },
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
        // The quick way lets nobody wait, and leaves those to the long one whom the limit itself has wait.
        Ok(match up_to.is_none_or(|up_to| up_to.is_zero()) {
            true => self.decide_print(entry, &print, charge.cost, up_to, now),
            false => self.decide_slowly(entry, &print, charge.cost, up_to, now, Mode::Charge),
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
        let Some(status) = self.try_quickly(entry, print, cost, now) else {
            return self.decide_slowly(entry, print, cost, up_to, now, Mode::Charge);
        };
        if !C::MONOTONIC && cost > 0 && !status.is_deny() {
            entry.remember(now);
        }
        status
    }

    /// A key that is in the table with its state in one word, while nobody else is at it and nothing else decides. `None`
    /// is not an answer: take the next way.
    #[inline(always)]
    pub(super) fn try_quickly(&self, entry: &Entry, print: &Print, cost: u32, now: Time) -> Option<Status> {
        if entry.extras.any() {
            return None;
        }
        let (edition, narrow) = entry.numbers.glance_settled()?;
        // After the numbers: a change of form leaves its heirs before it publishes.
        if entry.has_heirs() {
            return None;
        }
        let slot = entry.tables.narrow().locate(print)?;
        let word = slot.word().glance().filter(|word| *word > 0)?;
        let (status, next) = narrow.ask_quickly(word, now, cost)?;
        if !status.is_allow() || cost == 0 {
            return (slot.is_of(print) && entry.numbers.is_current(edition)).then_some(status);
        }
        if !slot.word().try_lock(word) {
            return None;
        }
        if !slot.is_of(print) || !entry.numbers.is_current(edition) {
            slot.word().unlock(word);
            return None;
        }
        slot.word().unlock(next);
        Some(status)
    }

    /// One charge, whatever it takes.
    #[inline(never)]
    pub(crate) fn decide_slowly(
        &self,
        entry: &Entry,
        print: &Print,
        cost: u32,
        up_to: Option<Duration>,
        now: Time,
        mode: Mode,
    ) -> Status {
        let up_to = up_to.map(nanos);
        let now = entry.never_back(now);
        let status = self.decide_now(entry, print, cost, up_to, now, mode);
        if !C::MONOTONIC && mode == Mode::Charge && cost > 0 && !status.is_deny() {
            entry.remember(now);
        }
        status
    }

    fn decide_now(
        &self,
        entry: &Entry,
        print: &Print,
        cost: u32,
        up_to: Option<u64>,
        now: Time,
        mode: Mode,
    ) -> Status {
        if !entry.extras.any() {
            let mut backoff = Backoff::default();
            loop {
                match self.try_short(entry, print, cost, up_to, now, mode) {
                    Short::Decided(status) => return status,
                    Short::Again => backoff.wait(),
                    Short::Elsewhere => break,
                }
            }
        }
        self.decide_alone(entry, print, cost, up_to, now, mode)
    }

    /// Books a turn at a state of one word, where nothing else decides. `None` is not an answer: take the long way.
    pub(super) fn book_shortly(&self, part: &Part<'_>, now: Time) -> Option<(Status, Taken)> {
        let (entry, units) = (part.entry, u32::try_from(part.cost).ok()?);
        let mut backoff = Backoff::default();
        loop {
            let epoch = self.epoch(entry, &part.print);
            let returned = self.returned.of(part.print.meta());
            let (edition, narrow) = entry.numbers.read();
            let narrow = narrow.filter(|_| !entry.extras.any() && !entry.has_heirs())?;
            let slot = entry.tables.narrow().locate(&part.print)?;
            let word = slot.word().read();
            let (status, next) = narrow.ask(word, now, units, part.up_to).ok()?;
            let charges = !status.is_deny() && units > 0;
            if charges && !slot.word().try_lock(word) {
                backoff.wait();
                continue;
            }
            let current = slot.is_of(&part.print) && entry.numbers.is_current(edition);
            if charges {
                slot.word().unlock(if current { next } else { word });
            }
            if !current {
                return None;
            }
            if charges && !C::MONOTONIC {
                entry.remember(now);
            }
            let trace = Trace::After(narrow.widen(next, entry.birth));
            return Some((status, Taken { units, trace, epoch, returned, granted: 0 }));
        }
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
        let narrow = entry.numbers.read().1.is_some();
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

    /// The short ways: a state of one word, or of two.
    fn try_short(
        &self,
        entry: &Entry,
        print: &Print,
        cost: u32,
        up_to: Option<u64>,
        now: Time,
        mode: Mode,
    ) -> Short {
        let (edition, narrow) = entry.numbers.read();
        // After the numbers: a change of form leaves its heirs before it publishes.
        if entry.has_heirs() {
            return Short::Elsewhere;
        }
        let Some(narrow) = narrow else {
            return self.try_wide(entry, print, edition, cost, up_to, now, mode);
        };
        let table = entry.tables.narrow();
        let found = table.locate(print);
        let word = found.map_or(0, |slot| slot.word().read());
        let Ok((status, next)) = narrow.ask(word, now, cost, up_to) else {
            self.rebase(entry, now);
            return Short::Again;
        };
        if status.is_deny() || cost == 0 || mode == Mode::Peek {
            let fresh = found.is_none_or(|slot| slot.is_of(print)) && entry.numbers.is_current(edition);
            return if fresh { Short::Decided(status) } else { Short::Again };
        }
        let slot = match found {
            Some(slot) => slot,
            None => match self.enter_key(entry, table, print, edition, now, &[]) {
                Ok(slot) => slot,
                Err(NoEntry::Full(left)) => return Short::Decided(self.full(entry, left)),
                Err(NoEntry::Changed) => return Short::Again,
            },
        };
        if !slot.word().try_lock(word) {
            return Short::Again;
        }
        if slot.is_of(print) && entry.numbers.is_current(edition) {
            slot.word().unlock(next);
            Short::Decided(status)
        } else {
            slot.word().unlock(word);
            Short::Again
        }
    }

    #[expect(clippy::too_many_arguments, reason = "a charge, when, and under which numbers")]
    fn try_wide(
        &self,
        entry: &Entry,
        print: &Print,
        edition: Edition,
        cost: u32,
        up_to: Option<u64>,
        now: Time,
        mode: Mode,
    ) -> Short {
        let step = entry.numbers.step();
        let table = entry.tables.wide();
        let charges = mode == Mode::Charge && cost > 0;
        let ask = Ask { at: self.moment(entry, now), cost, up_to };
        let slot = match table.locate(print) {
            Some(slot) => slot,
            _ if step.is_boxed() || !charges || entry.is_retired() => return Short::Elsewhere,
            // A refusal takes nobody's place.
            None if step.ask_words([0, 0], &ask).status.is_deny() => return Short::Elsewhere,
            None => match self.enter_key(entry, table, print, edition, now, &[]) {
                Ok(slot) => slot,
                Err(NoEntry::Full(left)) => return Short::Decided(self.full(entry, left)),
                Err(NoEntry::Changed) => return Short::Again,
            },
        };
        if step.is_boxed() {
            return Short::Elsewhere;
        }
        let word = slot.word().lock();
        if !slot.is_of(print) || !entry.numbers.is_current(edition) {
            slot.word().unlock(word);
            return Short::Again;
        }
        let answer = step.ask_words([word >> 1, slot.second()], &ask);
        if charges && !answer.status.is_deny() {
            slot.set_second(answer.next[1]);
            slot.word().unlock(answer.next[0] << 1);
        } else {
            slot.word().unlock(word);
        }
        Short::Decided(answer.status)
    }

    pub(super) fn enter_key<'t, const STRIDE: usize>(
        &self,
        entry: &Entry,
        table: &'t Table<STRIDE>,
        print: &Print,
        edition: Edition,
        now: Time,
        spared: &[usize],
    ) -> Result<Slot<'t>, NoEntry> {
        let limits = self.limits.load();
        let landlord = Owner { store: self, limits: &limits, entering: entry, edition, now };
        table.enter(print, spared, &landlord)
    }

    /// The answer to a key for which there is no room.
    pub(super) fn full(&self, entry: &Entry, left: u64) -> Status {
        self.refused_full.fetch_add(1, Relaxed);
        let limit = entry.numbers.step().limit();
        Status::plain(Verdict::Allow, limit, 0, left).refused(left, DecidedBy::FullTable)
    }
}

/// What came of trying the short way.
enum Short {
    Decided(Status),
    /// Somebody else was at it.
    Again,
    /// The limit's state is not one word.
    Elsewhere,
}
