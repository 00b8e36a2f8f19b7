//! The behaviour of the limiters this began from: Guava's traces, nginx's queue, the cold start of a full bucket, and the
//! boundary problem.

use crate::{booking::book, limits::per};
use std::time::Duration;
use tollgate::{
    Decision, Delay, FixedWindow, LeakyBucket, Limit, Limiter, ManualClock, Rate, SlidingLog, SlidingWindow,
    SmoothBursty, SmoothWarmingUp, TokenBucket,
};

const SECOND: Duration = Duration::from_secs(1);

/// What `acquire` sleeps, on a clock that sleeps with it.
fn acquire(limiter: &Limiter<ManualClock>, permits: u32) -> u64 {
    let wait = match book(limiter, permits, Duration::MAX) {
        Decision::Allow => Duration::ZERO,
        Decision::Wait(wait) => wait,
        Decision::Deny(why) => panic!("{why:?}"),
    };
    limiter.clock().advance(wait);
    u64::try_from(wait.as_micros()).unwrap()
}

fn acquires(limiter: &Limiter<ManualClock>, permits: &[u32]) -> Vec<u64> {
    permits.iter().map(|permits| acquire(limiter, *permits)).collect()
}

fn bursty(per_second: u32) -> Limiter<ManualClock> {
    Limiter::with_clock(SmoothBursty::new(Rate::per_second(per_second).unwrap()), ManualClock::new())
}

fn warming(per_second: u32) -> Limiter<ManualClock> {
    let rate = Rate::per_second(per_second).unwrap();
    Limiter::with_clock(SmoothWarmingUp::new(rate, SECOND).unwrap(), ManualClock::new())
}

/// When arrivals at given milliseconds pass, in microseconds after the first instant.
fn passes(limiter: &Limiter<ManualClock>, arrivals: &[(u64, u32)]) -> Vec<u64> {
    limiter.clock().advance(2 * SECOND);
    let start = tollgate::Time::ZERO + 2 * SECOND;
    arrivals
        .iter()
        .map(|(at_ms, permits)| {
            limiter.clock().set(start + Duration::from_millis(*at_ms));
            let wait = match book(limiter, *permits, Duration::MAX) {
                Decision::Wait(wait) => wait,
                _ => Duration::ZERO,
            };
            at_ms * 1_000 + u64::try_from(wait.as_micros()).unwrap()
        })
        .collect()
}

#[test]
fn guava_one_permit_at_a_time() {
    assert_eq!(acquires(&bursty(5), &[1; 7]), [0, 200_000, 200_000, 200_000, 200_000, 200_000, 200_000]);
}

#[test]
fn guava_a_large_request_is_paid_by_the_next() {
    assert_eq!(acquires(&bursty(5), &[5, 1, 1]), [0, 1_000_000, 200_000]);
}

#[test]
fn guava_idle_time_is_banked_up_to_one_second() {
    let limiter = bursty(2);
    assert_eq!(acquire(&limiter, 1), 0);
    limiter.clock().advance(5 * SECOND);
    assert_eq!(acquires(&limiter, &[1; 4]), [0, 0, 0, 500_000]);
}

#[test]
fn guava_arrivals_after_two_idle_seconds() {
    let arrivals = [(0, 4), (1, 4), (100, 5), (200, 3), (500, 5), (1_000, 1), (5_000, 15)];
    assert_eq!(passes(&bursty(10), &arrivals), [0, 1_000, 100_000, 300_000, 600_000, 1_100_000, 5_000_000]);
    assert_eq!(
        passes(&bursty(10), &[(100, 10), (101, 10)]),
        [100_000, 101_000],
        "twice the rate in one second"
    );
}

#[test]
fn guava_cold_start_and_rest() {
    let limiter = warming(5);
    assert_eq!(acquires(&limiter, &[1; 6]), [0, 520_000, 360_000, 220_000, 200_000, 200_000]);
    limiter.clock().advance(SECOND);
    let mut rested = vec![0, 360_000, 220_000];
    rested.extend([200_000; 7]);
    assert_eq!(acquires(&limiter, &[1; 10]), rested);
    assert_eq!(passes(&warming(10), &[(0, 10), (1, 10), (2, 10)]), [0, 1_500_000, 2_500_000]);
}

#[test]
fn nginx_burst_is_a_queue() {
    // rate=1r/s burst=3: the first at once, three wait, the rest are refused.
    let limit =
        LeakyBucket::new(Rate::per_second(1).unwrap(), 4).unwrap().with_delay(Delay::After(1)).unwrap();
    let limiter = Limiter::with_clock(limit, ManualClock::new());
    let waits: Vec<Decision> = (0..6).map(|_| limiter.check().decision()).collect();
    assert_eq!(waits[0], Decision::Allow);
    assert_eq!(waits[1..4], [1, 2, 3].map(|seconds| Decision::Wait(seconds * SECOND)));
    assert!(matches!(waits[4..], [Decision::Deny(_), Decision::Deny(_)]));

    // rate=30r/m burst=2 delay=1: passed, passed, delayed 2 s, refused.
    let limit =
        LeakyBucket::new(Rate::per_minute(30).unwrap(), 3).unwrap().with_delay(Delay::After(2)).unwrap();
    let limiter = Limiter::with_clock(limit, ManualClock::new());
    let waits: Vec<Decision> = (0..4).map(|_| limiter.check().decision()).collect();
    assert_eq!(waits[..3], [Decision::Allow, Decision::Allow, Decision::Wait(2 * SECOND)]);
    assert!(matches!(waits[3], Decision::Deny(_)));

    // 1r/m is one a minute, not one in 62.5 seconds.
    let limiter =
        Limiter::with_clock(LeakyBucket::new(Rate::per_minute(1).unwrap(), 1).unwrap(), ManualClock::new());
    assert!(limiter.check().is_allow());
    assert_eq!(limiter.check().retry_after(), Some(60 * SECOND));
}

/// How many of requests sent every millisecond pass in the first second.
fn in_the_first_second(limit: impl Into<Limit>, first_at: Duration) -> u32 {
    let clock = ManualClock::new();
    let limiter = Limiter::with_clock(limit, clock.clone());
    clock.advance(first_at);
    let mut passed = 0;
    for _ in 0..1_000 {
        passed += u32::from(limiter.check().is_allow());
        clock.advance(Duration::from_millis(1));
    }
    passed
}

#[test]
fn cold_start_nine_in_the_first_second_and_the_remedies() {
    let rate = Rate::per_second(5).unwrap();
    let full = |burst| TokenBucket::new(rate, burst).unwrap();
    assert_eq!(in_the_first_second(full(5), Duration::ZERO), 9, "five at once and four more");
    assert_eq!(in_the_first_second(full(1), Duration::ZERO), 5, "a smaller capacity at the same rate");
    assert_eq!(in_the_first_second(full(2), Duration::ZERO), 6);
    let warm = SmoothWarmingUp::new(rate, SECOND).unwrap();
    assert_eq!(in_the_first_second(warm, Duration::ZERO), 3, "warm-up");
}

#[test]
fn cold_start_over_a_slow_link() {
    // Requests arrive 200 ms into the second: five at once, one as the sixth comes due, three more.
    let clock = ManualClock::new();
    let limiter =
        Limiter::with_clock(TokenBucket::new(Rate::per_second(5).unwrap(), 5).unwrap(), clock.clone());
    let at_once = (0..10).filter(|_| limiter.check().is_allow()).count();
    clock.advance(Duration::from_millis(200));
    let next = (0..10).filter(|_| limiter.check().is_allow()).count();
    clock.advance(Duration::from_millis(600));
    let rest = (0..10).filter(|_| limiter.check().is_allow()).count();
    assert_eq!((at_once, next, rest), (5, 1, 3));
}

#[test]
fn half_a_second_of_patience() {
    let limiter =
        Limiter::with_clock(TokenBucket::new(Rate::per_second(5).unwrap(), 5).unwrap(), ManualClock::new());
    let answers: Vec<Decision> = (0..10).map(|_| book(&limiter, 1, SECOND / 2)).collect();
    assert_eq!(answers[..5], [Decision::Allow; 5]);
    assert_eq!(answers[5], Decision::Wait(Duration::from_millis(200)));
    assert_eq!(answers[6], Decision::Wait(Duration::from_millis(400)));
    assert!(answers[7..].iter().all(|answer| matches!(answer, Decision::Deny(_))));
    assert_eq!(
        limiter.check().retry_after(),
        Some(Duration::from_millis(600)),
        "the refused were charged nothing"
    );
}

#[test]
fn a_cancelled_turn_is_refunded() {
    let limiter =
        Limiter::with_clock(TokenBucket::new(Rate::per_second(5).unwrap(), 5).unwrap(), ManualClock::new());
    assert!(limiter.check_n(5).is_allow());
    assert_eq!(book(&limiter, 3, SECOND), Decision::Wait(Duration::from_millis(600)));
    limiter.refund(3);
    assert_eq!(
        limiter.check().retry_after(),
        Some(Duration::from_millis(200)),
        "as if it had never been booked"
    );
}

#[test]
fn the_boundary_problem_and_its_cure() {
    let hour = 3_600 * SECOND;
    let around_seven = |limit: Limit| {
        let clock = ManualClock::new();
        let limiter = Limiter::with_clock(limit, clock.clone());
        clock.advance(6 * hour + 59 * 60 * SECOND);
        let before = (0..200).filter(|_| limiter.check().is_allow()).count();
        clock.advance(60 * SECOND);
        let after = (0..240).filter(|_| limiter.check().is_allow()).count();
        (before, after)
    };
    assert_eq!(around_seven(FixedWindow::new(240, hour).unwrap().into()), (200, 240), "440 within a minute");
    assert_eq!(around_seven(SlidingLog::new(240, hour).unwrap().into()), (200, 40));
    assert_eq!(around_seven(SlidingWindow::new(240, hour, 60 * SECOND).unwrap().into()), (200, 40));
}

#[test]
fn ten_tokens_back_after_ten_seconds() {
    let limiter = Limiter::with_clock(TokenBucket::new(per(1, SECOND), 10).unwrap(), ManualClock::new());
    assert_eq!(limiter.check_n(10).remaining(), 0);
    assert!(limiter.check().is_deny());
    limiter.clock().advance(10 * SECOND);
    let status = limiter.check_n(10);
    assert!(status.is_allow());
    assert_eq!(status.remaining(), 0);
}
