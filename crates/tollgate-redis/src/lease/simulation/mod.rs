//! A fleet in one process: nodes with clocks of their own, a network that delays and loses, a model of the server, and a
//! checker that knows nothing of leases and judges what was admitted by the limit's own rule.
//!
//! The nodes run the real [`Ledger`](super::Ledger); the server is a model that the script restates. A run is a function of
//! its plan and one seed. `LEASE_RUNS=20000 cargo test -p tollgate-redis --release lease -- --nocapture` plays more of them than a
//! build should wait for, and prints what leasing costs and saves.

mod against_redis;
mod by_hand;
mod checker;
mod clock;
mod exactness;
mod faults;
mod fleet;
mod node;
mod plan;
mod runs;
mod server;
mod shares;
