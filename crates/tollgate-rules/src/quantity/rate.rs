//! Rates: `10/s`, `0.5/s`, `100/30s`, `50KiB/s`.

use super::{Problem, Quantity, duration, number::Decimal, size};
use std::time::Duration;
use tollgate::Rate;

/// Reads a rate: an amount, a `/`, and the time it is for.
///
/// The time is a unit (`s`) or a duration (`30s`). A whole amount is kept as it was written, which is what a bucket that
/// refills by interval adds; a decimal becomes the fraction it is, so that `0.5/s` is one in two seconds and nothing is
/// rounded. An amount of bytes carries a size's unit.
///
/// ```
/// use std::time::Duration;
/// use tollgate::Rate;
/// use tollgate_rules::parse_rate;
///
/// assert_eq!(parse_rate("10/s")?, Rate::new(10, Duration::from_secs(1))?);
/// assert_eq!(parse_rate("0.5/s")?, Rate::new(1, Duration::from_secs(2))?);
/// assert_eq!(parse_rate("100/30s")?, Rate::new(100, Duration::from_secs(30))?);
/// assert_eq!(parse_rate("50KiB/s")?, Rate::new(51_200, Duration::from_secs(1))?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// Where it is no rate, zero, above 2^64 - 1 in its period, or slower than one in 146 years.
pub fn parse_rate(text: &str) -> Result<Rate, super::QuantityError> {
    Quantity::Rate.parse(text, read)
}

fn read(text: &str) -> Result<Rate, Problem> {
    const TOO_LARGE: Problem = Problem::TooLarge { max: "18446744073709551615 in its period" };

    let (amount, rest) = Decimal::leading(text)?;
    let (unit, period) = rest.split_once('/').ok_or(Problem::NoPeriod)?;
    let unit = size::unit(unit)?;
    let period = match period.chars().next() {
        None => return Err(Problem::NoPeriod),
        Some(first) if first.is_alphabetic() => duration::unit(period)?,
        Some(_) => duration::nanos(period)?,
    };
    if amount.is_zero() {
        return Err(Problem::Zero);
    }
    let (amount, periods) = amount.times(unit).ok_or(TOO_LARGE)?;
    let amount = u64::try_from(amount).map_err(|_| TOO_LARGE)?;
    let period = u128::from(period)
        .checked_mul(periods)
        .and_then(|period| u64::try_from(period).ok())
        .filter(|period| *period <= duration::LONGEST)
        .ok_or(Problem::TooSlow)?;
    Rate::new(amount, Duration::from_nanos(period)).map_err(|_| Problem::Zero)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_people_write() {
        const SECOND: u64 = 1_000_000_000;
        for (text, amount, period) in [
            ("10/s", 10, SECOND),
            ("10.0/s", 10, SECOND),
            ("0.5/s", 1, 2 * SECOND),
            ("1.5/s", 3, 2 * SECOND),
            ("0.1/s", 1, 10 * SECOND),
            ("0.25/m", 1, 240 * SECOND),
            ("600/m", 600, 60 * SECOND),
            ("5000/h", 5000, 3600 * SECOND),
            ("100/d", 100, 86_400 * SECOND),
            ("1/w", 1, 604_800 * SECOND),
            ("100/30s", 100, 30 * SECOND),
            ("100/1m30s", 100, 90 * SECOND),
            ("3/7d", 3, 604_800 * SECOND),
            ("1/30d", 1, 2_592_000 * SECOND),
            ("1000/250ms", 1000, SECOND / 4),
            ("3/1.5s", 3, 3 * SECOND / 2),
            ("50KiB/s", 51_200, SECOND),
            ("1MB/s", 1_000_000, SECOND),
            ("1.5KiB/s", 1536, SECOND),
            ("0.0001KB/s", 1, 10 * SECOND),
            ("18446744073709551615/ns", u64::MAX, 1),
        ] {
            assert_eq!(
                parse_rate(text),
                Ok(Rate::new(amount, Duration::from_nanos(period)).unwrap()),
                "{text}"
            );
        }
    }

    #[test]
    fn what_is_refused() {
        let unknown = |unit: &str, nearest| Problem::UnknownUnit { unit: unit.into(), nearest };
        let too_large = |max| Problem::TooLarge { max };
        for (text, problem) in [
            ("", Problem::Empty),
            ("0/s", Problem::Zero),
            ("0.0/s", Problem::Zero),
            ("10/0s", Problem::Zero),
            ("-10/s", Problem::Negative),
            ("10/-1s", Problem::Negative),
            ("NaN/s", Problem::NotFinite),
            (".inf", Problem::NotFinite),
            ("fast", Problem::NoNumber),
            ("/s", Problem::NoNumber),
            ("+1/s", Problem::NoNumber),
            ("10", Problem::NoPeriod),
            ("10/", Problem::NoPeriod),
            ("10 per second", Problem::Space),
            ("10/30", Problem::NoUnit),
            ("10/sec", unknown("sec", Some("s"))),
            ("10/s/s", unknown("s/s", Some("s"))),
            ("10 /s", Problem::Space),
            ("10r/s", unknown("r", None)),
            ("10kib/s", unknown("kib", Some("KiB"))),
            ("18446744073709551616/s", too_large("18446744073709551615 in its period")),
            ("99999999999999999999999999999999999999999/s", too_large("18446744073709551615")),
            ("0.0000000001/s", Problem::TooSlow),
            (
                "0.0000000000000000000000000000000000000000001/s",
                Problem::TooFine { counted_in: "billionths" },
            ),
        ] {
            assert_eq!(parse_rate(text).map_err(|error| error.problem), Err(problem), "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_rate_reads_as_it_prints(amount in 1..=u64::MAX, period in 1..=duration::LONGEST) {
            let rate = Rate::new(amount, Duration::from_nanos(period)).unwrap();
            prop_assert_eq!(parse_rate(&rate.to_string()), Ok(rate));
        }

        #[test]
        fn a_round_rate_reads_as_it_prints(amount in 1..1_000_000_u64, power in 0_u32..18) {
            let rate = Rate::new(amount, Duration::from_nanos(10_u64.pow(power))).unwrap();
            prop_assert_eq!(parse_rate(&rate.to_string()), Ok(rate));
        }

        /// A decimal is the fraction it looks like: what is lost on neither side is equal crosswise.
        #[test]
        fn decimals_are_exact(whole in 0_u64..1_000_000, places in 1_u32..9, part in any::<u64>()) {
            let scale = 10_u64.pow(places);
            let part = part % scale;
            prop_assume!(whole + part > 0);
            let rate = parse_rate(&format!("{whole}.{part:0width$}/s", width = places as usize)).unwrap();
            let written = u128::from(whole * scale + part) * rate.period().as_nanos();
            let read = u128::from(rate.amount().get()) * u128::from(scale) * 1_000_000_000;
            prop_assert_eq!(written, read);
        }
    }
}
