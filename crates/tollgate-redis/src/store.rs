//! The store: limits by name, and the questions about them.

use crate::{
    asking::nonsense,
    builder::{OpenError, RedisStoreBuilder, Settings},
    failure::{Charging, Local},
    gather::Gatherer,
    guard::Guard,
    health::Counts,
    leasing::Leasing,
    limit::{Birth, Edition, Named, RedisLimit},
    link::{Group, LinkError},
    names,
    question::{Part, Parts, Question, Verb},
    status::set_status,
    turn::WaitQueues,
};
use redis::Value;
use smallvec::smallvec;
use std::{
    collections::{HashMap, HashSet},
    hash::{BuildHasher, RandomState},
    sync::{
        Arc, Mutex, PoisonError, Weak,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use tollgate::{
    Charge, Clock, Key, Limit, OnFailure, PermitId, Sealed, SetStatus, Sleep, Store, StoreError,
    StoreLimiter, SystemClock, Time, Timer,
};

/// Limits shared through Redis. Clones are the same store.
#[derive(Clone)]
pub struct RedisStore {
    pub(crate) shared: Arc<Shared>,
}

pub(crate) struct Shared {
    id: u64,
    pub(crate) settings: Settings,
    pub(crate) gatherer: Arc<Gatherer>,
    pub(crate) guard: Arc<Guard>,
    /// What this node decides by itself.
    pub(crate) local: Local,
    pub(crate) counts: Counts,
    pub(crate) leasing: Option<Leasing>,
    /// Who of this node waits at which bucket.
    pub(crate) queues: WaitQueues,
    /// The limits by their names, as long as somebody has a handle.
    limits: Mutex<HashMap<String, Weak<Named>>>,
    /// Time as this node measures it.
    ticks: SystemClock,
    drawn: AtomicU64,
}

impl Shared {
    pub(crate) const fn id(&self) -> u64 {
        self.id
    }

    pub(crate) fn new(settings: Settings, gatherer: Arc<Gatherer>) -> Self {
        static STORES: AtomicU64 = AtomicU64::new(0);
        let id = STORES.fetch_add(1, Relaxed);
        Self {
            id,
            guard: Arc::new(Guard::new(settings.timeout)),
            local: Local::new(settings.nodes, settings.clock.clone()),
            counts: Counts::default(),
            leasing: settings.lease.map(|life| Leasing::new(life, || RandomState::new().hash_one(id))),
            settings,
            gatherer,
            queues: WaitQueues::default(),
            limits: Mutex::default(),
            ticks: SystemClock::new(),
            drawn: AtomicU64::new(RandomState::new().hash_one(id)),
        }
    }
}

/// Charges in one set.
const MOST_IN_A_SET: usize = 1_024;

/// Different limits in a set. A script has room for 8,000 values: nine of each limit, four of each charge.
const MOST_LIMITS_IN_A_SET: usize = 400;

/// How long the time of a limit's birth is kept after somebody last looked.
const BIRTHS_LAST: Duration = Duration::from_secs(400 * 86_400);

impl RedisStore {
    /// A store at this address, with every setting at its default: `redis://`, `rediss://`, `redis-sentinel://` or
    /// `redis-cluster://`. Nothing is sent before the first question, so that Redis need not be up yet.
    ///
    /// # Errors
    /// Where the address makes no sense.
    pub fn open(url: &str) -> Result<Self, OpenError> {
        Self::builder(url).open()
    }

    /// Whether units are taken ahead, so that most decisions need no round trip.
    #[must_use]
    pub fn is_leased(&self) -> bool {
        self.shared.leasing.is_some()
    }

    /// A store at this address, to be set up.
    pub fn builder(url: &str) -> RedisStoreBuilder {
        RedisStoreBuilder::new(url)
    }

    /// Adds a limit under a name that means the same to every node.
    ///
    /// # Errors
    /// Where Redis cannot keep its numbers, or the name is taken by a limit of this store with other numbers.
    pub fn add(&self, name: &str, limit: impl Into<Limit>) -> Result<RedisLimit, StoreError> {
        self.add_generation(name, limit, 0)
    }

    /// Adds a limit under a name that means the same to every node, as a limiter of its own. Where this store knows the name, its
    /// limit is changed to these numbers.
    ///
    /// # Errors
    /// Where Redis cannot keep its numbers.
    pub fn limiter(
        self: &Arc<Self>,
        name: &str,
        limit: impl Into<Limit>,
    ) -> Result<StoreLimiter<Self>, StoreError> {
        StoreLimiter::new(self, name, limit)
    }

    /// Adds a limit with the number of its version. While nodes with different versions run side by side, the highest number
    /// applies; without numbers, the version that was written last.
    ///
    /// # Errors
    /// Where Redis cannot keep its numbers.
    pub fn add_generation(
        &self,
        name: &str,
        limit: impl Into<Limit>,
        generation: u64,
    ) -> Result<RedisLimit, StoreError> {
        let edition = Edition::new(limit.into(), generation, None)?;
        self.named(name, edition, |named, edition| {
            let was = named.edition();
            if (&was.blob, was.generation) == (&edition.blob, generation) {
                return Ok(());
            }
            Err(StoreError::Unsupported {
                setting: "name",
                problem: "is another limit's in this store, with other numbers; take another name, or `change` that one",
            })
        })
    }

    /// The limit of this name, made with these numbers; or the one there is, after `meets` had a look at it.
    fn named(
        &self,
        name: &str,
        edition: Edition,
        meets: impl FnOnce(&Named, Edition) -> Result<(), StoreError>,
    ) -> Result<RedisLimit, StoreError> {
        let name = names::limit(name);
        let mut known = self.shared.limits.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(named) = known.get(&name).and_then(Weak::upgrade) {
            meets(&named, edition)?;
            return Ok(RedisLimit { named, on_failure: None, is_exact: false });
        }
        let named = Arc::new(Named::new(self.shared.id, name.clone(), edition));
        // Before the map grows, so that adding many limits takes time linear in their number.
        if known.len() == known.capacity() {
            known.retain(|_, named| named.strong_count() > 0);
        }
        known.insert(name, Arc::downgrade(&named));
        Ok(RedisLimit { named, on_failure: None, is_exact: false })
    }

    /// Changes a limit's numbers, as the next generation. What was consumed stays, as each kind of limit promises.
    ///
    /// # Errors
    /// Where Redis cannot keep the numbers.
    pub fn change(&self, limit: &RedisLimit, to: impl Into<Limit>) -> Result<(), StoreError> {
        self.change_named(&limit.named, to.into(), 0)
    }

    /// Changes its numbers, as at least this generation.
    fn change_named(&self, named: &Named, to: Limit, generation: u64) -> Result<(), StoreError> {
        let since = self.shared.gatherer.clock().map(|_| self.shared.gatherer.server_time());
        named.change(|was| {
            let next = was.generation.saturating_add(1).max(generation);
            Ok(Edition::new(to, next, since)?.born_as(was))
        })?;
        self.close_leases();
        self.shared.queues.judge_again();
        Ok(())
    }

    /// Decides a set of charges: all are charged, or none is.
    ///
    /// # Errors
    /// Where a limit is another store's, or what is stored under a key cannot be read; and where Redis does not answer and the
    /// store was told to leave that to its caller.
    pub async fn check(&self, charges: &[Charge<'_, RedisLimit>]) -> Result<SetStatus, StoreError> {
        if let Some(set) = self.decide_by_lease(charges) {
            return Ok(set);
        }
        self.decide(charges, Verb::Check { permit: self.draw() }).await
    }

    /// What [`check`](Self::check) would answer, charging nothing.
    ///
    /// # Errors
    /// As for `check`.
    pub async fn peek(&self, charges: &[Charge<'_, RedisLimit>]) -> Result<SetStatus, StoreError> {
        self.decide(charges, Verb::Peek).await
    }

    async fn decide(&self, charges: &[Charge<'_, RedisLimit>], verb: Verb) -> Result<SetStatus, StoreError> {
        let charging = if matches!(verb, Verb::Peek) { Charging::No } else { Charging::Yes };
        match self.decide_in_redis(charges, verb).await {
            Ok(set) => Ok(set),
            Err(error) => self.decide_without(charges, error, charging),
        }
    }

    async fn decide_in_redis(
        &self,
        charges: &[Charge<'_, RedisLimit>],
        verb: Verb,
    ) -> Result<SetStatus, StoreError> {
        if matches!(verb, Verb::Check { .. })
            && let Some(told) = self.ask_and_lease(charges).await
        {
            return told;
        }
        let permit = verb.permit();
        if let [charge] = charges {
            let part = self.part(charge.limit, charge.key, charge.cost.into(), charge.up_to).await?;
            let group = self.shared.gatherer.link().group_of(&part.key);
            let told = self.ask_group(group, Question { verb, parts: smallvec![part] }).await?;
            return Ok(set_status(&told.statuses()?, &[0], permit));
        }
        let (parts, part_of) = self.parts(charges).await?;
        let standings = self.ask(Question { verb, parts }).await?.statuses()?;
        Ok(set_status(&standings, &part_of, permit))
    }

    /// Charges on one bucket are one part; and which part each charge is of.
    pub(crate) async fn parts(
        &self,
        charges: &[Charge<'_, RedisLimit>],
    ) -> Result<(Parts, Vec<usize>), StoreError> {
        if charges.len() > MOST_IN_A_SET {
            return Err(StoreError::Unsupported {
                setting: "a set",
                problem: "must not have more than 1024 charges in Redis, which is held up by it; make several of it",
            });
        }
        let mut parts = Parts::with_capacity(charges.len());
        let mut part_of = Vec::with_capacity(charges.len());
        for charge in charges {
            let part = self.part(charge.limit, charge.key, charge.cost.into(), charge.up_to).await?;
            match parts.iter().position(|known| known.key == part.key) {
                Some(index) => {
                    part_of.push(index);
                    parts[index].merge(&part);
                }
                None => {
                    part_of.push(parts.len());
                    parts.push(part);
                }
            }
        }
        if parts.len() > MOST_LIMITS_IN_A_SET {
            let limits: HashSet<_> = parts.iter().map(|part| Arc::as_ptr(&part.edition)).collect();
            if limits.len() > MOST_LIMITS_IN_A_SET {
                return Err(StoreError::Unsupported {
                    setting: "a set",
                    problem: "must not have more than 400 different limits in Redis, whose scripts cannot hold more; make several of it",
                });
            }
        }
        Ok((parts, part_of))
    }

    pub(crate) async fn part(
        &self,
        limit: &RedisLimit,
        key: Key<'_>,
        cost: u64,
        up_to: Option<Duration>,
    ) -> Result<Part, StoreError> {
        if limit.named.store != self.shared.id {
            return Err(StoreError::UnknownLimit);
        }
        let edition = self.edition(&limit.named).await?;
        let key = names::bucket(&self.shared.settings.prefix, &key, &limit.named.name);
        let up_to = up_to.map(|up_to| u64::try_from(up_to.as_micros()).unwrap_or(u64::MAX).min(LONGEST_WAIT));
        Ok(Part { key, edition, cost, up_to })
    }

    /// The limit's numbers in force, with its birth where that matters.
    pub(crate) async fn edition(&self, named: &Named) -> Result<Arc<Edition>, StoreError> {
        let edition = named.edition();
        if let Birth::At(birth) = &edition.birth
            && birth.get().is_none()
        {
            // Boxed: it happens once a limit, and as a part of every question's future it would make that ten times as large,
            // and nest deeper than the compiler lays out.
            let at = Box::pin(self.birth_of(&named.name)).await?;
            let _ = birth.set(at);
        }
        Ok(edition)
    }

    /// When the limit was first used by anybody: a key that nobody has seen holds what came since.
    async fn birth_of(&self, name: &str) -> Result<u64, StoreError> {
        let gatherer = &self.shared.gatherer;
        if gatherer.clock().is_some() {
            return Ok(0);
        }
        let key = names::birth(&self.shared.settings.prefix, name);
        let group = gatherer.link().group_of(&key);
        self.call(group, &key, self.look_up_birth(group, &key)).await
    }

    async fn look_up_birth(&self, group: Group, key: &[u8]) -> Result<u64, StoreError> {
        let link = self.shared.gatherer.link();
        let plain = async |command: redis::Cmd| link.plain(group, command).await.map_err(StoreError::from);
        let now = link.time(group).await?;
        let lasting = BIRTHS_LAST.as_secs();
        plain(redis::cmd("SET").arg(key).arg(now).arg("NX").arg("EX").arg(lasting).take()).await?;
        let damaged = || StoreError::Damaged { key: String::from_utf8_lossy(key).into_owned() };
        let read = link.plain(group, redis::cmd("GETEX").arg(key).arg("EX").arg(lasting).take()).await;
        let is_foreign = matches!(&read, Err(LinkError::Refused { code, .. }) if &**code == "WRONGTYPE");
        match read.map_err(StoreError::from).and_then(|value| whole(&value)) {
            Ok(at) if !is_foreign => Ok(at),
            Err(StoreError::Unavailable { why }) if !is_foreign => Err(StoreError::Unavailable { why }),
            _ => {
                plain(redis::cmd("DEL").arg(key).take()).await?;
                Err(damaged())
            }
        }
    }

    /// Now, on the clock that this node sleeps by.
    pub(crate) fn now(&self) -> Time {
        match self.shared.gatherer.clock() {
            Some(clock) => clock.now(),
            None => self.shared.ticks.now(),
        }
    }

    /// Ready after this long; does not keep the store alive.
    pub(crate) fn sleep_for(&self, time: Duration) -> Sleep {
        self.sleep(self.now() + time)
    }

    /// Ready at that time; does not keep the store alive.
    pub(crate) fn sleep(&self, until: Time) -> Sleep {
        match self.shared.gatherer.clock() {
            Some(clock) => clock.sleep_until(until),
            None => Box::pin(tokio::time::sleep(until - self.now())),
        }
    }

    /// A number for a permit: none that is held on the same bucket has it, or is ever likely to.
    pub(crate) fn draw(&self) -> u64 {
        const BITS: u64 = (1 << 52) - 1;
        // Numbers one after the other from a random one on, mixed so that no two stores' are likely to meet.
        let drawn = self.shared.drawn.fetch_add(0x9e37_79b9_7f4a_7c15, Relaxed);
        let mixed = (drawn ^ drawn >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ mixed >> 31) & BITS).max(1)
    }
}

impl std::fmt::Debug for RedisStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RedisStore").field("prefix", &self.shared.settings.prefix).finish_non_exhaustive()
    }
}

impl Store for RedisStore {
    type Limit = RedisLimit;

    fn add_named(&self, name: &str, limit: Limit) -> Result<RedisLimit, StoreError> {
        let edition = Edition::new(limit.clone(), in_force_now(), None)?;
        self.named(name, edition, |named, edition| {
            if named.edition().blob == edition.blob {
                return Ok(());
            }
            // Somebody still holds it by the numbers that it had; those who come now bring others.
            self.change_named(named, limit, edition.generation)
        })
    }

    fn can_keep(&self, limit: &Limit) -> Result<(), StoreError> {
        Edition::new(limit.clone(), 0, None).map(drop)
    }

    fn remove_limit(&self, _: &RedisLimit) {
        // Its keys expire, and this node's share goes with the last handle.
    }

    fn when_failing(&self, limit: &RedisLimit, on_failure: OnFailure) -> RedisLimit {
        limit.clone().on_failure(on_failure)
    }

    fn exactly(&self, limit: &RedisLimit) -> RedisLimit {
        limit.clone().exactly()
    }

    fn change_limit(&self, limit: &RedisLimit, to: Limit) -> Result<(), StoreError> {
        self.change_named(&limit.named, to, in_force_now())
    }

    async fn check(&self, charges: &[Charge<'_, RedisLimit>]) -> Result<SetStatus, StoreError> {
        Self::check(self, charges).await
    }

    async fn peek(&self, charges: &[Charge<'_, RedisLimit>]) -> Result<SetStatus, StoreError> {
        Self::peek(self, charges).await
    }

    async fn refund(&self, limit: &RedisLimit, key: Key<'_>, units: u32) -> Result<(), StoreError> {
        Self::refund(self, limit, key, units).await
    }

    async fn reset(&self, limit: &RedisLimit, key: Key<'_>) -> Result<(), StoreError> {
        Self::reset(self, limit, key).await
    }

    async fn grant(&self, limit: &RedisLimit, key: Key<'_>, units: u32) -> Result<(), StoreError> {
        Self::grant(self, limit, key, units).await
    }

    async fn ban(&self, limit: &RedisLimit, key: Key<'_>, lasting: Duration) -> Result<(), StoreError> {
        Self::ban(self, limit, key, lasting).await
    }

    async fn leave(&self, charges: &[Charge<'_, RedisLimit>], permit: PermitId) -> Result<u32, StoreError> {
        Self::leave(self, charges, permit).await
    }

    async fn renew(&self, charges: &[Charge<'_, RedisLimit>], permit: PermitId) -> Result<bool, StoreError> {
        Self::renew(self, charges, permit).await
    }
}

impl Sealed for RedisStore {}

/// The generation of numbers that come into force now. Rules carry no number of their own, so the later are obeyed: whichever
/// node, and whichever run of it, brought the earlier ones.
fn in_force_now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(0)
}

/// Waits and bans are not longer than this many microseconds, some 71 years.
pub(crate) const LONGEST_WAIT: u64 = 1 << 51;

fn whole(value: &Value) -> Result<u64, StoreError> {
    let text = match value {
        Value::BulkString(bytes) => std::str::from_utf8(bytes).ok(),
        Value::Int(integer) => return u64::try_from(*integer).map_err(|_| nonsense()),
        _ => None,
    };
    text.and_then(|text| text.parse().ok()).ok_or_else(nonsense)
}
