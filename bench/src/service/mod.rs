//! The doors that answer questions, next to what a client would ask otherwise.
//!
//! - [`resp`]: Redis clients, next to a real Redis that only counts.
//! - [`load`]: who asks: connections that each ask again as soon as they were answered.
//! - [`server`]: servers in processes of their own, and what they spend.

mod load;
mod resp;
pub(crate) mod server;

pub(crate) use resp::run;
