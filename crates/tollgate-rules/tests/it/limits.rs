//! Limits as people write them: every algorithm, and what a person sees when it is wrong.

use insta::assert_snapshot;
use proptest::prelude::*;
use std::time::Duration;
use tollgate::{
    Align, Bandwidth, Calendar, Concurrency, Delay, FixedWindow, LeakyBucket, Limit, Rate, Refill,
    SlidingCounter, SlidingLog, SlidingWindow, SmoothBursty, SmoothWarmingUp, TokenBucket, Unit,
};
use tollgate_rules::{ParsedLimit, parse_duration, parse_limit, parse_rate, parse_size};

fn check(text: &str, expected: impl Into<Limit>) {
    assert_eq!(parse_limit(text), Ok(ParsedLimit::Limit(expected.into())), "{text}");
}

fn mistakes(text: &str) -> String {
    parse_limit(text).expect_err(text).to_string()
}

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);

fn ten() -> Rate {
    Rate::per_second(10).unwrap()
}

#[test]
fn buckets() {
    let bucket = TokenBucket::new(ten(), 5).unwrap();
    check("token_bucket: { rate: 10/s, burst: 5 }", bucket);
    check("token_bucket:\n  rate: \"10/s\"\n  burst: 5 # five\n", bucket);
    check("{\"token_bucket\": {\"rate\": \"10/s\", \"burst\": 5}}", bucket);
    check("token_bucket: { rate: 10/s, burst: 5, initial: 0 }", bucket.with_initial(0).unwrap());
    check("token_bucket: { rate: 10/s, burst: 5, refill: continuous }", bucket);
    check("token_bucket: { rate: 10/s, burst: 5, refill: interval }", bucket.with_refill(Refill::Interval));

    let leaky = LeakyBucket::new(ten(), 20).unwrap();
    check("leaky_bucket: { rate: 10/s, capacity: 20 }", leaky);
    check("leaky_bucket: { rate: 10/s, capacity: 20, delay: none }", leaky);
    check("leaky_bucket: { rate: 10/s, capacity: 20, delay: 5 }", leaky.with_delay(Delay::After(5)).unwrap());
}

#[test]
fn guava() {
    let bursty = SmoothBursty::new(ten());
    check("smooth_bursty: { rate: 10/s }", bursty);
    check("smooth_bursty: { rate: 10/s, max_burst: 1s, initial: 0 }", bursty);
    check(
        "smooth_bursty: { rate: 10/s, max_burst: 2s, initial: 20 }",
        bursty.with_max_burst(2 * SECOND).unwrap().with_initial(20).unwrap(),
    );
    let warming = SmoothWarmingUp::new(ten(), 3 * SECOND).unwrap();
    check("smooth_warming_up: { rate: 10/s, warmup: 3s }", warming);
    check(
        "smooth_warming_up: { rate: 10/s, warmup: 3s, cold_factor: 2.5 }",
        warming.with_cold_factor(2.5).unwrap(),
    );
}

#[test]
fn windows() {
    let fixed = FixedWindow::new(100, MINUTE).unwrap();
    check("fixed_window: { limit: 100, window: 1m }", fixed.clone());
    check("fixed_window: { limit: 100, window: 1m, align: epoch }", fixed.clone());
    check("fixed_window: { limit: 100, window: 1m, align: first_hit }", fixed.with_align(Align::FirstHit));
    check("fixed_window: { limit: 100, window: forever }", FixedWindow::forever(100).unwrap());
    let calendar = |unit, zone| FixedWindow::calendar(100, Calendar::new(unit, zone).unwrap()).unwrap();
    check("fixed_window: { limit: 100, window: month, align: calendar }", calendar(Unit::Month, "UTC"));
    check(
        "fixed_window: { limit: 100, window: day, align: calendar, time_zone: Asia/Shanghai }",
        calendar(Unit::Day, "Asia/Shanghai"),
    );
    check("sliding_log: { limit: 5, window: 1m }", SlidingLog::new(5, MINUTE).unwrap());
    check(
        "sliding_window: { limit: 5, window: 1m, precision: 1s }",
        SlidingWindow::new(5, MINUTE, SECOND).unwrap(),
    );
    check("sliding_counter: { limit: 5, window: 1m }", SlidingCounter::new(5, MINUTE).unwrap());
}

#[test]
fn in_flight_and_on_the_wire() {
    let concurrency = Concurrency::new(20, MINUTE).unwrap();
    check("concurrency: { limit: 20 }", concurrency);
    check("concurrency: { limit: 20, max_hold: 1m, queue: 7 }", concurrency.with_queue(7));

    let bandwidth = Bandwidth::new(Rate::per_second(51_200).unwrap());
    assert_eq!(parse_limit("bandwidth: { rate: 50KiB/s }"), Ok(ParsedLimit::Bandwidth(bandwidth)));
    assert_eq!(
        parse_limit("bandwidth: { rate: 50KiB/s, after: 1MiB }"),
        Ok(ParsedLimit::Bandwidth(bandwidth.with_after(1 << 20)))
    );
}

#[test]
fn all_mistakes_are_told_at_once() {
    assert_snapshot!(
        mistakes("token_bucket:\n  rate: 0/s\n  brust: 5\n  initial: -1\n  refill: intervall\n  colour: red\n"),
        @r#"
    2:3: token_bucket.burst: is missing, such as `burst: 100`
    2:9: token_bucket.rate: must be greater than zero; read "0/s", expected a rate such as 10/s, 0.5/s or 100/30s
    3:3: token_bucket.brust: is not a known key; did you mean `burst`?
    4:12: token_bucket.initial: must not be negative; read "-1"
    5:11: token_bucket.refill: must be one of `continuous`, `interval`; read "intervall"; did you mean `interval`?
    6:3: token_bucket.colour: is not a known key; known here: `rate`, `burst`, `initial`, `refill`
    "#
    );
}

#[test]
fn which_algorithm() {
    assert_snapshot!(mistakes("tokenbucket: { rate: 10/s, burst: 5 }"), @"1:1: tokenbucket: is not a known key; did you mean `token_bucket`?");
    assert_snapshot!(mistakes("{}"), @"1:1: names no algorithm, such as `token_bucket: { rate: 10/s, burst: 5 }`; known are `token_bucket`, `leaky_bucket`, `smooth_bursty`, `smooth_warming_up`, `fixed_window`, `sliding_log`, `sliding_window`, `sliding_counter`, `concurrency`, `bandwidth`");
    assert_snapshot!(
        mistakes("sliding_log: { limit: 5, window: 1m }\nsliding_counter: { limit: 0, window: 1m }"),
        @r#"
    2:18: sliding_counter: cannot be combined with `sliding_log`: a limit has one algorithm
    2:27: sliding_counter.limit: must be greater than zero; read "0", expected a whole number such as 100
    "#
    );
}

#[test]
fn wrong_shapes() {
    assert_snapshot!(mistakes(""), @"1:1: is empty");
    assert_snapshot!(mistakes("10/s"), @"1:1: must be a mapping such as `token_bucket: { rate: 10/s, burst: 5 }`; read a single value");
    assert_snapshot!(mistakes("- a"), @"1:1: must be a mapping such as `token_bucket: { rate: 10/s, burst: 5 }`; read a list");
    assert_snapshot!(mistakes("token_bucket: 10/s"), @"1:15: token_bucket: must be a mapping such as `{ rate: 10/s, burst: 100 }`; read a single value");
    assert_snapshot!(mistakes("token_bucket:"), @"1:13: token_bucket: must be a mapping such as `{ rate: 10/s, burst: 100 }`; read nothing");
    assert_snapshot!(mistakes("sliding_log: { limit: \"5\", window: [1m] }"), @r"
    1:23: sliding_log.limit: must be a whole number such as 100; read text in quotes
    1:36: sliding_log.window: must be a duration such as 30s; read a list
    ");
    assert_snapshot!(mistakes("sliding_log: { limit: 5, window: 1m, limit: 6 }"), @"1:38: sliding_log.limit: is given twice, first on line 1");
    assert_snapshot!(mistakes("sliding_log: { limit: 5, window: 1m, [a]: 6 }"), @"1:38: sliding_log: keys must be names; read a list");
    assert_snapshot!(mistakes("sliding_log: { limit: 5"), @"2:1: is not YAML: while parsing a flow mapping, did not find expected ',' or '}'; a bracket is not closed, or a comma is missing");
}

#[test]
fn wrong_numbers() {
    let counts = ["0", "-1", "1.5", "five", "4294967296", "+5", "0x10", ".nan", "1e3", ""];
    let told: Vec<String> = counts
        .iter()
        .map(|count| mistakes(&format!("sliding_log: {{ window: 1m, limit: {count} }}")))
        .collect();
    assert_snapshot!(told.join("\n"), @r#"
    1:35: sliding_log.limit: must be greater than zero; read "0", expected a whole number such as 100
    1:35: sliding_log.limit: must not be negative; read "-1"
    1:35: sliding_log.limit: must be a whole number such as 100; read "1.5"
    1:35: sliding_log.limit: must be a whole number such as 100; read "five"
    1:35: sliding_log.limit: must be at most 4294967295; read "4294967296"
    1:35: sliding_log.limit: must be a whole number such as 100; read "+5"
    1:35: sliding_log.limit: must be a whole number such as 100; read "0x10"
    1:35: sliding_log.limit: must be a whole number such as 100; read ".nan"
    1:35: sliding_log.limit: must be a whole number such as 100; read "1e3"
    1:33: sliding_log.limit: must be a whole number such as 100; read nothing
    "#);
}

#[test]
fn numbers_that_do_not_fit_each_other() {
    let texts = [
        "token_bucket: { rate: 10/s, burst: 5, initial: 6 }",
        "leaky_bucket: { rate: 10/s, capacity: 5, delay: 6 }",
        "leaky_bucket: { rate: 10/s, capacity: 5, delay: 0 }",
        "smooth_bursty: { rate: 10/s, initial: 11 }",
        "smooth_warming_up: { rate: 10, warmup: 0s, cold_factor: 0.5 }",
        "sliding_window: { limit: 0, window: 1s, precision: 2s }",
        "fixed_window: { limit: 5, window: day }",
        "fixed_window: { limit: 5, window: 1d, align: calendar }",
        "fixed_window: { limit: 5, window: 1m, time_zone: UTC }",
        "fixed_window: { limit: 5, window: forever, align: epoch }",
        "fixed_window: { limit: 0, window: fortnight, align: calendar, time_zone: Mars/Olympus }",
    ];
    let told: Vec<String> = texts.iter().map(|text| mistakes(text)).collect();
    assert_snapshot!(told.join("\n"), @r#"
    1:48: token_bucket.initial: must not be above the burst, 5
    1:49: leaky_bucket.delay: must not be above the capacity, 5
    1:49: leaky_bucket.delay: must be greater than zero; read "0", expected a whole number such as 100
    1:39: smooth_bursty.initial: must not be above rate * max_burst
    1:28: smooth_warming_up.rate: a `/` and a time are missing; read "10", expected a rate such as 10/s, 0.5/s or 100/30s
    1:40: smooth_warming_up.warmup: must be greater than zero; read "0s", expected a duration such as 500ms, 1m30s or 7d
    1:57: smooth_warming_up.cold_factor: must be a finite number, 1 or more
    1:26: sliding_window.limit: must be greater than zero; read "0", expected a whole number such as 100
    1:52: sliding_window.precision: must not be above window
    1:35: fixed_window.window: `day` is a calendar's: it needs `align: calendar`
    1:35: fixed_window.window: must be one of `hour`, `day`, `week`, `month`, `year`; read "1d"
    1:50: fixed_window.time_zone: has a meaning only with `align: calendar`
    1:51: fixed_window.align: has no effect if the window is `forever`
    1:24: fixed_window.limit: must be greater than zero; read "0", expected a whole number such as 100
    1:35: fixed_window.window: must be one of `hour`, `day`, `week`, `month`, `year`; read "fortnight"
    1:74: fixed_window.time_zone: no time zone is called "Mars/Olympus"; names look like Europe/Paris
    "#);
}

#[test]
fn a_mistake_knows_its_place() {
    let mistakes = parse_limit("token_bucket:\n  rate: 10/s\n  burst: 0").unwrap_err();
    let first = mistakes.iter().next().unwrap();
    assert_eq!((first.line(), first.column(), first.path()), (3, 10, "token_bucket.burst"));
    assert!(first.message().starts_with("must be greater than zero"));
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in "\\PC{0,60}") {
        let _ = (parse_rate(&text), parse_duration(&text), parse_size(&text), parse_limit(&text));
    }

    #[test]
    fn no_quantity_makes_it_panic(text in "[-+.0-9]{0,30}[a-zA-Zµ]{0,4}/?[-+.0-9]{0,22}[a-zµ]{0,3}") {
        let _ = (parse_rate(&text), parse_duration(&text), parse_size(&text));
    }

    #[test]
    fn no_yaml_makes_it_panic(text in "([-?:,\\[\\]{}#&*!|>'\"%@`~ \t\r\n]|[a-c0-9]|---|\\.\\.\\.|: |- |\n  ){0,40}") {
        let _ = parse_limit(&text);
    }

    #[test]
    fn no_limit_makes_it_panic(
        name in "token_bucket|leaky_bucket|smooth_bursty|smooth_warming_up|fixed_window|sliding_log|sliding_window|sliding_counter|concurrency|bandwidth",
        numbers in proptest::collection::vec(
            ("rate|burst|initial|refill|capacity|delay|limit|window|align|time_zone|precision|warmup|cold_factor|max_hold|queue|after|max_burst",
             "10/s|1s|[0-9.]{1,12}/?[0-9]{0,4}[a-zA-Z]{0,3}|none|forever|calendar|day|UTC|'x'|\\[\\]|[!-~]{0,8}"),
            0..6,
        ),
    ) {
        let lines: String = numbers.iter().map(|(key, value)| format!("  {key}: {value}\n")).collect();
        let _ = parse_limit(&format!("{name}:\n{lines}"));
    }
}
