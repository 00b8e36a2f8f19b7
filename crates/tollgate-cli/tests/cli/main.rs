//! The binary as a person runs it.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod admin;
mod algorithms;
mod asking;
mod check;
mod clients;
mod dashboard;
mod database;
#[cfg(feature = "demo")]
mod demo;
mod docs;
mod explain;
mod folder;
mod hangup;
mod help;
mod huge;
mod logs;
mod mistakes;
mod opened;
mod ops;
mod reload;
mod replay;
mod requests;
mod resp;
mod rls;
mod rules;
mod schedules;
mod served;
mod serving;
mod spans;
mod stores;
mod tls;
mod top;
mod traces;
