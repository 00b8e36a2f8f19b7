//! When requests come, by the shape of their traffic.

use serde::Deserialize;

/// Requests in one play.
const MOST: usize = 10_000;

/// Traffic of some shape.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Traffic {
    shape: Shape,
    /// Requests a second, over the whole of it.
    rate: f64,
    seconds: f64,
    #[serde(default = "one")]
    cost: u32,
    #[serde(default)]
    seed: u64,
}

const fn one() -> u32 {
    1
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Shape {
    /// One after the other, evenly.
    Steady,
    /// A second's requests at once, at the beginning of every second.
    Burst,
    /// Swelling and ebbing: twice the rate at the crest, none in the trough, five seconds from crest to crest.
    Wave,
    /// At random, as independent clients come.
    Poisson,
    /// Half the rate, and in the middle tenth five and a half times the rate.
    Spike,
}

impl Traffic {
    pub(super) const fn cost(&self) -> u32 {
        self.cost
    }

    /// When requests come, in microseconds, oldest first.
    pub(super) fn times(&self) -> Result<Vec<u64>, String> {
        let good = |value: f64, most: f64| value.is_finite() && value > 0.0 && value <= most;
        if !good(self.rate, 100_000.0) || !good(self.seconds, 3600.0) {
            return Err("traffic: rate must be above 0 and at most 100000, seconds above 0 and at most 3600"
                .to_owned());
        }
        if self.rate * self.seconds > MOST as f64 {
            return Err(format!("traffic: rate times seconds must be at most {MOST} requests"));
        }
        let seconds = match self.shape {
            Shape::Steady => self.by(|expected| expected / self.rate),
            Shape::Burst => {
                let whole = |expected: f64| (expected / self.rate.max(1.0)).floor();
                // Slower than one a second is a burst of one, now and then.
                self.by(|expected| if self.rate < 1.0 { expected / self.rate } else { whole(expected) })
            }
            Shape::Wave => self.by(|expected| self.inverse(expected, wave)),
            Shape::Spike => self.by(|expected| self.inverse(expected, spike)),
            Shape::Poisson => self.poisson(),
        };
        let micros = |second: f64| (second * 1e6).round() as u64;
        Ok(seconds.into_iter().filter(|second| *second < self.seconds).map(micros).take(MOST).collect())
    }

    /// One request for every whole number of requests that are expected by then.
    fn by(&self, when: impl Fn(f64) -> f64) -> Vec<f64> {
        let all = (self.rate * self.seconds).ceil().min(MOST as f64) as usize;
        (0..all).map(|request| when(request as f64)).collect()
    }

    /// When so many are expected to have come, where `share` says how many have by a part of the time. Found by halving.
    fn inverse(&self, expected: f64, share: fn(f64, f64) -> f64) -> f64 {
        let (mut low, mut high) = (0.0, self.seconds);
        for _ in 0..50 {
            let middle = (low + high) / 2.0;
            if share(middle, self.seconds) * self.rate < expected {
                low = middle;
            } else {
                high = middle;
            }
        }
        high
    }

    fn poisson(&self) -> Vec<f64> {
        let mut random = Random(self.seed.wrapping_add(0x9e37_79b9_7f4a_7c15));
        let mut at = 0.0;
        let mut times = Vec::new();
        while times.len() < MOST {
            at -= (1.0 - random.next()).ln() / self.rate;
            if at >= self.seconds {
                break;
            }
            times.push(at);
        }
        times
    }
}

/// Seconds' worth of requests that have come by `at`.
fn wave(at: f64, _: f64) -> f64 {
    let turn = std::f64::consts::TAU / 5.0;
    at - (turn * at).sin() / turn
}

fn spike(at: f64, seconds: f64) -> f64 {
    let (from, to) = (seconds * 0.45, seconds * 0.55);
    at * 0.5 + (at.clamp(from, to) - from) * 5.0
}

/// SplitMix64: the same numbers for the same seed, everywhere.
struct Random(u64);

impl Random {
    /// From 0 up to 1.
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((word ^ (word >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn traffic(shape: Shape, rate: f64, seconds: f64) -> Traffic {
        Traffic { shape, rate, seconds, cost: 1, seed: 7 }
    }

    #[test]
    fn every_shape_brings_as_many_as_it_says_in_order_and_in_time() {
        use Shape::{Burst, Poisson, Spike, Steady, Wave};
        for shape in [Steady, Burst, Wave, Poisson, Spike] {
            for (rate, seconds) in [(20.0, 10.0), (0.5, 60.0), (1000.0, 10.0), (3.7, 2.5)] {
                let times = traffic(shape, rate, seconds).times().expect("it makes sense");
                let expected = rate * seconds;
                let off = (times.len() as f64 - expected).abs();
                assert!(off <= 1.0 + 4.0 * expected.sqrt(), "{} of {expected}", times.len());
                assert!(times.is_sorted() && times.iter().all(|at| *at as f64 <= seconds * 1e6));
            }
        }
    }

    #[test]
    fn a_spike_is_one_and_a_seed_says_it_all() {
        let times = traffic(Shape::Spike, 100.0, 10.0).times().expect("it makes sense");
        let middle = times.iter().filter(|at| (4_500_000..5_500_000).contains(*at)).count();
        assert!((540..=560).contains(&middle), "{middle}");
        let random =
            |seed| Traffic { seed, ..traffic(Shape::Poisson, 50.0, 10.0) }.times().expect("it makes sense");
        assert_eq!(random(1), random(1));
        assert_ne!(random(1), random(2));
    }

    #[test]
    fn what_makes_no_sense_or_too_much_is_refused() {
        for (rate, seconds) in
            [(0.0, 1.0), (-1.0, 1.0), (f64::NAN, 1.0), (1.0, f64::INFINITY), (1001.0, 10.0)]
        {
            assert!(traffic(Shape::Steady, rate, seconds).times().is_err(), "{rate} {seconds}");
        }
    }
}
