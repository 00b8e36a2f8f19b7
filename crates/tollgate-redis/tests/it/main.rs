//! The store from outside, against real servers.

mod conformance;
mod crowd;
mod generations;
mod leases;
mod regressions;
mod server;
mod turns;
