//! The door for Redis clients, on a real socket.

mod abuse;
mod cells;
mod limits;
mod stage;
mod talking;
