//! States that are more than words, each behind a number that a slot can hold.
//!
//! A state is only touched under its slot's lock, so its own mutex is never waited for; it is there because safe Rust
//! asks for one, and costs less than the log it guards. Chunks double, so that a number finds its chunk by its leading
//! bit and nothing ever moves.

use crate::step::State;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

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
            let mut free = locked(&self.free);
            free.numbers.pop().unwrap_or_else(|| {
                free.next += 1;
                free.next - 1
            })
        };
        *self.state(number) = state;
        number
    }

    /// The state with that number, which the caller's slot holds.
    pub(crate) fn state(&self, number: u64) -> MutexGuard<'_, State> {
        locked(self.place(number))
    }

    fn place(&self, number: u64) -> &Mutex<State> {
        let place = number + FIRST_CHUNK;
        let chunk = (place / FIRST_CHUNK).ilog2() as usize;
        let size = FIRST_CHUNK << chunk;
        let states = self.chunks[chunk.min(CHUNKS - 1)]
            .get_or_init(|| (0..size).map(|_| Mutex::new(State::Words([0, 0]))).collect());
        &states[(place - size) as usize]
    }

    /// The same, unless somebody is at it: for a look from outside the slot's lock, which must not wait.
    pub(crate) fn try_state(&self, number: u64) -> Option<MutexGuard<'_, State>> {
        self.place(number).try_lock().ok()
    }

    /// Drops the state and takes its number back.
    pub(crate) fn drop_state(&self, number: u64) {
        *self.state(number) = State::Words([0, 0]);
        locked(&self.free).numbers.push(number);
    }
}

/// A panic elsewhere does not spoil plain data.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
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
        arena.drop_state(numbers[7]);
        assert_eq!(arena.keep(State::Words([1, 2])), numbers[7]);
    }
}
