//! Slots that are held for as long as a response takes, and renewed meanwhile.
//!
//! A permit loses its slots `max_hold` after its last renewal. Whoever holds one cannot see to that itself: a body is not polled
//! while a slow client's socket is full. So all permits of a layer are kept here, and one task renews them every third of the
//! shortest `max_hold`. It begins with the first permit and ends when it finds none.

use crate::gate::Gate;
use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::runtime::Handle;
use tollgate::Permit;

pub(crate) struct Keeper {
    gate: Arc<dyn Gate>,
    /// How often; `None` where nothing of the layer is held.
    every: Option<Duration>,
    live: Mutex<Live>,
}

#[derive(Default)]
struct Live {
    permits: Vec<Option<Permit<'static>>>,
    free: Vec<usize>,
    is_kept: bool,
}

/// Slots, until this is dropped.
pub(crate) struct Held {
    keeper: Arc<Keeper>,
    place: usize,
}

/// No timer is finer than this.
const SHORTEST: Duration = Duration::from_millis(1);

impl Keeper {
    pub(crate) fn new(gate: Arc<dyn Gate>, max_holds: impl Iterator<Item = Duration>) -> Arc<Self> {
        let every = max_holds.min().map(|shortest| (shortest / 3).max(SHORTEST));
        Arc::new(Self { gate, every, live: Mutex::default() })
    }

    /// Keeps a permit until what is returned is dropped; nothing, where it holds no slots.
    pub(crate) fn hold(self: &Arc<Self>, permit: Permit<'static>) -> Option<Held> {
        let every = self.every?;
        permit.max_hold()?;
        let mut live = self.live();
        let place = live.free.pop().unwrap_or(live.permits.len());
        match live.permits.get_mut(place) {
            Some(slot) => *slot = Some(permit),
            None => live.permits.push(Some(permit)),
        }
        if !live.is_kept
            && let Ok(runtime) = Handle::try_current()
        {
            live.is_kept = true;
            let keeping = Keeping { keeper: Arc::clone(self), is_over: false };
            drop(live);
            runtime.spawn(keeping.run(every));
        }
        Some(Held { keeper: Arc::clone(self), place })
    }

    fn live(&self) -> MutexGuard<'_, Live> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut live = self.keeper.live();
        let permit = live.permits.get_mut(self.place).and_then(Option::take);
        live.free.push(self.place);
        drop(live);
        // Giving the slots back wakes whoever waits for them, which is not to be done under a lock.
        drop(permit);
    }
}

/// The task that renews. Should its runtime end before it, the next permit begins another.
struct Keeping {
    keeper: Arc<Keeper>,
    is_over: bool,
}

impl Keeping {
    async fn run(mut self, every: Duration) {
        while !self.is_over {
            self.keeper.gate.sleep(every).await;
            let mut live = self.keeper.live();
            let mut held = 0;
            for permit in live.permits.iter().flatten() {
                permit.renew();
                held += 1;
            }
            // Said under the lock: whoever comes after that sees it.
            live.is_kept = held > 0;
            self.is_over = held == 0;
        }
    }
}

impl Drop for Keeping {
    fn drop(&mut self) {
        if !self.is_over {
            self.keeper.live().is_kept = false;
        }
    }
}

impl fmt::Debug for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Held")
    }
}
