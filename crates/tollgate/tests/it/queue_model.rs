//! Property tests of waiting against a plain model: one FIFO queue whose head is released as soon as its limits have room.
//!
//! Random histories run in virtual time: arrivals, costs, deadlines, drops (before the first poll, and before, at and after the
//! release), futures that are never polled again, checks, changed numbers, resets, refunds, grants and bans. The release times
//! must equal the model's to the nanosecond, also when a waiter is polled late. A waiter that is dropped before its release
//! must leave no trace. Independently of the model, every window of release times admits at most `burst + rate * t`, and
//! releases follow the order of arrival.

mod any_limit;
mod harness;
mod history;
mod library;
mod limit_models;
mod long_histories;
mod mixed_sets;
mod model;
mod sets;
mod windows;

use crate::limits::cases;
use harness::{ClockSteps, agree};
use history::{Operations, buckets};
use library::apis;
use proptest::prelude::*;

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn waiters_are_released_in_order_at_exact_times(api in apis(), limit in buckets(1..12), history in Operations::ARRIVALS.histories()) {
        agree(api, &[limit], ClockSteps::Fine, history)?;
    }

    #[test]
    fn waiters_consume_nothing_before_their_release(
        api in apis(),
        limit in buckets(1..12),
        history in Operations { peeks: true, ..Operations::ARRIVALS }.histories(),
    ) {
        agree(api, &[limit], ClockSteps::Fine, history)?;
    }

    #[test]
    fn cancelled_waiters_leave_no_gap(
        api in apis(),
        limit in buckets(1..12),
        history in Operations { drops: true, ..Operations::ARRIVALS }.histories(),
    ) {
        agree(api, &[limit], ClockSteps::Fine, history)?;
    }

    #[test]
    fn late_timers_lose_no_capacity(
        steps in prop::sample::select(vec![ClockSteps::Coarse, ClockSteps::CoarseReversed]),
        api in apis(),
        limit in buckets(1..12),
        history in Operations { longest: 20_000, drops: true, checks: true, ..Operations::ARRIVALS }.histories(),
    ) {
        agree(api, &[limit], steps, history)?;
    }

    #[test]
    fn deadlines_are_judged_on_arrival(
        api in apis(),
        limit in buckets(1..12),
        history in Operations { deadlines: true, drops: true, ..Operations::ARRIVALS }.histories(),
    ) {
        agree(api, &[limit], ClockSteps::Fine, history)?;
    }

    #[test]
    fn checks_do_not_overtake_the_queue(
        api in apis(),
        limit in buckets(1..12),
        history in Operations { checks: true, drops: true, ..Operations::ARRIVALS }.histories(),
    ) {
        agree(api, &[limit], ClockSteps::Fine, history)?;
    }

    #[test]
    fn unpolled_futures_do_not_block_the_queue(
        api in apis(),
        limit in buckets(1..12),
        history in Operations { unpolled: true, ..Operations::ARRIVALS }.histories(),
    ) {
        agree(api, &[limit], ClockSteps::Fine, history)?;
    }

    /// A waiter behind several of them may be polled late, but is released as of its own time.
    #[test]
    fn unpolled_futures_among_drops_delay_no_release(
        api in apis(),
        limit in buckets(1..12),
        history in Operations { unpolled: true, drops: true, ..Operations::ARRIVALS }.histories(),
    ) {
        agree(api, &[limit], ClockSteps::Fine, history)?;
    }

    #[test]
    fn changed_numbers_apply_to_the_whole_queue(
        api in apis(),
        limit in buckets(5..12),
        history in Operations { changes: true, drops: true, ..Operations::ARRIVALS }.histories(),
    ) {
        agree(api, &[limit], ClockSteps::Fine, history)?;
    }

    #[test]
    fn deadlines_that_a_change_makes_unreachable_end_the_wait(
        api in apis(),
        limit in buckets(5..12),
        history in Operations { changes: true, deadlines: true, ..Operations::ARRIVALS }.histories(),
    ) {
        agree(api, &[limit], ClockSteps::Fine, history)?;
    }

    #[test]
    fn resets_refunds_grants_and_bans_apply_to_the_whole_queue(
        api in apis(),
        limit in buckets(5..12),
        history in Operations { acts: true, drops: true, ..Operations::ARRIVALS }.histories(),
    ) {
        agree(api, &[limit], ClockSteps::Fine, history)?;
    }
}
