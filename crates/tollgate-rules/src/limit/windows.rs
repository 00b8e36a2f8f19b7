//! The numbers of windows, logs and counters: everything that counts in a time.

use super::{ParsedLimit, accepted, charge, duration};
use crate::{
    decode::{Cursor, Fields, default_of},
    schema,
};
use std::time::Duration;
use tollgate::{Align, Calendar, FixedWindow, SlidingCounter, SlidingLog, SlidingWindow, Unit};

/// Where `align` lets a window begin.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Begins {
    Epoch,
    FirstHit,
    Calendar,
}

const BEGINS: [(&str, Begins); 3] =
    [("epoch", Begins::Epoch), ("first_hit", Begins::FirstHit), ("calendar", Begins::Calendar)];

const UNITS: [(&str, Unit); 5] = [
    ("hour", Unit::Hour),
    ("day", Unit::Day),
    ("week", Unit::Week),
    ("month", Unit::Month),
    ("year", Unit::Year),
];

/// How long a fixed window is.
enum Window {
    Lasting(Duration),
    Calendar(Unit),
    Forever,
}

pub(super) fn fixed_window(numbers: &Cursor<'_>) -> Option<ParsedLimit> {
    let mut fields = numbers.mapping(&schema::FIXED_WINDOW)?;
    let limit = limit(&mut fields);
    let align = fields.optional("align");
    let written = align.is_some();
    let choose = |align: &Cursor<'_>| align.choice(&BEGINS);
    let begins =
        align.map_or_else(|| default_of(&schema::FIXED_WINDOW, "align", choose), |align| choose(&align));
    let window = fields.required("window");
    let zone = fields.optional("time_zone");
    fields.finish();

    // Which windows and zones make sense depends on the alignment; where that cannot be read, they are left alone.
    let begins = begins?;
    let window = window.and_then(|window| fixed_length(&window, begins));
    let zone = match zone {
        Some(zone) if begins != Begins::Calendar => {
            zone.mistake("has a meaning only with `align: calendar`");
            return None;
        }
        Some(zone) => zone.text("a time zone such as Europe/Paris"),
        None => Some(schema::FIXED_WINDOW.default_text("time_zone")),
    };
    let calendar = match (&window, zone) {
        (Some(Window::Calendar(unit)), Some(zone)) => Some(accepted(&fields, Calendar::new(*unit, zone))?),
        (None, Some(zone)) => {
            // The window is wrong; say so of the zone too.
            accepted(&fields, Calendar::new(Unit::Day, zone))?;
            None
        }
        _ => None,
    };
    if matches!(window, Some(Window::Forever)) && written {
        fields.mistake("align", "has no effect if the window is `forever`");
        return None;
    }
    let align = if begins == Begins::FirstHit { Align::FirstHit } else { Align::Epoch };
    let made = match (window?, calendar) {
        (Window::Lasting(window), _) => FixedWindow::new(limit?, window).map(|made| made.with_align(align)),
        (Window::Forever, _) => FixedWindow::forever(limit?),
        (Window::Calendar(_), calendar) => FixedWindow::calendar(limit?, calendar?),
    };
    accepted(&fields, made).map(charge)
}

fn fixed_length(window: &Cursor<'_>, begins: Begins) -> Option<Window> {
    let word = window.text("a duration such as 1m, or `forever`")?;
    let unit = UNITS.iter().find(|(name, _)| *name == word);
    match (begins, unit) {
        (_, _) if word == "forever" => Some(Window::Forever),
        (Begins::Calendar, _) => window.choice(&UNITS).map(Window::Calendar),
        (_, Some(_)) => {
            window.mistake(format!("`{word}` is a calendar's: it needs `align: calendar`"));
            None
        }
        (_, None) => duration(window).map(Window::Lasting),
    }
}

pub(super) fn sliding_log(numbers: &Cursor<'_>) -> Option<ParsedLimit> {
    let mut fields = numbers.mapping(&schema::SLIDING_LOG)?;
    let (limit, window) = (limit(&mut fields), window(&mut fields));
    fields.finish();
    accepted(&fields, SlidingLog::new(limit?, window?)).map(charge)
}

pub(super) fn sliding_window(numbers: &Cursor<'_>) -> Option<ParsedLimit> {
    let mut fields = numbers.mapping(&schema::SLIDING_WINDOW)?;
    let (limit, window) = (limit(&mut fields), window(&mut fields));
    let precision = fields.required("precision").and_then(|precision| duration(&precision));
    fields.finish();
    let (window, precision) = (window?, precision?);
    // How the two times fit is told even where the limit is wrong.
    let made = accepted(&fields, SlidingWindow::new(limit.unwrap_or(1), window, precision));
    made.filter(|_| limit.is_some()).map(charge)
}

pub(super) fn sliding_counter(numbers: &Cursor<'_>) -> Option<ParsedLimit> {
    let mut fields = numbers.mapping(&schema::SLIDING_COUNTER)?;
    let (limit, window) = (limit(&mut fields), window(&mut fields));
    fields.finish();
    accepted(&fields, SlidingCounter::new(limit?, window?)).map(charge)
}

fn limit(fields: &mut Fields<'_>) -> Option<u32> {
    fields.required("limit")?.positive()
}

fn window(fields: &mut Fields<'_>) -> Option<Duration> {
    duration(&fields.required("window")?)
}
