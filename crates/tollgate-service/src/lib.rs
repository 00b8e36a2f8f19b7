//! The doors that answer questions: may this pass?
//!
//! Every door speaks a protocol of its own and asks at the same [desk](Desk): a bucket that is charged through one is seen by
//! the others, and by the gateway, where the limit and the key are the same.
//!
//! ```text
//! resp  ─┐
//! json  ─┼─> Desk ─> Enforcer (rules in force) ─> Store
//! rls   ─┘
//! ```
//!
//! A door turns bytes into [`Question`]s and a [`SetStatus`](tollgate::SetStatus) into bytes. What a limit is called, which
//! numbers a key has, what the global switch says and who keeps the books is the desk's business.

mod desk;
mod json;
mod resp;
pub mod rls;

pub use desk::{
    Answered, AskError, CellAnswered, Described, Desk, DoorName, Ledger, NoLedger, Question, Sitting, Stood,
    Which,
};
pub use json::{Json, JsonSettings, openapi};
pub use resp::{Resp, RespSettings};
pub use rls::{Rls, RlsSettings};
