//! Units of time on the wire, and what a limit of ours is in them.

use super::messages::{RateLimit, WireUnit};
use tollgate::{Limit, Numbers, WindowNumbers};
use tollgate_rules::domains::Unit;

impl From<Unit> for WireUnit {
    fn from(unit: Unit) -> Self {
        match unit {
            Unit::Second => Self::Second,
            Unit::Minute => Self::Minute,
            Unit::Hour => Self::Hour,
            Unit::Day => Self::Day,
            Unit::Week => Self::Week,
            Unit::Month => Self::Month,
            Unit::Year => Self::Year,
        }
    }
}

impl WireUnit {
    /// The unit it names.
    pub(super) const fn unit(self) -> Option<Unit> {
        Some(match self {
            Self::Unknown => return None,
            Self::Second => Unit::Second,
            Self::Minute => Unit::Minute,
            Self::Hour => Unit::Hour,
            Self::Day => Unit::Day,
            Self::Week => Unit::Week,
            Self::Month => Unit::Month,
            Self::Year => Unit::Year,
        })
    }
}

/// So many a unit.
pub(super) fn per_unit(requests_per_unit: u32, unit: Unit, name: &str) -> RateLimit {
    RateLimit { requests_per_unit, unit: WireUnit::from(unit).into(), name: name.to_owned() }
}

/// What a limit of ours gives a unit: of the shortest in which that is a whole number. Where there is none, the most that it
/// gives at once, of no unit.
pub(super) fn of_limit(limit: &Limit, name: &str) -> RateLimit {
    let whole = Unit::ALL.into_iter().find_map(|unit| Some((amount(limit, unit)?, unit)));
    match whole {
        Some((requests, unit)) => per_unit(requests, unit, name),
        None => RateLimit {
            requests_per_unit: limit.most(),
            unit: WireUnit::Unknown.into(),
            name: name.to_owned(),
        },
    }
}

/// What it gives in such a unit, where that is whole; of a window, where that is the unit.
fn amount(limit: &Limit, unit: Unit) -> Option<u32> {
    let length = unit.length();
    match limit.numbers() {
        Numbers::Bucket(bucket) => {
            let credits = u128::from(bucket.earn) * length.as_nanos();
            let price = u128::from(bucket.price);
            let amount = credits.is_multiple_of(price).then(|| credits / price)?;
            u32::try_from(amount).ok().filter(|amount| *amount > 0)
        }
        Numbers::Interval { amount, period, .. } if period == length => u32::try_from(amount).ok(),
        Numbers::FixedWindow {
            limit,
            windows: WindowNumbers::Epoch(window) | WindowNumbers::FirstHit(window),
        } if window == length => Some(limit),
        Numbers::SlidingCounter { limit, window } | Numbers::Log { limit, window, .. }
            if window == length =>
        {
            Some(limit)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tollgate_rules::{ParsedLimit, parse_limit};

    #[test]
    fn a_limit_of_ours_is_told_in_the_shortest_whole_unit() {
        for (text, requests, unit) in [
            ("token_bucket: { rate: 10/s, burst: 5 }", 10, WireUnit::Second),
            ("token_bucket: { rate: 90/m, burst: 5 }", 90, WireUnit::Minute),
            ("leaky_bucket: { rate: 0.5/s, capacity: 5 }", 30, WireUnit::Minute),
            ("fixed_window: { limit: 7, window: 1h }", 7, WireUnit::Hour),
            ("sliding_log: { limit: 5, window: 30s }", 5, WireUnit::Unknown),
            ("sliding_log: { limit: 5, window: 1m }", 5, WireUnit::Minute),
            ("sliding_counter: { limit: 5, window: 7d }", 5, WireUnit::Week),
            ("token_bucket: { rate: 10/d, burst: 5, refill: interval }", 10, WireUnit::Day),
        ] {
            let Ok(ParsedLimit::Limit(limit)) = parse_limit(text) else { panic!("{text}") };
            let told = of_limit(&limit, "n");
            assert_eq!((told.requests_per_unit, told.unit()), (requests, unit), "{text}");
        }
    }
}
