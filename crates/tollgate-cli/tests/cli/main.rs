//! The binary as a person runs it.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod algorithms;
mod clients;
mod demo;
mod help;
mod mistakes;
mod ops;
mod replay;
mod schedules;
mod served;
mod stores;
mod traces;
