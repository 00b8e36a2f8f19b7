//! Windows of a calendar: the hour, day, week, month or year of a time zone.
//!
//! Weeks start on Monday. A day is as long as that day was: 23 or 25 hours where summer time begins or ends. The
//! window that was found last is remembered, so that the zone's rules are looked up once a window.

use crate::limit::LimitError;
use jiff::{Timestamp, ToSpan, Zoned, civil::Time as OClock, tz::TimeZone};
use std::sync::{Arc, Mutex, PoisonError};

/// A unit of the calendar in a time zone.
///
/// ```
/// use tollgate::{Calendar, FixedWindow, Unit};
///
/// let daily = FixedWindow::calendar(1000, Calendar::new(Unit::Day, "Asia/Shanghai")?)?;
/// # let _ = daily;
/// # Ok::<(), tollgate::LimitError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Calendar {
    unit: Unit,
    zone: TimeZone,
    last: Arc<Mutex<(u64, u64)>>,
}

/// How long a calendar window is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Unit {
    /// A clock hour.
    Hour,
    /// From midnight to midnight.
    Day,
    /// From Monday's midnight.
    Week,
    /// From the first of the month.
    Month,
    /// From the first of January.
    Year,
}

impl Calendar {
    /// The calendar of the time zone called `zone`, such as `Europe/Paris` or `UTC`.
    ///
    /// # Errors
    /// Where no zone has that name.
    pub fn new(unit: Unit, zone: &str) -> Result<Self, LimitError> {
        let zone = TimeZone::get(zone).map_err(|_| LimitError::UnknownTimeZone { name: zone.to_owned() })?;
        Ok(Self { unit, zone, last: Arc::new(Mutex::new((0, 0))) })
    }

    /// What it is called: the unit and the zone, the same for calendars that are the same.
    #[must_use]
    pub fn name(&self) -> String {
        let zone = self.zone.iana_name().unwrap_or("UTC");
        format!("{:?} {zone}", self.unit).to_lowercase()
    }

    /// Where the window around `unix` begins and ends, in nanoseconds since 1970.
    #[must_use]
    pub fn window(&self, unix: u64) -> (u64, u64) {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if !(last.0..last.1).contains(&unix) {
            // Past the year 9999 the calendar ends: one last window holds all the rest.
            *last = self.find(unix).unwrap_or((unix, u64::MAX));
        }
        *last
    }

    fn find(&self, unix: u64) -> Result<(u64, u64), jiff::Error> {
        let now = Timestamp::from_nanosecond(unix.into())?.to_zoned(self.zone.clone());
        if self.unit == Unit::Hour {
            // By the offset of the moment: a zone that shifts by half an hour has hours that overlap, never an empty one.
            let hour = 3_600_000_000_000;
            let offset = i128::from(now.offset().seconds()) * 1_000_000_000;
            let start =
                unix - u64::try_from((i128::from(unix) + offset).rem_euclid(hour)).unwrap_or(0).min(unix);
            return Ok((start, start + 3_600_000_000_000));
        }
        let start = self.start(&now)?;
        let span = match self.unit {
            Unit::Hour => 1.hour(),
            Unit::Day => 1.day(),
            Unit::Week => 1.week(),
            Unit::Month => 1.month(),
            Unit::Year => 1.year(),
        };
        // The end is the next window's own start, whatever the zone did in between.
        let end = self.start(&start.checked_add(span)?)?;
        Ok((nanos(&start), nanos(&end)))
    }

    fn start(&self, at: &Zoned) -> Result<Zoned, jiff::Error> {
        let day = match self.unit {
            Unit::Hour | Unit::Day => at.date(),
            Unit::Week => at.date().checked_sub(i64::from(at.weekday().to_monday_zero_offset()).days())?,
            Unit::Month => at.date().first_of_month(),
            Unit::Year => at.date().first_of_year(),
        };
        day.to_datetime(OClock::midnight()).to_zoned(self.zone.clone())
    }
}

impl PartialEq for Calendar {
    fn eq(&self, other: &Self) -> bool {
        self.unit == other.unit && self.zone == other.zone
    }
}

fn nanos(at: &Zoned) -> u64 {
    u64::try_from(at.timestamp().as_nanosecond()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(unit: Unit, zone: &str, at: &str) -> (String, String) {
        let at: Timestamp = at.parse().unwrap();
        let calendar = Calendar::new(unit, zone).unwrap();
        let (start, end) = calendar.window(u64::try_from(at.as_nanosecond()).unwrap());
        let show = |nanos: u64| Timestamp::from_nanosecond(nanos.into()).unwrap().to_string();
        (show(start), show(end))
    }

    fn check(unit: Unit, zone: &str, at: &str, start: &str, end: &str) {
        assert_eq!(window(unit, zone, at), (start.into(), end.into()), "{unit:?} in {zone} at {at}");
    }

    #[test]
    fn windows_follow_the_zone() {
        check(Unit::Day, "UTC", "2026-03-04T05:06:07Z", "2026-03-04T00:00:00Z", "2026-03-05T00:00:00Z");
        check(
            Unit::Day,
            "Asia/Shanghai",
            "2026-03-04T16:00:00Z",
            "2026-03-04T16:00:00Z",
            "2026-03-05T16:00:00Z",
        );
        check(
            Unit::Hour,
            "Asia/Kolkata",
            "2026-03-04T05:06:07Z",
            "2026-03-04T04:30:00Z",
            "2026-03-04T05:30:00Z",
        );
        check(Unit::Month, "UTC", "2024-02-29T12:00:00Z", "2024-02-01T00:00:00Z", "2024-03-01T00:00:00Z");
        check(Unit::Year, "UTC", "2024-12-31T23:59:59Z", "2024-01-01T00:00:00Z", "2025-01-01T00:00:00Z");
    }

    #[test]
    fn no_hour_is_empty_where_the_clock_shifts_by_half_an_hour() {
        let calendar = Calendar::new(Unit::Hour, "Australia/Lord_Howe").unwrap();
        let shift: Timestamp = "2026-04-04T15:00:00Z".parse().unwrap();
        let shift = u64::try_from(shift.as_nanosecond()).unwrap();
        for minutes in 0..240 {
            let at = shift - 7_200_000_000_000 + minutes * 60_000_000_000;
            let (start, end) = calendar.window(at);
            assert!(start <= at && at < end && end - start == 3_600_000_000_000, "{minutes}");
        }
    }

    #[test]
    fn weeks_start_on_monday() {
        // 2026-03-08 was a Sunday.
        check(Unit::Week, "UTC", "2026-03-08T23:59:59Z", "2026-03-02T00:00:00Z", "2026-03-09T00:00:00Z");
        check(Unit::Week, "UTC", "2026-03-09T00:00:00Z", "2026-03-09T00:00:00Z", "2026-03-16T00:00:00Z");
    }

    #[test]
    fn a_day_is_as_long_as_it_was() {
        check(
            Unit::Day,
            "Europe/Paris",
            "2026-03-29T12:00:00Z",
            "2026-03-28T23:00:00Z",
            "2026-03-29T22:00:00Z",
        );
        check(
            Unit::Day,
            "Europe/Paris",
            "2026-10-25T12:00:00Z",
            "2026-10-24T22:00:00Z",
            "2026-10-25T23:00:00Z",
        );
    }

    #[test]
    fn an_unknown_zone_is_an_error() {
        assert!(matches!(Calendar::new(Unit::Day, "Mars/Olympus"), Err(LimitError::UnknownTimeZone { .. })));
    }
}
