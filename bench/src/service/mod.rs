//! The doors that answer questions, next to servers that people use for the same.
//!
//! - [`server`]: ours in a process of its own, a real Redis, throttlecrab-server, a tonic service that decides nothing.
//! - [`load`], [`resp`]: Redis clients of ours, and what they are told.
//! - [`grpc`]: Envoy's questions, asked by h2load, and by [`paced`] at an even pace, over connections of [`asker`].
//! - [`in_process`]: the same within a program, next to limitador's library.
//!
//! throttlecrab-server and limitador are built by `make bench`; a quick run leaves them out.

mod asker;
mod grpc;
mod in_process;
mod load;
mod paced;
mod resp;
pub(crate) mod server;

use crate::{effort::Effort, report::Report};

pub(crate) fn run(report: &mut Report, effort: &Effort) {
    resp::run(report, effort);
    grpc::run(report, effort);
    in_process::run(report, effort);
}
