//! What Tollgate's tests share: real servers on free ports, and faults between them and us.
//!
//! Nothing here pretends to be Redis. A test starts the real server (alone, behind sentinels, or as a cluster), does to
//! it what happens to servers (kill, freeze, restart, fail over, move a slot), and puts a [`Proxy`] in between for what
//! happens to bytes. All of it lives on 127.0.0.1 and ends with the value that stands for it, or at the latest with the
//! test process.
//!
//! For tests only: what cannot go on panics, and says why.

mod cluster;
mod connection;
mod directory;
mod eventually;
mod launch;
mod migration;
mod port;
mod process;
mod proxy;
mod reply;
mod sentinels;
mod server;
mod slot;
mod tls;

pub use cluster::Cluster;
pub use connection::Connection;
pub use eventually::eventually;
pub use migration::Migration;
pub use proxy::Proxy;
pub use reply::Reply;
pub use sentinels::Sentinels;
pub use server::RedisServer;
pub use slot::{SLOTS, slot_of};
pub use tls::TlsFiles;
