//! The decision service: the one path from every API to the store.
//!
//! ```text
//! resp, json ──── named and defined limits ─┐
//! rls ─────────── descriptors of domains ───┼─> Session ─> Store
//! gateway ─────── rules of a request ───────┘      └─────> Recorder
//! ```
//!
//! A [`DecisionService`] holds the [`RuleSnapshot`] in force on a store, and replaces it when the rules change, all or
//! nothing. An API opens a [`Session`] on the snapshot for one request, or for a pipeline of them. The session applies the
//! global switch, finds the numbers that a key has of its own, asks the store, and tells the [`Recorder`]. What a decision
//! looks like on the wire is up to each API.
//!
//! - `service.rs` the rules in force and their replacement; `snapshot.rs` one file bound to a store; `limits.rs` its limits
//!   added, changed and removed;
//! - `session.rs` limits by name or by definition; `throttle.rs` buckets whose numbers come with the request; `descriptors.rs`
//!   descriptors of domains; `request.rs` requests of the gateway; `admission.rs` how a set is put to the store;
//! - `operator.rs` single keys seen and changed by an operator;
//! - `definitions.rs` the limits that come with requests; `recorder.rs` what is recorded; `error.rs` why nothing was decided.

mod admission;
mod definitions;
mod descriptors;
mod error;
mod limits;
mod operator;
mod recorder;
mod request;
mod service;
mod session;
mod snapshot;
mod throttle;

pub use admission::SetDecision;
pub use descriptors::{DescriptorCharge, DescriptorDecision, DescriptorLimit, Descriptors};
pub use error::{BindError, DecisionError};
pub use operator::KeyControl;
pub use recorder::{Api, ChargeOutcome, ChargeRecord, NoRecorder, RecordedLimit, Recorder, RequestRecord};
pub use request::{Body, Outcome, RequestDecision, Shadow, Stand, Why};
pub use service::DecisionService;
pub use session::{ChargeRequest, LimitRef, Session};
pub use snapshot::RuleSnapshot;
