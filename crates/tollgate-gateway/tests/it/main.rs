//! The gateway from outside: real sockets on free ports, nothing but loopback.

mod abuse;
mod draining;
mod forwarding;
mod http2;
mod interim;
mod stage;
mod streams;
mod tls;
mod upstreams;
