//! The arithmetic that Guava's two limiters share: pay later, in microseconds.
//!
//! State: the time at which the bucket is even again (`next`), and the permits stored by then. A charge waits for the
//! debt of those before it and leaves its own to whoever comes next:
//!
//! ```text
//! resync:  if now > next { stored = min(max, stored + (now - next) / cool); next = now }
//! charge:  waits next - now;  spend = min(cost, stored);  next += trunc(price(spend)) + trunc((cost - spend) * stable)
//! ```
//!
//! `price` is nothing for a bursty limiter and the area under the warm-up line for a warming one. Up to 1000 permits a
//! second this is Guava to the microsecond, double arithmetic and truncation included. Above that the truncated
//! fraction of a microsecond is not dropped but owed: `stored` goes below zero by its worth, so that the long-run rate
//! is exact. While a warming limiter has permits stored, it cannot owe them; there a charge costs the difference of two
//! truncated prices, that of everything stored before and after it, so that fractions cancel from one charge to the next.
//!
//! An infinite rate never waits; a rate so slow that a permit takes for ever lets one charge through.
//!
//! Worst case admitted: any single charge passes once `next` is reached, however large; what follows waits for it. With
//! charges of one permit: `max + 1 + rate * t` in any time `t`, or `1 + rate * t` where stored permits cost time. Below
//! 1000 a second the truncation, Guava's own, adds up to one in a thousand to the rate.

pub(crate) use super::smooth_taken::Taken;

use super::{Answer, Ask, Moment, Words};
use crate::decision::{Status, Verdict};

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Smooth {
    /// Microseconds a permit at the stable rate.
    pub(super) stable: f64,
    pub(super) max: f64,
    /// What a key never used has stored at birth.
    initial: f64,
    /// Microseconds of rest that store one permit.
    cool: f64,
    warm: Option<WarmUp>,
    fractions: Fractions,
}

/// The line from the stable to the cold interval, above a threshold of stored permits.
#[derive(Clone, Copy, Debug, PartialEq)]
struct WarmUp {
    threshold: f64,
    slope: f64,
}

/// What becomes of fractions of a microsecond.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fractions {
    /// Dropped, as Guava does.
    Dropped,
    Owed,
}

#[derive(Clone, Copy)]
pub(super) struct Stored {
    pub(super) next: u64,
    pub(super) permits: f64,
}

impl Smooth {
    /// Permits a second, seconds of them that can be stored, and what is stored at first.
    pub(crate) fn bursty(per_second: f64, max_burst: f64, initial: f64) -> Self {
        let stable = 1e6 / per_second;
        Self {
            stable,
            max: max_burst * per_second,
            initial,
            cool: stable,
            warm: None,
            fractions: Fractions::at(per_second),
        }
    }

    /// Permits a second, microseconds until a cold limiter gives them, and how much dearer a cold permit is.
    pub(crate) fn warming_up(per_second: f64, warmup: f64, cold_factor: f64) -> Self {
        let stable = 1e6 / per_second;
        let cold = stable * cold_factor;
        let threshold = 0.5 * warmup / stable;
        let max = threshold + 2.0 * warmup / (stable + cold);
        let fractions = Fractions::at(per_second);
        if warmup == 0.0 || max == 0.0 {
            // Nothing to warm up, so nothing is ever stored; the formulas would divide nothing by nothing.
            let warm = Some(WarmUp { threshold: 0.0, slope: 0.0 });
            return Self { stable, max: 0.0, initial: 0.0, cool: f64::INFINITY, warm, fractions };
        }
        let warm = Some(WarmUp { threshold, slope: (cold - stable) / (max - threshold) });
        Self { stable, max, initial: max, cool: warmup / max, warm, fractions }
    }

    /// As it is at birth, written out: a key never used that changes its numbers as any other does.
    pub(crate) fn born(&self) -> Words {
        write(self.read([0, 0]))
    }

    /// What [`Numbers`](crate::Numbers) tells of it.
    pub(crate) fn numbers(&self) -> crate::SmoothNumbers {
        crate::SmoothNumbers {
            stable: self.stable,
            max: self.max,
            initial: self.initial,
            cool: self.cool,
            warm: self.warm.map(|warm| (warm.threshold, warm.slope)),
            drops_fractions: self.fractions == Fractions::Dropped,
        }
    }

    pub(crate) fn permits_per_second(&self) -> f64 {
        1e6 / self.stable
    }

    pub(crate) fn ask(&self, words: Words, ask: &Ask) -> Answer {
        let now = ask.at.since_birth / 1_000;
        let held = self.read(words);
        // Nanoseconds from the true instant, so that a hint is exact for callers between two microseconds.
        let wait = match held.next.saturating_sub(now) {
            0 => 0,
            _ => held.next.saturating_mul(1_000).saturating_sub(ask.at.since_birth),
        };
        let patience = ask.up_to.unwrap_or(0);
        let verdict = match wait {
            _ if ask.cost == 0 => Verdict::Allow,
            0 => Verdict::Allow,
            wait if wait <= patience => Verdict::Wait(wait),
            wait => Verdict::Deny(wait - patience),
        };
        let synced = self.resync(held, now);
        let after = if verdict.is_deny() || ask.cost == 0 { synced } else { self.spend(synced, ask.cost) };
        let untouched = words == [0, 0] && (verdict.is_deny() || ask.cost == 0);
        let reset = if untouched { 0 } else { self.until_idle(after, now) };
        let status = Status::plain(verdict, (self.max as u32).max(1), after.permits.max(0.0) as u32, reset);
        Answer { status, next: write(after) }
    }

    pub(super) fn spend(&self, held: Stored, cost: u32) -> Stored {
        if self.stable == 0.0 {
            return held;
        }
        let cost = f64::from(cost);
        let spend = held.permits.min(cost);
        let fresh = cost - spend;
        let kept = held.permits - spend;
        let (wait, owed) = match self.fractions {
            Fractions::Dropped => {
                (self.price(held.permits, spend).saturating_add((fresh * self.stable) as u64), 0.0)
            }
            Fractions::Owed if kept > 0.0 => {
                let (before, after) = (self.price_of_all(held.permits), self.price_of_all(kept));
                ((before as u64).saturating_sub(after as u64), 0.0)
            }
            Fractions::Owed => {
                let exact = self.price_of_all(held.permits) + fresh * self.stable;
                (exact as u64, exact.fract() / self.stable)
            }
        };
        Stored { next: held.next.saturating_add(wait), permits: kept - owed }
    }

    /// Microseconds that spending stored permits takes, each term truncated by itself.
    fn price(&self, stored: f64, spend: f64) -> u64 {
        let Some((sloped, flat)) = self.warm_terms(stored, spend) else { return 0 };
        (sloped as u64).saturating_add(flat as u64)
    }

    /// Microseconds that spending everything stored takes. Debt is paid for as fresh permits are, so here it is nothing.
    fn price_of_all(&self, stored: f64) -> f64 {
        let stored = stored.max(0.0);
        self.warm_terms(stored, stored).map_or(0.0, |(sloped, flat)| sloped + flat)
    }

    fn warm_terms(&self, stored: f64, spend: f64) -> Option<(f64, f64)> {
        let WarmUp { threshold, slope } = self.warm?;
        let above = stored - threshold;
        if above <= 0.0 {
            return Some((0.0, self.stable * spend));
        }
        let sloped = above.min(spend);
        let interval = |permits: f64| self.stable + permits * slope;
        let area = sloped * (interval(above) + interval(above - sloped)) / 2.0;
        Some((area, self.stable * (spend - sloped)))
    }

    pub(super) fn resync(&self, held: Stored, now: u64) -> Stored {
        if now <= held.next {
            return held;
        }
        let fresh = (now - held.next) as f64 / self.cool;
        Stored { next: now, permits: self.max.min(held.permits + fresh) }
    }

    /// Gives back what a charge took. Permits that are still stored were not the newest to be used up, so where there are
    /// some the charge spent stored ones, and gets back what they cost; else it booked fresh ones first.
    pub(crate) fn refund(&self, words: Words, at: Moment, units: u32) -> Words {
        if words == [0, 0] {
            return words;
        }
        let now = at.since_birth / 1_000;
        let mut held = self.resync(self.read(words), now);
        let units = f64::from(units);
        if held.permits > 0.0 && self.warm.is_some() {
            let restored = units.min(self.max - held.permits);
            let paid = self.price(held.permits + restored, restored);
            let booked = held.next.saturating_sub(now);
            held.permits += if paid <= booked { restored } else { restored * (booked as f64 / paid as f64) };
            held.next -= paid.min(booked);
            return write(held);
        }
        let booked = held.next.saturating_sub(now) as f64 / self.stable;
        let unbooked = booked.min(units);
        held.next = held.next.saturating_sub((unbooked * self.stable) as u64).max(now);
        held.permits = (held.permits + (units - unbooked)).min(self.unseen_permits(now).max(held.permits));
        write(held)
    }

    /// Spends `units` without asking: who comes next waits for them.
    pub(crate) fn owe(&self, words: Words, at: Moment, units: u32) -> Words {
        write(self.spend(self.resync(self.read(words), at.since_birth / 1_000), units))
    }

    /// What a key never used has stored.
    fn unseen_permits(&self, now: u64) -> f64 {
        self.resync(self.read([0, 0]), now).permits
    }

    pub(crate) fn idle_in(&self, words: Words, at: Moment) -> u64 {
        if words == [0, 0] {
            return 0;
        }
        let now = at.since_birth / 1_000;
        self.until_idle(self.resync(self.read(words), now), now)
    }

    /// As Guava's `setRate`: what is booked stands, what is stored keeps its fraction.
    pub(crate) fn convert(&self, from: &Self, words: Words, at: Moment) -> Words {
        if words == [0, 0] {
            return words;
        }
        let held = from.resync(from.read(words), at.since_birth / 1_000);
        let permits = match from.max {
            // Of nothing and of endlessly many there is no fraction to keep. These are Guava's choices: after an endless
            // rate a burst is there at once and a warming limiter is warm; after one that stored nothing it is cold.
            _ if self.max.is_infinite() => 0.0,
            f64::INFINITY if self.warm.is_some() => 0.0,
            f64::INFINITY => self.max,
            0.0 if self.warm.is_some() => self.max,
            0.0 => 0.0,
            max => held.permits * self.max / max,
        };
        write(Stored { permits, ..held })
    }

    pub(super) fn read(&self, words: Words) -> Stored {
        match words[0] {
            0 => Stored { next: 0, permits: self.initial },
            next => Stored { next: next - 1, permits: f64::from_bits(words[1]) },
        }
    }

    fn until_idle(&self, held: Stored, now: u64) -> u64 {
        let missing = ((self.max - held.permits).max(0.0) * self.cool).ceil() as u64;
        held.next.saturating_sub(now).saturating_add(missing).saturating_mul(1_000).min(u64::MAX - 1)
    }
}

impl Fractions {
    fn at(per_second: f64) -> Self {
        if per_second <= 1000.0 { Self::Dropped } else { Self::Owed }
    }
}

/// The first word is one more than the time, so that a state is never taken for a key not seen.
pub(super) fn write(held: Stored) -> Words {
    [held.next.saturating_add(1).min((1 << 63) - 1), held.permits.to_bits()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn charge(smooth: &Smooth, words: Words, cost: u32) -> Words {
        smooth.ask(words, &Ask { at: Moment::default(), cost, up_to: Some(u64::MAX) }).next
    }

    #[test]
    fn a_cold_limiter_at_a_high_rate_takes_its_warm_up_and_no_less() {
        for rate in [2_000.0, 300_000.0, 600_000.0, 1_500_000.0] {
            let smooth = Smooth::warming_up(rate, 1e6, 3.0);
            let mut words = smooth.born();
            // Half of what is stored is dear, and takes as long as the warm-up.
            for _ in 0..smooth.max as u64 / 2 {
                words = charge(&smooth, words, 1);
            }
            let warm = smooth.read(words).next;
            assert!(warm.abs_diff(1_000_000) <= 2, "{rate}/s is warm after {warm} us");
            for _ in 0..rate as u64 {
                words = charge(&smooth, words, 1);
            }
            let took = smooth.read(words).next - warm;
            assert!(took.abs_diff(1_000_000) <= 2, "{rate}/s takes {took} us for a second's worth");
        }
    }

    #[test]
    fn no_rate_makes_a_state_that_is_no_number() {
        let rates = [f64::MIN_POSITIVE, 5e-324, 0.37, 5.0, 2_000.0, 1e300, f64::MAX, f64::INFINITY];
        let all = |rate| {
            [0.0, 1e6]
                .map(|warmup| Smooth::warming_up(rate, warmup, 3.0))
                .into_iter()
                .chain([Smooth::bursty(rate, 1.0, 0.0)])
        };
        for (from, to) in rates.iter().flat_map(|from| rates.map(|to| (*from, to))) {
            for (from, to) in all(from).zip(all(to)) {
                let mut words = from.born();
                for at in [0, 5_000, 1_000_000_000].map(|nanos| Moment::new(nanos, 0)) {
                    let after = from.ask(words, &Ask { at, cost: 7, up_to: Some(u64::MAX) }).next;
                    let back = from.give_back(after, at, from.taken(words, at, after));
                    let converted = to.convert(&from, after, at);
                    for words in [after, back, converted, to.convert(&from, back, at)] {
                        assert!(!f64::from_bits(words[1]).is_nan(), "{from:?} to {to:?} at {at:?}");
                    }
                    words = after;
                }
            }
        }
    }
}
