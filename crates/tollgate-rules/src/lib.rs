//! The grammar of limits: what people write, turned into what [`tollgate`] computes with.
//!
//! ```
//! use tollgate_rules::{ParsedLimit, parse_limit};
//!
//! let parsed = parse_limit("token_bucket: { rate: 10/s, burst: 5 }")?;
//! let ParsedLimit::Limit(limit) = parsed else { panic!("a token bucket is a charge") };
//! assert_eq!(limit.name(), "token_bucket");
//! # Ok::<(), tollgate_rules::Mistakes>(())
//! ```
//!
//! - [`parse_rate`], [`parse_duration`] and [`parse_size`] read one quantity.
//! - [`parse_limit`] reads one limit: an algorithm's name and its numbers, in YAML.
//! - [`Program`] is a rule file made ready: which route takes a [`Request`], which rules apply, whose buckets they charge.
//! - [`Explanation`] tells a person why.
//! - [`Mistakes`] lists everything that is wrong with a text at once, each with its path and place.
//!
//! Text is read into a raw form that knows where everything stands, and turned into the domain type once. Nothing is
//! guessed: an unknown name, a key given twice or a quantity that would have to be rounded is a mistake, and zero never
//! means unlimited.

mod decode;
mod explain;
mod keys;
mod limit;
mod mistake;
pub mod model;
mod nearest;
mod program;
mod quantity;
mod reading;
mod request;
mod rewrite;
mod yaml;

pub use explain::{ChargeReport, Explanation, KeyReport, Outcome, PassedOver, RuleReport};
pub use keys::{KeyTexts, KeyValues, Keyed, Units};
pub use limit::{ParsedLimit, parse_limit};
pub use mistake::{Mistake, Mistakes};
pub use model::RuleFile;
pub use nearest::nearest;
pub use program::{
    ChargeId, ChargedLimit, Found, InlineLimit, Program, RouteId, RuleCharge, RuleEntry, RuleId,
};
pub use quantity::{Problem, Quantity, QuantityError, parse_duration, parse_rate, parse_size};
pub use reading::normal_path;
pub use request::Request;
pub use rewrite::rewrite;
