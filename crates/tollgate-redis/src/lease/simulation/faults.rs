//! A checker that finds nothing proves little: each of these servers and nodes is broken in one way, and must be caught.

use super::{
    super::BucketId,
    checker::judge,
    fleet::play,
    plan::{Act, KINDS, NodeFault, Plan, START},
    server::Fault,
};

/// The first bucket of a wild run; a second is of any kind.
const OF_THAT_KIND: BucketId = BucketId(0);

/// Whether the checker catches it in a wild run of a kind.
fn is_caught(kind: usize, break_it: impl Fn(&mut Plan)) -> bool {
    (0..60).any(|seed| {
        let mut plan = Plan::wild(kind, seed);
        break_it(&mut plan);
        judge(&plan, &play(&plan)).is_err_and(|found| found.bucket == OF_THAT_KIND)
    })
}

fn kinds_that_catch(break_it: impl Fn(&mut Plan) + Copy) -> Vec<usize> {
    (0..KINDS).filter(|kind| is_caught(*kind, break_it)).collect()
}

const LEVEL: usize = 0;
const EPOCH: usize = 1;
const FIRST_HIT: usize = 2;
const SLIDING: usize = 3;
const COUNTER: usize = 4;

#[test]
fn a_bucket_that_drains_below_what_is_out() {
    assert!(is_caught(LEVEL, |plan| plan.server_fault = Some(Fault::NoFloor)));
}

#[test]
fn a_lease_that_outlives_its_window() {
    let kinds = kinds_that_catch(|plan| plan.server_fault = Some(Fault::PastTheEdge));
    assert_eq!(kinds, [EPOCH, FIRST_HIT, COUNTER]);
}

#[test]
fn a_use_that_is_dated_too_early() {
    assert!(is_caught(SLIDING, |plan| plan.server_fault = Some(Fault::DatedEarly)));
}

#[test]
fn a_lease_that_is_spent_from_after_it_was_settled() {
    let kinds = kinds_that_catch(|plan| plan.node_fault = Some(NodeFault::SpendsAfterSettling));
    assert_eq!(kinds, [LEVEL, EPOCH, FIRST_HIT, SLIDING, COUNTER]);
}

#[test]
fn a_lapse_that_counts_as_unused() {
    let kinds = kinds_that_catch(|plan| plan.server_fault = Some(Fault::LapsedIsUnused));
    assert_eq!(kinds, [LEVEL, EPOCH, FIRST_HIT, SLIDING, COUNTER]);
}

#[test]
fn a_reset_that_forgets_what_is_out() {
    let kinds = kinds_that_catch(|plan| {
        plan.server_fault = Some(Fault::ForgetfulReset);
        plan.by_hand = (1..20).map(|time| (START + time * 150_000, OF_THAT_KIND, Act::Reset)).collect();
    });
    // A bucket's floor and a log's leases are counted afresh at every call: only counts can forget.
    assert_eq!(kinds, [EPOCH, FIRST_HIT, COUNTER]);
}

#[test]
fn a_life_that_is_counted_from_the_answer() {
    let kinds = kinds_that_catch(|plan| plan.node_fault = Some(NodeFault::CountsFromTheAnswer));
    assert!(kinds.len() >= 2, "{kinds:?}");
}

#[test]
fn a_clock_that_drifts_beyond_the_margin() {
    let kinds = kinds_that_catch(|plan| plan.node_fault = Some(NodeFault::SlowClock));
    assert!(kinds.len() >= 2, "{kinds:?}");
}
