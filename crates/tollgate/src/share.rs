//! A node's share of a limit: what it may decide by itself while the store it shares with others does not answer.
//!
//! Rates and limits are divided by the number of nodes, rounded down, but never below one unit: a limit smaller than the
//! number of nodes may so be exceeded by as many. Windows, warm-ups and holds stay as long as they are.

use crate::{
    limit::Limit,
    rate::Rate,
    step::{
        fixed_window::FixedWindow,
        leaky_bucket::{Delay, LeakyBucket},
        token_bucket::{Refill, TokenBucket},
    },
};
use std::{num::NonZeroU32, time::Duration};

impl Limit {
    /// One of `nodes` equal shares of this limit.
    #[must_use]
    pub fn share(&self, nodes: NonZeroU32) -> Self {
        let part = |units: u32| (units / nodes).max(1);
        match self.clone() {
            Self::TokenBucket(it) => {
                let rate = match it.refill {
                    Refill::Continuous => slower(it.rate, nodes),
                    Refill::Interval => fewer(it.rate, nodes),
                };
                let burst = part(it.burst);
                Self::TokenBucket(TokenBucket { rate, burst, initial: (it.initial / nodes).min(burst), ..it })
            }
            Self::LeakyBucket(it) => {
                let capacity = part(it.capacity);
                let delay = match it.delay {
                    Delay::None => Delay::None,
                    Delay::After(units) => Delay::After(part(units).min(capacity)),
                };
                Self::LeakyBucket(LeakyBucket { rate: slower(it.rate, nodes), capacity, delay })
            }
            Self::SmoothBursty(mut it) => {
                (it.rate, it.initial) = (slower(it.rate, nodes), it.initial / nodes);
                Self::SmoothBursty(it)
            }
            Self::SmoothWarmingUp(mut it) => {
                it.rate = slower(it.rate, nodes);
                Self::SmoothWarmingUp(it)
            }
            Self::FixedWindow(it) => Self::FixedWindow(FixedWindow { limit: part(it.limit), ..it }),
            Self::SlidingLog(mut it) => {
                it.0.limit = part(it.0.limit);
                Self::SlidingLog(it)
            }
            Self::SlidingWindow(mut it) => {
                it.0.limit = part(it.0.limit);
                Self::SlidingWindow(it)
            }
            Self::SlidingCounter(mut it) => {
                it.limit = part(it.limit);
                Self::SlidingCounter(it)
            }
            Self::Concurrency(mut it) => {
                it.limit = part(it.limit);
                Self::Concurrency(it)
            }
        }
    }
}

/// The same units over so many times the period: exact, unless it takes longer than a clock can tell.
fn slower(rate: Rate, nodes: NonZeroU32) -> Rate {
    let period = rate.period().saturating_mul(nodes.get());
    Rate::new(rate.amount().get(), period).or_else(|_| slowest()).unwrap_or(rate)
}

/// Fewer units each period; where that is less than one, one unit over so many periods more.
fn fewer(rate: Rate, nodes: NonZeroU32) -> Rate {
    let (amount, nodes) = (rate.amount().get(), u64::from(nodes.get()));
    if amount >= nodes {
        return Rate::new(amount / nodes, rate.period()).unwrap_or(rate);
    }
    let periods = u32::try_from(nodes.div_ceil(amount)).unwrap_or(u32::MAX);
    Rate::new(1, Duration::saturating_mul(rate.period(), periods)).or_else(|_| slowest()).unwrap_or(rate)
}

/// One in a hundred years: where a share would be slower than can be told.
fn slowest() -> Result<Rate, crate::LimitError> {
    Rate::new(1, Duration::from_secs(100 * 365 * 86_400))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Concurrency, FixedWindow, SlidingLog};
    use std::time::Duration;

    fn a_third(limit: impl Into<Limit>) -> Limit {
        limit.into().share(NonZeroU32::new(3).unwrap())
    }

    #[test]
    fn shares_are_parts_and_never_nothing() {
        let second = Duration::from_secs(1);
        let rate = |amount| Rate::per_second(amount).unwrap();
        assert_eq!(
            a_third(TokenBucket::new(rate(10), 100).unwrap()),
            TokenBucket::new(Rate::new(10, second * 3).unwrap(), 33)
                .unwrap()
                .with_initial(33)
                .unwrap()
                .into()
        );
        assert_eq!(
            a_third(FixedWindow::new(2, second).unwrap()),
            FixedWindow::new(1, second).unwrap().into()
        );
        assert_eq!(a_third(SlidingLog::new(7, second).unwrap()), SlidingLog::new(2, second).unwrap().into());
        assert_eq!(
            a_third(Concurrency::new(9, second).unwrap().with_queue(5)),
            Concurrency::new(3, second).unwrap().with_queue(5).into()
        );
        let by_interval = |amount, period, burst| {
            TokenBucket::new(Rate::new(amount, period).unwrap(), burst).unwrap().with_refill(Refill::Interval)
        };
        assert_eq!(a_third(by_interval(7, second, 9)), by_interval(2, second, 3).into());
        assert_eq!(a_third(by_interval(1, second, 9)), by_interval(1, second * 3, 3).into());
    }
}
