//! Where state lives: in this process's memory, bounded.

mod arena;
mod change;
mod entry;
mod extras;
mod fast_path;
mod gate;
mod key_counts;
mod key_ops;
mod landlord;
mod limit_list;
mod memory;
mod seam;
mod set;
mod slots;
mod store_limiter;
mod table;
mod word_set;

pub(crate) use table::Tag;

pub use memory::{Bounds, LimitHandle, MemoryStore, StoreError, WhenFull};
pub use seam::{Answer, Enter, Entered, Held, NewLimit, Sealed, Store};
pub use store_limiter::{LimiterWait, StoreLimiter};
