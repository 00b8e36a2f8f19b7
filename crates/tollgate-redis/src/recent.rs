//! Which buckets a thread's latest keys are: to find a key among a few takes a third of the time that its fingerprint takes.

use crate::lease::BucketId;
use std::cell::RefCell;
use tollgate::Key;

/// Keys that a thread remembers, each in a place of its own.
const PLACES: usize = 16;
/// Longer keys are not remembered.
const LONGEST: usize = 32;

/// A key of a limit of a store, and the bucket that is.
#[derive(Clone, Copy)]
struct Recent {
    /// The store's secret and the limit's number.
    of: [u64; 2],
    length: usize,
    text: [u8; LONGEST],
    bucket: BucketId,
}

thread_local! {
    static RECENT: RefCell<[Option<Recent>; PLACES]> = const { RefCell::new([None; PLACES]) };
}

/// The bucket of a key, remembered or worked out.
#[inline]
pub(crate) fn bucket(of: [u64; 2], key: &Key<'_>, work_out: impl FnOnce() -> BucketId) -> BucketId {
    let text = match key {
        Key::Text(text) if text.len() <= LONGEST => text.as_bytes(),
        _ => return work_out(),
    };
    RECENT.with_borrow_mut(|places| {
        let place = &mut places[place_of(of, text)];
        if let Some(recent) = place
            && recent.of == of
            && recent.text[..recent.length] == *text
        {
            return recent.bucket;
        }
        let bucket = work_out();
        let mut recent = Recent { of, length: text.len(), text: [0; LONGEST], bucket };
        recent.text[..text.len()].copy_from_slice(text);
        *place = Some(recent);
        bucket
    })
}

/// Keys mostly differ at their ends. Who chooses keys that share a place only has them worked out.
#[inline]
fn place_of(of: [u64; 2], text: &[u8]) -> usize {
    let end = match text.last_chunk::<8>() {
        Some(end) => u64::from_le_bytes(*end),
        None => text.iter().fold(0, |end, byte| end << 8 | u64::from(*byte)),
    };
    let mixed = (end ^ of[1]).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 60) as usize
}

const _: () = assert!(PLACES == 1 << 4, "a place is four bits");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_worked_out_once_and_never_taken_for_another() {
        let long = "x".repeat(LONGEST + 1);
        let keys = ["", "a", "b", "ab", "user-00000001", "user-00000002", "1ser-00000001", &long[1..], &long];
        let ids = |round: u128| {
            let mut worked_out = 0;
            for of in [[1, 1], [1, 2], [2, 1]] {
                for (number, key) in keys.iter().enumerate() {
                    let expected =
                        BucketId(u128::from(of[0]) << 64 | u128::from(of[1]) << 32 | number as u128);
                    // Asked again at once, it is remembered, unless it is too long.
                    for _ in 0..2 {
                        let found = bucket(of, &Key::Text(key), || {
                            worked_out += 1;
                            expected
                        });
                        assert_eq!(found, expected, "{key:?} of {of:?} in round {round}");
                    }
                }
            }
            worked_out
        };
        assert!(ids(0) <= 3 * (keys.len() + 1));
        ids(1);
        // A key that is no text is another key.
        assert_eq!(bucket([1, 1], &Key::Bytes(b"a"), || BucketId(7)), BucketId(7));
    }
}
