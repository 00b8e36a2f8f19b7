//! Limits shared by a fleet through Redis: the same decisions as in memory, made by one script on the server's clock.

mod across;
mod address;
mod breaker;
mod builder;
mod failure;
mod gather;
mod guard;
mod health;
mod lease;
mod leasing;
mod limit;
mod link;
mod names;
mod numbers;
mod packing;
mod question;
mod script;
mod store;
mod turn;

pub use builder::{OpenError, RedisStoreBuilder};
pub use health::{Health, HealthState};
pub use limit::RedisLimit;
pub use store::RedisStore;
pub use turn::{RedisPermit, RedisReservation, TurnError};
