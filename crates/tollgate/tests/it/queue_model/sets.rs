//! Sets of the same limits against the model: for them one line at a time is one queue, whose first goes when all its limits have
//! room, and which is charged then.

use super::{
    drive::{Steps, agree},
    history::{Mix, Numbers, even_buckets, logs, slots, windows},
    library::Way,
};
use crate::limits::cases;
use proptest::prelude::*;

/// Of rates alone.
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
        history in Mix { peeks: true, ..Mix::ARRIVALS }.histories(),
    ) {
        agree(Way::Store, &limits, Steps::Fine, history)?;
    }

    #[test]
    fn a_set_that_gives_up_leaves_no_trace(
        limits in rates(1..12),
        history in Mix { drops: true, checks: true, ..Mix::ARRIVALS }.histories(),
    ) {
        agree(Way::Store, &limits, Steps::Fine, history)?;
    }

    #[test]
    fn late_timers_lose_nothing_of_a_set(
        limits in rates(1..12),
        steps in prop::sample::select(vec![Steps::Coarse, Steps::Reversed]),
        history in Mix { longest: 20_000, drops: true, ..Mix::ARRIVALS }.histories(),
    ) {
        agree(Way::Store, &limits, steps, history)?;
    }

    #[test]
    fn a_set_that_nobody_polls_holds_nobody_up(
        limits in rates(1..12),
        history in Mix { forgotten: true, drops: true, ..Mix::ARRIVALS }.histories(),
    ) {
        agree(Way::Store, &limits, Steps::Fine, history)?;
    }

    #[test]
    fn deadlines_of_sets_are_judged_on_arrival(
        limits in rates(1..12),
        history in Mix { deadlines: true, drops: true, ..Mix::ARRIVALS }.histories(),
    ) {
        agree(Way::Store, &limits, Steps::Fine, history)?;
    }

    #[test]
    fn what_is_done_to_a_limit_reaches_every_set(
        limits in rates(5..12),
        history in Mix { changes: true, acts: true, drops: true, ..Mix::ARRIVALS }.histories(),
    ) {
        agree(Way::Store, &limits, Steps::Fine, history)?;
    }

    #[test]
    fn a_set_enters_its_slots_when_it_is_released(
        limits in with_slots(1..8),
        history in Mix { leaves: true, peeks: true, drops: true, ..Mix::ARRIVALS }.histories(),
    ) {
        agree(Way::Store, &limits, Steps::Fine, history)?;
    }

    #[test]
    fn late_timers_hold_up_no_set_with_slots(
        limits in with_slots(1..8),
        steps in prop::sample::select(vec![Steps::Coarse, Steps::Reversed]),
        history in Mix { leaves: true, drops: true, ..Mix::ARRIVALS }.histories(),
    ) {
        agree(Way::Store, &limits, steps, history)?;
    }
}
