//! The library as its users see it: one binary, on manual clocks.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[cfg(feature = "tokio")]
mod aborted_tasks;
mod booking;
mod bounds;
mod by_hand;
mod cancelled_reservations;
mod cancelled_turns;
mod cells;
mod changes;
mod exactness;
mod extremes;
mod forecasts;
mod given_back;
mod guava;
mod held;
mod limits;
mod lines;
mod many_limits;
mod paced;
mod permits;
mod pitfalls;
mod queue_model;
mod queue_rules;
mod regressions;
mod reservations;
mod reserved_turns;
mod seeds;
mod sets;
mod tables;
mod tasks;
mod threads;
mod turns;
mod waiting;
mod waiting_sets;
mod wakers;
