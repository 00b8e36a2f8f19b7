//! Whatever happens, the fleet admits no more than the limit: thousands of wild runs, of every kind.

use super::{
    checker::judge,
    fleet::play,
    plan::{KINDS, Plan},
};
use proptest::prelude::*;

/// How many runs a property plays: enough to find what breaks in seconds, more where there is time.
fn runs() -> u32 {
    std::env::var("LEASE_RUNS").ok().and_then(|runs| runs.parse().ok()).unwrap_or(200)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: runs(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn never_more_than_the_limit(kind in 0..KINDS, seed: u64) {
        let plan = Plan::wild(kind, seed);
        prop_assert_eq!(judge(&plan, &play(&plan)), Ok(()), "{:?} of {:?}", plan.life, plan.limits);
    }
}

/// Otherwise the property would hold because nothing happens.
#[test]
fn wild_runs_lease_in_earnest() {
    for kind in 0..KINDS {
        let outcomes: Vec<_> = (0..40).map(|seed| play(&Plan::wild(kind, seed))).collect();
        let all: u64 = outcomes.iter().map(|outcome| outcome.requests).sum();
        let leased: u64 = outcomes.iter().map(|outcome| outcome.local_allows).sum();
        let refused: u64 = outcomes.iter().map(|outcome| outcome.local_denies).sum();
        assert!(leased * 100 > all * 5, "kind {kind}: {leased} of {all} from a lease");
        assert!(refused * 100 > all * 10, "kind {kind}: {refused} of {all} from a remembered refusal");
    }
}
