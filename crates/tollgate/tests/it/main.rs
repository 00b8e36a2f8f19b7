//! The library as its users see it: one binary, on manual clocks.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod booking;
mod bounds;
mod changes;
mod exactness;
mod extremes;
mod guava;
mod limits;
mod paced;
mod permits;
mod pitfalls;
mod regressions;
mod review;
mod seeds;
mod sets;
mod tables;
mod tasks;
mod threads;
mod turns;
mod waiting;
