//! The store from outside, against real servers.

mod conformance;
mod server;
mod turns;
