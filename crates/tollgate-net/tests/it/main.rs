//! What listeners share, from outside.

mod ceiling;
mod crew;
mod drain;
mod listener;
mod tls;
mod watch;
