//! The pacer by itself, at any rate and with timers that are late.

use super::{Record, flown};
use proptest::prelude::*;
use std::time::Duration;
use tollgate::{Bandwidth, Pace, Pacer, Rate, Time};

/// From a byte an hour to 10 GB a second, as many slow ones as fast ones.
fn rates() -> impl Strategy<Value = Rate> {
    let hourly = (1_u64..10_000).prop_map(|amount| (amount, 3600));
    let a_second = (0_u32..=9, 1_u64..1_000_000_000).prop_map(|(decade, digits)| {
        ((10_u64.pow(decade) * (1_000_000_000 + 9 * digits)) / 1_000_000_000, 1)
    });
    prop_oneof![1 => hourly, 4 => a_second, 1 => Just((10_000_000_000, 1))]
        .prop_map(|(amount, seconds)| Rate::new(amount, Duration::from_secs(seconds)).unwrap())
}

proptest! {
    /// A sender that takes all it may and whose timers are up to 5 ms late loses nothing by it: whenever it wakes it
    /// catches up with the rate, and yet no window has more than the largest burst and the rate.
    #[test]
    fn late_timers_cost_no_rate(
        rate in rates(),
        after in prop_oneof![Just(0_u64), 0..10_000_000_u64],
        late in prop::collection::vec(0_u64..=5_000_000, 200),
    ) {
        let numbers = Bandwidth::new(rate).with_after(after);
        let mut pacer = Pacer::new(numbers, Time::ZERO);
        let (mut now, record, mut sleeps) = (Time::ZERO, Record::default(), 0);
        let mut late = late.into_iter();
        loop {
            match pacer.allow(now) {
                Pace::Send(bytes) => {
                    pacer.sent(bytes);
                    record.note(now, usize::try_from(bytes).unwrap());
                }
                Pace::Sleep(time) => {
                    let owed = u128::from(after) + flown(rate, now - Time::ZERO);
                    prop_assert!(u128::from(record.total()) >= owed, "at {now}: {} of {owed}", record.total());
                    let Some(late) = late.next() else { break };
                    sleeps += 1;
                    now = now + time + Duration::from_nanos(late);
                }
            }
        }
        record.check(rate, after);
        let chunks = (record.total() - after) / numbers.chunk();
        prop_assert!(sleeps <= chunks, "slept {sleeps} times for {chunks} chunks");
    }

    /// A sender that comes when it likes and sends what it likes of what it may: no window has more than it may.
    #[test]
    fn no_sender_gets_more(
        rate in rates(),
        after in prop_oneof![Just(0_u64), 0..10_000_000_u64],
        steps in prop::collection::vec((0.0..3.0_f64, 0.0..1.2_f64), 1..200),
    ) {
        let numbers = Bandwidth::new(rate).with_after(after);
        let mut pacer = Pacer::new(numbers, Time::ZERO);
        let chunk_takes = numbers.chunk() as f64 * rate.period().as_secs_f64() / rate.amount().get() as f64;
        let (mut now, record) = (Time::ZERO, Record::default());
        for (chunks_later, share) in steps {
            now += Duration::from_secs_f64(chunks_later * chunk_takes);
            if let Pace::Send(most) = pacer.allow(now) {
                let bytes = ((most as f64 * share) as u64).min(most);
                pacer.sent(bytes);
                record.note(now, usize::try_from(bytes).unwrap());
            }
        }
        record.check(rate, after);
    }
}

#[test]
fn bytes_do_not_trickle() {
    // A sender that asks every microsecond, as a busy connection would, still sends in chunks.
    let numbers = Bandwidth::new(Rate::new(100_000_000, Duration::from_secs(1)).unwrap());
    let mut pacer = Pacer::new(numbers, Time::ZERO);
    let sends = (0..1_000_000).filter(|micros| match pacer.allow(Time::from_micros(*micros)) {
        Pace::Send(bytes) => {
            pacer.sent(bytes);
            true
        }
        Pace::Sleep(_) => false,
    });
    assert_eq!(sends.count(), 32);
}

#[test]
fn whoever_stalled_gets_two_chunks_and_no_more() {
    let rate = Rate::per_second(32_000).unwrap();
    let mut pacer = Pacer::new(Bandwidth::new(rate), Time::ZERO);
    assert_eq!(pacer.allow(Time::ZERO), Pace::Send(1_000), "it begins with a chunk");
    pacer.sent(1_000);
    let later = Time::ZERO + Duration::from_secs(86_400);
    assert_eq!(pacer.allow(later), Pace::Send(2_000));
    pacer.sent(500);
    assert_eq!(pacer.allow(later), Pace::Send(1_500), "what was allowed may still go");
    pacer.sent(1_500);
    assert_eq!(pacer.allow(later), Pace::Sleep(Duration::from_micros(31_250)));
}
