//! The kit itself: a test that leans on it should not have to doubt it.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod arrivals;
mod clusters;
mod databases;
mod fuzzing;
mod left_behind;
mod proxies;
mod sentinels;
mod servers;
