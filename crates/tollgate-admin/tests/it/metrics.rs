//! What is counted, through the text that scrapers read.

use crate::exposition::{Exposition, read, value};
use std::{thread, time::Duration};
use tollgate_admin::{Format, Meters, Outcome, Registry};

fn both(registry: &Registry) -> [Exposition; 2] {
    [Format::Prometheus, Format::OpenMetrics].map(|format| read(&registry.text(format), format))
}

fn plain(registry: &Registry) -> Exposition {
    read(&registry.text(Format::Prometheus), Format::Prometheus)
}

#[test]
fn everything_that_is_counted_is_told_in_both_forms() {
    let meters = Meters::new();
    let rule = meters.rule("orders", "create");
    for (n, outcome) in Outcome::ALL.into_iter().enumerate() {
        (0..=n).for_each(|_| rule.count(outcome));
    }
    rule.waited(Duration::from_millis(100));
    rule.waited(Duration::from_millis(101));
    let route = meters.route("orders");
    for status in [200, 204, 301, 429, 503, 101] {
        route.answered(status);
    }
    route.abandoned();
    // Whatever an upstream makes up.
    for status in [0, 99, 600, u16::MAX] {
        route.answered(status);
    }
    meters.upstream("orders").observe(Duration::from_micros(1500));
    meters.store().observe(Duration::from_secs(3600));
    meters.reloaded();
    meters.reload_failed();
    meters.looked();
    meters.looked();
    meters.look_failed();
    meters.ask_listeners(|| vec![("gateway", 3), ("admin", 1)], || vec![("gateway", 2)]);

    for told in both(meters.registry()) {
        for (n, outcome) in Outcome::ALL.into_iter().enumerate() {
            let labels = ["orders", "create", outcome.name()];
            assert_eq!(value(&told, "tollgate_decisions_total", &labels), Some(n as f64 + 1.0));
        }
        let waited = |le| value(&told, "tollgate_wait_seconds_bucket", &["orders", "create", le]);
        assert_eq!([waited("0.05"), waited("0.1"), waited("0.2")], [Some(0.0), Some(1.0), Some(2.0)]);
        assert_eq!(value(&told, "tollgate_wait_seconds_sum", &["orders", "create"]), Some(0.201));
        let requests = |class| value(&told, "tollgate_requests_total", &["orders", class]);
        assert_eq!(["1xx", "2xx", "3xx", "4xx", "5xx"].map(requests), [1.0, 2.0, 1.0, 1.0, 1.0].map(Some));
        assert_eq!(requests("none"), Some(3.0), "one left, and two were given a status below 100");
        assert_eq!(value(&told, "tollgate_upstream_seconds_bucket", &["orders", "0.002"]), Some(1.0));
        assert_eq!(value(&told, "tollgate_store_seconds_bucket", &["100.0"]), Some(0.0));
        assert_eq!(value(&told, "tollgate_store_seconds_bucket", &["+Inf"]), Some(1.0));
        assert_eq!(value(&told, "tollgate_reloads_total", &["ok"]), Some(1.0));
        assert_eq!(value(&told, "tollgate_reloads_total", &["failed"]), Some(1.0));
        assert_eq!(value(&told, "tollgate_rules_looks_total", &["ok"]), Some(2.0));
        assert_eq!(value(&told, "tollgate_rules_looks_total", &["failed"]), Some(1.0));
        assert_eq!(value(&told, "tollgate_connections", &["gateway"]), Some(3.0));
        assert_eq!(value(&told, "tollgate_in_flight", &["gateway"]), Some(2.0));
        assert_eq!(value(&told, "tollgate_in_flight", &["admin"]), None);
    }
}

#[test]
fn labels_of_any_text_are_read_back_as_they_were() {
    let registry = Registry::new();
    let family = registry.counters("odd_total", "A \"help\" with \\ and\na line.", &["a", "b"]);
    let texts = ["", "\"", "\\", "\n", "\\n", "a\"b\\c\nd", "x,y=\"z\"} 7", "é中", "\\\"", "trailing\\"];
    for (n, text) in texts.into_iter().enumerate() {
        family.with(&[text, "b"]).add(n as u64 + 1);
    }
    for told in both(&registry) {
        for (n, text) in texts.into_iter().enumerate() {
            assert_eq!(value(&told, "odd_total", &[text, "b"]), Some(n as f64 + 1.0), "{text:?}");
        }
        let family = told.values().next().expect("one family");
        assert_eq!(family.help, "A \"help\" with \\ and\na line.");
        assert_eq!(family.samples.len(), texts.len());
    }
}

#[test]
fn the_text_is_this() {
    let registry = Registry::new();
    registry.counters("a_total", "Things.", &["kind"]).with(&["x"]).add(7);
    let gauge = registry.gauges("b", "Inside.", &[]).with(&[]);
    gauge.increment();
    gauge.increment();
    gauge.decrement();
    registry.ask_gauge("c", "Asked.", &["k"], || vec![(vec!["v".to_owned()], 5)]);
    let head = |counter: &str| {
        format!("# HELP {counter} Things.\n# TYPE {counter} counter\na_total{{kind=\"x\"}} 7\n")
    };
    let rest = "# HELP b Inside.\n# TYPE b gauge\nb 1\n# HELP c Asked.\n# TYPE c gauge\nc{k=\"v\"} 5\n";
    assert_eq!(registry.text(Format::Prometheus), format!("{}{rest}", head("a_total")));
    assert_eq!(registry.text(Format::OpenMetrics), format!("{}{rest}# EOF\n", head("a")));
}

#[test]
fn a_reload_keeps_totals_and_forgets_only_what_was_never_used() {
    let meters = Meters::new();
    let [kept, used, unused] = ["kept", "used", "unused"].map(|rule| meters.rule("orders", rule));
    kept.count(Outcome::Allow);
    used.count(Outcome::Reject);

    // The next generation is compiled while the last one is in use.
    let again = meters.rule("orders", "kept");
    again.count(Outcome::Allow);
    kept.count(Outcome::Allow);
    drop((kept, used, unused));
    meters.reloaded();

    let told = plain(meters.registry());
    let total = |rule, outcome| value(&told, "tollgate_decisions_total", &["orders", rule, outcome]);
    assert_eq!(total("kept", "allow"), Some(3.0));
    assert_eq!(total("kept", "reject"), Some(0.0), "a rule in use shows what has not happened yet");
    assert_eq!(total("used", "reject"), Some(1.0));
    assert_eq!(total("used", "allow"), None);
    assert_eq!(total("unused", "allow"), None);
    assert_eq!(
        value(&told, "tollgate_wait_seconds_count", &["orders", "kept"]),
        None,
        "nobody has waited yet"
    );

    // The rule comes back, and goes on from where it was.
    let back = meters.rule("orders", "used");
    back.count(Outcome::Reject);
    assert_eq!(back.total(Outcome::Reject), 2);
}

#[test]
fn rules_that_get_new_names_for_ever_do_not_fill_the_memory() {
    let registry = Registry::new();
    let family = registry.counters("rules_total", "Rules.", &["rule"]);
    let held = family.with(&["held"]);
    held.increment();
    for generation in 0..3000 {
        family.with(&[&format!("rule-{generation}")]).increment();
        if generation % 10 == 9 {
            registry.retire();
        }
    }
    let told = plain(&registry);
    let samples = &told["rules_total"].samples;
    assert_eq!(samples.len(), 1001);
    assert_eq!(value(&told, "rules_total", &["held"]), Some(1.0));
    assert_eq!(value(&told, "rules_total", &["rule-1999"]), None, "the oldest go first");
    assert_eq!(value(&told, "rules_total", &["rule-2000"]), Some(1.0));
    assert_eq!(value(&told, "rules_total", &["rule-2999"]), Some(1.0));
}

#[test]
fn nothing_is_lost_between_threads_while_somebody_reads() {
    const THREADS: u64 = 8;
    const EACH: u64 = 50_000;
    let registry = Registry::new();
    // More than fit into one line.
    let counters = registry.counters("n_total", "Things.", &["n"]);
    let counters: Vec<_> = (0..20).map(|n| counters.with(&[&n.to_string()])).collect();
    let gauge = registry.gauges("inside", "Inside.", &[]).with(&[]);
    let histogram = registry.histograms("took_seconds", "Took.", &[]).with(&[]);
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                for n in 0..EACH {
                    counters[n as usize % 20].increment();
                    histogram.observe(Duration::from_nanos(n * 1000));
                    gauge.increment();
                    gauge.decrement();
                }
            });
        }
        let mut before = 0.0;
        for _ in 0..50 {
            let told = plain(&registry);
            let now = value(&told, "n_total", &["0"]).expect("it is there");
            assert!(now >= before, "a counter never goes back");
            before = now;
        }
    });
    for counter in &counters {
        assert_eq!(counter.total(), THREADS * EACH / 20);
    }
    assert_eq!((gauge.value(), histogram.count()), (0, THREADS * EACH));
    assert_eq!(histogram.sum(), Duration::from_micros(THREADS * (EACH * (EACH - 1) / 2)));
}

#[test]
fn a_gauge_that_one_thread_raises_and_another_lowers_is_right() {
    let registry = Registry::new();
    let gauge = registry.gauges("inside", "Inside.", &[]).with(&[]);
    (0..5).for_each(|_| gauge.increment());
    thread::scope(|scope| scope.spawn(|| (0..3).for_each(|_| gauge.decrement())).join()).expect("no panic");
    assert_eq!(gauge.value(), 2);
}

#[test]
#[should_panic(expected = "there are two families called a_total")]
fn two_families_of_one_name_are_a_mistake_in_the_program() {
    let registry = Registry::new();
    let _ = registry.counters("a_total", "One.", &[]);
    let _ = registry.counters("a_total", "Two.", &[]);
}
