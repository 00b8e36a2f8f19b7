//! Hashing of fingerprints. They have been made with a secret, so nobody can choose them to collide, and one multiplication a
//! word is enough.

use std::hash::{BuildHasherDefault, Hasher};

pub(super) type IdHashing = BuildHasherDefault<IdHasher>;

#[derive(Default)]
pub(super) struct IdHasher(u64);

/// Odd, with as many ones as zeros: 2^64 over the golden ratio.
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

impl Hasher for IdHasher {
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks();
        words.iter().for_each(|word| self.write_u64(u64::from_ne_bytes(*word)));
        rest.iter().for_each(|byte| self.write_u64((*byte).into()));
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0 ^ word).wrapping_mul(FACTOR);
    }

    /// The length of an id, which is always the same.
    fn write_usize(&mut self, _: usize) {}

    fn finish(&self) -> u64 {
        // A table looks at the lowest bits and the highest; multiplied, the higher ones depend on more.
        self.0.rotate_left(26)
    }
}
