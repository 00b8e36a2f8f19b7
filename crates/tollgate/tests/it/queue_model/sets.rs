//! Sets of the same limits against the model: their waiters form one queue, and a set is charged as one at its release.

use super::{
    harness::{ClockSteps, agree},
    history::{Numbers, Operations, even_buckets, logs, slots, windows},
    library::Api,
};
use crate::limits::cases;
use proptest::prelude::*;

/// Sets without slots.
fn rates(limits: std::ops::Range<u32>) -> impl Strategy<Value = Vec<Numbers>> {
    let (bucket, bursts) = (|| even_buckets(limits.clone()), limits.clone());
    prop_oneof![
        (bucket(), bucket()).prop_map(|(one, other)| vec![one, other]),
        (bucket(), logs(bursts.clone())).prop_map(|(bucket, log)| vec![bucket, log]),
        (windows(bursts.clone()), bucket()).prop_map(|(window, bucket)| vec![window, bucket]),
        (logs(bursts.clone()), bucket(), windows(bursts))
            .prop_map(|(log, bucket, window)| vec![log, bucket, window]),
    ]
}

fn with_slots(limits: std::ops::Range<u32>) -> impl Strategy<Value = Vec<Numbers>> {
    let (bucket, most) = (even_buckets(limits.clone()), limits.clone());
    prop_oneof![
        (even_buckets(limits.clone()), slots(limits.clone(), 1_000))
            .prop_map(|(bucket, slots)| vec![bucket, slots]),
        (slots(limits.clone(), 1_000), logs(limits)).prop_map(|(slots, log)| vec![slots, log]),
        (bucket, logs(most.clone()), slots(most, 1_000))
            .prop_map(|(bucket, log, slots)| vec![bucket, log, slots]),
    ]
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn a_set_is_charged_when_it_is_released(
        limits in rates(1..12),
        history in Operations { peeks: true, ..Operations::ARRIVALS }.histories(),
    ) {
        agree(Api::Store, &limits, ClockSteps::Fine, history)?;
    }

    #[test]
    fn cancelled_sets_leave_no_gap(
        limits in rates(1..12),
        history in Operations { drops: true, checks: true, ..Operations::ARRIVALS }.histories(),
    ) {
        agree(Api::Store, &limits, ClockSteps::Fine, history)?;
    }

    #[test]
    fn late_timers_lose_no_capacity_of_a_set(
        limits in rates(1..12),
        steps in prop::sample::select(vec![ClockSteps::Coarse, ClockSteps::CoarseReversed]),
        history in Operations { longest: 20_000, drops: true, ..Operations::ARRIVALS }.histories(),
    ) {
        agree(Api::Store, &limits, steps, history)?;
    }

    #[test]
    fn unpolled_sets_do_not_block_the_queue(
        limits in rates(1..12),
        history in Operations { unpolled: true, drops: true, ..Operations::ARRIVALS }.histories(),
    ) {
        agree(Api::Store, &limits, ClockSteps::Fine, history)?;
    }

    #[test]
    fn deadlines_of_sets_are_judged_on_arrival(
        limits in rates(1..12),
        history in Operations { deadlines: true, drops: true, ..Operations::ARRIVALS }.histories(),
    ) {
        agree(Api::Store, &limits, ClockSteps::Fine, history)?;
    }

    #[test]
    fn changes_to_one_limit_apply_to_all_waiting_sets(
        limits in rates(5..12),
        history in Operations { changes: true, acts: true, drops: true, ..Operations::ARRIVALS }.histories(),
    ) {
        agree(Api::Store, &limits, ClockSteps::Fine, history)?;
    }

    #[test]
    fn a_set_enters_its_slots_when_it_is_released(
        limits in with_slots(1..8),
        history in Operations { leaves: true, peeks: true, drops: true, ..Operations::ARRIVALS }.histories(),
    ) {
        agree(Api::Store, &limits, ClockSteps::Fine, history)?;
    }

    #[test]
    fn late_timers_delay_no_set_with_slots(
        limits in with_slots(1..8),
        steps in prop::sample::select(vec![ClockSteps::Coarse, ClockSteps::CoarseReversed]),
        history in Operations { leaves: true, drops: true, ..Operations::ARRIVALS }.histories(),
    ) {
        agree(Api::Store, &limits, steps, history)?;
    }
}
