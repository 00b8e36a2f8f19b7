//! What is measured: the same limit on both sides, the keys, and the answers a load should get.
//!
//! An allowing limit is 10 a second with a burst of 10^9, of which a run uses a fraction. A denying one is one an hour
//! with a burst of one, used up before the first timed call. Both fit our one-word state, as nearly all limits do. A key
//! is entered with a use large enough that it stays live throughout: a table of idle keys would be another table.

use governor::{DefaultDirectRateLimiter, DefaultKeyedRateLimiter, Quota, RateLimiter};
use std::{hash::Hash, num::NonZeroU32};
use tollgate::{Bounds, Key, KeyedLimiter, Limiter, Rate, SystemClock, TokenBucket};

/// What the calls of a run meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Load {
    Allow,
    Deny,
}

/// A bounded table that is as full as it was made for has turned away about one key in ten thousand, and each comes back as
/// new, in another's place; more than one in this many is a mistake.
const STRAYS: usize = 1_000;

impl Load {
    pub(crate) const BOTH: [Self; 2] = [Self::Allow, Self::Deny];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Allow => "allow-heavy",
            Self::Deny => "deny-heavy",
        }
    }

    const fn burst(self) -> u32 {
        match self {
            Self::Allow => 1_000_000_000,
            Self::Deny => 1,
        }
    }

    /// What a key is entered with.
    const fn first_use(self) -> u32 {
        match self {
            Self::Allow => 1_000_000,
            Self::Deny => 1,
        }
    }

    pub(crate) fn limit(self) -> TokenBucket {
        let rate = match self {
            Self::Allow => Rate::per_second(10),
            Self::Deny => Rate::per_hour(1),
        };
        TokenBucket::new(rate.expect("a rate"), self.burst()).expect("a limit")
    }

    pub(crate) fn quota(self) -> Quota {
        let rate = match self {
            Self::Allow => Quota::per_second(units(10)),
            Self::Deny => Quota::per_hour(units(1)),
        };
        rate.allow_burst(units(self.burst()))
    }

    /// # Panics
    /// Where a run was allowed what it should not have been, or the other way round.
    pub(crate) fn must_fit(self, allowed: usize, calls: usize) {
        let wrong = match self {
            Self::Allow => calls - allowed,
            Self::Deny => allowed,
        };
        assert!(wrong <= calls / STRAYS, "{wrong} of {calls} {} calls were answered wrongly", self.name());
    }
}

pub(crate) fn units(count: u32) -> NonZeroU32 {
    NonZeroU32::new(count).expect("more than zero")
}

/// Our one bucket, ready for the load.
pub(crate) fn our_bucket(load: Load) -> Limiter {
    let limiter = Limiter::new(load.limit());
    assert!(limiter.check_n(load.first_use()).is_allow());
    limiter
}

/// Governor's one bucket, ready for the load.
pub(crate) fn governors_bucket(load: Load) -> DefaultDirectRateLimiter {
    let limiter = RateLimiter::direct(load.quota());
    assert!(matches!(limiter.check_n(units(load.first_use())), Ok(Ok(()))));
    limiter
}

/// A key by number.
pub(crate) trait Identity: Hash + Eq + Clone + Send + Sync {
    const NAME: &'static str;

    fn of(id: u64) -> Self;
    fn key(&self) -> Key<'_>;
}

impl Identity for String {
    const NAME: &'static str = "String";

    fn of(id: u64) -> Self {
        format!("user-{id:08}")
    }

    #[inline]
    fn key(&self) -> Key<'_> {
        Key::from(self)
    }
}

impl Identity for u64 {
    const NAME: &'static str = "u64";

    fn of(id: u64) -> Self {
        id
    }

    #[inline]
    fn key(&self) -> Key<'_> {
        Key::from(*self)
    }
}

/// A table for each side with the same keys in it, entered in the order of their numbers.
pub(crate) struct Tables<K: Identity> {
    pub(crate) ours: KeyedLimiter,
    pub(crate) governor: DefaultKeyedRateLimiter<K>,
}

impl<K: Identity> Tables<K> {
    pub(crate) fn new(load: Load, keys: usize) -> Self {
        let ours = our_table(load.limit(), keys);
        let governor = RateLimiter::keyed(load.quota());
        let first_use = load.first_use();
        for id in 0..keys as u64 {
            let key = K::of(id);
            assert!(ours.check_n(key.key(), first_use).is_allow());
            assert!(matches!(governor.check_key_n(&key, units(first_use)), Ok(Ok(()))));
        }
        assert_eq!(governor.len(), keys);
        let present = |id: &u64| ours.peek(K::of(*id).key(), 0).remaining() < load.burst() - first_use / 2;
        let ours_holds = (0..keys as u64).filter(present).count();
        assert!(ours_holds >= keys - keys / STRAYS, "ours holds {ours_holds} of {keys} keys");
        Self { ours, governor }
    }
}

/// Our table with room for so many keys.
pub(crate) fn our_table(limit: impl Into<tollgate::Limit>, max_keys: usize) -> KeyedLimiter {
    KeyedLimiter::with_clock(limit, Bounds { max_keys, ..Bounds::default() }, SystemClock::new())
}

/// The keys in random order, allocated in that order, so that reading a key's text costs both sides next to nothing.
pub(crate) fn shuffled<K: Identity>(keys: usize) -> Vec<K> {
    let mut ids: Vec<u32> = (0..keys as u32).collect();
    let mut random = Random(0x7011_6a7e);
    for last in (1..ids.len()).rev() {
        ids.swap(last, random.below(last + 1));
    }
    ids.into_iter().map(|id| K::of(id.into())).collect()
}

/// Pseudo-random numbers, the same in every run: a Weyl sequence, mixed.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93);
        (mixed ^ mixed >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93) ^ mixed >> 29
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        ((u128::from(self.next()) * bound as u128) >> 64) as usize
    }
}
