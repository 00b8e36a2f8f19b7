//! Time and chance of a run: a node's clock, and dice that fall the same way for the same seed.

use tollgate::Time;

/// A node's monotonic clock: it began when it liked, and runs a little fast or slow.
#[derive(Clone, Copy, Debug)]
pub(super) struct NodeClock {
    /// What it shows at true time zero, in nanoseconds.
    pub(super) offset: i64,
    /// Millionths that it runs too fast.
    pub(super) drift: i64,
}

impl NodeClock {
    /// What it shows at a true time in microseconds.
    pub(super) fn at(&self, micros: u64) -> Time {
        let run = i128::from(micros) * 1_000 * i128::from(1_000_000 + self.drift) / 1_000_000;
        Time::from_nanos((run + i128::from(self.offset)) as u64)
    }

    /// The first true microsecond at which it shows `time` or later.
    pub(super) fn when(&self, time: Time) -> u64 {
        let run = (i128::from(time.as_nanos()) - i128::from(self.offset)).max(0);
        let per_micro = 1_000 * i128::from(1_000_000 + self.drift);
        ((run * 1_000_000 + per_micro - 1) / per_micro) as u64
    }
}

/// Dice: splitmix64.
#[derive(Clone, Debug)]
pub(super) struct Dice(pub(super) u64);

impl Dice {
    pub(super) fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number in `from..=to`.
    pub(super) fn between(&mut self, from: u64, to: u64) -> u64 {
        from + self.roll() % (to - from + 1)
    }

    /// True so many times in a thousand.
    pub(super) fn chance(&mut self, per_mille: u64) -> bool {
        self.roll() % 1_000 < per_mille
    }

    /// A time to the next of arrivals at random, `mean` apart.
    pub(super) fn gap(&mut self, mean: f64) -> u64 {
        let unit = (self.roll() >> 11) as f64 / (1_u64 << 53) as f64;
        (-(1.0 - unit).ln() * mean).ceil() as u64
    }
}

#[test]
fn a_clock_can_be_read_backwards() {
    for drift in [-100, 0, 100] {
        let clock = NodeClock { offset: 3_000_000_000, drift };
        for micros in [1, 999_999, 10_000_001, 86_400_000_000] {
            let when = clock.when(clock.at(micros));
            assert!(when.abs_diff(micros) <= 1, "{micros} became {when}");
        }
    }
}
