//! Limits shared by a fleet through Redis: the same decisions as in memory, made by one script on the server's clock.
//!
//! A [`RedisStore`] is a [`Store`](tollgate::Store): limits by name, and [`check`](tollgate::Store::check) for sets of charges.
//! [`wait`](RedisStore::wait), [`reserve`](RedisStore::reserve) and [`enter`](RedisStore::enter) have turns and slots for the
//! whole fleet. [`lease`](RedisStoreBuilder::lease) decides hot keys on the node. The book has the rest, in `docs/shared.md`.

#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
#[doc = include_str!("../../../README.zh-CN.md")]
#[doc = include_str!("../../../docs/shared.md")]
mod documents {}

mod across;
mod address;
mod asking;
mod breaker;
mod builder;
mod call;
mod cells;
mod failure;
mod flight;
mod gather;
mod guard;
mod hash;
mod health;
mod key_ops;
mod lease;
mod leasing;
mod level;
mod limit;
mod link;
mod names;
mod numbers;
mod packing;
mod purse;
mod question;
mod recent;
mod script;
mod slot;
mod status;
mod store;
mod turn;

pub use builder::{OpenError, RedisStoreBuilder};
pub use health::{Health, HealthState};
pub use limit::RedisLimit;
pub use store::RedisStore;
pub use turn::{RedisPermit, RedisReservation, RedisWait};
