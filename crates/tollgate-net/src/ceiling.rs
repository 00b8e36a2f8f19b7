//! A ceiling on how many are inside at once: connections of a listener, requests in flight.
//!
//! It protects the process, and is not a limit that anybody writes for a client: there is no key, nobody waits, and who is
//! refused is refused at once. It is exact: while one leaves, another is never refused by mistake, which is why a slot is
//! taken by compare-and-swap and not by adding first and looking afterwards.

use std::{
    num::NonZeroUsize,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed},
    },
};

/// At most so many inside. Clones are the same ceiling.
///
/// ```
/// use std::num::NonZeroUsize;
/// use tollgate_net::Ceiling;
///
/// let ceiling = Ceiling::new(NonZeroUsize::MIN);
/// let slot = ceiling.enter().expect("nobody is inside yet");
/// assert!(ceiling.enter().is_none());
/// drop(slot);
/// assert!(ceiling.enter().is_some());
/// ```
#[derive(Clone, Debug)]
pub struct Ceiling(Arc<Inner>);

/// A place under a [`Ceiling`], free again when it is dropped.
#[derive(Debug)]
#[must_use = "the place is free again as soon as this is dropped"]
pub struct Slot(Arc<Inner>);

/// Two cache lines of its own: everybody who enters writes here.
#[derive(Debug)]
#[repr(align(128))]
struct Inner {
    inside: AtomicUsize,
    max: AtomicUsize,
    refused: AtomicU64,
}

impl Ceiling {
    /// At most `max` inside.
    #[must_use]
    pub fn new(max: NonZeroUsize) -> Self {
        Self(Arc::new(Inner {
            inside: AtomicUsize::new(0),
            max: AtomicUsize::new(max.get()),
            refused: AtomicU64::new(0),
        }))
    }

    /// A place, or none if all are taken.
    pub fn enter(&self) -> Option<Slot> {
        let inner = &*self.0;
        // Relaxed: the count guards no other memory, and a single counter has one order for everybody.
        let entered = inner.inside.fetch_update(Relaxed, Relaxed, |inside| {
            (inside < inner.max.load(Relaxed)).then(|| inside.saturating_add(1))
        });
        match entered {
            Ok(_) => Some(Slot(Arc::clone(&self.0))),
            Err(_) => {
                inner.refused.fetch_add(1, Relaxed);
                None
            }
        }
    }

    /// Another number from now on. Who is inside stays, also where that is more than the new number.
    pub fn set_max(&self, max: NonZeroUsize) {
        self.0.max.store(max.get(), Relaxed);
    }

    /// How many may be inside.
    #[must_use]
    pub fn max(&self) -> usize {
        self.0.max.load(Relaxed)
    }

    /// How many are inside.
    #[must_use]
    pub fn inside(&self) -> usize {
        self.0.inside.load(Relaxed)
    }

    /// How many were refused since it was made.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.0.refused.load(Relaxed)
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.0.inside.fetch_sub(1, Relaxed);
    }
}
