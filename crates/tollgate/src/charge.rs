//! One limit, one key, one cost.

use crate::{key::Key, store::LimitHandle};
use std::{fmt, time::Duration};

/// One limit, one key, one cost: what a request pays.
///
/// ```
/// use std::time::Duration;
/// use tollgate::{Charge, MemoryStore, Rate, TokenBucket};
///
/// let store = MemoryStore::new();
/// let uploads = store.add("uploads", TokenBucket::new(Rate::per_minute(600)?, 50)?)?;
/// let charge = Charge::new(&uploads, "alice").cost(5).up_to(Duration::from_millis(200));
/// assert!(store.check_one(&charge)?.is_allow());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Charge<'a, L = LimitHandle> {
    /// Which limit: the handle that the store gave for it.
    pub limit: &'a L,
    /// Whose bucket.
    pub key: Key<'a>,
    /// How many units; zero asks without charging.
    pub cost: u32,
    /// How long it may wait for its turn; `None` for what the limit itself prescribes.
    pub up_to: Option<Duration>,
}

impl<'a, L> Charge<'a, L> {
    /// One unit of `limit` for `key`.
    pub fn new(limit: &'a L, key: impl Into<Key<'a>>) -> Self {
        Self { limit, key: key.into(), cost: 1, up_to: None }
    }

    /// Costs so many units. Zero asks without charging.
    #[must_use]
    pub const fn cost(self, cost: u32) -> Self {
        Self { cost, ..self }
    }

    /// May wait this long for its turn, where the limit can book turns; a longer wait is a refusal. Without it a charge
    /// does not wait, except for the pace of a leaky bucket's delay.
    #[must_use]
    pub const fn up_to(self, up_to: Duration) -> Self {
        Self { up_to: Some(up_to), ..self }
    }
}

impl<L> Clone for Charge<'_, L> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<L> Copy for Charge<'_, L> {}

impl<L: fmt::Debug> fmt::Debug for Charge<'_, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Charge")
            .field("limit", &self.limit)
            .field("key", &self.key)
            .field("cost", &self.cost)
            .field("up_to", &self.up_to)
            .finish()
    }
}
