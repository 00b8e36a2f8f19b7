//! The library under test: one limit in a `Limiter` or a `KeyedLimiter`, or several in a `MemoryStore`, behind one interface.

use super::history::Numbers;
use proptest::prelude::*;
use std::{future::Future, pin::Pin, time::Duration};
use tollgate::{
    Bounds, Charge, Decision, KeyedLimiter, LimitHandle, Limiter, ManualClock, MemoryStore, Permit, Refused,
};

/// The type that holds the limit.
#[derive(Clone, Copy, Debug)]
pub(super) enum Api {
    Limiter,
    Keyed,
    Store,
}

pub(super) enum Library {
    Limiter(Limiter<ManualClock>, Holds),
    Keyed(KeyedLimiter<ManualClock>, Holds),
    Store(MemoryStore<ManualClock>, Vec<LimitHandle>, Holds),
}

/// Whether slots are among the limits, which `enter` holds and `wait` does not.
#[derive(Clone, Copy, Debug)]
pub(super) enum Holds {
    Slots,
    Nothing,
}

/// A waiter's release as the library reports it.
pub(super) struct Release<'a> {
    pub(super) waited: Duration,
    pub(super) permit: Option<Permit<'a>>,
}

impl<'a> Release<'a> {
    fn holding(permit: Permit<'a>) -> Self {
        Self { waited: permit.waited(), permit: Some(permit) }
    }
}

pub(super) type Outcome<'a> = Result<Release<'a>, Refused>;

const KEY: &str = "k";

pub(super) fn apis() -> impl Strategy<Value = Api> {
    prop::sample::select(vec![Api::Limiter, Api::Keyed, Api::Store])
}

/// Awaits `wait` or `enter` of any of the types and converts the result.
macro_rules! told {
    ($holds:expr, $wait:expr, $enter:expr, $up_to:expr, $refused:expr) => {
        match $holds {
            Holds::Nothing => Box::pin(async move {
                let wait = match $up_to {
                    Some(up_to) => $wait.up_to(up_to),
                    None => $wait,
                };
                wait.await.map(|passed| Release { waited: passed.waited(), permit: None }).map_err($refused)
            }),
            Holds::Slots => Box::pin(async move {
                let enter = match $up_to {
                    Some(up_to) => $enter.up_to(up_to),
                    None => $enter,
                };
                enter.await.map(Release::holding).map_err($refused)
            }),
        }
    };
}

impl Library {
    pub(super) fn new(api: Api, limits: &[Numbers], clock: &ManualClock) -> Self {
        let slots = limits.iter().any(|numbers| matches!(numbers, Numbers::Slots { .. }));
        let holds = if slots { Holds::Slots } else { Holds::Nothing };
        let bounds = Bounds { max_keys: 64, ..Bounds::default() };
        match (api, limits) {
            (Api::Limiter, [only]) => Self::Limiter(Limiter::with_clock(only.limit(), clock.clone()), holds),
            (Api::Keyed, [only]) => {
                Self::Keyed(KeyedLimiter::with_clock(only.limit(), bounds, clock.clone()), holds)
            }
            _ => {
                let store = MemoryStore::with_clock(bounds, clock.clone());
                let handles =
                    limits.iter().map(|numbers| store.add("handles", numbers.limit()).unwrap()).collect();
                Self::Store(store, handles, holds)
            }
        }
    }

    /// The arrival is the first poll.
    pub(super) fn wait(
        &self,
        costs: &[u32],
        up_to: Option<Duration>,
    ) -> Pin<Box<dyn Future<Output = Outcome<'_>> + '_>> {
        let cost = costs[0];
        let same = |refused| refused;
        match self {
            Self::Limiter(it, holds) => {
                told!(holds, it.wait().cost(cost), it.enter().cost(cost), up_to, same)
            }
            Self::Keyed(it, holds) => {
                told!(holds, it.wait(KEY).cost(cost), it.enter(KEY).cost(cost), up_to, same)
            }
            Self::Store(it, handles, holds) => {
                let costs = costs.to_vec();
                let refused = |error: tollgate::WaitError| error.refused().cloned().unwrap();
                told!(
                    holds,
                    it.wait(&charges(handles, &costs)),
                    it.enter(&charges(handles, &costs)),
                    up_to,
                    refused
                )
            }
        }
    }

    pub(super) fn check(&self, costs: &[u32]) -> Decision {
        match self {
            Self::Limiter(it, _) => it.check_n(costs[0]).decision(),
            Self::Keyed(it, _) => it.check_n(KEY, costs[0]).decision(),
            Self::Store(it, handles, _) => it.check(&charges(handles, costs)).unwrap().decision(),
        }
    }

    pub(super) fn remaining(&self, limit: usize) -> u32 {
        match self {
            Self::Limiter(it, _) => it.peek(0).remaining(),
            Self::Keyed(it, _) => it.peek(KEY, 0).remaining(),
            Self::Store(it, handles, _) => {
                it.peek(&[Charge::new(&handles[limit], KEY).cost(0)]).unwrap().statuses()[0].remaining()
            }
        }
    }

    pub(super) fn change(&self, limit: usize, to: Numbers) {
        match self {
            Self::Limiter(it, _) => it.change(to.limit()),
            Self::Keyed(it, _) => it.change(to.limit()),
            Self::Store(it, handles, _) => it.change(&handles[limit], to.limit()).unwrap(),
        }
    }

    pub(super) fn reset(&self, limit: usize) {
        match self {
            Self::Limiter(it, _) => it.reset(),
            Self::Keyed(it, _) => it.reset(KEY),
            Self::Store(it, handles, _) => it.reset(&handles[limit], KEY).unwrap(),
        }
    }

    pub(super) fn refund(&self, limit: usize, units: u32) {
        match self {
            Self::Limiter(it, _) => it.refund(units),
            Self::Keyed(it, _) => it.refund(KEY, units),
            Self::Store(it, handles, _) => it.refund(&handles[limit], KEY, units).unwrap(),
        }
    }

    pub(super) fn grant(&self, limit: usize, units: u32) {
        match self {
            Self::Limiter(it, _) => it.grant(units),
            Self::Keyed(it, _) => it.grant(KEY, units),
            Self::Store(it, handles, _) => it.grant(&handles[limit], KEY, units).unwrap(),
        }
    }

    pub(super) fn ban(&self, limit: usize, lasting: Duration) {
        match self {
            Self::Limiter(it, _) => it.ban(lasting),
            Self::Keyed(it, _) => it.ban(KEY, lasting),
            Self::Store(it, handles, _) => it.ban(&handles[limit], KEY, lasting).unwrap(),
        }
    }
}

fn charges<'a>(handles: &'a [LimitHandle], costs: &[u32]) -> Vec<Charge<'a>> {
    handles.iter().zip(costs).map(|(limit, cost)| Charge::new(limit, KEY).cost(*cost)).collect()
}
