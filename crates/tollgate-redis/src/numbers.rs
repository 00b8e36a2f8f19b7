//! A limit's numbers as the script reads them: whole microseconds, nothing that a double cannot hold.

use crate::packing::{put_bytes, put_double, put_number};
use std::time::Duration;
use tollgate::{BucketNumbers, Limit, Numbers, SmoothNumbers, StoreError, Which, WindowNumbers};

/// Everything that the script holds stays below this, so that the sum of two of them is exact too.
const BOUND: u64 = 1 << 52;

/// A limit's numbers, packed; kept with every state, so that nodes of different minds can tell.
pub(crate) fn pack(limit: &Limit) -> Result<Vec<u8>, StoreError> {
    let mut blob = Vec::with_capacity(32);
    match limit.numbers() {
        Numbers::Bucket(it) => {
            let (earn, price) = by_micros(&it)?;
            let numbers =
                [1, which(it.which), earn, price, it.capacity.into(), it.free.into(), it.books.into()];
            put_all(&mut blob, &numbers);
            put_number(&mut blob, (it.capacity - it.initial).into());
        }
        Numbers::Interval { amount, period, burst, initial } => {
            let amount = bounded(amount, "rate")?;
            put_all(&mut blob, &[2, amount, micros(period, "rate")?, burst.into(), initial.into()]);
        }
        Numbers::Smooth(kind, it) => put_smooth(&mut blob, kind, &it),
        Numbers::FixedWindow { limit, windows } => {
            let (align, window) = match &windows {
                WindowNumbers::Epoch(window) => (1, micros(*window, "window")?),
                WindowNumbers::FirstHit(window) => (2, micros(*window, "window")?),
                WindowNumbers::Forever => (3, 0),
                _ => (4, 0),
            };
            put_all(&mut blob, &[4, align, limit.into(), window]);
            if let WindowNumbers::Calendar(calendar) = windows {
                put_bytes(&mut blob, calendar.name().as_bytes());
            }
        }
        Numbers::SlidingCounter { limit, window } => {
            put_all(&mut blob, &[5, limit.into(), micros(window, "window")?]);
        }
        Numbers::Log { limit, window, precision } => {
            let precision = precision.map_or(Ok(0), |precision| micros(precision, "precision"))?;
            put_all(&mut blob, &[6, limit.into(), micros(window, "window")?, precision]);
        }
        Numbers::Concurrency { limit, max_hold } => {
            put_all(&mut blob, &[7, limit.into(), micros(max_hold, "max_hold")?]);
        }
        _ => {
            return Err(StoreError::Unsupported {
                setting: "this kind of limit",
                problem: "is not known to the Redis store; please update it",
            });
        }
    }
    Ok(blob)
}

/// What the state of a plain bucket begins with, whatever its key: `script/one.lua` tells what follows. Its numbers have eight bytes
/// each, so that all of it has its place.
pub(crate) fn head(generation: u64, blob: &[u8]) -> Vec<u8> {
    let mut head = Vec::with_capacity(blob.len() + 15);
    put_bytes(&mut head, b"tg2");
    head.push(0xcf);
    head.extend(generation.to_be_bytes());
    put_bytes(&mut head, blob);
    head
}

/// A bucket of which a key's level is all there is to know, in the script's own small change.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plain {
    /// Credits that a microsecond earns.
    pub(crate) earn: u64,
    /// Credits that a unit costs.
    pub(crate) price: u64,
    pub(crate) capacity: u32,
    /// Units that pass without waiting.
    pub(crate) free: u32,
    /// Whether a charge that does not wait passes or is refused, nothing else.
    pub(crate) passes_or_not: bool,
}

/// The numbers of a limit that the script has a short way for.
pub(crate) fn plain(limit: &Limit) -> Option<Plain> {
    match limit.numbers() {
        Numbers::Bucket(it) if it.initial == it.capacity => {
            let (earn, price) = by_micros(&it).ok()?;
            Some(Plain { earn, price, capacity: it.capacity, free: it.free, passes_or_not: it.books })
        }
        _ => None,
    }
}

/// Whether a key never used depends on when the limit was born.
pub(crate) fn depends_on_birth(limit: &Limit) -> bool {
    match limit.numbers() {
        Numbers::Bucket(it) => it.initial < it.capacity,
        Numbers::Interval { burst, initial, .. } => initial < burst,
        Numbers::Smooth(_, it) => it.initial < it.max,
        _ => false,
    }
}

/// What a microsecond earns and a unit costs, in lowest terms.
fn by_micros(it: &BucketNumbers) -> Result<(u64, u64), StoreError> {
    let earn = u128::from(it.earn) * 1_000;
    let divisor = gcd(earn, it.price.into());
    let earn = u64::try_from(earn / divisor).unwrap_or(u64::MAX);
    let price = it.price / u64::try_from(divisor).unwrap_or(1);
    Ok((bounded(earn, "rate")?, bounded(price, "rate")?))
}

fn put_smooth(blob: &mut Vec<u8>, kind: Which, it: &SmoothNumbers) {
    put_all(blob, &[3, which(kind)]);
    let (threshold, slope) = it.warm.unwrap_or_default();
    for double in [it.stable, it.max, it.initial, it.cool] {
        put_double(blob, double);
    }
    put_number(blob, it.warm.is_some().into());
    put_double(blob, threshold);
    put_double(blob, slope);
    put_number(blob, it.drops_fractions.into());
}

fn put_all(blob: &mut Vec<u8>, numbers: &[u64]) {
    numbers.iter().for_each(|number| put_number(blob, *number));
}

const fn which(which: Which) -> u64 {
    match which {
        Which::First => 1,
        Which::Second => 2,
    }
}

fn micros(span: Duration, setting: &'static str) -> Result<u64, StoreError> {
    let nanos = span.as_nanos();
    if !nanos.is_multiple_of(1_000) {
        return Err(StoreError::Unsupported {
            setting,
            problem: "must be a whole number of microseconds in Redis, whose clock counts those",
        });
    }
    bounded(u64::try_from(nanos / 1_000).unwrap_or(u64::MAX), setting)
}

pub(crate) fn bounded(number: u64, setting: &'static str) -> Result<u64, StoreError> {
    if number >= BOUND {
        return Err(StoreError::Unsupported {
            setting,
            problem: "has a number above 2^52 in it, more than a script in Redis can count; take a rounder one",
        });
    }
    Ok(number)
}

const fn gcd(mut a: u128, mut b: u128) -> u128 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}
