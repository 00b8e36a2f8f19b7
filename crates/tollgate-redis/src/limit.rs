//! A limit in a shared store: its name, which means the same to every node, and its numbers as this node knows them.

use crate::{
    failure::Share,
    leasing::is_leasable,
    numbers::{self, Plain},
};
use std::{
    fmt,
    hash::{BuildHasher, BuildHasherDefault, DefaultHasher},
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};
use tollgate::{Calendar, Limit, Numbers, OnFailure, StoreError, WindowNumbers};

/// A limit in a Redis store. Clones name the same limit.
#[derive(Clone)]
pub struct RedisLimit {
    pub(crate) named: Arc<Named>,
    /// What is decided while Redis does not answer; the store's own policy where this is `None`.
    pub(crate) on_failure: Option<OnFailure>,
    /// Whether Redis decides every charge that is made through this handle, leases or not.
    pub(crate) is_exact: bool,
}

pub(crate) struct Named {
    /// Which store added it.
    pub(crate) store: u64,
    /// As it stands in keys.
    pub(crate) name: String,
    /// A hash of the name.
    pub(crate) number: u64,
    /// Whether its units can be taken ahead.
    leasable: AtomicBool,
    edition: RwLock<Arc<Edition>>,
    /// This node's own share, where Redis once did not answer.
    share: Mutex<Option<Share>>,
}

/// A limit's numbers between two changes.
#[derive(Debug)]
pub(crate) struct Edition {
    pub(crate) limit: Limit,
    /// The numbers as the script reads them.
    pub(crate) blob: Vec<u8>,
    /// As a call lists them: what a state of a plain bucket begins with, and where in it the level stands.
    pub(crate) head: Vec<u8>,
    pub(crate) level_at: String,
    /// Which of a limit's changes this is: nodes with an earlier one obey what a later one has written.
    pub(crate) generation: u64,
    /// When it took effect, in microseconds on the store's clock, where that is known.
    pub(crate) since: Option<u64>,
    /// When the limit was first used by anybody, where that matters: looked up in Redis once.
    pub(crate) birth: Birth,
    pub(crate) calendar: Option<Calendar>,
    /// Its numbers, where the script has a short way for it.
    pub(crate) plain: Option<Plain>,
}

/// Whether a limit's birth matters, and when it was.
#[derive(Debug)]
pub(crate) enum Birth {
    NoMatter,
    At(OnceLock<u64>),
}

impl RedisLimit {
    /// The same limit, decided in this way while Redis does not answer.
    #[must_use]
    pub fn on_failure(self, on_failure: OnFailure) -> Self {
        Self { on_failure: Some(on_failure), ..self }
    }

    /// The same limit, decided by Redis every time: no units of it are taken ahead by whoever asks through this handle.
    #[must_use]
    pub fn exactly(self) -> Self {
        Self { is_exact: true, ..self }
    }

    /// Its name, as it stands in keys.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.named.name
    }
}

impl fmt::Debug for RedisLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let edition = self.named.edition();
        f.debug_struct("RedisLimit")
            .field("name", &self.named.name)
            .field("limit", &edition.limit)
            .field("generation", &edition.generation)
            .finish_non_exhaustive()
    }
}

impl Named {
    pub(crate) fn new(store: u64, name: String, edition: Edition) -> Self {
        let number = BuildHasherDefault::<DefaultHasher>::default().hash_one(&name);
        let leasable = AtomicBool::new(is_leasable(&edition));
        Self {
            store,
            name,
            number,
            leasable,
            edition: RwLock::new(Arc::new(edition)),
            share: Mutex::new(None),
        }
    }

    pub(crate) fn is_leasable(&self) -> bool {
        self.leasable.load(Relaxed)
    }

    pub(crate) fn edition(&self) -> Arc<Edition> {
        Arc::clone(&self.edition.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// This node's share, if it ever needed one.
    pub(crate) fn share(&self) -> MutexGuard<'_, Option<Share>> {
        self.share.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes these numbers from now on.
    pub(crate) fn change(
        &self,
        edition: impl FnOnce(&Edition) -> Result<Edition, StoreError>,
    ) -> Result<(), StoreError> {
        let mut current = self.edition.write().unwrap_or_else(PoisonError::into_inner);
        *current = Arc::new(edition(&current)?);
        self.leasable.store(is_leasable(&current), Relaxed);
        Ok(())
    }
}

impl Edition {
    pub(crate) fn new(limit: Limit, generation: u64, since: Option<u64>) -> Result<Self, StoreError> {
        let blob = numbers::pack(&limit)?;
        numbers::bounded(generation, "generation")?;
        let birth = match numbers::depends_on_birth(&limit) {
            true => Birth::At(OnceLock::new()),
            false => Birth::NoMatter,
        };
        let calendar = match limit.numbers() {
            Numbers::FixedWindow { windows: WindowNumbers::Calendar(calendar), .. } => Some(calendar),
            _ => None,
        };
        let plain = numbers::plain(&limit);
        let head = numbers::head(generation, &blob);
        // Behind an epoch and an expiry, nine bytes each, and its own first.
        let level_at = (head.len() + 19).to_string();
        Ok(Self { limit, blob, head, level_at, generation, since, birth, calendar, plain })
    }

    /// With the birth of the edition before it, where that is known: states of that time depend on it.
    pub(crate) fn born_as(mut self, was: &Self) -> Self {
        if let Birth::At(at) = &was.birth {
            self.birth = Birth::At(at.clone());
        }
        self
    }

    /// Whether turns can be booked as far ahead as a charge may wait: then there is no use in asking again.
    pub(crate) fn books(&self) -> bool {
        self.limit.books() && !self.waits()
    }

    /// How long so many units take at the limit's rate, rounded down; nothing where that is not all there is to its turns.
    pub(crate) fn pace(&self, units: u64) -> Duration {
        let nanos = match self.limit.numbers() {
            Numbers::Bucket(it) => u128::from(units) * u128::from(it.price) / u128::from(it.earn.max(1)),
            Numbers::Smooth(_, it) => (it.stable * units as f64 * 1e3) as u128,
            _ => 0,
        };
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// Whether a turn waits for what it costs itself, and not for what the one before it cost.
    pub(crate) fn is_paid_in_advance(&self) -> bool {
        !matches!(self.limit.numbers(), Numbers::Smooth(..))
    }

    /// Whether a charge that does not say waits for the limit's pace.
    pub(crate) fn waits(&self) -> bool {
        matches!(self.limit.numbers(), Numbers::Bucket(it) if !it.books)
    }
}

impl Birth {
    /// Microseconds since 1970, where it matters. Unknown counts as long ago: then nobody is short of anything.
    pub(crate) fn micros(&self) -> Option<u64> {
        match self {
            Self::NoMatter => None,
            Self::At(at) => Some(at.get().copied().unwrap_or(0)),
        }
    }
}
