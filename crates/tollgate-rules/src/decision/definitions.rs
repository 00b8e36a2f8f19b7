//! Limits that come with the request.
//!
//! A definition is a limit in the store like any other, named by its numbers, so that everybody who sends the same numbers
//! charges the same buckets, whatever the spelling and through whichever door. There are at most [`MOST`] spellings at once:
//! a new one displaces the oldest of those that nobody has asked for in [`IDLE`], and what was used of them is forgotten.
//! Where all of them are in use it is refused: to forget a limit takes a look at every key in memory, and whoever sends ever
//! new numbers must not be able to ask for that all the time. Nor does anybody wait for it: it is done when the new one is
//! there, [a few](FEW) at a time, and not on a thread that answers.

use super::DecisionError;
use crate::{ParsedLimit, parse_limit};
use std::{
    collections::HashMap,
    sync::{
        Arc, PoisonError, RwLock,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    thread,
    time::{Duration, Instant},
};
use tollgate::{Limit, Store};

/// Spellings that are kept at once.
const MOST: usize = 1024;

/// Who was not asked for that long may go.
const IDLE: Duration = Duration::from_secs(60);

/// How many are displaced at once: one is needed, and the next who come find room.
const FEW: usize = 8;

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
    pub(super) fn find(&self, text: &str) -> Result<Arc<Defined<S>>, DecisionError>
    where
        S: 'static,
    {
        let now = self.now();
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(defined) = known.by_text.get(text) {
            defined.asked.store(now, Relaxed);
            return Ok(Arc::clone(defined));
        }
        drop(known);
        let limit = match parse_limit(text).map_err(DecisionError::Definition)? {
            ParsedLimit::Limit(limit) => limit,
            _ => return Err(DecisionError::Bandwidth),
        };
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        let displaced = known.make_room(self.most, |asked| now.saturating_sub(asked) < millis(self.idle))?;
        let entered = self.enter(&mut known, text, limit, now);
        drop(known);
        forget(displaced);
        entered
    }

    fn enter(
        &self,
        known: &mut Known<S>,
        text: &str,
        limit: Limit,
        now: u64,
    ) -> Result<Arc<Defined<S>>, DecisionError> {
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
    /// Room for one more, at the cost of a few that are not in use, the oldest first: these.
    fn make_room(
        &mut self,
        most: usize,
        in_use: impl Fn(u64) -> bool,
    ) -> Result<Vec<Arc<Defined<S>>>, DecisionError> {
        if self.by_text.len() < most {
            return Ok(Vec::new());
        }
        let asked = |defined: &Arc<Defined<S>>| defined.asked.load(Relaxed);
        let mut displaced: Vec<_> = self.by_name.values().filter(|it| !in_use(asked(it))).cloned().collect();
        displaced.sort_unstable_by_key(asked);
        displaced.truncate(FEW);
        let stays = |defined: &Arc<Defined<S>>| !displaced.iter().any(|it| Arc::ptr_eq(it, defined));
        self.by_name.retain(|_, defined| stays(defined));
        self.by_text.retain(|_, defined| stays(defined));
        if displaced.is_empty() { Err(DecisionError::TooManyDefinitions) } else { Ok(displaced) }
    }
}

/// Drops what was displaced on a thread of its own: the store looks at every key for each. So many come once in
/// [`FEW`] new definitions, and none of them was in use for [`IDLE`].
fn forget<S: Store + 'static>(displaced: Vec<Arc<Defined<S>>>) {
    if displaced.is_empty() {
        return;
    }
    // Where there is no thread to be had, they are dropped here.
    let _ = thread::Builder::new().name("tollgate-forget".to_owned()).spawn(move || drop(displaced));
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread::sleep;
    use tollgate::{Charge, MemoryStore};

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
        assert_eq!(asked(4), Err(DecisionError::TooManyDefinitions));
        sleep(2 * idle);
        assert_eq!(asked(2), Ok(2));
        assert_eq!(asked(5), Ok(5), "1 and 3 went");
        assert_eq!(definitions.known.read().expect("nobody panics").by_text.len(), 2);
        assert_eq!(definitions.known.read().expect("nobody panics").by_name.len(), 2);
    }

    /// To forget all of them at once would take as many looks at every key, one behind the other, while everybody waits.
    #[test]
    fn a_few_of_the_oldest_are_displaced_at_once() {
        let idle = Duration::from_millis(300);
        let store = Arc::new(MemoryStore::new());
        let definitions = Definitions::with_room(Arc::clone(&store), 20, idle);
        let ask = |limit| definitions.find(&text(limit)).expect("there is room").handle.clone();
        let older: Vec<_> = (1..=10).map(ask).collect();
        sleep(Duration::from_millis(20));
        let newer: Vec<_> = (11..=20).map(ask).collect();
        sleep(2 * idle);
        ask(21);
        let kept = || definitions.known.read().expect("nobody panics").by_text.len();
        assert_eq!((kept(), definitions.known.read().expect("nobody panics").by_name.len()), (13, 13));
        let is_forgotten = |handle: &&_| store.check_one(&Charge::new(*handle, "key")).is_err();
        testkit::eventually("eight to be forgotten", || {
            (older.iter().filter(is_forgotten).count() == FEW).then_some(())
        });
        assert_eq!(newer.iter().filter(is_forgotten).count(), 0);
        (22..=28).for_each(|limit| drop(ask(limit)));
        assert_eq!(kept(), 20, "there was room for these");
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
