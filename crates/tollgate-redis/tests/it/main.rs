//! The store from outside, against real servers.

mod cancels;
mod cells;
mod conformance;
mod crowd;
mod expiry;
mod generations;
mod leases;
mod ping;
mod regressions;
mod reservations;
mod server;
mod turns;
mod waiting;
