//! The breaker on a time line of our own: by example, and against stores that fail as they please.

use super::*;
use proptest::prelude::*;

const MS: Duration = Duration::from_millis(1);

fn at(ms: u32) -> Time {
    Time::ZERO + MS * ms
}

fn breaker() -> Breaker {
    Breaker::new(BreakerSettings::default(), at(0))
}

fn pass(breaker: &Breaker, now: Time) -> Pass {
    match breaker.admit(|| now, || 0.0) {
        Admission::Go(pass) => pass,
        Admission::Skip => panic!("not let through at {now:?}: {breaker:?}"),
    }
}

fn fail(breaker: &mut Breaker, now: Time) -> Option<Change> {
    let pass = pass(breaker, now);
    breaker.report(now, pass, Outcome::Failed, 0.5)
}

fn open(breaker: &mut Breaker, now: Time) {
    for _ in 1..5 {
        assert_eq!(fail(breaker, now), None);
    }
    assert_eq!(fail(breaker, now), Some(Change::Opened { failures: 5 }));
}

fn probe(breaker: &mut Breaker, now: Time) -> Probe {
    match breaker.look(now) {
        Some(Due::Probe(probe)) => probe,
        other => panic!("{other:?} at {now:?}"),
    }
}

#[test]
fn opens_probes_returns_and_closes() {
    let mut breaker = breaker();
    open(&mut breaker, at(10));
    assert_eq!((breaker.health(), breaker.opened(), breaker.since()), (HealthState::Degraded, 1, at(10)));
    assert_eq!(breaker.admit(|| at(10), || 0.0), Admission::Skip);
    // 50 ms, of which chance has taken off a quarter.
    assert_eq!(breaker.next_look(), Some(at(10) + MS * 75 / 2));
    assert_eq!(breaker.look(at(47)), None);
    let first = probe(&mut breaker, at(48));
    assert_eq!(breaker.look(at(49)), None, "one at a time");
    assert_eq!(breaker.report_probe(at(50), first, Outcome::Failed, 1.0), None);
    assert_eq!(breaker.next_look(), Some(at(150)), "twice as long now");
    let second = probe(&mut breaker, at(150));
    let after = MS * 141;
    assert_eq!(
        breaker.report_probe(at(151), second, Outcome::Answered, 0.0),
        Some(Change::Returning { after })
    );
    for (ms, share) in
        [(0, 0.0625), (249, 0.0625), (250, 0.125), (500, 0.25), (750, 0.5), (1_000, 1.0), (9_000, 1.0)]
    {
        let now = at(151 + ms);
        assert!(matches!(breaker.admit(|| now, || share - 0.001), Admission::Go(_)), "{ms}");
        assert_eq!(breaker.admit(|| now, || share) == Admission::Skip, share < 1.0, "{ms}");
    }
    assert_eq!(breaker.next_look(), Some(at(1_151)));
    assert_eq!(breaker.look(at(1_150)), None);
    let change = Change::Closed { after: MS * 1_141 };
    assert_eq!(breaker.look(at(1_151)), Some(Due::Changed(change)));
    assert_eq!((breaker.health(), breaker.next_look(), breaker.opened()), (HealthState::Healthy, None, 1));
    // And the next trouble is probed for as eagerly as the first.
    open(&mut breaker, at(2_000));
    assert!(breaker.next_look().is_some_and(|next| next <= at(2_050)));
}

#[test]
fn traffic_closes_it_as_well_as_a_look() {
    let mut breaker = breaker();
    open(&mut breaker, at(0));
    let probe = probe(&mut breaker, at(50));
    let _ = breaker.report_probe(at(50), probe, Outcome::Answered, 0.0);
    let pass = pass(&breaker, at(1_049));
    assert_eq!(breaker.report(at(1_049), pass, Outcome::Answered, 0.0), None);
    let change = breaker.report(at(1_050), pass, Outcome::Answered, 0.0);
    assert_eq!(change, Some(Change::Closed { after: MS * 1_050 }));
}

#[test]
fn a_relapse_goes_on_with_longer_pauses() {
    let mut breaker = breaker();
    open(&mut breaker, at(0));
    let probe = probe(&mut breaker, at(50));
    let _ = breaker.report_probe(at(50), probe, Outcome::Answered, 0.0);
    assert_eq!(fail(&mut breaker, at(60)), None, "one may be chance");
    assert_eq!(fail(&mut breaker, at(61)), Some(Change::Relapsed { after: MS * 61 }));
    assert_eq!((breaker.health(), breaker.opened()), (HealthState::Degraded, 2));
    assert_eq!(breaker.next_look(), Some(at(61) + MS * 75));
}

/// Timeouts of calls that were under way when it opened come in later, when the store may be fine again.
#[test]
fn late_reports_are_not_heard() {
    let mut breaker = breaker();
    let early = pass(&breaker, at(0));
    open(&mut breaker, at(0));
    assert_eq!(breaker.report(at(1), early, Outcome::Answered, 0.0), None);
    assert_eq!(breaker.health(), HealthState::Degraded, "an answer from before does not close it");
    let probe = probe(&mut breaker, at(50));
    let _ = breaker.report_probe(at(50), probe, Outcome::Answered, 0.0);
    for _ in 0..100 {
        assert_eq!(breaker.report(at(60), early, Outcome::Failed, 0.0), None);
    }
    assert_eq!(breaker.health(), HealthState::Recovering);
}

/// Whoever was to probe was dropped. Another is, after a while; and the first is not believed if it comes after all.
#[test]
fn a_lost_probe_is_made_again() {
    let mut breaker = breaker();
    open(&mut breaker, at(0));
    let lost = probe(&mut breaker, at(50));
    assert_eq!(breaker.look(at(2_049)), None);
    let again = probe(&mut breaker, at(2_050));
    assert_eq!(breaker.report_probe(at(2_051), lost, Outcome::Answered, 0.0), None);
    assert_eq!(breaker.health(), HealthState::Degraded);
    let change = breaker.report_probe(at(2_052), again, Outcome::Answered, 0.0);
    assert_eq!(change, Some(Change::Returning { after: MS * 2_052 }));
}

#[test]
fn changes_read_as_log_lines() {
    let lines = [
        Change::Opened { failures: 5 },
        Change::Returning { after: MS * 12_340 },
        Change::Relapsed { after: MS * 900 },
        Change::Closed { after: MS * 13_340 },
    ]
    .map(|change| change.to_string());
    assert_eq!(
        lines,
        [
            "5 failures in a row: doing without the store",
            "the store answers after 12.3s: traffic returns step by step",
            "the store failed again after 900.0ms: doing without it",
            "the store is in full use again after 13.3s",
        ]
    );
}

/// What happens next to a breaker.
#[derive(Clone, Debug)]
enum Step {
    Pass(u64),
    Call { random: f64 },
    Report { which: usize, outcome: Outcome },
    Look,
    ReportProbe { outcome: Outcome },
}

fn outcome() -> impl Strategy<Value = Outcome> {
    prop_oneof![Just(Outcome::Answered), Just(Outcome::Failed)]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (0..3_000_000_000_u64).prop_map(Step::Pass),
        (0..50_000_000_u64).prop_map(Step::Pass),
        (0.0..1.0).prop_map(|random| Step::Call { random }),
        (any::<usize>(), outcome()).prop_map(|(which, outcome)| Step::Report { which, outcome }),
        Just(Step::Report { which: 0, outcome: Outcome::Failed }),
        Just(Step::Look),
        outcome().prop_map(|outcome| Step::ReportProbe { outcome }),
    ]
}

proptest! {
    /// Whatever happens in whatever order: one probe at a time, none while it is closed, nothing let through while it is
    /// open, changes one after the other as the picture has them, and a count that is right.
    #[test]
    fn any_history_keeps_to_the_picture(steps in prop::collection::vec(step(), 0..300)) {
        let (mut breaker, mut now) = (breaker(), at(0));
        let (mut passes, mut probes) = (Vec::new(), Vec::<(Probe, Time)>::new());
        let mut opened = 0;
        for step in steps {
            let was = breaker.health();
            let change = match step {
                Step::Pass(nanos) => {
                    now += Duration::from_nanos(nanos);
                    None
                }
                Step::Call { random } => {
                    match breaker.admit(|| now, || random) {
                        Admission::Go(pass) => {
                            prop_assert_ne!(was, HealthState::Degraded);
                            passes.push(pass);
                        }
                        Admission::Skip => prop_assert_ne!(was, HealthState::Healthy, "a call was lost"),
                    }
                    None
                }
                Step::Report { which, outcome } if !passes.is_empty() => {
                    let pass = passes.swap_remove(which % passes.len());
                    breaker.report(now, pass, outcome, 0.5)
                }
                Step::Look => match breaker.look(now) {
                    Some(Due::Probe(probe)) => {
                        prop_assert_eq!(was, HealthState::Degraded);
                        let within = BreakerSettings::default().probe_within;
                        prop_assert!(probes.iter().all(|(_, since)| *since + within <= now), "two probes at once");
                        probes.push((probe, now));
                        None
                    }
                    Some(Due::Changed(change)) => Some(change),
                    None => None,
                },
                Step::ReportProbe { outcome } if !probes.is_empty() => {
                    let (probe, _) = probes.remove(0);
                    breaker.report_probe(now, probe, outcome, 0.5)
                }
                _ => None,
            };
            let expected = match change {
                None => was,
                Some(Change::Opened { .. }) => { prop_assert_eq!(was, HealthState::Healthy); HealthState::Degraded }
                Some(Change::Relapsed { .. }) => { prop_assert_eq!(was, HealthState::Recovering); HealthState::Degraded }
                Some(Change::Returning { .. }) => { prop_assert_eq!(was, HealthState::Degraded); HealthState::Recovering }
                Some(Change::Closed { .. }) => { prop_assert_eq!(was, HealthState::Recovering); HealthState::Healthy }
            };
            opened += u64::from(was != HealthState::Degraded && expected == HealthState::Degraded);
            prop_assert_eq!((breaker.health(), breaker.opened()), (expected, opened));
        }
    }

    /// A store that dies and stays dead: the first few callers feel it, and nobody after them, for as long as it lasts.
    #[test]
    fn a_dead_store_is_felt_by_the_first_few(
        failures in 1..20_u32,
        gaps in prop::collection::vec(0..200_u32, 100..400),
        randoms in prop::collection::vec(0.0..1.0, 1..50),
    ) {
        let failures = NonZeroU32::new(failures).unwrap_or(NonZeroU32::MIN);
        let mut breaker = Breaker::new(BreakerSettings { failures, ..BreakerSettings::default() }, at(0));
        let (mut now, mut felt, mut probes) = (at(0), 0, 0_u32);
        let mut randoms = randoms.into_iter().cycle();
        for gap in gaps {
            now += MS * gap;
            let random = randoms.next().unwrap_or_default();
            if let Admission::Go(pass) = breaker.admit(|| now, || random) {
                felt += 1;
                let _ = breaker.report(now, pass, Outcome::Failed, random);
            }
            if let Some(Due::Probe(probe)) = breaker.look(now) {
                probes += 1;
                let _ = breaker.report_probe(now, probe, Outcome::Failed, random);
            }
        }
        prop_assert!(felt <= failures.get(), "{felt} calls");
        // At pauses that double from 25..50 ms to 500..1000 ms.
        let most = 6 + (now - at(0)).as_millis() / 500;
        prop_assert!(u128::from(probes) <= most, "{probes} probes in {:?}", now - at(0));
    }

    /// A store that lies dead for a while, answers probes and fails calls now and then, and is well in the end: whatever
    /// was before, the breaker is closed soon after, and lets everything through.
    #[test]
    fn a_store_that_is_well_again_is_used_again(
        history in prop::collection::vec((0..300_u32, outcome(), outcome(), 0.0..1.0), 0..200),
        loses_a_probe in any::<bool>(),
    ) {
        let (mut breaker, mut now) = (breaker(), at(0));
        for (gap, call, probed, random) in history {
            now += MS * gap;
            if let Admission::Go(pass) = breaker.admit(|| now, || random) {
                let _ = breaker.report(now, pass, call, random);
            }
            if let Some(Due::Probe(probe)) = breaker.look(now) && !loses_a_probe {
                let _ = breaker.report_probe(now, probe, probed, random);
            }
        }
        let well = now;
        while breaker.health() != HealthState::Healthy {
            prop_assert!(now - well < MS * 4_100, "{:?} after {:?}", breaker, now - well);
            now = breaker.next_look().unwrap_or(now).max(now);
            if let Some(Due::Probe(probe)) = breaker.look(now) {
                let _ = breaker.report_probe(now, probe, Outcome::Answered, 0.99);
            }
        }
        prop_assert!(matches!(breaker.admit(|| now, || 0.999), Admission::Go(_)));
    }
}

/// Traffic comes back in steps, and not in one: counted over a thousand calls in each quarter second.
#[test]
fn traffic_returns_gradually() {
    let mut breaker = breaker();
    open(&mut breaker, at(0));
    let probe = probe(&mut breaker, at(50));
    let _ = breaker.report_probe(at(50), probe, Outcome::Answered, 0.0);
    let mut counts = [0; 5];
    for (step, count) in (0..).zip(&mut counts) {
        for i in 0..1_000 {
            let now = at(50 + step * 250);
            *count += u32::from(breaker.admit(|| now, || f64::from(i) / 1_000.0) != Admission::Skip);
        }
    }
    assert_eq!(counts, [63, 125, 250, 500, 1_000]);
}
