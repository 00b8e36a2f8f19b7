//! Where state lives: in this process's memory, bounded.

mod arena;
mod extras;
mod memory;
mod numbers;
mod set;
mod table;

pub(crate) use memory::Mode;
pub(crate) use numbers::Numbers;

pub use memory::{Bounds, LimitHandle, MemoryStore, StoreError, WhenFull};
