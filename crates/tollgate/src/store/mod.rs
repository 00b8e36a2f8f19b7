//! Where state lives: in this process's memory, bounded.

mod arena;
mod change;
mod entry;
mod extras;
mod gate;
mod key_counts;
mod landlord;
mod memory;
mod numbers;
mod places;
mod seam;
mod set;
mod short;
mod short_set;
mod store_limiter;
mod table;
mod verbs;

pub(crate) use numbers::{Edition, Numbers};
pub(crate) use table::Print;

pub use memory::{Bounds, LimitHandle, MemoryStore, StoreError, WhenFull};
pub use seam::{Answer, Enter, Entered, Held, Store};
pub use store_limiter::{LimiterWait, StoreLimiter};
