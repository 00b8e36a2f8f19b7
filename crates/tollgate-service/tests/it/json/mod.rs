//! The JSON door, from outside: real connections, a clock that is moved by hand.

mod answers;
mod fuzzing;
mod http;
mod ids;
mod mistakes;
mod openapi;
mod permits;
mod redis;
mod same;
pub(crate) mod stage;
mod waiting;
