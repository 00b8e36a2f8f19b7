//! The store from outside, against real servers.

mod conformance;
mod crowd;
mod generations;
mod leases;
mod server;
mod turns;
