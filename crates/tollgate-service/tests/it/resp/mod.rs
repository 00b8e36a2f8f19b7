//! The door for Redis clients, on a real socket.

mod abuse;
mod cells;
mod limits;
pub(crate) mod stage;
mod talking;
