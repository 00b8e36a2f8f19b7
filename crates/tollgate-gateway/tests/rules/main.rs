//! The gateway with rules, from outside: a real server on a free port, real upstreams behind it, nothing but loopback.
//!
//! Most tests stop the store's clock, so that what is refused once stays refused until the clock is moved.

#![recursion_limit = "256"]

mod aborts;
mod clients;
mod dodging;
mod giving_up;
mod nginx;
mod paths;
mod refusing;
mod reloading;
mod shared;
mod slots;
mod soul;
mod stage;
mod switches;
mod together;
mod tunnels;
mod waiting;
