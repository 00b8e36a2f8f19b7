//! Random limits of every kind, and schedules to try them with.

use proptest::prelude::*;
use std::time::Duration;
use tollgate::{
    Align, Delay, FixedWindow, LeakyBucket, Limit, Rate, Refill, SlidingCounter, SlidingLog, SlidingWindow,
    SmoothBursty, SmoothWarmingUp, TokenBucket,
};

/// A request: how long after the last one, in nanoseconds, and how much.
pub(crate) type Arrival = (u64, u32);

/// At least so many cases; more where `PROPTEST_CASES` asks for them.
pub(crate) fn cases(at_least: u32) -> ProptestConfig {
    let asked = ProptestConfig::default();
    ProptestConfig { cases: asked.cases.max(at_least), ..asked }
}

pub(crate) fn per(amount: u64, period: Duration) -> Rate {
    Rate::new(amount, period).unwrap()
}

pub(crate) fn rates() -> impl Strategy<Value = Rate> {
    let period = prop_oneof![
        4 => Just(1_000_000_000_u64),
        1 => Just(60_000_000_000),
        1 => Just(7_000_000_000),
        1 => 1_000_u64..5_000_000_000,
    ];
    (1_u64..2_000, period).prop_map(|(amount, period)| per(amount, Duration::from_nanos(period)))
}

fn spans() -> impl Strategy<Value = Duration> {
    prop_oneof![
        2 => (1_u64..5_000).prop_map(Duration::from_millis),
        1 => (1_u64..1_000_000).prop_map(Duration::from_micros),
        1 => (1_u64..3_000_000_000).prop_map(Duration::from_nanos),
    ]
}

pub(crate) fn token_buckets() -> impl Strategy<Value = Limit> {
    (rates(), 1_u32..60, prop::option::of(0_u32..60)).prop_map(|(rate, burst, initial)| {
        let bucket = TokenBucket::new(rate, burst).unwrap();
        initial.map_or(bucket, |initial| bucket.with_initial(initial.min(burst)).unwrap()).into()
    })
}

pub(crate) fn interval_buckets() -> impl Strategy<Value = Limit> {
    (rates(), 1_u32..60, 0_u32..60).prop_map(|(rate, burst, initial)| {
        let bucket = TokenBucket::new(rate, burst).unwrap().with_initial(initial.min(burst)).unwrap();
        bucket.with_refill(Refill::Interval).into()
    })
}

pub(crate) fn leaky_buckets() -> impl Strategy<Value = Limit> {
    (rates(), 1_u32..60, prop::option::of(1_u32..60)).prop_map(|(rate, capacity, delay)| {
        let delay = delay.map_or(Delay::None, |units| Delay::After(units.min(capacity)));
        LeakyBucket::new(rate, capacity).unwrap().with_delay(delay).unwrap().into()
    })
}

pub(crate) fn smooth() -> impl Strategy<Value = Limit> {
    let bursty = (rates(), spans())
        .prop_map(|(rate, span)| Limit::from(SmoothBursty::new(rate).with_max_burst(span).unwrap()));
    let warming = (rates(), spans(), 1.0_f64..8.0).prop_map(|(rate, span, factor)| {
        Limit::from(SmoothWarmingUp::new(rate, span).unwrap().with_cold_factor(factor).unwrap())
    });
    prop_oneof![bursty, warming]
}

pub(crate) fn windows() -> impl Strategy<Value = Limit> {
    let align = prop_oneof![Just(Align::Epoch), Just(Align::FirstHit)];
    prop_oneof![
        (1_u32..40, spans(), align).prop_map(|(limit, window, align)| {
            Limit::from(FixedWindow::new(limit, window).unwrap().with_align(align))
        }),
        (1_u32..40).prop_map(|limit| FixedWindow::forever(limit).unwrap().into()),
        (1_u32..40, spans()).prop_map(|(limit, window)| SlidingCounter::new(limit, window).unwrap().into()),
    ]
}

pub(crate) fn logs() -> impl Strategy<Value = Limit> {
    prop_oneof![
        (1_u32..40, spans()).prop_map(|(limit, window)| SlidingLog::new(limit, window).unwrap().into()),
        (1_u32..40, spans(), 1_u32..30).prop_map(|(limit, window, parts)| {
            let precision = (window / parts).max(Duration::from_nanos(1));
            SlidingWindow::new(limit, window, precision).unwrap().into()
        }),
    ]
}

/// Every limit that charges for good (a concurrency limit gives back).
pub(crate) fn limits() -> impl Strategy<Value = Limit> {
    prop_oneof![token_buckets(), interval_buckets(), leaky_buckets(), smooth(), windows(), logs()]
}

/// Arrivals from together to seconds apart, mostly small.
pub(crate) fn arrivals(most: usize) -> impl Strategy<Value = Vec<Arrival>> {
    let pause = prop_oneof![
        2 => Just(0_u64),
        2 => 0_u64..2_000_000,
        3 => 0_u64..300_000_000,
        1 => 0_u64..4_000_000_000,
    ];
    let cost = prop_oneof![6 => Just(1_u32), 2 => 1_u32..6, 1 => 0_u32..70];
    prop::collection::vec((pause, cost), 1..most)
}
