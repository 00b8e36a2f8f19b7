//! Windows, logs and slots against the model.

use super::{
    harness::{ClockSteps, agree},
    history::{Numbers, Operations, logs, slots, windows},
    library::apis,
};
use crate::{
    by_hand::{SECOND, bucket, limiter, log},
    limits::cases,
    tasks::Tasks,
};
use proptest::prelude::*;
use tollgate::{Concurrency, FixedWindow, Limit, Permit, Reason, Refused};

fn windowed(limits: std::ops::Range<u32>) -> impl Strategy<Value = Numbers> {
    prop_oneof![windows(limits.clone()), logs(limits)]
}

/// Also behind a queue.
#[test]
fn a_cost_above_the_limit_is_refused_at_once_behind_a_queue() {
    let limits: [Limit; 4] = [bucket(1, 2).into(), log(2).into(), fixed(2).into(), slots_of_two().into()];
    for limit in limits {
        let (limiter, clock) = limiter(limit.clone());
        let mut tasks: Tasks<'_, Result<Permit<'_>, Refused>> = Tasks::on(&clock);
        tasks.start_all((0..5).map(|_| limiter.enter().cost(2)));
        let never = tasks.start(limiter.enter().cost(3));
        assert!(!tasks.is_running(never), "{limit:?}");
        let refused = tasks.done.pop().unwrap().2.unwrap_err();
        assert_eq!(refused.reason(), Reason::Never { cost: 3, most: 2 }, "{limit:?}");
    }
}

fn fixed(limit: u32) -> FixedWindow {
    FixedWindow::new(limit, SECOND).unwrap()
}

fn slots_of_two() -> Concurrency {
    Concurrency::new(2, SECOND).unwrap().with_queue(10)
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn cancelled_waiters_leave_no_gap_at_windows(
        api in apis(),
        limit in windowed(1..12),
        history in Operations { drops: true, checks: true, peeks: true, ..Operations::ARRIVALS }.histories(),
    ) {
        agree(api, &[limit], ClockSteps::Fine, history)?;
    }

    #[test]
    fn late_timers_lose_no_capacity_of_a_window(
        api in apis(),
        limit in windowed(1..12),
        steps in prop::sample::select(vec![ClockSteps::Coarse, ClockSteps::CoarseReversed]),
        history in Operations { longest: 20_000, drops: true, checks: true, ..Operations::ARRIVALS }.histories(),
    ) {
        agree(api, &[limit], steps, history)?;
    }

    #[test]
    fn deadlines_at_a_window_are_judged_on_arrival(
        api in apis(),
        limit in windowed(1..12),
        history in Operations { deadlines: true, drops: true, ..Operations::ARRIVALS }.histories(),
    ) {
        agree(api, &[limit], ClockSteps::Fine, history)?;
    }

    #[test]
    fn unpolled_futures_do_not_block_the_queue_of_a_window(
        api in apis(),
        limit in windowed(1..12),
        history in Operations { unpolled: true, drops: true, ..Operations::ARRIVALS }.histories(),
    ) {
        agree(api, &[limit], ClockSteps::Fine, history)?;
    }

    #[test]
    fn changes_to_a_window_apply_to_the_whole_queue(
        api in apis(),
        limit in windowed(5..12),
        history in Operations { changes: true, acts: true, drops: true, deadlines: true, ..Operations::ARRIVALS }.histories(),
    ) {
        agree(api, &[limit], ClockSteps::Fine, history)?;
    }

    #[test]
    fn free_slots_go_to_the_first_waiter(
        api in apis(),
        limit in slots(1..8, 1_000),
        history in Operations { leaves: true, drops: true, checks: true, peeks: true, ..Operations::ARRIVALS }.histories(),
    ) {
        agree(api, &[limit], ClockSteps::Fine, history)?;
    }

    /// The time at which a slot is returned is unknown, so the deadline is not judged on arrival.
    #[test]
    fn a_wait_for_a_slot_ends_at_its_deadline(
        api in apis(),
        limit in slots(1..8, 1_000),
        history in Operations { leaves: true, drops: true, deadlines: true, ..Operations::ARRIVALS }.histories(),
    ) {
        agree(api, &[limit], ClockSteps::Fine, history)?;
    }

    #[test]
    fn a_full_queue_for_slots_refuses_at_once(
        api in apis(),
        limit in slots(1..4, 3),
        history in Operations { leaves: true, drops: true, ..Operations::ARRIVALS }.histories(),
    ) {
        agree(api, &[limit], ClockSteps::Fine, history)?;
    }

    #[test]
    fn late_timers_delay_no_slot(
        api in apis(),
        limit in slots(1..8, 1_000),
        steps in prop::sample::select(vec![ClockSteps::Coarse, ClockSteps::CoarseReversed]),
        history in Operations { leaves: true, drops: true, ..Operations::ARRIVALS }.histories(),
    ) {
        agree(api, &[limit], steps, history)?;
    }

    #[test]
    fn a_changed_number_of_slots_applies_to_the_whole_queue(
        api in apis(),
        limit in slots(5..8, 1_000),
        history in Operations { leaves: true, drops: true, changes: true, ..Operations::ARRIVALS }.histories(),
    ) {
        agree(api, &[limit], ClockSteps::Fine, history)?;
    }
}
