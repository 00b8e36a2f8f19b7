//! Limits that come with the question.
//!
//! A definition is a limit in the store like any other, named by its numbers, so that everybody who sends the same numbers
//! charges the same buckets, whatever the spelling and through whichever door. There are at most [`MOST`] spellings at once:
//! a new one displaces what nobody has asked for in [`IDLE`], and what was used of that is forgotten. Where all of them are
//! in use it is refused: to forget a limit takes a look at every key in memory, and whoever sends ever new numbers must not
//! be able to ask for that all the time.

use super::AskError;
use std::{
    collections::HashMap,
    sync::{
        Arc, PoisonError, RwLock,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};
use tollgate::{Limit, Store};
use tollgate_rules::{ParsedLimit, parse_limit};

/// Spellings that are kept at once.
const MOST: usize = 1024;

/// Who was not asked for that long may go.
const IDLE: Duration = Duration::from_secs(60);

/// The definitions that were asked for.
pub(super) struct Definitions<S: Store> {
    store: Arc<S>,
    known: RwLock<Known<S>>,
    begun: Instant,
    most: usize,
    idle: Duration,
}

struct Known<S: Store> {
    /// As they were written; several spellings may mean one.
    by_text: HashMap<Box<str>, Arc<Defined<S>>>,
    by_name: HashMap<Box<str>, Arc<Defined<S>>>,
}

/// A limit that came with a question.
pub(super) struct Defined<S: Store> {
    store: Arc<S>,
    pub(super) handle: S::Limit,
    pub(super) limit: Limit,
    /// When it was asked for last, in milliseconds.
    asked: AtomicU64,
}

impl<S: Store> Drop for Defined<S> {
    fn drop(&mut self) {
        self.store.remove_limit(&self.handle);
    }
}

impl<S: Store> Definitions<S> {
    pub(super) fn new(store: Arc<S>) -> Self {
        Self::with_room(store, MOST, IDLE)
    }

    fn with_room(store: Arc<S>, most: usize, idle: Duration) -> Self {
        let known = Known { by_text: HashMap::new(), by_name: HashMap::new() };
        Self { store, known: RwLock::new(known), begun: Instant::now(), most, idle }
    }

    fn now(&self) -> u64 {
        millis(self.begun.elapsed())
    }

    /// The limit that a text defines.
    pub(super) fn find(&self, text: &str) -> Result<Arc<Defined<S>>, AskError> {
        let now = self.now();
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(defined) = known.by_text.get(text) {
            defined.asked.store(now, Relaxed);
            return Ok(Arc::clone(defined));
        }
        drop(known);
        let limit = match parse_limit(text).map_err(AskError::Definition)? {
            ParsedLimit::Limit(limit) => limit,
            _ => return Err(AskError::Bandwidth),
        };
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        known.make_room(self.most, |asked| now.saturating_sub(asked) < millis(self.idle))?;
        let name: Box<str> = format!("defined/{limit:?}").into();
        let defined = match known.by_name.get(&name) {
            Some(defined) => Arc::clone(defined),
            None => {
                let handle = self.store.add_named(&name, limit.clone())?;
                let store = Arc::clone(&self.store);
                let defined = Defined { store, handle, limit, asked: AtomicU64::new(now) };
                let defined = Arc::new(defined);
                known.by_name.insert(name, Arc::clone(&defined));
                defined
            }
        };
        defined.asked.store(now, Relaxed);
        known.by_text.insert(text.into(), Arc::clone(&defined));
        Ok(defined)
    }
}

impl<S: Store> Known<S> {
    /// Room for one more, at the cost of those that are not in use.
    fn make_room(&mut self, most: usize, in_use: impl Fn(u64) -> bool) -> Result<(), AskError> {
        if self.by_text.len() >= most {
            self.by_name.retain(|_, defined| in_use(defined.asked.load(Relaxed)));
            self.by_text.retain(|_, defined| in_use(defined.asked.load(Relaxed)));
        }
        if self.by_text.len() >= most { Err(AskError::TooManyDefinitions) } else { Ok(()) }
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread::sleep;
    use tollgate::MemoryStore;

    fn text(limit: u32) -> String {
        format!("fixed_window: {{ limit: {limit}, window: 1h }}")
    }

    #[test]
    fn only_what_nobody_asks_for_is_displaced() {
        let idle = Duration::from_millis(300);
        let definitions = Definitions::with_room(Arc::new(MemoryStore::new()), 3, idle);
        let asked = |limit| definitions.find(&text(limit)).map(|defined| defined.limit.most());
        for limit in 1..=3 {
            assert_eq!(asked(limit), Ok(limit));
        }
        assert_eq!(asked(4), Err(AskError::TooManyDefinitions));
        sleep(2 * idle);
        assert_eq!(asked(2), Ok(2));
        assert_eq!(asked(5), Ok(5), "1 and 3 went");
        assert_eq!(definitions.known.read().expect("nobody panics").by_text.len(), 2);
        assert_eq!(definitions.known.read().expect("nobody panics").by_name.len(), 2);
    }

    #[test]
    fn spellings_of_one_limit_share_it() {
        let definitions = Definitions::new(Arc::new(MemoryStore::new()));
        let one = definitions.find("token_bucket: { rate: 60/m, burst: 3 }").expect("well defined");
        let other =
            definitions.find("{\"token_bucket\":{\"burst\":3,\"rate\":\"60/m\"}}").expect("well defined");
        assert!(Arc::ptr_eq(&one, &other));
    }
}
