//! Sizes: `512KiB`, `10MB`, `4096`.

use super::{Problem, Quantity, number::Decimal};
use crate::nearest::nearest;

const UNITS: [(&str, u64); 10] = [
    ("B", 1),
    ("KB", 1_000),
    ("kB", 1_000),
    ("KiB", 1 << 10),
    ("MB", 1_000_000),
    ("MiB", 1 << 20),
    ("GB", 1_000_000_000),
    ("GiB", 1 << 30),
    ("TB", 1_000_000_000_000),
    ("TiB", 1 << 40),
];

/// Reads a number of bytes. Zero is a size like any other; a number without a unit counts bytes.
///
/// The units are `B`, `KB`, `MB`, `GB`, `TB` (powers of 1000) and `KiB`, `MiB`, `GiB`, `TiB` (powers of 1024).
///
/// ```
/// use tollgate_rules::parse_size;
///
/// assert_eq!(parse_size("1MiB")?, 1_048_576);
/// assert_eq!(parse_size("1.5KB")?, 1_500);
/// assert_eq!(parse_size("4096")?, 4_096);
/// # Ok::<(), tollgate_rules::QuantityError>(())
/// ```
///
/// # Errors
/// Where it is no size, more than 2^64 - 1 bytes, or not a whole number of bytes.
pub fn parse_size(text: &str) -> Result<u64, super::QuantityError> {
    Quantity::Size.parse(text, |text| {
        let (number, name) = Decimal::leading(text)?;
        let too_large = || Problem::TooLarge { max: "18446744073709551615 bytes" };
        match number.times(unit(name)?).ok_or_else(too_large)? {
            (bytes, 1) => u64::try_from(bytes).map_err(|_| too_large()),
            _ => Err(Problem::TooFine { counted_in: "bytes" }),
        }
    })
}

/// Bytes in a unit; no unit is bytes.
pub(super) fn unit(name: &str) -> Result<u64, Problem> {
    if name.is_empty() {
        return Ok(1);
    }
    let known = UNITS.iter().find(|(unit, _)| *unit == name);
    known
        .map(|(_, bytes)| *bytes)
        .ok_or_else(|| Problem::UnknownUnit { unit: name.to_owned(), nearest: meant(name) })
}

fn meant(name: &str) -> Option<&'static str> {
    let whole = format!("{name}B");
    let ignoring_case =
        UNITS.iter().find(|(unit, _)| unit.eq_ignore_ascii_case(name) || unit.eq_ignore_ascii_case(&whole));
    ignoring_case.map(|(unit, _)| *unit).or_else(|| nearest(name, UNITS.iter().map(|(unit, _)| *unit)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_people_write() {
        for (text, bytes) in [
            ("0", 0),
            ("4096", 4096),
            ("100B", 100),
            ("10kB", 10_000),
            ("10MB", 10_000_000),
            ("512KiB", 524_288),
            ("1MiB", 1 << 20),
            ("0.5KiB", 512),
            ("1.5GiB", 3 << 29),
            ("2TB", 2_000_000_000_000),
            ("18446744073709551615", u64::MAX),
        ] {
            assert_eq!(parse_size(text), Ok(bytes), "{text}");
        }
    }

    #[test]
    fn what_is_refused() {
        let unknown = |unit: &str, nearest| Problem::UnknownUnit { unit: unit.into(), nearest };
        let too_large = Problem::TooLarge { max: "18446744073709551615 bytes" };
        for (text, problem) in [
            ("", Problem::Empty),
            ("-1", Problem::Negative),
            ("NaN", Problem::NotFinite),
            ("MB", Problem::NoNumber),
            ("1 MB", Problem::Space),
            ("0.5B", Problem::TooFine { counted_in: "bytes" }),
            ("1.0001KB", Problem::TooFine { counted_in: "bytes" }),
            ("18446744073709551616", too_large.clone()),
            ("99999999TiB", too_large),
            ("1mib", unknown("mib", Some("MiB"))),
            ("1K", unknown("K", Some("KB"))),
            ("1Gi", unknown("Gi", Some("GiB"))),
            ("1bytes", unknown("bytes", None)),
            ("1KBs", unknown("KBs", Some("KB"))),
        ] {
            assert_eq!(parse_size(text).map_err(|error| error.problem), Err(problem), "{text}");
        }
    }
}
