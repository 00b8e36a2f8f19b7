//! The gateway with rules, from outside: a real server on a free port, real upstreams behind it, nothing but loopback.
//!
//! Most tests stop the store's clock, so that what is refused once stays refused until the clock is moved.

mod aborts;
mod clients;
mod dodging;
mod giving_up;
mod http2;
mod nginx;
mod paths;
mod refusing;
mod reloading;
mod shared;
mod slots;
mod soul;
mod stage;
mod stepped;
mod switches;
mod together;
mod tunnels;
mod waiting;
