//! The busiest keys, in bounded memory: who is refused most, who uses most.
//!
//! There are as many keys as somebody cares to send, so they cannot all be counted. Two summaries (of refusals, and of units
//! used) each keep the heaviest keys, by the Space-Saving rule (`summary.rs`), and fade with a half-life of a minute, so
//! that they show who is busy and not who once was.
//!
//! **Bounds.** For every key the truth lies between two numbers that are told, [`at_least`](Heavy::at_least) and
//! [`at_most`](Heavy::at_most); and a key with more than an eighth of what falls into its set (of 64, by a hash nobody
//! outside knows) is there. So whoever makes up more than some 1/500 of the traffic is found, and a flood of keys that are
//! used once displaces only what is as light as they are.
//!
//! **Cost.** Some tens of nanoseconds and no allocation. A thread has a shard of its own where there are up to 8; it never
//! waits for one: where its own is busy it takes another, and where all are, the update is [lost](Sketch::lost) and counted.
//!
//! **Memory.** 0.3 MB a shard, of which there are as many as cores, 4 to 8: 2.4 MB at most, whatever comes. Of a key 256 bytes are
//! kept; what is longer is marked as cut.

mod name;
mod summary;
mod top;

pub use name::HeavyKey;
pub use top::{Heavy, Ranking};

use crate::metrics::{shard, shards};
use name::{LimitId, Name};
use std::{
    collections::{HashMap, HashSet},
    fmt,
    hash::{BuildHasher, RandomState},
    ops::RangeInclusive,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};
use summary::Summary;
use tollgate::Key;

/// Fewer, and threads find them all busy; more would cost more memory, and a thread is at one for some tens of nanoseconds.
const SHARDS: RangeInclusive<usize> = 4..=8;

/// The busiest keys. Clones are the same sketch.
#[derive(Clone)]
pub struct Sketch(Arc<Inner>);

/// Tells a [`Sketch`] about the keys of one limit. Clones are the same.
#[derive(Clone)]
pub struct KeyMeter {
    sketch: Arc<Inner>,
    limit: Arc<Limit>,
}

struct Inner {
    secret: [u64; 2],
    shards: Box<[Shard]>,
    limits: Mutex<Limits>,
    lost: AtomicU64,
    fades: AtomicU64,
}

#[repr(align(128))]
struct Shard(Mutex<[Summary; Ranking::ALL.len()]>);

#[derive(Default)]
struct Limits {
    next: LimitId,
    by_id: HashMap<LimitId, Arc<Limit>>,
}

struct Limit {
    id: LimitId,
    name: Box<str>,
}

impl Default for Sketch {
    fn default() -> Self {
        Self::new()
    }
}

impl Sketch {
    /// How often [`fade`](Self::fade) is to be called.
    pub const FADE_EVERY: Duration = Duration::from_secs(5);

    /// An empty one.
    #[must_use]
    pub fn new() -> Self {
        let random = RandomState::new();
        let shards =
            (0..shards().clamp(*SHARDS.start(), *SHARDS.end())).map(|_| Shard(Mutex::default())).collect();
        Self(Arc::new(Inner {
            secret: [random.hash_one(0), random.hash_one(1)],
            shards,
            limits: Mutex::default(),
            lost: AtomicU64::new(0),
            fades: AtomicU64::new(0),
        }))
    }

    /// A handle for the keys of the limit of this name: for when rules are compiled. The same name has the same keys.
    #[must_use]
    pub fn limit(&self, name: &str) -> KeyMeter {
        let mut limits = hold(&self.0.limits);
        let known = limits.by_id.values().find(|limit| &*limit.name == name).cloned();
        let limit = known.unwrap_or_else(|| {
            let limit = Arc::new(Limit { id: limits.next, name: name.into() });
            limits.next += 1;
            limits.by_id.insert(limit.id, Arc::clone(&limit));
            limit
        });
        KeyMeter { sketch: Arc::clone(&self.0), limit }
    }

    /// Everything counts a little less: half of it is gone after a minute of a call every [`FADE_EVERY`](Self::FADE_EVERY).
    /// The [`Admin`](crate::Admin) listener sees to it.
    pub fn fade(&self) {
        let mut seen = HashSet::new();
        for shard in &self.0.shards {
            for summary in hold(&shard.0).iter_mut() {
                summary.fade();
                seen.extend(summary.limits());
            }
        }
        self.0.fades.fetch_add(1, Relaxed);
        // Names of limits that are gone, and that no key reminds of any more. Under the lock nobody gets a new handle, and
        // whoever has one keeps its name here.
        hold(&self.0.limits).by_id.retain(|id, limit| Arc::strong_count(limit) > 1 || seen.contains(id));
    }

    /// The `n` heaviest keys, heaviest first.
    #[must_use]
    pub fn top(&self, ranking: Ranking, n: usize) -> Vec<Heavy> {
        top::top(&self.0, ranking, n)
    }

    /// How busy one key is: refusals and units used a second, of late, at least so many. Nothing where it is not among the
    /// busiest.
    #[must_use]
    pub fn rates(&self, limit: &str, key: Key<'_>) -> (f64, f64) {
        let known = hold(&self.0.limits).by_id.values().find(|it| &*it.name == limit).map(|it| it.id);
        known.map_or((0.0, 0.0), |limit| top::rates(&self.0, self.0.print(limit, key)))
    }

    /// Updates that found every shard busy, since it was made.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.0.lost.load(Relaxed)
    }
}

impl KeyMeter {
    /// This key was refused.
    #[inline]
    pub fn refused(&self, key: Key<'_>) {
        self.sketch.add(Ranking::Refused, &self.limit, key, 1);
    }

    /// This key used so many units.
    #[inline]
    pub fn used(&self, key: Key<'_>, cost: u64) {
        self.sketch.add(Ranking::Used, &self.limit, key, cost);
    }
}

impl Inner {
    #[inline]
    fn add(&self, ranking: Ranking, limit: &Limit, key: Key<'_>, weight: u64) {
        let print = self.print(limit.id, key);
        let mine = shard();
        for turn in 0..self.shards.len() {
            // There are 4 or 8.
            let shard = &self.shards[mine.wrapping_add(turn) & (self.shards.len() - 1)];
            if let Ok(mut summaries) = shard.0.try_lock() {
                summaries[ranking as usize].add(print, weight, |name: &mut Name| name.set(limit.id, key));
                return;
            }
        }
        self.lost.fetch_add(1, Relaxed);
    }

    /// Whose count it is: 64 bits of a hash under a secret. Never 0, which is nobody's.
    #[inline]
    fn print(&self, limit: LimitId, key: Key<'_>) -> u64 {
        let hash = match key {
            // One after the other, each under a secret made from those before: nothing is put together for it.
            Key::List(values @ ([None] | [_, _, ..])) => {
                values.iter().fold([values.len() as u64, 0], |before, value| {
                    let value = value.map_or(Key::All, Key::Text);
                    value.hash([self.secret[0] ^ before[0], self.secret[1] ^ before[1]], limit)
                })
            }
            one => one.hash(self.secret, limit),
        };
        hash[0].max(1)
    }

    fn limit_name(&self, id: LimitId) -> Option<String> {
        hold(&self.limits).by_id.get(&id).map(|limit| limit.name.to_string())
    }
}

impl fmt::Debug for Sketch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sketch").field("shards", &self.0.shards.len()).finish_non_exhaustive()
    }
}

impl fmt::Debug for KeyMeter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyMeter").field("limit", &self.limit.name).finish_non_exhaustive()
    }
}

/// All that is guarded is plain data, right after every statement.
fn hold<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(sketch: &Sketch) -> usize {
        hold(&sketch.0.limits).by_id.len()
    }

    #[test]
    fn limits_that_get_new_names_for_ever_do_not_fill_the_memory() {
        let sketch = Sketch::new();
        let kept = sketch.limit("kept");
        let seen = sketch.limit("seen");
        seen.used(Key::Text("alice"), 1);
        drop(seen);
        for generation in 0..1000 {
            drop(sketch.limit(&format!("per-client-{generation}")));
        }
        sketch.fade();
        assert_eq!(names(&sketch), 2, "one has a handle, the other a key that is shown");
        assert_eq!(sketch.top(Ranking::Used, 1)[0].limit, "seen");
        drop(kept);
    }

    #[test]
    fn an_update_that_finds_everything_busy_is_lost_and_counted_and_waits_for_nobody() {
        let sketch = Sketch::new();
        let meter = sketch.limit("per-client");
        let busy: Vec<_> = sketch.0.shards.iter().map(|shard| hold(&shard.0)).collect();
        meter.refused(Key::Text("alice"));
        drop(busy);
        assert_eq!((sketch.lost(), sketch.top(Ranking::Refused, 1).len()), (1, 0));

        // One that is free is enough.
        let busy: Vec<_> = sketch.0.shards.iter().skip(1).map(|shard| hold(&shard.0)).collect();
        meter.refused(Key::Text("alice"));
        drop(busy);
        assert_eq!((sketch.lost(), sketch.top(Ranking::Refused, 1).len()), (1, 1));
    }
}
