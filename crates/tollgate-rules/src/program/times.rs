//! Times at which conditions hold.
//!
//! Where both ends of a span are times of day and the first is the later one, it spans midnight: from 22:00 until 06:00
//! is a night. Every end is read on its own clock.

use crate::model::{DailyTime, Instant, TimeSpan};
use jiff::{Timestamp, tz::TimeZone};

/// A span with its time zones looked up.
pub(crate) struct Span {
    after: Option<End>,
    before: Option<End>,
}

enum End {
    Once(i64),
    Daily { second: u32, zone: TimeZone },
}

impl Span {
    pub(crate) fn new(span: &TimeSpan) -> Self {
        Self { after: span.after.as_ref().map(End::new), before: span.before.as_ref().map(End::new) }
    }

    /// `at` is in microseconds since 1970 began in UTC.
    pub(crate) fn holds(&self, at: i64) -> bool {
        let after = self.after.as_ref().is_none_or(|end| end.reached(at));
        let before = self.before.as_ref().is_none_or(|end| !end.reached(at));
        match (&self.after, &self.before) {
            (Some(End::Daily { second: from, .. }), Some(End::Daily { second: until, .. }))
                if from > until =>
            {
                after || before
            }
            _ => after && before,
        }
    }
}

impl End {
    fn new(instant: &Instant) -> Self {
        match instant {
            Instant::Once(at) => Self::Once(*at),
            Instant::Daily(DailyTime { second, time_zone }) => {
                // Files with unknown zones are refused; whoever builds one by hand gets UTC.
                let zone = TimeZone::get(time_zone).unwrap_or(TimeZone::UTC);
                Self::Daily { second: *second, zone }
            }
        }
    }

    fn reached(&self, at: i64) -> bool {
        match self {
            Self::Once(end) => at >= *end,
            Self::Daily { second, zone } => second_of_day(at, zone) >= *second,
        }
    }
}

fn second_of_day(at: i64, zone: &TimeZone) -> u32 {
    let clamped = at.clamp(Timestamp::MIN.as_microsecond(), Timestamp::MAX.as_microsecond());
    let offset = Timestamp::from_microsecond(clamped)
        .map_or(0, |timestamp| i64::from(zone.to_offset(timestamp).seconds()));
    let second = (clamped.div_euclid(1_000_000) + offset).rem_euclid(86_400);
    second as u32
}
