//! Counters, gauges and histograms made for a path that is walked a million times a second.
//!
//! Written out here, since what matters is what the usual crates do not do: every value is spread over cache lines that
//! cores do not share, so that counting is one uncontended addition; a handle is had once, when rules are compiled, and
//! nothing is looked up or allocated afterwards. What is left to write is a text format of a page.
//!
//! **Reloads.** A series is known by its labels: whoever asks for the same ones has the same counter, so totals go on over a
//! reload. A series that nobody holds any more stays, with its total, if it was ever used, since a counter that vanishes
//! between two scrapes loses what it counted in between; if it was not, it disappears. So that rules which get new names for
//! ever do not fill the memory, a family keeps at most [`MAX_RETIRED`](family::MAX_RETIRED) that nobody holds, and forgets
//! those first that were let go first.
//!
//! **Cardinality.** Labels come from the rule file alone: routes, rules, upstreams. Never from a request.

mod cells;
mod counter;
mod family;
mod format;
mod gauge;
mod histogram;
mod meters;
mod registry;
mod row;
mod text;

pub(crate) use cells::{shard, shards};
pub use counter::Counter;
pub use family::Family;
pub use format::Format;
pub use gauge::Gauge;
pub use histogram::Histogram;
pub use meters::{AnswerMeter, Meters, Outcome, RouteMeter, RuleMeter, RuledMeter};
pub use registry::Registry;
