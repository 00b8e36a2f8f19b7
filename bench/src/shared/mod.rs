//! Limits shared through Redis, next to the script that most gateways run there, and to the least that one can ask.
//!
//! - [`ours`]: Tollgate, exact or with units taken ahead.
//! - [`peers`]: the usual script, one call a decision; and one `INCR` a decision, which decides nothing: the ceiling.
//! - [`callers`]: who asks: tasks that each ask again as soon as they were answered.
//! - [`server`]: the real server, and what it says it spent.
//! - [`grid`]: which loads are measured, and what each is to come to.
//!
//! All of it on one machine: callers, client and server share its cores, so that a decision's cost to the client shows in
//! the decisions a second as the server's does. All subjects ask through the same client, one connection each.

mod callers;
mod grid;
mod ours;
mod peers;
mod server;
mod subject;

pub(crate) use grid::run;
