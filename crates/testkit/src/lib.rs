//! What Tollgate's tests share: real servers on free ports, and faults between them and us.
//!
//! Nothing here pretends to be Redis, nginx, MariaDB or PostgreSQL. A test starts the real server (alone, behind sentinels, or as a cluster), does to
//! it what happens to servers (kill, freeze, restart, fail over, move a slot), and puts a [`Proxy`] in between for what
//! happens to bytes. [`Arrivals`] are requests at given times, played to [`Nginx`] or to what is measured against it, with
//! an [`Upstream`] behind. All of it lives on 127.0.0.1 and ends with the value that stands for it, or at the latest with the
//! test process.
//!
//! For tests only: what cannot go on panics, and says why.

mod app;
mod arrivals;
mod backstage;
mod cluster;
mod connection;
mod database;
mod directory;
mod envoy;
mod eventually;
mod fuzz;
mod haproxy;
mod http;
mod launch;
mod listening;
mod migration;
mod nginx;
mod port;
mod process;
mod proxy;
mod random;
mod reply;
mod sentinels;
mod server;
mod slot;
mod tls;
mod upstream;

pub use app::App;
pub use arrivals::{Answered, Arrival, Arrivals, Difference, Fate, Seen};
pub use cluster::Cluster;
pub use connection::Connection;
pub use database::DatabaseServer;
pub use envoy::{Envoy, envoy_clients};
pub use eventually::{eventually, eventually_async};
pub use fuzz::Fuzz;
pub use haproxy::Haproxy;
pub use migration::Migration;
pub use nginx::{Excess, Logged, Nginx};
pub use proxy::Proxy;
pub use random::Random;
pub use reply::Reply;
pub use sentinels::Sentinels;
pub use server::RedisServer;
pub use slot::{SLOTS, slot_of};
pub use tls::TlsFiles;
pub use upstream::{Asked, Canned, Upstream};
