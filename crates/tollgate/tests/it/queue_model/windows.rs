//! Windows, logs and slots against the model.

use super::{
    drive::{Steps, agree},
    history::{Mix, Numbers, logs, slots, windows},
    library::ways,
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

/// Wherever somebody waits already.
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
    fn who_gives_up_in_front_of_a_window_leaves_no_trace(
        way in ways(),
        limit in windowed(1..12),
        history in Mix { drops: true, checks: true, peeks: true, ..Mix::ARRIVALS }.histories(),
    ) {
        agree(way, &[limit], Steps::Fine, history)?;
    }

    #[test]
    fn late_timers_lose_nothing_of_a_window(
        way in ways(),
        limit in windowed(1..12),
        steps in prop::sample::select(vec![Steps::Coarse, Steps::Reversed]),
        history in Mix { longest: 20_000, drops: true, checks: true, ..Mix::ARRIVALS }.histories(),
    ) {
        agree(way, &[limit], steps, history)?;
    }

    #[test]
    fn deadlines_at_a_window_are_judged_on_arrival(
        way in ways(),
        limit in windowed(1..12),
        history in Mix { deadlines: true, drops: true, ..Mix::ARRIVALS }.histories(),
    ) {
        agree(way, &[limit], Steps::Fine, history)?;
    }

    #[test]
    fn a_forgotten_future_holds_nobody_up_at_a_window(
        way in ways(),
        limit in windowed(1..12),
        history in Mix { forgotten: true, drops: true, ..Mix::ARRIVALS }.histories(),
    ) {
        agree(way, &[limit], Steps::Fine, history)?;
    }

    #[test]
    fn what_is_done_to_a_window_reaches_everybody(
        way in ways(),
        limit in windowed(5..12),
        history in Mix { changes: true, acts: true, drops: true, deadlines: true, ..Mix::ARRIVALS }.histories(),
    ) {
        agree(way, &[limit], Steps::Fine, history)?;
    }

    #[test]
    fn slots_go_to_the_first_who_still_waits(
        way in ways(),
        limit in slots(1..8, 1_000),
        history in Mix { leaves: true, drops: true, checks: true, peeks: true, ..Mix::ARRIVALS }.histories(),
    ) {
        agree(way, &[limit], Steps::Fine, history)?;
    }

    /// Nobody knows when a slot comes back: such a wait ends at its deadline.
    #[test]
    fn a_wait_for_a_slot_ends_at_its_deadline(
        way in ways(),
        limit in slots(1..8, 1_000),
        history in Mix { leaves: true, drops: true, deadlines: true, ..Mix::ARRIVALS }.histories(),
    ) {
        agree(way, &[limit], Steps::Fine, history)?;
    }

    #[test]
    fn no_more_wait_for_slots_than_may(
        way in ways(),
        limit in slots(1..4, 3),
        history in Mix { leaves: true, drops: true, ..Mix::ARRIVALS }.histories(),
    ) {
        agree(way, &[limit], Steps::Fine, history)?;
    }

    #[test]
    fn late_timers_hold_up_no_slot(
        way in ways(),
        limit in slots(1..8, 1_000),
        steps in prop::sample::select(vec![Steps::Coarse, Steps::Reversed]),
        history in Mix { leaves: true, drops: true, ..Mix::ARRIVALS }.histories(),
    ) {
        agree(way, &[limit], steps, history)?;
    }

    #[test]
    fn more_or_fewer_slots_reach_everybody(
        way in ways(),
        limit in slots(5..8, 1_000),
        history in Mix { leaves: true, drops: true, changes: true, ..Mix::ARRIVALS }.histories(),
    ) {
        agree(way, &[limit], Steps::Fine, history)?;
    }
}
