//! Tollgate's side: a store on the server, exact or with units taken ahead.

use super::subject::{Decide, Limits, Numbers, Request};
use std::{sync::Arc, time::Duration};
use tollgate::{Charge, DecidedBy, OnFailure, SetStatus};
use tollgate_redis::{RedisLimit, RedisStore};

/// An answer that takes longer is a failure, and no figure: not so soon as it would be for a gateway, since a busy machine
/// may stop everybody for a while.
const PATIENCE: Duration = Duration::from_secs(5);

#[derive(Clone)]
pub(super) struct Ours {
    store: RedisStore,
    limits: Arc<[RedisLimit]>,
}

impl Ours {
    pub(super) fn new(url: &str, limits: Limits, numbers: Numbers, lease: Option<Duration>) -> Self {
        let mut builder = RedisStore::builder(url).timeout(PATIENCE).on_failure(OnFailure::Closed).nodes(1);
        if let Some(lease) = lease {
            builder = builder.lease(lease);
        }
        let store = builder.open().expect("the address of a server that runs");
        let names = ["user", "tenant", "everyone"].into_iter().take(limits.count());
        let limits = names.map(|name| store.add(name, numbers.limit()).expect("numbers that Redis can keep"));
        Self { limits: limits.collect(), store }
    }
}

impl Decide for Ours {
    async fn decide(&mut self, request: &Request, units: u32) -> bool {
        let store = &self.store;
        let answer = match &*self.limits {
            [user] => store.check(&[Charge::new(user, &request.user).cost(units)]).await,
            [user, tenant, everyone] => {
                let charges = [
                    Charge::new(user, &request.user).cost(units),
                    Charge::new(tenant, &request.tenant),
                    Charge::new(everyone, ()),
                ];
                store.check(&charges).await
            }
            _ => unreachable!("a request meets one limit or three"),
        };
        let answer = answer.unwrap_or_else(|error| panic!("Redis did not decide: {error}"));
        assert!(is_decided(&answer), "Redis did not decide, and that was noticed in the store");
        answer.is_allow()
    }
}

/// Whether it was Redis who decided, or units that came from there.
fn is_decided(answer: &SetStatus) -> bool {
    answer.statuses().iter().all(|status| !matches!(status.decided_by(), DecidedBy::Failure(_)))
}
