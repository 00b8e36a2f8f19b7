//! What people write, and what they are told when it is wrong.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod conditions;
mod example;
mod examples;
mod limits;
mod mistakes;
mod robust;
mod schema;
mod secrets;
mod yaml;
