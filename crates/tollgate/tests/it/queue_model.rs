//! Waiting, against a plain model of it: one queue, whose first goes as soon as its limits have room.
//!
//! Random histories of arrivals, costs, deadlines, drops (without a poll, before, at and after the release), futures that nobody
//! polls any more, checks, changed numbers, resets, refunds, grants and bans, in virtual time. Everybody has to be released at
//! the very nanosecond at which the model says, however late it is polled; whoever gives up before its release must leave no
//! trace; and whatever the model says, any stretch of time admits at most `burst + rate * t`, first come, first served.

mod any_limit;
mod drive;
mod history;
mod library;
mod long_histories;
mod meters;
mod mixed_sets;
mod model;
mod sets;
mod windows;

use crate::limits::cases;
use drive::{Steps, agree};
use history::{Mix, buckets};
use library::ways;
use proptest::prelude::*;

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn nobody_gives_up(way in ways(), limit in buckets(1..12), history in Mix::ARRIVALS.histories()) {
        agree(way, &[limit], Steps::Fine, history)?;
    }

    #[test]
    fn who_waits_has_taken_nothing(
        way in ways(),
        limit in buckets(1..12),
        history in Mix { peeks: true, ..Mix::ARRIVALS }.histories(),
    ) {
        agree(way, &[limit], Steps::Fine, history)?;
    }

    #[test]
    fn who_gives_up_leaves_no_hole(
        way in ways(),
        limit in buckets(1..12),
        history in Mix { drops: true, ..Mix::ARRIVALS }.histories(),
    ) {
        agree(way, &[limit], Steps::Fine, history)?;
    }

    #[test]
    fn late_timers_lose_nothing(
        steps in prop::sample::select(vec![Steps::Coarse, Steps::Reversed]),
        way in ways(),
        limit in buckets(1..12),
        history in Mix { longest: 20_000, drops: true, checks: true, ..Mix::ARRIVALS }.histories(),
    ) {
        agree(way, &[limit], steps, history)?;
    }

    #[test]
    fn deadlines_are_judged_on_arrival(
        way in ways(),
        limit in buckets(1..12),
        history in Mix { deadlines: true, drops: true, ..Mix::ARRIVALS }.histories(),
    ) {
        agree(way, &[limit], Steps::Fine, history)?;
    }

    #[test]
    fn a_check_does_not_overtake(
        way in ways(),
        limit in buckets(1..12),
        history in Mix { checks: true, drops: true, ..Mix::ARRIVALS }.histories(),
    ) {
        agree(way, &[limit], Steps::Fine, history)?;
    }

    #[test]
    fn a_future_that_nobody_polls_holds_nobody_up(
        way in ways(),
        limit in buckets(1..12),
        history in Mix { forgotten: true, drops: true, ..Mix::ARRIVALS }.histories(),
    ) {
        agree(way, &[limit], Steps::Fine, history)?;
    }

    #[test]
    fn changed_numbers_reach_everybody(
        way in ways(),
        limit in buckets(5..12),
        history in Mix { changes: true, drops: true, ..Mix::ARRIVALS }.histories(),
    ) {
        agree(way, &[limit], Steps::Fine, history)?;
    }

    #[test]
    fn who_can_no_longer_be_in_time_is_told(
        way in ways(),
        limit in buckets(5..12),
        history in Mix { changes: true, deadlines: true, ..Mix::ARRIVALS }.histories(),
    ) {
        agree(way, &[limit], Steps::Fine, history)?;
    }

    #[test]
    fn resets_refunds_grants_and_bans_reach_everybody(
        way in ways(),
        limit in buckets(5..12),
        history in Mix { acts: true, drops: true, ..Mix::ARRIVALS }.histories(),
    ) {
        agree(way, &[limit], Steps::Fine, history)?;
    }
}
