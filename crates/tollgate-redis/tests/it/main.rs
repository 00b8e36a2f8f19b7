//! The store from outside, against real servers.

mod conformance;
mod leases;
mod server;
mod turns;
