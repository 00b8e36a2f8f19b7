//! Whose turn it is: smooth weighted round robin.
//!
//! Every server has a credit. A turn gives each its weight, takes the one with the most, and takes the sum of the weights
//! from it: of weights 5, 1, 1 the turns are a a b a c a a, not five times a in a row. Servers that may not be chosen
//! neither earn nor pay.

use std::sync::{Mutex, PoisonError};

pub(super) struct Turns {
    weights: Box<[i64]>,
    credits: Mutex<Box<[i64]>>,
}

impl Turns {
    pub(super) fn new(weights: impl Iterator<Item = u32>) -> Self {
        let weights: Box<[i64]> = weights.map(i64::from).collect();
        let credits = Mutex::new(vec![0; weights.len()].into());
        Self { weights, credits }
    }

    /// Whose turn it is among those that `may` be chosen.
    pub(super) fn next(&self, may: impl Fn(usize) -> bool) -> Option<usize> {
        if self.weights.len() == 1 {
            return may(0).then_some(0);
        }
        let mut credits = self.credits.lock().unwrap_or_else(PoisonError::into_inner);
        let mut best: Option<usize> = None;
        let mut sum = 0;
        for (i, weight) in self.weights.iter().enumerate() {
            if !may(i) {
                continue;
            }
            credits[i] += weight;
            sum += weight;
            if best.is_none_or(|best| credits[i] > credits[best]) {
                best = Some(i);
            }
        }
        let best = best?;
        credits[best] -= sum;
        Some(best)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turns(weights: &[u32], count: usize, may: impl Fn(usize) -> bool) -> String {
        let turns = Turns::new(weights.iter().copied());
        (0..count).map(|_| turns.next(&may).map_or('-', |i| char::from(b'a' + i as u8))).collect()
    }

    #[test]
    fn smooth_by_weight() {
        assert_eq!(turns(&[5, 1, 1], 14, |_| true), "aabacaaaabacaa");
        assert_eq!(turns(&[1, 1, 1], 6, |_| true), "abcabc");
        assert_eq!(turns(&[1], 3, |_| true), "aaa");
    }

    #[test]
    fn those_set_aside_get_no_turn() {
        assert_eq!(turns(&[5, 1, 1], 4, |i| i != 0), "bcbc");
        assert_eq!(turns(&[1, 1], 2, |_| false), "--");
        assert_eq!(turns(&[1], 1, |_| false), "-");
    }
}
