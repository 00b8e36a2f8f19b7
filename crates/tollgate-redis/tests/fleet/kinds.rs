//! The limits that fleets hammer, by name: so that a node need only be told the name.
//!
//! Most give some 600 units a second, little enough that a busy machine with two cores brings three times as much.

use crate::bounds::Bound;
use std::time::Duration;
use tollgate::{
    Align, Calendar, Concurrency, Delay, FixedWindow, LeakyBucket, Limit, Rate, Refill, SlidingCounter,
    SlidingLog, SlidingWindow, SmoothBursty, SmoothWarmingUp, TokenBucket, Unit,
};

/// The most that one charge costs.
pub(crate) const DEAREST: u64 = 3;

/// A limit, what it promises, and how it is hammered.
pub(crate) struct Kind {
    pub(crate) limit: Limit,
    pub(crate) bound: Bound,
    /// Units a second that it gives for good.
    pub(crate) gives: f64,
    /// How long charges may wait.
    pub(crate) patience: Option<Duration>,
}

/// Those that every fleet tries, exact and leased.
pub(crate) const ALL: [&str; 12] = [
    "token_bucket",
    "token_bucket_interval",
    "leaky_bucket",
    "leaky_bucket_delay",
    "smooth_bursty",
    "smooth_warming_up",
    "fixed_window_epoch",
    "fixed_window_first_hit",
    "sliding_log",
    "sliding_window",
    "sliding_counter",
    "concurrency",
];

const WINDOW: Duration = Duration::from_millis(300);
const UNITS: u32 = 180;
const A_SECOND: u32 = 600;
/// A whole number of microseconds a permit: Guava cuts off what is left of one.
const SMOOTH: u32 = 500;
const PATIENCE: Duration = Duration::from_millis(20);

/// How long slots are held, and how many there are.
pub(crate) const HELD: Duration = Duration::from_millis(10);
const SLOTS: u32 = 6;

/// The kind of that name.
pub(crate) fn kind(name: &str) -> Kind {
    let limit = limit(name).unwrap_or_else(|problem| panic!("{name}: {problem}"));
    let patience = name.starts_with("smooth").then_some(PATIENCE);
    Kind { limit, bound: bound(name), gives: gives(name), patience }
}

fn limit(name: &str) -> Result<Limit, tollgate::LimitError> {
    let rate = Rate::per_second(A_SECOND)?;
    Ok(match name {
        "token_bucket" | "set_bucket" => TokenBucket::new(rate, UNITS)?.into(),
        "token_bucket_interval" => {
            let rate = Rate::new(60, Duration::from_millis(100))?;
            TokenBucket::new(rate, UNITS)?.with_refill(Refill::Interval).into()
        }
        "leaky_bucket" => LeakyBucket::new(rate, UNITS)?.into(),
        "leaky_bucket_delay" => LeakyBucket::new(rate, UNITS)?.with_delay(Delay::After(20))?.into(),
        "smooth_bursty" => {
            SmoothBursty::new(Rate::per_second(SMOOTH)?).with_max_burst(Duration::from_millis(200))?.into()
        }
        "smooth_warming_up" => {
            SmoothWarmingUp::new(Rate::per_second(SMOOTH)?, Duration::from_millis(200))?.into()
        }
        "fixed_window_epoch" => FixedWindow::new(UNITS, WINDOW)?.into(),
        "fixed_window_first_hit" => FixedWindow::new(UNITS, WINDOW)?.with_align(Align::FirstHit).into(),
        "sliding_log" | "set_log" => SlidingLog::new(UNITS, WINDOW)?.into(),
        "sliding_window" => SlidingWindow::new(UNITS, WINDOW, WINDOW / 10)?.into(),
        "sliding_counter" => SlidingCounter::new(UNITS, WINDOW)?.into(),
        "concurrency" => Concurrency::new(SLOTS, Duration::from_secs(10))?.into(),
        "quota" => FixedWindow::forever(1_000_000)?.into(),
        "daily" => FixedWindow::calendar(100, Calendar::new(Unit::Day, "UTC")?)?.into(),
        "lesser" => TokenBucket::new(Rate::per_second(400)?, 60)?.into(),
        "greater" => TokenBucket::new(Rate::per_second(1_200)?, 180)?.into(),
        "five" => TokenBucket::new(Rate::per_second(5)?, 5)?.into(),
        "hundred" => TokenBucket::new(Rate::per_second(100)?, 1)?.into(),
        "slots" => Concurrency::new(4, Duration::from_millis(600))?.into(),
        _ => panic!("no limit is called {name}"),
    })
}

fn bound(name: &str) -> Bound {
    let (units, window) = (f64::from(UNITS), WINDOW.as_nanos() as u64);
    let line = |burst: f64, a_second: u32| Bound::Line { burst, a_second: a_second.into() };
    match name {
        "token_bucket_interval" => Bound::Steps { burst: units, amount: 60.0, period: 100_000_000 },
        "leaky_bucket_delay" => Bound::Starts { burst: 20.0, a_second: A_SECOND.into(), booked: units },
        // Stored permits cost nothing, and whoever is last has not paid yet.
        "smooth_bursty" => {
            Bound::Starts { burst: 100.0 + DEAREST as f64, a_second: SMOOTH.into(), booked: f64::INFINITY }
        }
        "smooth_warming_up" => Bound::Starts {
            burst: DEAREST as f64,
            // Guava cuts off a part of a microsecond, twice a charge.
            a_second: f64::from(SMOOTH) * 1.001,
            booked: f64::INFINITY,
        },
        "fixed_window_epoch" => Bound::Windows { limit: units, window, aligned: true },
        "fixed_window_first_hit" => Bound::Windows { limit: units, window, aligned: false },
        "sliding_log" | "set_log" => Bound::Log { limit: units, window, precision: 0 },
        "sliding_window" => Bound::Log { limit: units, window, precision: window / 10 },
        "sliding_counter" => Bound::Weighed { limit: units, window },
        "concurrency" => Bound::Slots { limit: SLOTS.into() },
        "lesser" => line(60.0, 400),
        "greater" => line(180.0, 1_200),
        "five" => line(5.0, 5),
        "hundred" => line(1.0, 100),
        "quota" | "daily" | "slots" => Bound::Slots { limit: u64::MAX },
        _ => line(units, A_SECOND),
    }
}

fn gives(name: &str) -> f64 {
    match name {
        "smooth_bursty" | "smooth_warming_up" => SMOOTH.into(),
        "concurrency" => f64::from(SLOTS) / HELD.as_secs_f64(),
        "lesser" => 400.0,
        "greater" => 1_200.0,
        _ => A_SECOND.into(),
    }
}
