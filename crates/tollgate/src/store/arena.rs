//! States that are more than words, each behind a number that a slot can hold.
//!
//! A state is only touched under its slot's lock, so its own mutex is never waited for; it is there because safe Rust
//! asks for one, and costs less than the log it guards. Chunks double, so that a number finds its chunk by its leading
//! bit and nothing ever moves.

use crate::{step::State, sync::hold_plain as hold};
use std::sync::{Mutex, MutexGuard, OnceLock};

pub(crate) struct Arena {
    chunks: [OnceLock<Box<[Mutex<State>]>>; CHUNKS],
    free: Mutex<Free>,
}

const CHUNKS: usize = 26;
const FIRST_CHUNK: u64 = 64;

struct Free {
    numbers: Vec<u64>,
    next: u64,
}

impl Arena {
    pub(crate) fn new() -> Self {
        Self {
            chunks: [const { OnceLock::new() }; CHUNKS],
            free: Mutex::new(Free { numbers: Vec::new(), next: 1 }),
        }
    }

    /// Keeps the state and gives it a number, which is never zero.
    pub(crate) fn keep(&self, state: State) -> u64 {
        let number = {
            let mut free = hold(&self.free);
            free.numbers.pop().unwrap_or_else(|| {
                free.next += 1;
                free.next - 1
            })
        };
        if let Some((chunk, size, _)) = locate(number)
            && let Some(chunk) = self.chunks.get(chunk)
        {
            chunk.get_or_init(|| (0..size).map(|_| Mutex::new(State::Words([0, 0]))).collect());
        }
        *self.state(number) = state;
        number
    }

    /// The state with that number, which the caller's slot holds.
    pub(crate) fn state(&self, number: u64) -> MutexGuard<'_, State> {
        match self.place(number) {
            Some(place) => hold(place),
            None => unreachable!("a slot holds the number of a state that was never kept"),
        }
    }

    /// Where the state with that number is; `None` for what was never a number of ours.
    fn place(&self, number: u64) -> Option<&Mutex<State>> {
        let (chunk, size, offset) = locate(number)?;
        self.chunks.get(chunk)?.get()?.get(offset).filter(|_| offset < size)
    }

    /// The same, unless somebody is at it: for a look from outside the slot's lock, which must not wait.
    pub(crate) fn try_state(&self, number: u64) -> Option<MutexGuard<'_, State>> {
        self.place(number)?.try_lock().ok()
    }

    /// Drops the state and takes its number back.
    pub(crate) fn drop_state(&self, number: u64) {
        *self.state(number) = State::Words([0, 0]);
        hold(&self.free).numbers.push(number);
    }
}

/// A number's chunk, that chunk's size, and the place in it.
fn locate(number: u64) -> Option<(usize, usize, usize)> {
    let place = number.checked_add(FIRST_CHUNK)?;
    let chunk = (place / FIRST_CHUNK).ilog2();
    let size = FIRST_CHUNK.checked_shl(chunk).filter(|_| (chunk as usize) < CHUNKS)?;
    Some((chunk as usize, size as usize, (place - size) as usize))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_kept_apart_and_used_again() {
        let arena = Arena::new();
        let numbers: Vec<u64> = (0..1_000).map(|n| arena.keep(State::Words([n, n]))).collect();
        for (n, number) in (0..).zip(&numbers) {
            assert_ne!(*number, 0);
            assert_eq!(*arena.state(*number), State::Words([n, n]));
        }
        assert!(
            arena.try_state(u64::MAX).is_none() && arena.try_state(1 << 40).is_none(),
            "no number of ours"
        );
        arena.drop_state(numbers[7]);
        assert_eq!(arena.keep(State::Words([1, 2])), numbers[7]);
    }
}
