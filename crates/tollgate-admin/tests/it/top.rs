//! The busiest keys.

use std::thread;
use tollgate::Key;
use tollgate_admin::{Heavy, Ranking, Sketch};

fn named(top: &[Heavy]) -> Vec<(String, String)> {
    let name = |heavy: &Heavy| heavy.key.values[0].clone().unwrap_or_default();
    top.iter().map(|heavy| (heavy.limit.clone(), name(heavy))).collect()
}

fn pair(limit: &str, key: &str) -> (String, String) {
    (limit.to_owned(), key.to_owned())
}

#[test]
fn few_keys_are_counted_exactly_and_told_in_order() {
    let sketch = Sketch::new();
    let (clients, logins) = (sketch.limit("per-client"), sketch.limit("login"));
    clients.used(Key::Text("alice"), 30);
    clients.used(Key::Text("bob"), 5);
    logins.used(Key::Text("alice"), 10);
    (0..4).for_each(|_| clients.refused(Key::Text("bob")));
    logins.refused(Key::Text("alice"));

    let used = sketch.top(Ranking::Used, 10);
    assert_eq!(
        named(&used),
        [pair("per-client", "alice"), pair("login", "alice"), pair("per-client", "bob")]
    );
    assert_eq!(used.iter().map(|heavy| heavy.at_least).collect::<Vec<_>>(), [30.0, 10.0, 5.0]);
    let limited = sketch.top(Ranking::Refused, 1);
    assert_eq!(named(&limited), [pair("per-client", "bob")]);
    // Nothing has faded: a rate is over the first five seconds.
    assert_eq!((limited[0].refused_per_second, limited[0].used_per_second), (0.8, 1.0));
}

#[test]
fn keys_that_would_collide_as_joined_strings_stay_apart() {
    let sketch = Sketch::new();
    let meter = sketch.limit("pairs");
    meter.used(Key::List(&[Some("a"), Some("b_c")]), 1);
    meter.used(Key::List(&[Some("a_b"), Some("c")]), 1);
    meter.used(Key::List(&[Some("a_b"), None]), 1);
    assert_eq!(sketch.top(Ranking::Used, 10).len(), 3);
}

/// PITFALLS of peers: a flood of keys that are seen once displaces those that matter, or fills the memory.
#[test]
fn heavy_keys_stay_through_a_flood_of_keys_that_are_seen_once() {
    const FLOOD: u64 = 300_000;
    let sketch = Sketch::new();
    let meter = sketch.limit("per-client");
    let mut sent = [0_u64; 20];
    for n in 0..FLOOD {
        meter.refused(Key::Text(&format!("flood-{n}")));
        // Ever fewer for ever later ones: 2 % of the flood, down to 1 %.
        for (heavy, sent) in sent.iter_mut().enumerate() {
            if n % (50 + 50 * heavy as u64 / 19) == 0 {
                meter.refused(Key::Text(&format!("heavy-{heavy}")));
                *sent += 1;
            }
        }
    }
    let top = sketch.top(Ranking::Refused, 20);
    for (heavy, sent) in sent.into_iter().enumerate() {
        let name = format!("heavy-{heavy}");
        let found = top.iter().find(|it| it.key.values[0].as_deref() == Some(&*name));
        let found = found.unwrap_or_else(|| panic!("{name} is not among {:?}", named(&top)));
        let sent = sent as f64;
        assert!(found.at_least <= sent && sent <= found.at_most, "{sent}: {found:?}");
        assert!(found.at_least > 0.9 * sent, "{sent}: {found:?}");
    }
}

#[test]
fn who_was_busy_and_is_not_any_more_is_forgotten() {
    let sketch = Sketch::new();
    let meter = sketch.limit("per-client");
    meter.refused(Key::Text("once"));
    meter.used(Key::Text("often"), 1_000_000);
    let fades = |minutes: u32| (0..12 * minutes).for_each(|_| sketch.fade());
    fades(1);
    let half = &sketch.top(Ranking::Used, 1)[0];
    assert!((half.at_least - 500_000.0).abs() < 1.0, "{half:?}");
    fades(3);
    assert!(sketch.top(Ranking::Refused, 10).is_empty(), "one refusal, four minutes ago");
    fades(30);
    assert!(sketch.top(Ranking::Used, 10).is_empty());
}

#[test]
fn a_steady_rate_is_told_as_that_rate() {
    let sketch = Sketch::new();
    let meter = sketch.limit("per-client");
    for seconds in 0..300 {
        meter.used(Key::Text("alice"), 40);
        if seconds % 5 == 4 {
            let rate = sketch.top(Ranking::Used, 1)[0].used_per_second;
            assert!((38.0..=42.0).contains(&rate), "{rate} after {seconds} s");
            sketch.fade();
        }
    }
}

#[test]
fn what_threads_tell_at_once_is_added_up() {
    const EACH: u32 = 100_000;
    let sketch = Sketch::new();
    let meter = sketch.limit("per-client");
    thread::scope(|scope| {
        for thread in 0..4_u32 {
            let meter = &meter;
            scope.spawn(move || {
                for n in 0..EACH {
                    meter.used(Key::Text(["alice", "bob", "carol"][(n + thread) as usize % 3]), 1);
                }
            });
        }
        for _ in 0..20 {
            let _ = sketch.top(Ranking::Used, 10);
        }
    });
    let counted: f64 = sketch.top(Ranking::Used, 10).iter().map(|heavy| heavy.at_least).sum();
    assert_eq!(counted as u64 + sketch.lost(), u64::from(4 * EACH));
}
