//! A slot: the state of one bucket, with everything that decides about it. A [`Limiter`](crate::Limiter) owns one, a
//! [`MemoryStore`](crate::MemoryStore) has tables of them; both decide with the code in this module.
//!
//! A slot consists of
//! - its **state**: one word with a lock bit ([`Word`]) for buckets whose numbers fit, two words, or a [`State`] of any size;
//! - the limit's **[parameters](Parameters)** under a sequence lock, shared by all slots of the limit;
//! - its **[extras](SlotExtras)**: granted units and a ban;
//! - its **[counters](SlotCounters)**, which decide what can be given back.
//!
//! A charge takes the first of three tiers that can decide it:
//! 1. [`SingleWord`]: one atomic exchange on a word, or none where the charge is denied. Never waits.
//! 2. [`LockedSlot`]: any state and any extras, under the slot's lock.
//! 3. A locked set of slots: several `LockedSlot`s, locked in address order. Only a store has these.
//!
//! Where plain words decide (no extras, no queue), owners have shorter ways under the same locks, each with its figure: a
//! limiter to release a waiter, a store to charge one slot and a set of words.
//!
//! Everything else that happens to a bucket (refund, reset, grant, ban, leave, renew, giving back) happens on a `LockedSlot`.
//! How a slot is found and locked, and where its parts are kept, is its owner's business.
//!
//! **The word.** A word is an even number, and its last bit is a lock. A decision reads the word and computes. If it denies,
//! it writes nothing. Otherwise it locks with one compare-and-swap from the value it computed on, checks that the slot still
//! belongs to its key, and unlocks by storing the new value. While something else takes part in the decision (a state of
//! another form, a grant, a ban, a waiter), the owner keeps charges away from the word: a limiter keeps it locked
//! ("parked"), a store counts such cases per limit. So the lock-free tier contains no test for them.
//!
//! **The clock.** A time before the latest charge of a limit counts as that time. The state alone would treat a clock that
//! stepped back as debt. With a monotonic clock nothing is stored for this.

mod locked;
mod parameters;

pub(crate) use locked::{
    ChargeOutcome, ChargeRequest, EPOCH, LockedSlot, SlotCounters, SlotExtras, SlotState,
};
pub(crate) use parameters::{Form, Parameters, ParametersChange, Settled, Version};

use crate::{
    decision::Status,
    step::{Mode, narrow::Narrow},
    sync::Word,
    time::Time,
};

/// A state of one word, as it was read: what the lock-free tier decides on.
pub(crate) struct SingleWord<'a> {
    pub(crate) parameters: &'a Parameters,
    pub(crate) version: Version,
    pub(crate) narrow: Narrow,
    pub(crate) word: Word<'a>,
    /// The word's value, read after the parameters.
    pub(crate) value: u64,
}

/// Why the lock-free tier did not decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Miss {
    /// Another thread holds the word, or the parameters changed: the same tier may do next time.
    Busy,
    /// The answer needs the next tier: a wait, a cost above the limit, a time beyond the word's range.
    Unfit,
}

/// What is done about a bucket that has no slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// It is treated as never used, and nothing is kept.
    Skip,
    /// It gets a slot, if there is room.
    Enter,
}

impl SingleWord<'_> {
    /// Decides a charge that does not say how long it may wait. `is_owned` tells under the lock whether the slot is still
    /// that of the bucket it was found for.
    #[inline(always)]
    pub(crate) fn try_charge(
        self,
        cost: u32,
        now: Time,
        mode: Mode,
        is_owned: impl Fn() -> bool,
    ) -> Result<Status, Miss> {
        let (status, next) = self.narrow.ask_quickly(self.value, now, cost).ok_or(Miss::Unfit)?;
        let is_current = || is_owned() && self.parameters.is_current(self.version);
        if !status.is_allow() || cost == 0 || mode == Mode::Peek {
            return if is_current() { Ok(status) } else { Err(Miss::Busy) };
        }
        if !self.word.try_lock(self.value) {
            return Err(Miss::Busy);
        }
        if !is_current() {
            self.word.unlock(self.value);
            return Err(Miss::Busy);
        }
        self.word.unlock(next);
        Ok(status)
    }
}
