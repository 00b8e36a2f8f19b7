//! Operations on one key besides charging it, by the names that they have in memory: refund, reset, grant, ban, and a permit
//! given back or renewed. Each is one call to Redis.

use crate::{
    limit::RedisLimit,
    question::{Question, Verb},
    store::{LONGEST_WAIT, RedisStore},
};
use std::time::Duration;
use tollgate::{Answer, Charge, Key, Limit, PermitId, StoreError};

impl RedisStore {
    /// Takes up to `units` off the newest live use of a key; never below no use, never out of a window that has passed.
    pub fn refund<'a>(
        &'a self,
        limit: &'a RedisLimit,
        key: impl Into<Key<'a>>,
        units: u32,
    ) -> impl Answer<()> {
        let key = key.into();
        async move {
            self.on(limit, key, Verb::Refund { units: units.into() }).await?;
            self.forget_refusal(limit, &key);
            Ok(())
        }
    }

    /// Forgets what a key has used. Grants and bans stay.
    pub fn reset<'a>(&'a self, limit: &'a RedisLimit, key: impl Into<Key<'a>>) -> impl Answer<()> {
        self.by_hand(limit, key.into(), Verb::Reset)
    }

    /// Gives a key `units` above its limit, until used; they are spent before the limit's own.
    pub fn grant<'a>(
        &'a self,
        limit: &'a RedisLimit,
        key: impl Into<Key<'a>>,
        units: u32,
    ) -> impl Answer<()> {
        self.by_hand(limit, key.into(), Verb::Grant { units: units.into() })
    }

    /// Refuses a key for this long from now. Zero lifts the ban.
    pub fn ban<'a>(
        &'a self,
        limit: &'a RedisLimit,
        key: impl Into<Key<'a>>,
        lasting: Duration,
    ) -> impl Answer<()> {
        let micros = u64::try_from(lasting.as_nanos().div_ceil(1_000)).unwrap_or(u64::MAX).min(LONGEST_WAIT);
        self.by_hand(limit, key.into(), Verb::Ban { micros })
    }

    /// Gives back the slots that `permit` holds under the charges it was given for. How many units came back: none where its
    /// time was up.
    ///
    /// # Errors
    /// Where the store does not know one of the limits, and where Redis does not answer.
    pub async fn leave(
        &self,
        charges: &[Charge<'_, RedisLimit>],
        permit: PermitId,
    ) -> Result<u32, StoreError> {
        // Slots that this node gave by itself are its own.
        let back = self.shared.local.leave(charges, permit);
        if back > 0 {
            return Ok(back);
        }
        let (parts, _) = self.parts(charges).await?;
        let back =
            self.number(Question { verb: Verb::Leave { permit: permit.number().get() }, parts }).await?;
        Ok(u32::try_from(back).unwrap_or(u32::MAX))
    }

    /// Lets `permit` hold its slots for another `max_hold` from now. Whether it still held all of them.
    ///
    /// # Errors
    /// Where the store does not know one of the limits, and where Redis does not answer.
    pub async fn renew(
        &self,
        charges: &[Charge<'_, RedisLimit>],
        permit: PermitId,
    ) -> Result<bool, StoreError> {
        // Slots that this node gave by itself are its own.
        if self.shared.local.renew(charges, permit) {
            return Ok(true);
        }
        let (mut parts, _) = self.parts(charges).await?;
        parts.retain(|part| matches!(part.edition.limit, Limit::Concurrency(_)));
        let holders = parts.len() as u64;
        let held =
            self.number(Question { verb: Verb::Renew { permit: permit.number().get() }, parts }).await?;
        Ok(held == holders)
    }
}
