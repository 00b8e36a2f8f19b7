//! The real nginx, and our limits beside it on the same arrivals.
//!
//! What nginx does is pinned first, so that what is said about it in the documentation cannot go stale; then every
//! request it logged is put to our limit at the millisecond nginx logged, and has to fare the same.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod limit_conn;
mod limit_rate;
mod limit_req;
mod replay;
mod server;
