//! Spans of time: `{ after: 09:00, before: 17:00, time_zone: Europe/Paris }`.

use crate::{
    decode::{Cursor, shorten},
    limit::defaulted,
    model::{DailyTime, Instant, TimeSpan},
    schema,
};
use jiff::{Timestamp, civil::DateTime, tz::TimeZone};

/// Reads one span.
pub(super) fn span(span: &Cursor<'_>) -> Option<TimeSpan> {
    let mut fields = span.mapping(&schema::TIME)?;
    let (after, before) = (fields.optional("after"), fields.optional("before"));
    let zone = match fields.optional("time_zone") {
        Some(zone) => time_zone(&zone),
        None => default_zone(),
    };
    fields.finish();
    if after.is_none() && before.is_none() && !fields.has_unknown() {
        fields.mistake_here("says no time: give `after`, `before`, or both");
    }
    let given = after.is_some() || before.is_some();
    // Without its zone a time is still read, for its own mistakes.
    let (name, place) = zone.clone().unwrap_or(("UTC", TimeZone::UTC));
    let read = |point: &Cursor<'_>| instant(point, name, &place).map(Some);
    let (after, before) = (defaulted(after, None, read), defaulted(before, None, read));
    let (after, before) = (after?, before?);
    match (&after, &before) {
        (Some(Instant::Once(from)), Some(Instant::Once(until))) if from >= until => {
            fields.mistake("before", "must be later than `after`");
            None
        }
        (Some(Instant::Daily(from)), Some(Instant::Daily(until))) if from.second == until.second => {
            fields.mistake("before", "must differ from `after`");
            None
        }
        _ => zone.filter(|_| given).map(|_| TimeSpan { after, before }),
    }
}

fn default_zone() -> Option<(&'static str, TimeZone)> {
    let name = schema::TIME.default_text("time_zone");
    Some((name, TimeZone::get(name).ok()?))
}

fn time_zone<'a>(zone: &Cursor<'a>) -> Option<(&'a str, TimeZone)> {
    let name = zone.text("a time zone such as Europe/Paris")?;
    match TimeZone::get(name) {
        Ok(place) => Some((name, place)),
        Err(_) => {
            zone.mistake(format!("no time zone is called {:?}; names look like Europe/Paris", shorten(name)));
            None
        }
    }
}

fn instant(point: &Cursor<'_>, name: &str, zone: &TimeZone) -> Option<Instant> {
    const EXPECTED: &str =
        "a point in time such as 2026-11-15T10:00:00Z, 2026-11-15 10:00:00 or, every day, 09:00";
    point.parsed(EXPECTED, |text| {
        if let Some(second) = second_of_day(text) {
            return Ok(Instant::Daily(DailyTime { second, time_zone: name.to_owned() }));
        }
        if let Ok(once) = text.parse::<Timestamp>() {
            return Ok(Instant::Once(once.as_microsecond()));
        }
        // jiff reads a date alone too, as its midnight: here that would be a guess.
        let local = text.contains(':').then(|| text.parse::<DateTime>().ok()).flatten();
        let once = local.and_then(|local| zone.to_timestamp(local).ok());
        once.map(|once| Instant::Once(once.as_microsecond()))
            .ok_or_else(|| format!("must be {EXPECTED}; read {:?}", shorten(text)))
    })
}

/// The seconds since midnight of `09:00` or `09:00:30`.
fn second_of_day(text: &str) -> Option<u32> {
    let mut parts = text.split(':').map(|part| {
        let is_pair = part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_digit());
        is_pair.then(|| part.parse::<u32>().ok()).flatten()
    });
    let (hour, minute) = (parts.next()??, parts.next()??);
    let second = parts.next().unwrap_or(Some(0))?;
    let is_time = hour < 24 && minute < 60 && second < 60 && parts.next().is_none();
    is_time.then_some(hour * 3600 + minute * 60 + second)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_day() {
        for (text, second) in [
            ("00:00", Some(0)),
            ("09:00", Some(32_400)),
            ("09:00:30", Some(32_430)),
            ("23:59:59", Some(86_399)),
            ("24:00", None),
            ("9:00", None),
            ("09", None),
            ("09:00:00:00", None),
            ("09:60", None),
            ("+9:00", None),
        ] {
            assert_eq!(second_of_day(text), second, "{text}");
        }
    }
}
