//! Durations: `20ms`, `1m30s`, `7d`.

use super::{Problem, Quantity, number::Decimal};
use crate::nearest::nearest;
use std::time::Duration;

/// Units, large to small, in nanoseconds.
const UNITS: [(&str, u64); 9] = [
    ("w", 604_800_000_000_000),
    ("d", 86_400_000_000_000),
    ("h", 3_600_000_000_000),
    ("m", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("µs", 1_000),
    ("ns", 1),
];

/// What people write in full, and the unit they mean.
const IN_FULL: [(&str, &str); 24] = [
    ("week", "w"),
    ("weeks", "w"),
    ("day", "d"),
    ("days", "d"),
    ("hour", "h"),
    ("hours", "h"),
    ("hr", "h"),
    ("hrs", "h"),
    ("minute", "m"),
    ("minutes", "m"),
    ("min", "m"),
    ("mins", "m"),
    ("second", "s"),
    ("seconds", "s"),
    ("sec", "s"),
    ("secs", "s"),
    ("millisecond", "ms"),
    ("milliseconds", "ms"),
    ("millis", "ms"),
    ("msec", "ms"),
    ("microseconds", "us"),
    ("micros", "us"),
    ("nanoseconds", "ns"),
    ("nanos", "ns"),
];

/// The longest duration a limit can work with, as its clock counts nanoseconds.
pub(super) const LONGEST: u64 = 1 << 62;

/// Reads a duration: numbers with units from large to small.
///
/// The units are `w`, `d`, `h`, `m`, `s`, `ms`, `us` and `ns`. A day is 24 hours here; days that follow a calendar are
/// a fixed window's own.
///
/// ```
/// use std::time::Duration;
/// use tollgate_rules::parse_duration;
///
/// assert_eq!(parse_duration("1m30s")?, Duration::from_secs(90));
/// assert_eq!(parse_duration("1.5s")?, Duration::from_millis(1500));
/// assert!(parse_duration("90").is_err(), "ninety of what?");
/// # Ok::<(), tollgate_rules::QuantityError>(())
/// ```
///
/// # Errors
/// Where it is no duration, zero, longer than 146 years, or finer than a nanosecond.
pub fn parse_duration(text: &str) -> Result<Duration, super::QuantityError> {
    Quantity::Duration.parse(text, |text| nanos(text).map(Duration::from_nanos))
}

/// A duration in nanoseconds, neither zero nor above [`LONGEST`].
pub(super) fn nanos(text: &str) -> Result<u64, Problem> {
    let mut total = 0;
    let mut smallest = u64::MAX;
    let mut rest = text;
    while !rest.is_empty() {
        let (number, after) = Decimal::leading(rest)?;
        let end = after.find(|letter: char| letter.is_ascii_digit()).unwrap_or(after.len());
        let (name, after) = after.split_at(end);
        if name.is_empty() {
            // A bare zero is zero in any unit; for anything else the unit is what is wrong.
            return Err(if number.is_zero() { Problem::Zero } else { Problem::NoUnit });
        }
        let size = unit(name)?;
        if size >= smallest {
            return Err(Problem::UnitOrder);
        }
        smallest = size;
        let part = match number.times(size) {
            Some((nanos, 1)) => u64::try_from(nanos).ok(),
            Some(_) => return Err(Problem::TooFine { counted_in: "nanoseconds" }),
            None => None,
        };
        total = part
            .and_then(|part| part.checked_add(total))
            .filter(|total| *total <= LONGEST)
            .ok_or(Problem::TooLarge { max: "146 years" })?;
        rest = after;
    }
    if total == 0 { Err(Problem::Zero) } else { Ok(total) }
}

/// Nanoseconds in a unit.
pub(super) fn unit(name: &str) -> Result<u64, Problem> {
    let known = UNITS.iter().find(|(unit, _)| *unit == name);
    known
        .map(|(_, nanos)| *nanos)
        .ok_or_else(|| Problem::UnknownUnit { unit: name.to_owned(), nearest: meant(name) })
}

fn meant(name: &str) -> Option<&'static str> {
    let lower = name.to_lowercase();
    let in_full = IN_FULL.iter().find(|(word, _)| *word == lower).map(|(_, unit)| *unit);
    let ignoring_case = || UNITS.iter().find(|(unit, _)| *unit == lower).map(|(unit, _)| *unit);
    let long_word = || {
        let word = nearest(&lower, IN_FULL.iter().map(|(word, _)| *word))?;
        IN_FULL.iter().find(|(known, _)| *known == word).map(|(_, unit)| *unit)
    };
    in_full
        .or_else(ignoring_case)
        .or_else(|| nearest(&lower, UNITS.iter().map(|(unit, _)| *unit)))
        .or_else(long_word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_people_write() {
        for (text, nanos) in [
            ("10ns", 10),
            ("500us", 500_000),
            ("500µs", 500_000),
            ("20ms", 20_000_000),
            ("1.5s", 1_500_000_000),
            ("0.000000001s", 1),
            ("1m30s", 90_000_000_000),
            ("1h", 3_600_000_000_000),
            ("7d", 604_800_000_000_000),
            ("1w", 604_800_000_000_000),
            ("1w2d3h4m5s6ms7us8ns", 788_645_006_007_008),
            ("4611686018427387904ns", LONGEST),
        ] {
            assert_eq!(parse_duration(text), Ok(Duration::from_nanos(nanos)), "{text}");
        }
    }

    #[test]
    fn what_is_refused() {
        let unknown = |unit: &str, nearest| Problem::UnknownUnit { unit: unit.into(), nearest };
        for (text, problem) in [
            ("", Problem::Empty),
            ("0", Problem::Zero),
            ("0s", Problem::Zero),
            ("0h0m", Problem::Zero),
            ("-5s", Problem::Negative),
            ("nan", Problem::NotFinite),
            ("inf", Problem::NotFinite),
            ("s", Problem::NoNumber),
            (".5s", Problem::NoNumber),
            ("5.s", Problem::NoNumber),
            ("90", Problem::NoUnit),
            ("1m30", Problem::NoUnit),
            ("30s1m", Problem::UnitOrder),
            ("1s1s", Problem::UnitOrder),
            ("1us1µs", Problem::UnitOrder),
            ("0.5ns", Problem::TooFine { counted_in: "nanoseconds" }),
            ("4611686018427387905ns", Problem::TooLarge { max: "146 years" }),
            ("99999999999999999999w", Problem::TooLarge { max: "146 years" }),
            ("5sec", unknown("sec", Some("s"))),
            ("5minutes", unknown("minutes", Some("m"))),
            ("5minuets", unknown("minuets", Some("m"))),
            ("5S", unknown("S", Some("s"))),
            ("5mz", unknown("mz", Some("ms"))),
            ("5 s", Problem::Space),
            ("5y", unknown("y", None)),
            ("1e3s", unknown("e", None)),
        ] {
            assert_eq!(parse_duration(text).map_err(|error| error.problem), Err(problem), "{text}");
        }
    }
}
