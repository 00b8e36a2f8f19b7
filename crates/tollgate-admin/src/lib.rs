//! Tollgate seen from outside: is it alive, is it ready, what does it count, whom does it limit.
//!
//! - [`Meters`] are what Tollgate counts: handles are had when rules are compiled, and used without looking anything up;
//!   [`Registry`] and its [`Family`]s are underneath, for whoever counts something else.
//! - [`Sketch`] knows the busiest keys, in bounded memory. No metric has a key for a label: there are as many keys as
//!   somebody cares to send.
//! - [`State`] is what the program tells about itself, and [`Admin`] the listener that shows it all.
//!
//! It knows no gateway and no Redis; it asks for what it shows.

mod api;
mod metrics;
mod pages;
mod server;
mod sketch;
mod state;

pub use api::{
    Access, Asset, Doing, Events, Held, KeyAct, KeyError, Line, Naming, Needs, NoRandomness, Node,
    OpenListener, Operated, Operation, Recorder, Refusal, Traffic, UpstreamServer, UpstreamState, Who,
    fresh_token,
};
pub use metrics::{
    AnswerMeter, Counter, Family, Format, Gauge, Histogram, Meters, Outcome, Registry, RouteMeter, RuleMeter,
    RuledMeter,
};
pub use server::Admin;
pub use sketch::{Heavy, HeavyKey, KeyMeter, Ranking, Sketch};
pub use state::{
    Component, Condition, Explaining, ReloadFailure, RuleMistake, RulesState, State, StoreMode, StoreState,
    Unexplained,
};
