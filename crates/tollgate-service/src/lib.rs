//! The decision APIs: RESP, JSON over HTTP and Envoy's rate limit service.
//!
//! Each speaks a protocol of its own and asks the same [`DecisionService`](tollgate_rules::DecisionService): a bucket that is
//! charged through one is seen by the others, and by the gateway, where the limit and the key are the same.
//!
//! ```text
//! resp  ─┐
//! json  ─┼─> DecisionService ─> Store
//! rls   ─┘
//! ```
//!
//! An API turns bytes into charges and decisions into bytes. Names of limits, numbers of keys, the global switch, failures of
//! the store and recording are the decision service's business.

mod json;
mod resp;
pub mod rls;

pub use json::{Json, JsonSettings, openapi};
pub use resp::{Resp, RespSettings};
pub use rls::{Rls, RlsSettings};
