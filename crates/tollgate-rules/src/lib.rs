//! The rule file: what people write, turned into what [`tollgate`] computes with.
//!
//! ```
//! use tollgate_rules::parse_rules;
//!
//! let file = parse_rules(
//!     "version: 1
//! limits:
//!   per-client: { token_bucket: { rate: 10/s, burst: 5 } }
//! everywhere:
//!   - name: per-ip
//!     limits: [{ use: per-client, key: [ip] }]
//! ",
//!     |name| std::env::var(name).ok(),
//! )?;
//! assert_eq!(file.limits[0].limit.name(), "token_bucket");
//! # Ok::<(), tollgate_rules::Mistakes>(())
//! ```
//!
//! - [`parse_rules`] reads a whole file into a [`RuleFile`]; [`read_rules`] does, and begins every mistake with its name.
//! - [`parse_limit`] reads one limit: an algorithm's name and its numbers, in YAML.
//! - [`parse_rate`], [`parse_duration`] and [`parse_size`] read one quantity.
//! - [`pieces`] are a file's parts by themselves, as a table keeps them, and how they are put together.
//! - [`Program`] is a rule file made ready: which route takes a [`Request`], which rules apply, whose buckets they charge.
//! - [`DecisionService`] puts a rule file in force on a store, and decides for every API.
//! - [`Explanation`] tells a person why.
//! - [`Mistakes`] lists everything that is wrong with a text at once, each with its path and place.
//! - [`json::read`] reads JSON that others send, strictly.
//! - [`json_schema`] and [`reference`](fn@reference) list every key, from the same description that the reader goes by.
//!
//! Text is read into a raw form that knows where everything stands, and turned into the domain type once. Nothing is
//! guessed: an unknown name, a key given twice or a quantity that would have to be rounded is a mistake, and zero never
//! means unlimited.

#[cfg(doctest)]
#[doc = include_str!("../../../docs/writing.md")]
mod documents {}

pub mod decision;
mod decode;
pub mod domains;
mod explain;
mod file;
pub mod json;
mod keys;
mod limit;
mod mistake;
pub mod model;
mod nearest;
pub mod pieces;
mod program;
mod quantity;
mod reading;
mod request;
mod rewrite;
mod schema;
mod yaml;

pub use decision::DecisionService;
pub use domains::Domains;
pub use explain::{ChargeReport, Explanation, KeyReport, Outcome, PassedOver, RuleReport};
pub use file::{BadRules, PatternError, Warning, parse_rules, read_rules};
pub use keys::{KeyTexts, KeyValues, Keyed, Units};
pub use limit::{ParsedLimit, parse_limit};
pub use mistake::{Mistake, Mistakes};
pub use model::RuleFile;
pub use nearest::nearest;
pub use program::{
    ChargeId, ChargedLimit, Found, InlineLimit, Invalid, NamedHeaders, Program, RouteId, RuleCharge,
    RuleEntry, RuleId,
};
pub use quantity::{Problem, Quantity, QuantityError, parse_duration, parse_rate, parse_size};
pub use reading::{PathError, decode_path, encode_path};
pub use request::Request;
pub use schema::{json_schema, reference};
