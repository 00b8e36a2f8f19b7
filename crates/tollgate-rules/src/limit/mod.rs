//! A limit as it is written: one algorithm's name, and its numbers.
//!
//! ```yaml
//! token_bucket: { rate: 10/s, burst: 5 }
//! ```

mod buckets;
mod windows;

use crate::{
    decode::{Cursor, Fields, decode, listed},
    mistake::Mistakes,
    quantity::{parse_duration, parse_rate, parse_size},
    schema,
};
use std::time::Duration;
use tollgate::{Bandwidth, Concurrency, Limit, LimitError, Rate};

/// What a limit's text says: something a request is charged for, or the pace of a body.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ParsedLimit {
    /// A limit that requests are charged against.
    Limit(Limit),
    /// A pace for the bytes of one body; nobody is charged for it.
    Bandwidth(Bandwidth),
}

/// Reads one limit: a YAML mapping with exactly one algorithm.
///
/// | algorithm | numbers |
/// |---|---|
/// | `token_bucket` | `rate`, `burst`, `initial` (the burst), `refill` (`continuous`; or `interval`) |
/// | `leaky_bucket` | `rate`, `capacity`, `delay` (`none`; or how many pass at once) |
/// | `smooth_bursty` | `rate`, `max_burst` (`1s`), `initial` (0) |
/// | `smooth_warming_up` | `rate`, `warmup`, `cold_factor` (3) |
/// | `fixed_window` | `limit`, `window` (or `forever`), `align` (`epoch`; or `first_hit`, or `calendar`, where the window is `hour`, `day`, `week`, `month` or `year`), `time_zone` (`UTC`) |
/// | `sliding_log` | `limit`, `window` |
/// | `sliding_window` | `limit`, `window`, `precision` |
/// | `sliding_counter` | `limit`, `window` |
/// | `concurrency` | `limit`, `max_hold` (`1m`), `queue` (0) |
/// | `bandwidth` | `rate`, `after` (0) |
///
/// What stands in parentheses is used where a number is left out.
///
/// ```
/// use tollgate_rules::parse_limit;
///
/// let mistakes = parse_limit("token_bucket: { rate: 0/s, brust: 5 }").unwrap_err();
/// assert_eq!(
///     mistakes.to_string(),
///     "1:15: token_bucket.burst: is missing, such as `burst: 100`\n\
///      1:23: token_bucket.rate: must be greater than zero; \
///      read \"0/s\", expected a rate such as 10/s, 0.5/s or 100/30s\n\
///      1:28: token_bucket.brust: is not a known key; did you mean `burst`?"
/// );
/// ```
///
/// # Errors
/// Everything that is wrong with the text, at once.
pub fn parse_limit(text: &str) -> Result<ParsedLimit, Mistakes> {
    decode(text, |root| {
        let mut fields = root.mapping(&schema::LIMIT_ALONE)?;
        let found = algorithm(&mut fields, &[]);
        if found.is_none() {
            names_no_algorithm(&fields, &[]);
        }
        fields.finish();
        found?.parsed
    })
}

type Read = fn(&Cursor<'_>) -> Option<ParsedLimit>;

/// Every algorithm, by the name it has in a file.
const ALGORITHMS: [(&str, Read); 10] = [
    ("token_bucket", buckets::token_bucket),
    ("leaky_bucket", buckets::leaky_bucket),
    ("smooth_bursty", buckets::smooth_bursty),
    ("smooth_warming_up", buckets::smooth_warming_up),
    ("fixed_window", windows::fixed_window),
    ("sliding_log", windows::sliding_log),
    ("sliding_window", windows::sliding_window),
    ("sliding_counter", windows::sliding_counter),
    ("concurrency", concurrency),
    ("bandwidth", bandwidth),
];

/// An algorithm that was found in a mapping.
pub(crate) struct Algorithm<'a> {
    pub(crate) name: &'static str,
    /// Where its numbers stand.
    pub(crate) numbers: Cursor<'a>,
    /// How they are read.
    pub(crate) read: Read,
    /// What they say; `None` where they are wrong.
    pub(crate) parsed: Option<ParsedLimit>,
}

/// The one algorithm among the entries of a mapping, which may hold other keys too; those in `but` it must not have.
pub(crate) fn algorithm<'a>(fields: &mut Fields<'a>, but: &[&str]) -> Option<Algorithm<'a>> {
    let mut found: Option<Algorithm<'a>> = None;
    for (name, read) in ALGORITHMS.into_iter().filter(|(name, _)| !but.contains(name)) {
        let Some(numbers) = fields.optional(name) else { continue };
        // Read it even if it is one too many: its own mistakes are worth knowing.
        let parsed = read(&numbers);
        match &found {
            Some(first) => {
                let first = first.name;
                numbers.mistake(format!("cannot be combined with `{first}`: a limit has one algorithm"));
            }
            None => found = Some(Algorithm { name, numbers, read, parsed }),
        }
    }
    found
}

/// Notes that a mapping without an algorithm names none, unless a name that is not known tells it already.
pub(crate) fn names_no_algorithm(fields: &Fields<'_>, but: &[&str]) {
    if !fields.has_unknown() {
        let known = ALGORITHMS.iter().map(|(name, _)| *name).filter(|name| !but.contains(name));
        let example = schema::LIMIT_ALONE.example;
        fields.mistake_here(format!("names no algorithm, such as `{example}`; known are {}", listed(known)));
    }
}

fn concurrency(numbers: &Cursor<'_>) -> Option<ParsedLimit> {
    let mut fields = numbers.mapping(&schema::CONCURRENCY)?;
    let limit = fields.required("limit").and_then(|limit| limit.positive());
    let max_hold = fields.defaulted("max_hold", duration);
    let queue = fields.defaulted("queue", |it| it.count());
    fields.finish();
    let made = Concurrency::new(limit?, max_hold?).map(|limit| queue.map(|queue| limit.with_queue(queue)));
    accepted(&fields, made)?.map(charge)
}

fn bandwidth(numbers: &Cursor<'_>) -> Option<ParsedLimit> {
    let mut fields = numbers.mapping(&schema::BANDWIDTH)?;
    let pace = fields.required("rate").and_then(|pace| rate(&pace));
    let after = fields.defaulted("after", |after| after.parsed("a size such as 1MiB", parse_size));
    fields.finish();
    Some(ParsedLimit::Bandwidth(Bandwidth::new(pace?).with_after(after?)))
}

fn charge(limit: impl Into<Limit>) -> ParsedLimit {
    ParsedLimit::Limit(limit.into())
}

fn rate(cursor: &Cursor<'_>) -> Option<Rate> {
    cursor.parsed("a rate such as 10/s", parse_rate)
}

pub(crate) fn duration(cursor: &Cursor<'_>) -> Option<Duration> {
    cursor.parsed("a duration such as 30s", parse_duration)
}

/// What a key that may be left out says, or what holds without it; `None` where it is wrong.
pub(crate) fn defaulted<'a, T>(
    cursor: Option<Cursor<'a>>,
    default: T,
    read: impl FnOnce(&Cursor<'a>) -> Option<T>,
) -> Option<T> {
    cursor.map_or(Some(default), |cursor| read(&cursor))
}

/// What the algorithm's own constructor made; its objection is put where the setting stands.
fn accepted<T>(fields: &Fields<'_>, made: Result<T, LimitError>) -> Option<T> {
    match made {
        Ok(made) => Some(made),
        Err(error) => {
            match &error {
                LimitError::Zero { setting } => fields.mistake(setting, "must be greater than zero"),
                LimitError::TooLong { setting } => fields.mistake(setting, "must be at most 146 years"),
                LimitError::Above { setting, bound } => {
                    fields.mistake(setting, format!("must not be above {bound}"));
                }
                LimitError::NotFinite { setting, at_least } => {
                    fields.mistake(setting, format!("must be a finite number, {at_least} or more"));
                }
                LimitError::UnknownTimeZone { .. } => fields.mistake("time_zone", error.to_string()),
                _ => fields.mistake_here(error.to_string()),
            }
            None
        }
    }
}
