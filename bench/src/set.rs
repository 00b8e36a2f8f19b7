//! Three limits on one request (user, tenant, everyone): our set, all or none, next to three governor checks one after
//! another, which charge the first even where the third refuses.

use crate::{
    effort::{Effort, short},
    measure::{alternate, count, kept, nanos_a_call},
    report::Report,
    subject::{Identity, Load, governors_bucket, shuffled},
};
use governor::{DefaultDirectRateLimiter, DefaultKeyedRateLimiter, RateLimiter};
use tollgate::{Bounds, Charge, LimitHandle, MemoryStore, SystemClock};

const TENANTS: usize = 1_000;

struct Ours {
    store: MemoryStore,
    user: LimitHandle,
    tenant: LimitHandle,
    everyone: LimitHandle,
}

struct Theirs {
    user: DefaultKeyedRateLimiter<String>,
    tenant: DefaultKeyedRateLimiter<String>,
    everyone: DefaultDirectRateLimiter,
}

pub(crate) fn run(report: &mut Report, effort: &Effort) {
    let users = effort.usual();
    let names = [1, 2].map(|threads| {
        format!("set of 3 charges, {} users, allow-heavy, {threads} thr, 3 governor checks", short(users))
    });
    if !report.wants_any(&names) {
        return;
    }
    let order = shuffled::<String>(users);
    let tenants: Vec<String> = (0..TENANTS as u64).map(|id| format!("tenant-{id}")).collect();
    let (ours, theirs) = (Ours::new(users), Theirs::new());
    // Enters every key on both sides.
    for index in 0..users {
        assert!(ours.check(&order[index], &tenants[index % TENANTS]));
        assert!(theirs.check(&order[index], &tenants[index % TENANTS]));
    }
    assert_eq!((theirs.user.len(), theirs.tenant.len()), (users, TENANTS.min(users)));

    for (name, threads) in names.iter().zip([1, 2]) {
        if !report.wants(name) {
            continue;
        }
        let calls = effort.keyed_calls.min(users) / threads;
        let run = |call: &(dyn Fn(usize) -> usize + Sync)| {
            nanos_a_call(threads, calls, Load::Allow, |thread| call(thread * calls))
        };
        let tenant = |index: usize| &tenants[index % TENANTS];
        let pair = alternate(
            effort.rounds,
            |_| run(&|first| count(calls, |call| ours.check(&order[first + call], tenant(call)))),
            |_| run(&|first| count(calls, |call| theirs.check(&order[first + call], tenant(call)))),
        );
        report.compare(name, "ns/set", pair, None);
    }
}

impl Ours {
    fn new(users: usize) -> Self {
        let bounds = Bounds { max_keys: users + TENANTS + 1, ..Bounds::default() };
        let store = MemoryStore::with_clock(bounds, SystemClock::new());
        let add = || store.add("limit", Load::Allow.limit()).expect("room for a limit");
        let (user, tenant, everyone) = (add(), add(), add());
        Self { store, user, tenant, everyone }
    }

    fn check(&self, user: &String, tenant: &String) -> bool {
        let charges = [
            Charge::new(&self.user, user.key()),
            Charge::new(&self.tenant, tenant.key()),
            Charge::new(&self.everyone, ()),
        ];
        kept(self.store.check(&charges)).is_ok_and(|set| set.is_allow())
    }
}

impl Theirs {
    fn new() -> Self {
        Self {
            user: RateLimiter::keyed(Load::Allow.quota()),
            tenant: RateLimiter::keyed(Load::Allow.quota()),
            everyone: governors_bucket(Load::Allow),
        }
    }

    fn check(&self, user: &String, tenant: &String) -> bool {
        kept(self.user.check_key(user)).is_ok()
            && kept(self.tenant.check_key(tenant)).is_ok()
            && kept(self.everyone.check()).is_ok()
    }
}
