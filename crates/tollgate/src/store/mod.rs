//! Where state lives: in this process's memory, bounded.

mod arena;
mod change;
mod entry;
mod extras;
mod landlord;
mod memory;
mod numbers;
mod set;
mod short;
mod table;
mod verbs;

pub(crate) use numbers::Numbers;
pub(crate) use short::Mode;

pub use memory::{Bounds, LimitHandle, MemoryStore, StoreError, WhenFull};
