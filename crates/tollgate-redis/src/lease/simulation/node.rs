//! The node's half by itself: what it decides, when it calls, what it remembers.

use super::super::{Answer, BucketId, Call, Ledger, Local, Need, Settlement, Terms};
use std::time::Duration;
use tollgate::{Retry, Time};

const LIFE: Duration = Duration::from_millis(100);
const A: BucketId = BucketId(1);
const B: BucketId = BucketId(2);

fn ledger() -> Ledger {
    Ledger::new(Terms::new(LIFE), 1_000)
}

fn need(bucket: BucketId, cost: u32) -> Need {
    Need { bucket, cost }
}

fn at(micros: u64) -> Time {
    Time::from_micros(micros)
}

fn granted(units: u32) -> Answer {
    Answer {
        denied: None,
        limit: 1_000,
        remaining: 500,
        reset_after: Some(Duration::from_secs(1)),
        leased: units,
        life: LIFE,
    }
}

fn denied(retry: Retry) -> Answer {
    Answer { denied: Some(retry), remaining: 0, ..granted(0) }
}

/// Asks until a call wishes for a lease, and grants it `units`; all at `micros`.
fn lease(ledger: &mut Ledger, bucket: BucketId, units: u32, micros: u64) -> Call {
    for _ in 0..10 {
        ledger.decide(at(micros), &[need(bucket, 1)]);
        let call = ledger.question(at(micros), &[need(bucket, 1)]);
        let leased = if call.lines[0].wish.is_some() { units } else { 0 };
        ledger.answered(&call, at(micros), &[granted(leased)]);
        if leased > 0 {
            return call;
        }
    }
    panic!("never wished for a lease");
}

/// How many single units are allowed at once.
fn allows(ledger: &mut Ledger, bucket: BucketId, micros: u64) -> u32 {
    (0..).find(|_| !matches!(ledger.decide(at(micros), &[need(bucket, 1)]), Local::Allow { .. })).unwrap()
}

#[test]
fn a_cold_key_never_leases() {
    let mut ledger = ledger();
    for second in 1..100 {
        assert_eq!(ledger.decide(at(second * 1_000_000), &[need(A, 1)]), Local::Ask);
        let call = ledger.question(at(second * 1_000_000), &[need(A, 1)]);
        assert_eq!(call.lines[0].wish, None);
        ledger.answered(&call, at(second * 1_000_000 + 500), &[granted(0)]);
        assert_eq!(ledger.next_due(), None);
    }
}

#[test]
fn a_lease_is_spent_to_the_unit_and_until_its_end() {
    let mut one = ledger();
    lease(&mut one, A, 10, 1_000);
    assert_eq!(one.standing(at(1_000), A).unwrap().remaining, 510);
    assert_eq!(allows(&mut one, A, 2_000), 10);
    assert_eq!(one.standing(at(2_000), A).unwrap().remaining, 500);

    let mut other = ledger();
    lease(&mut other, A, 10, 1_000);
    assert!(matches!(other.decide(at(1_000 + 99_000), &[need(A, 1)]), Local::Allow { .. }));
    assert_eq!(other.decide(at(1_000 + 99_950), &[need(A, 1)]), Local::Ask, "a thousandth early");
}

#[test]
fn a_set_takes_from_all_or_none() {
    let mut ledger = ledger();
    lease(&mut ledger, A, 10, 1_000);
    lease(&mut ledger, B, 3, 1_000);
    assert_eq!(ledger.decide(at(1_100), &[need(A, 5), need(B, 4)]), Local::Ask);
    assert_eq!(ledger.decide(at(1_100), &[need(B, 2), need(B, 2)]), Local::Ask, "twice the same is one");
    assert!(matches!(ledger.decide(at(1_100), &[need(A, 5), need(B, 3)]), Local::Allow { .. }));
    assert_eq!((allows(&mut ledger, A, 1_200), allows(&mut ledger, B, 1_200)), (5, 0));
}

#[test]
fn a_refusal_is_remembered_until_more_could_come() {
    let mut ledger = ledger();
    let call = ledger.question(at(0), &[need(A, 5)]);
    ledger.answered(&call, at(1_000), &[denied(Retry::After(Duration::from_millis(30)))]);
    let left = |millis| Local::Deny(Retry::After(Duration::from_millis(millis)));
    assert_eq!(ledger.decide(at(11_000), &[need(A, 5)]), left(20));
    assert_eq!(ledger.decide(at(11_000), &[need(A, 9)]), left(20));
    assert_eq!(ledger.decide(at(11_000), &[need(A, 4)]), Local::Ask, "less might pass");
    assert_eq!(ledger.decide(at(11_000), &[need(A, 5), need(B, 1)]), Local::Ask, "nobody knows how B stands");
    assert_eq!(ledger.decide(at(31_000), &[need(A, 5)]), Local::Ask);
}

#[test]
fn after_a_refusal_one_asks_for_all() {
    let mut ledger = ledger();
    let refused = ledger.question(at(0), &[need(A, 1)]);
    ledger.answered(&refused, at(1_000), &[denied(Retry::After(Duration::from_millis(10)))]);
    assert_eq!(ledger.decide(at(12_000), &[need(A, 1)]), Local::Ask);
    let again = ledger.question(at(12_000), &[need(A, 1)]);
    assert!(matches!(ledger.decide(at(12_100), &[need(A, 1)]), Local::Deny(_)));
    ledger.answered(&again, at(13_000), &[Answer { remaining: 0, ..granted(0) }]);
    assert_eq!(
        ledger.decide(at(13_100), &[need(A, 1)]),
        Local::Ask,
        "the last unit: the next asks by itself"
    );
    let last = ledger.question(at(13_100), &[need(A, 1)]);
    assert!(matches!(ledger.decide(at(13_200), &[need(A, 1)]), Local::Deny(_)));
    ledger.failed(&last);
    assert_eq!(ledger.decide(at(13_300), &[need(A, 1)]), Local::Ask, "nobody is asking any more");
}

#[test]
fn a_refusal_is_forgotten_within_a_lease_and_at_once_by_hand() {
    let mut ledger = ledger();
    for retry in [Retry::Never, Retry::After(Duration::from_secs(60))] {
        let call = ledger.question(at(0), &[need(A, 1)]);
        ledger.answered(&call, at(0), &[denied(retry)]);
        assert!(matches!(ledger.decide(at(99_999), &[need(A, 1)]), Local::Deny(_)));
        assert_eq!(ledger.decide(at(100_000), &[need(A, 1)]), Local::Ask);
    }
    let call = ledger.question(at(200_000), &[need(A, 1)]);
    ledger.answered(&call, at(200_000), &[denied(Retry::After(Duration::from_secs(60)))]);
    ledger.forget_refusal(A);
    assert_eq!(ledger.decide(at(200_001), &[need(A, 1)]), Local::Ask);
}

#[test]
fn what_nobody_wants_any_more_is_given_back_while_the_lease_lives() {
    let mut ledger = ledger();
    let call = lease(&mut ledger, A, 50, 1_000);
    assert!(matches!(ledger.decide(at(1_500), &[need(A, 7)]), Local::Allow { .. }));
    let mut settled = None;
    while let Some(due) = ledger.next_due() {
        for call in ledger.due(due) {
            assert!(due < at(1_000) + LIFE);
            settled = settled.or(call.lines[0].settle[0]);
            ledger.answered(&call, due, &[granted(0)]);
        }
    }
    assert_eq!(settled, Some(Settlement { lease: call.lines[0].wish.unwrap().lease, used: 7 }));
    assert_eq!(ledger.decide(at(95_000), &[need(A, 1)]), Local::Ask, "what was settled is not spent from");
}

#[test]
fn an_unanswered_renewal_leaves_nothing_to_spend() {
    let mut ledger = ledger();
    lease(&mut ledger, A, 10, 1_000);
    assert_eq!(allows(&mut ledger, A, 1_000), 10);
    let due = ledger.next_due().unwrap();
    let calls = ledger.due(due);
    assert!(calls[0].lines[0].settle[0].is_some() && calls[0].lines[0].wish.is_some());
    ledger.failed(&calls[0]);
    assert_eq!(ledger.decide(due, &[need(A, 1)]), Local::Ask);
    let again = ledger.question(due, &[need(A, 1)]);
    assert_ne!(again.lines[0].wish.map(|wish| wish.lease), calls[0].lines[0].wish.map(|wish| wish.lease));
    assert_eq!(again.lines[0].settle, [None; 2], "nothing is settled twice");
}

#[test]
fn an_answer_that_comes_too_late_is_given_back() {
    let mut ledger = ledger();
    for _ in 0..3 {
        ledger.decide(at(1_000), &[need(A, 1)]);
        let call = ledger.question(at(1_000), &[need(A, 1)]);
        if call.lines[0].wish.is_some() {
            ledger.answered(&call, at(150_000), &[granted(10)]);
            assert_eq!(ledger.decide(at(150_000), &[need(A, 1)]), Local::Ask);
            let back = ledger.due(at(150_000));
            assert_eq!(back[0].lines[0].settle[0].map(|settled| settled.used), Some(0));
            return;
        }
        ledger.answered(&call, at(1_000), &[granted(0)]);
    }
    panic!("never wished for a lease");
}

#[test]
fn memory_is_bounded_and_hot_keys_stay() {
    let mut ledger = Ledger::new(Terms::new(LIFE).with_most_buckets(64), 7);
    lease(&mut ledger, A, 1_000_000, 1_000);
    lease(&mut ledger, B, 5, 1_000);
    for stranger in 100..10_000_u128 {
        let now = at(1_000 + stranger as u64);
        assert!(matches!(ledger.decide(now, &[need(A, 1)]), Local::Allow { .. }), "{stranger}");
        let call = ledger.question(now, &[need(BucketId(stranger), 1)]);
        ledger.answered(&call, now, &[granted(0)]);
        assert!(ledger.len() <= 64);
    }
    let back: Vec<Call> = ledger.due(at(12_000));
    assert!(back.iter().any(|call| call.lines[0].bucket == B && call.lines[0].settle[0].is_some()));
    assert_eq!(ledger.drop_all(at(12_000)).len(), 1, "what the hot key holds");
    assert_eq!((ledger.len(), ledger.next_due()), (0, None));
}

#[test]
fn closing_an_account_settles_what_it_held() {
    let mut ledger = ledger();
    lease(&mut ledger, A, 10, 1_000);
    assert_eq!(allows(&mut ledger, A, 1_000).min(4), 4);
    let line = ledger.close(at(2_000), A).unwrap();
    assert_eq!(line.settle[0].map(|settled| settled.used), Some(10));
    assert_eq!(ledger.close(at(2_000), A), None);
    assert_eq!(ledger.decide(at(2_000), &[need(A, 1)]), Local::Ask);
}
