//! What listeners share, from outside.

mod ceiling;
mod drain;
mod listener;
mod tls;
mod watch;
mod worker_pool;
