//! How much a bucket is asked for at this node: what sizes its leases.
//!
//! Time is cut into periods (from one call to the next). Each folds into the average with a weight of one half, so that an
//! estimate forgets a burst in a few periods. A period under way counts too, projected to its end but to no more than twice
//! what came: demand that grows is followed by doubling, and three requests in a microsecond are not taken for a flood.
//!
//! ```text
//! expected = max(average, count * min(2, period / elapsed))            requests, and units, a period
//! enough   = 1.25 * units + 2 * sqrt(1.25 * units * cost) + cost        cost = units / requests
//! ```
//!
//! A quarter more than a period covers the call; twice the root is what arrivals at random need so that they seldom run out.

use std::time::Duration;
use tollgate::Time;

#[derive(Clone, Copy, Debug)]
pub(super) struct Demand {
    since: Time,
    count: Flow,
    average: Flow,
}

/// What comes in a period.
#[derive(Clone, Copy, Debug, Default)]
struct Flow {
    requests: f32,
    units: f32,
}

/// A key that asks less often than this in a lease's life would call more often to renew than it asks. What came counts for
/// this, not what is projected: otherwise the first request would be a trend.
const COLD: f32 = 3.0;

impl Demand {
    pub(super) fn new(now: Time) -> Self {
        Self { since: now, count: Flow::default(), average: Flow::default() }
    }

    /// Notes a request.
    #[inline]
    pub(super) fn note(&mut self, now: Time, units: u32, period: Duration) {
        if now - self.since >= period {
            self.turn(now, period);
        }
        self.count.requests += 1.0;
        self.count.units += units as f32;
    }

    /// The units that a node should hold now, to do until the call after this has been answered; zero for a cold key.
    pub(super) fn enough(&mut self, now: Time, period: Duration, life: Duration) -> u32 {
        self.turn(now, period);
        let elapsed = (now - self.since).as_secs_f32();
        let projected = (period.as_secs_f32() / elapsed.max(f32::EPSILON)).clamp(1.0, 2.0);
        let seen = self.average.requests.max(self.count.requests);
        if seen * life.as_secs_f32() < COLD * period.as_secs_f32() {
            return 0;
        }
        let requests = self.average.requests.max(self.count.requests * projected);
        let units = self.average.units.max(self.count.units * projected);
        let (cost, units) = (units / requests, 1.25 * units);
        (units + 2.0 * (units * cost).sqrt() + cost).ceil() as u32
    }

    /// Closes the periods that are over.
    #[cold]
    fn turn(&mut self, now: Time, period: Duration) {
        let over = (now - self.since).as_nanos() / period.as_nanos().max(1);
        if over == 0 {
            return;
        }
        self.since = now;
        let fade = 0.5_f32.powi(over.min(64) as i32 - 1);
        let fold = |average: f32, count: f32| (average + count) * 0.5 * fade;
        self.average = Flow {
            requests: fold(self.average.requests, self.count.requests),
            units: fold(self.average.units, self.count.units),
        };
        self.count = Flow::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PERIOD: Duration = Duration::from_millis(40);
    const LIFE: Duration = Duration::from_millis(100);

    /// Asks `count` times, every `micros`, and says what is enough then.
    fn after(count: u64, micros: u64, cost: u32) -> (Demand, Time, u32) {
        let mut demand = Demand::new(Time::ZERO);
        let mut now = Time::ZERO;
        for _ in 0..count {
            now += Duration::from_micros(micros);
            demand.note(now, cost, PERIOD);
        }
        let enough = demand.enough(now, PERIOD, LIFE);
        (demand, now, enough)
    }

    #[test]
    fn a_cold_key_needs_no_lease() {
        assert_eq!(after(1, 1, 1).2, 0);
        assert_eq!(after(1, 1, 1_000).2, 0, "one large request is no demand");
        assert_eq!(after(50, 100_000, 1).2, 0, "nor are ten a second");
    }

    #[test]
    fn steady_demand_is_met_with_a_margin() {
        for (a_second, at_most) in [(50, 10), (1_000, 80), (10_000, 600)] {
            let (_, _, enough) = after(a_second, 1_000_000 / a_second, 1);
            assert!(u64::from(enough) >= a_second / 25, "{a_second}/s: {enough}");
            assert!(enough <= at_most, "{a_second}/s: {enough}");
        }
        assert!((400..800).contains(&after(1_000, 1_000, 10).2));
    }

    #[test]
    fn demand_that_ends_is_forgotten() {
        let (mut demand, now, _) = after(1_000, 1_000, 1);
        assert_eq!(demand.enough(now + PERIOD * 8, PERIOD, LIFE), 0);
        assert_eq!(demand.enough(now + Duration::from_secs(1 << 40), PERIOD, LIFE), 0);
    }
}
