//! A quick hash, for maps of a few: the keys in a call, the servers, the lanes. Who chose keys to meet in it would have one slow
//! call for it; whatever lives longer, or has more in it, is hashed with a secret.

use std::hash::{BuildHasherDefault, Hasher};

pub(crate) type Quick = BuildHasherDefault<Folded>;

/// Words, each folded into the last.
#[derive(Default)]
pub(crate) struct Folded(u64);

impl Folded {
    const fn fold(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95);
    }
}

impl Hasher for Folded {
    fn finish(&self) -> u64 {
        self.0 ^ self.0 >> 32
    }

    fn write(&mut self, bytes: &[u8]) {
        let mut words = bytes.chunks_exact(8);
        for word in &mut words {
            self.fold(word.try_into().map_or(0, u64::from_le_bytes));
        }
        let rest = words.remainder().iter().fold(0, |rest, byte| rest << 8 | u64::from(*byte));
        self.fold(rest);
    }

    fn write_usize(&mut self, length: usize) {
        self.fold(length as u64);
    }
}
