//! The rule file from outside: what people write, what they are told when it is wrong, what a request meets.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod agreement;
mod build;
mod conditions;
mod decision;
mod domains;
mod example;
mod examples;
mod explaining;
mod keying;
mod limits;
mod matching;
mod mistakes;
mod operators;
mod oracle;
mod pieces;
mod robust;
mod schema;
mod secrets;
mod session;
mod spellings;
mod switches;
mod yaml;
