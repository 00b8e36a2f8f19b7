//! A limit's numbers in a few words: `10/s, burst 100`.

use std::time::Duration;
use tollgate::{Limit, Numbers, Which, WindowNumbers};

/// In a few words.
pub(super) fn of(limit: &Limit) -> String {
    match limit.numbers() {
        Numbers::Bucket(it) => {
            let rate = rate(it.earn as f64 / it.price as f64 * 1e9);
            match it.which {
                Which::First => format!("{rate}, burst {}", it.capacity),
                Which::Second if it.books => format!("{rate}, capacity {}", it.capacity),
                Which::Second => format!("{rate}, capacity {}, delay {}", it.capacity, it.free),
            }
        }
        Numbers::Interval { amount, period, burst, .. } => {
            format!("{amount} every {}, burst {burst}", time(period))
        }
        Numbers::Smooth(_, it) => {
            let permits = (it.max * 100.0).round() / 100.0;
            format!("{}, stores {permits}", rate(1e6 / it.stable))
        }
        Numbers::FixedWindow { limit, windows } => match windows {
            WindowNumbers::Epoch(window) => format!("{limit} per {}", time(window)),
            WindowNumbers::FirstHit(window) => format!("{limit} per {} from the first", time(window)),
            WindowNumbers::Forever => format!("{limit} for ever"),
            WindowNumbers::Calendar(calendar) => format!("{limit} per {}", calendar.name()),
            _ => limit.to_string(),
        },
        Numbers::SlidingCounter { limit, window } | Numbers::Log { limit, window, precision: None } => {
            format!("{limit} in any {}", time(window))
        }
        Numbers::Log { limit, window, precision: Some(precision) } => {
            format!("{limit} in any {}, by {}", time(window), time(precision))
        }
        Numbers::Concurrency { limit, max_hold } => format!("{limit} at once, up to {} each", time(max_hold)),
        _ => limit.name().to_owned(),
    }
}

/// So many a second, in the unit in which it is a round number.
fn rate(a_second: f64) -> String {
    const UNITS: [(f64, &str); 4] = [(1.0, "s"), (60.0, "m"), (3600.0, "h"), (86_400.0, "d")];
    let is_round = |amount: f64| (amount - amount.round()).abs() < 1e-6 * amount.max(1.0) && amount >= 0.5;
    let round = UNITS.iter().find(|(seconds, _)| is_round(a_second * seconds));
    match round {
        Some((seconds, unit)) => format!("{}/{unit}", (a_second * seconds).round()),
        None => format!("{}/s", (a_second * 1000.0).round() / 1000.0),
    }
}

/// As rule files write it.
fn time(time: Duration) -> String {
    const UNITS: [(u128, &str); 7] = [
        (86_400_000_000_000, "d"),
        (3_600_000_000_000, "h"),
        (60_000_000_000, "m"),
        (1_000_000_000, "s"),
        (1_000_000, "ms"),
        (1_000, "us"),
        (1, "ns"),
    ];
    let mut left = time.as_nanos();
    let mut text = String::new();
    for (nanos, unit) in UNITS {
        if left >= nanos {
            text.push_str(&format!("{}{unit}", left / nanos));
            left %= nanos;
        }
    }
    if text.is_empty() { "0s".to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tollgate_rules::{ParsedLimit, parse_limit};

    #[test]
    fn every_kind_in_a_few_words() {
        for (text, words) in [
            ("token_bucket: { rate: 10/s, burst: 100 }", "10/s, burst 100"),
            ("token_bucket: { rate: 100/m, burst: 7 }", "100/m, burst 7"),
            ("token_bucket: { rate: 7/30s, burst: 7 }", "14/m, burst 7"),
            ("token_bucket: { rate: 0.5/s, burst: 1 }", "30/m, burst 1"),
            ("token_bucket: { rate: 100/30s, burst: 5, refill: interval }", "100 every 30s, burst 5"),
            ("leaky_bucket: { rate: 10/s, capacity: 20 }", "10/s, capacity 20"),
            ("leaky_bucket: { rate: 10/s, capacity: 20, delay: 5 }", "10/s, capacity 20, delay 5"),
            ("smooth_bursty: { rate: 5/s }", "5/s, stores 5"),
            ("smooth_warming_up: { rate: 5/s, warmup: 3s }", "5/s, stores 15"),
            ("fixed_window: { limit: 9, window: 1m30s }", "9 per 1m30s"),
            ("fixed_window: { limit: 9, window: 1m, align: first_hit }", "9 per 1m from the first"),
            ("fixed_window: { limit: 9, window: forever }", "9 for ever"),
            ("sliding_log: { limit: 5, window: 1m }", "5 in any 1m"),
            ("sliding_window: { limit: 5, window: 1m, precision: 1s }", "5 in any 1m, by 1s"),
            ("sliding_counter: { limit: 5, window: 1h }", "5 in any 1h"),
            ("concurrency: { limit: 2, max_hold: 30s }", "2 at once, up to 30s each"),
        ] {
            let Ok(ParsedLimit::Limit(limit)) = parse_limit(text) else { panic!("{text}") };
            assert_eq!(of(&limit), words, "{text}");
        }
    }
}
