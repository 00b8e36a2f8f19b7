//! What is decided: the requests, the limits' numbers as both sides are told them, and who decides.

use crate::subject::{Load, shuffled};
use std::{future::Future, time::Duration};
use tollgate::{Rate, TokenBucket};

/// Somebody who asks Redis whether a request may pass. Clones ask through the same connection.
pub(super) trait Decide: Clone + Send + Sync + 'static {
    /// Whether the request may pass, which uses so many units of its user's, and one of every further limit.
    fn decide(&mut self, request: &Request, units: u32) -> impl Future<Output = bool> + Send;
}

/// Whose request it is.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) user: String,
    pub(super) tenant: String,
}

const TENANTS: usize = 1_000;

impl Request {
    /// A request of each user, in random order.
    pub(super) fn of_users(users: usize) -> Vec<Self> {
        let request = |(place, user)| Self { user, tenant: format!("tenant-{}", place % TENANTS) };
        shuffled::<String>(users).into_iter().enumerate().map(request).collect()
    }
}

/// Which limits a request meets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Limits {
    /// The user's.
    One,
    /// The user's, the tenant's and everyone's.
    Three,
}

impl Limits {
    pub(super) const fn count(self) -> usize {
        match self {
            Self::One => 1,
            Self::Three => 3,
        }
    }
}

/// A limit's numbers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Numbers {
    amount: u32,
    per: Duration,
    pub(super) burst: u32,
    /// What a user is entered with: enough to be there as long as is measured, as a key in use would.
    pub(super) first_use: u32,
    /// What its callers are answered.
    pub(super) load: Load,
}

impl Numbers {
    /// Room for everybody.
    pub(super) const ALLOW: Self = Self {
        amount: 10,
        per: Duration::from_secs(1),
        burst: 1_000_000_000,
        first_use: 1_000_000,
        load: Load::Allow,
    };
    /// Used up at once.
    pub(super) const DENY: Self =
        Self { amount: 1, per: Duration::from_secs(3_600), burst: 1, first_use: 1, load: Load::Deny };
    /// A rate that callers of a node's memory do not reach: what is taken ahead is in proportion to the rate.
    pub(super) const FAST: Self = Self { amount: 100_000_000, ..Self::ALLOW };

    pub(super) fn limit(self) -> TokenBucket {
        let rate = Rate::new(self.amount.into(), self.per).expect("a rate");
        TokenBucket::new(rate, self.burst).expect("a limit")
    }

    /// Units a second.
    pub(super) fn rate(self) -> f64 {
        f64::from(self.amount) / self.per.as_secs_f64()
    }
}
