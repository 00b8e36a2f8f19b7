//! How a check's cost grows with the table, next to what memory itself costs.
//!
//! The raw side goes through the same keys in the same loop and makes one random load from a plain array of our table's
//! size: once with loads that the processor may overlap, once with each waiting for the one before. A check that grows
//! no more than a waiting load does has nothing but memory to blame.

use crate::{
    effort::{Effort, short},
    measure::{alternate, count, kept, nanos_a_call},
    report::Report,
    subject::{Identity, Load},
};
use std::hint::black_box;
use tollgate::{Key, KeyedLimiter};

/// The rows of a table of this many keys.
pub(crate) fn names(keys: usize) -> [String; 2] {
    ["overlapping", "waiting"]
        .map(|loads| format!("growth at {} keys, raw {loads} random loads", short(keys)))
}

pub(crate) fn run<K: Identity>(report: &mut Report, effort: &Effort, ours: &KeyedLimiter, order: &[K]) {
    let array = black_box(vec![1_u64; ours.table_bytes() / size_of::<u64>()]);
    let calls = effort.keyed_calls.min(order.len());
    let stretch = |round: usize| &order[round % (order.len() / calls) * calls..][..calls];
    let check = |round: usize| {
        let keys = stretch(round);
        nanos_a_call(1, calls, Load::Allow, |_| {
            count(calls, |index| kept(ours.check(keys[index].key())).is_allow())
        })
    };
    let [overlapping, waiting] = names(order.len());
    if report.wants(&overlapping) {
        let pair = alternate(effort.rounds, check, |round| {
            let keys = stretch(round);
            nanos_a_call(1, calls, Load::Allow, |_| {
                count(calls, |index| black_box(array[place(&keys[index], array.len(), 0)]) == 1)
            })
        });
        report.compare(&overlapping, "ns/call", pair, None);
    }
    if report.wants(&waiting) {
        let pair = alternate(effort.rounds, check, |round| {
            let keys = stretch(round);
            nanos_a_call(1, calls, Load::Allow, |_| {
                let mut last = 1;
                count(calls, |index| {
                    last = black_box(array[place(&keys[index], array.len(), last ^ 1)]);
                    last == 1
                })
            })
        });
        report.compare(&waiting, "ns/call", pair, None);
    }
}

/// A place in an array of this length, from the key's last bytes; `after` is zero, but the processor does not know.
#[inline]
fn place<K: Identity>(key: &K, length: usize, after: u64) -> usize {
    let id = match key.key() {
        Key::Text(text) => text.as_bytes().last_chunk().map_or(0, |last| u64::from_le_bytes(*last)),
        Key::Number(number) => number,
        _ => 0,
    };
    let spread = (id ^ after).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let spread = (spread ^ spread >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93);
    ((u128::from(spread) * length as u128) >> 64) as usize
}
