//! SipHash-1-3 with 128 bits of output, over one slice.
//!
//! A key's identity is its fingerprint, so the hash must be keyed and hard to collide on purpose; the published function
//! is both. It is written out here because the fingerprint is most of a keyed check, and one slice at once is half the
//! work of a streaming hasher. A test holds it against the `siphasher` crate.

/// The 128-bit SipHash-1-3 of `bytes` under `secret`.
#[inline]
pub(crate) fn siphash(secret: [u64; 2], bytes: &[u8]) -> [u64; 2] {
    let mut state = State {
        v0: secret[0] ^ 0x736f_6d65_7073_6575,
        v1: secret[1] ^ 0x646f_7261_6e64_6f6d ^ 0xee,
        v2: secret[0] ^ 0x6c79_6765_6e65_7261,
        v3: secret[1] ^ 0x7465_6462_7974_6573,
    };
    let (blocks, tail) = bytes.as_chunks::<8>();
    for block in blocks {
        state.absorb(u64::from_le_bytes(*block));
    }
    let tail = match bytes.last_chunk::<8>() {
        // The last eight bytes, less those that went with the block before.
        Some(last) => u64::from_le_bytes(*last).checked_shr(64 - 8 * tail.len() as u32).unwrap_or(0),
        None => few(tail),
    };
    state.absorb((bytes.len() as u64) << 56 | tail);

    state.v2 ^= 0xee;
    let first = state.squeeze();
    state.v1 ^= 0xdd;
    [first, state.squeeze()]
}

/// Fewer than eight bytes as a number, in two overlapping loads.
#[inline]
fn few(bytes: &[u8]) -> u64 {
    if let (Some(first), Some(last)) = (bytes.first_chunk::<4>(), bytes.last_chunk::<4>()) {
        let last = u64::from(u32::from_le_bytes(*last)) << (8 * (bytes.len() - 4));
        return u64::from(u32::from_le_bytes(*first)) | last;
    }
    bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

struct State {
    v0: u64,
    v1: u64,
    v2: u64,
    v3: u64,
}

impl State {
    #[inline]
    fn absorb(&mut self, block: u64) {
        self.v3 ^= block;
        self.round();
        self.v0 ^= block;
    }

    #[inline]
    fn squeeze(&mut self) -> u64 {
        self.round();
        self.round();
        self.round();
        self.v0 ^ self.v1 ^ self.v2 ^ self.v3
    }

    #[inline]
    fn round(&mut self) {
        self.v0 = self.v0.wrapping_add(self.v1);
        self.v2 = self.v2.wrapping_add(self.v3);
        self.v1 = self.v1.rotate_left(13) ^ self.v0;
        self.v3 = self.v3.rotate_left(16) ^ self.v2;
        self.v0 = self.v0.rotate_left(32);
        self.v2 = self.v2.wrapping_add(self.v1);
        self.v0 = self.v0.wrapping_add(self.v3);
        self.v1 = self.v1.rotate_left(17) ^ self.v2;
        self.v3 = self.v3.rotate_left(21) ^ self.v0;
        self.v2 = self.v2.rotate_left(32);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use siphasher::sip128::{Hasher128, SipHasher13};
    use std::hash::Hasher;

    proptest! {
        #[test]
        fn agrees_with_the_crate_made_for_it(secret: [u64; 2], bytes in prop::collection::vec(any::<u8>(), 0..70)) {
            let mut judge = SipHasher13::new_with_keys(secret[0], secret[1]);
            judge.write(&bytes);
            let judged = judge.finish128();
            prop_assert_eq!(siphash(secret, &bytes), [judged.h1, judged.h2]);
        }
    }
}
