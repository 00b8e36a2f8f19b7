//! The store: limits by name, and the questions about them.

use crate::{
    breaker::Outcome,
    builder::{OpenError, RedisStoreBuilder, Settings},
    failure::{Charging, Local},
    gather::{Asking, Gatherer},
    guard::{Guard, Probe, Ticket},
    health::Counts,
    leasing::Leasing,
    limit::{Birth, Edition, Named, RedisLimit},
    link::{Group, LinkError},
    names,
    question::{Flaw, Part, Question, Standing, Told, Verb},
    turn::Lines,
};
use redis::Value;
use std::{
    hash::{BuildHasher, RandomState},
    num::NonZeroU64,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};
use tollgate::{
    Charge, Clock, DecidedBy, Decision, Key, Limit, PermitId, Retry, SetStatus, Sleep, Status, Store,
    StoreError, Time, Timer,
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
    /// Who of this node waits where.
    pub(crate) lines: Lines,
    opened: Instant,
    lottery: RandomState,
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
            lines: Lines::default(),
            opened: Instant::now(),
            lottery: RandomState::new(),
            drawn: AtomicU64::new(0),
        }
    }
}

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

    /// A store at this address, to be set up.
    pub fn builder(url: &str) -> RedisStoreBuilder {
        RedisStoreBuilder::new(url)
    }

    /// Adds a limit under a name that means the same to every node.
    ///
    /// # Errors
    /// Where Redis cannot keep its numbers.
    pub fn add(&self, name: &str, limit: impl Into<Limit>) -> Result<RedisLimit, StoreError> {
        self.add_generation(name, limit, 0)
    }

    /// Adds a limit of which this is the so-manieth version: while nodes with different ones run side by side, the highest
    /// is obeyed. Without it the one who wrote last is.
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
        let named = Named::new(self.shared.id, names::limit(name), edition);
        Ok(RedisLimit { named: Arc::new(named), on_failure: None })
    }

    /// Changes a limit's numbers, as the next generation. What was consumed stays, as each kind of limit promises.
    ///
    /// # Errors
    /// Where Redis cannot keep the numbers.
    pub fn change(&self, limit: &RedisLimit, to: impl Into<Limit>) -> Result<(), StoreError> {
        let since = self.shared.gatherer.clock().map(|_| self.shared.gatherer.server_time());
        limit.named.change(|was| Edition::new(to.into(), was.generation + 1, since))?;
        self.close_leases();
        Ok(())
    }

    async fn decide(&self, charges: &[Charge<'_, RedisLimit>], verb: Verb) -> Result<SetStatus, StoreError> {
        let charging = if matches!(verb, Verb::Peek) { Charging::No } else { Charging::Yes };
        if charging == Charging::Yes
            && let Some(set) = self.decide_by_lease(charges)
        {
            return Ok(set);
        }
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
        let (parts, part_of) = self.parts(charges).await?;
        let permit = verb.permit();
        let standings = self.standings(Question { verb, parts }).await?;
        Ok(set_status(&standings, &part_of, permit))
    }

    /// Charges on one bucket are one part; and which part each charge is of.
    pub(crate) async fn parts(
        &self,
        charges: &[Charge<'_, RedisLimit>],
    ) -> Result<(Vec<Part>, Vec<usize>), StoreError> {
        let mut parts: Vec<Part> = Vec::with_capacity(charges.len());
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
        Ok((parts, part_of))
    }

    async fn part(
        &self,
        limit: &RedisLimit,
        key: Key<'_>,
        cost: u64,
        up_to: Option<Duration>,
    ) -> Result<Part, StoreError> {
        if limit.named.store != self.shared.id {
            return Err(StoreError::UnknownLimit);
        }
        let edition = limit.named.edition();
        if let Birth::At(birth) = &edition.birth
            && birth.get().is_none()
        {
            let at = self.birth_of(&limit.named.name).await?;
            let _ = birth.set(at);
        }
        let key = names::bucket(&self.shared.settings.prefix, &key, &limit.named.name);
        let up_to = up_to.map(|up_to| u64::try_from(up_to.as_micros()).unwrap_or(u64::MAX).min(LONGEST_WAIT));
        Ok(Part { key, edition, cost, up_to })
    }

    /// When the limit was first used by anybody: a key that nobody has seen holds what came since.
    async fn birth_of(&self, name: &str) -> Result<u64, StoreError> {
        let gatherer = &self.shared.gatherer;
        if gatherer.clock().is_some() {
            return Ok(0);
        }
        let key = names::birth(&self.shared.settings.prefix, name);
        let group = gatherer.link().group_of(&key);
        let plain =
            async |command: redis::Cmd| gatherer.link().plain(group, command).await.map_err(unavailable);
        let Value::Array(time) = plain(redis::cmd("TIME")).await? else { return Err(nonsense()) };
        let [seconds, micros] = &time[..] else { return Err(nonsense()) };
        let now = whole(seconds)?.saturating_mul(1_000_000).saturating_add(whole(micros)?);
        let lasting = BIRTHS_LAST.as_secs();
        plain(redis::cmd("SET").arg(&key).arg(now).arg("NX").arg("EX").arg(lasting).take()).await?;
        whole(&plain(redis::cmd("GETEX").arg(&key).arg("EX").arg(lasting).take()).await?)
    }

    /// Asks a question about a set, in one group or across several.
    pub(crate) async fn standings(&self, question: Question) -> Result<Vec<Standing>, StoreError> {
        match self.ask(question).await? {
            Told::Statuses(standings) => Ok(standings),
            _ => Err(nonsense()),
        }
    }

    /// Asks a question whose parts are of one group.
    pub(crate) async fn ask_group(&self, group: Group, question: Question) -> Result<Told, StoreError> {
        self.finish(self.begin(group, question)).await
    }

    /// Sends a question whose parts are of one group, to be heard with [`finish`](Self::finish); unless the server is known not
    /// to answer.
    pub(crate) fn begin(&self, group: Group, question: Question) -> Begun {
        let keys: Vec<Vec<u8>> = question.parts.iter().map(|part| part.key.clone()).collect();
        let home = self.shared.gatherer.link().home_of(group);
        let under_way = self.shared.guard.admit(home).map(|ticket| UnderWay {
            ticket,
            group,
            asking: self.shared.gatherer.ask(group, question),
        });
        Begun { keys, under_way }
    }

    /// Hears the answer, if it comes in time.
    pub(crate) async fn finish(&self, begun: Begun) -> Result<Told, StoreError> {
        let Begun { keys, under_way } = begun;
        let Some(UnderWay { ticket, group, asking }) = under_way else {
            let why = "it did not answer before, and is asked again from time to time".to_owned();
            return Err(StoreError::Unavailable { why });
        };
        let timeout = self.shared.settings.timeout;
        let told = match tokio::time::timeout(timeout, asking).await {
            Ok(told) => told.map_err(unavailable),
            Err(_) => Err(StoreError::Unanswered { why: format!("no answer within {timeout:?}") }),
        };
        let outcome = if told.is_ok() { Outcome::Answered } else { Outcome::Failed };
        match outcome {
            Outcome::Answered => self.shared.counts.answered(),
            Outcome::Failed => self.shared.counts.failed(),
        }
        let link = self.shared.gatherer.link();
        self.shared.guard.report(link, ticket, outcome, || Probe {
            group,
            key: names::probe(&self.shared.settings.prefix, keys.first().map_or(&[], Vec::as_slice)),
        });
        match told? {
            Told::Flawed(part, flaw) => {
                let key =
                    keys.get(part).map(|key| String::from_utf8_lossy(key).into_owned()).unwrap_or_default();
                match flaw {
                    Flaw::Damaged => Err(StoreError::Damaged { key }),
                    Flaw::TooNew => Err(StoreError::TooNew { key }),
                }
            }
            told => Ok(told),
        }
    }

    async fn number(&self, question: Question) -> Result<u64, StoreError> {
        match self.ask(question).await? {
            Told::Number(number) => Ok(number),
            _ => Ok(0),
        }
    }

    /// A verb on one key.
    async fn on(&self, limit: &RedisLimit, key: Key<'_>, verb: Verb) -> Result<(), StoreError> {
        let part = self.part(limit, key, 0, None).await?;
        self.number(Question { verb, parts: vec![part] }).await.map(drop)
    }

    /// Asks without an interest in the answer.
    pub(crate) fn tell(&self, question: Question) {
        // Dropped in the middle of a shutdown, there is nobody left to carry it; time gives back what it can.
        if tokio::runtime::Handle::try_current().is_err() {
            return;
        }
        let store = self.clone();
        match self.only_group(&question.parts) {
            Some(group) => self.shared.gatherer.tell(group, question),
            None => drop(tokio::spawn(async move { store.ask(question).await.map(drop) })),
        }
    }

    pub(crate) fn only_group(&self, parts: &[Part]) -> Option<Group> {
        let link = self.shared.gatherer.link();
        let mut groups = parts.iter().map(|part| link.group_of(&part.key));
        let first = groups.next()?;
        groups.all(|group| group == first).then_some(first)
    }

    /// Now, on the clock that this node sleeps by.
    pub(crate) fn now(&self) -> Time {
        match self.shared.gatherer.clock() {
            Some(clock) => clock.now(),
            None => Time::ZERO + self.shared.opened.elapsed(),
        }
    }

    pub(crate) async fn sleep_until(&self, until: Time) {
        self.sleep(until).await;
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
        let drawn = self.shared.drawn.fetch_add(1, Relaxed);
        (self.shared.lottery.hash_one(drawn) & BITS).max(1)
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
        self.add(name, limit)
    }

    fn change_limit(&self, limit: &RedisLimit, to: Limit) -> Result<(), StoreError> {
        self.change(limit, to)
    }

    async fn check(&self, charges: &[Charge<'_, RedisLimit>]) -> Result<SetStatus, StoreError> {
        self.decide(charges, Verb::Check { permit: self.draw() }).await
    }

    async fn peek(&self, charges: &[Charge<'_, RedisLimit>]) -> Result<SetStatus, StoreError> {
        self.decide(charges, Verb::Peek).await
    }

    async fn refund(&self, limit: &RedisLimit, key: Key<'_>, units: u32) -> Result<(), StoreError> {
        self.on(limit, key, Verb::Refund { units: units.into() }).await?;
        self.forget_refusal(limit, &key);
        Ok(())
    }

    async fn reset(&self, limit: &RedisLimit, key: Key<'_>) -> Result<(), StoreError> {
        self.close_lease(limit, &key).await;
        self.on(limit, key, Verb::Reset).await
    }

    async fn grant(&self, limit: &RedisLimit, key: Key<'_>, units: u32) -> Result<(), StoreError> {
        self.close_lease(limit, &key).await;
        self.on(limit, key, Verb::Grant { units: units.into() }).await
    }

    async fn ban(&self, limit: &RedisLimit, key: Key<'_>, lasting: Duration) -> Result<(), StoreError> {
        let micros = u64::try_from(lasting.as_nanos().div_ceil(1_000)).unwrap_or(u64::MAX).min(LONGEST_WAIT);
        self.close_lease(limit, &key).await;
        self.on(limit, key, Verb::Ban { micros }).await
    }

    async fn leave(&self, charges: &[Charge<'_, RedisLimit>], permit: PermitId) -> Result<u32, StoreError> {
        // Slots that this node gave by itself are its own.
        let back = self.shared.local.leave(charges, permit);
        if back > 0 {
            return Ok(back);
        }
        let (parts, _) = self.parts(charges).await?;
        let back =
            self.number(Question { verb: Verb::Leave { permit: permit.number().get() }, parts }).await?;
        Ok(u32::try_from(back).unwrap_or(u32::MAX))
    }

    async fn renew(&self, charges: &[Charge<'_, RedisLimit>], permit: PermitId) -> Result<bool, StoreError> {
        let (mut parts, _) = self.parts(charges).await?;
        parts.retain(|part| matches!(part.edition.limit, Limit::Concurrency(_)));
        let holders = parts.len() as u64;
        let held =
            self.number(Question { verb: Verb::Renew { permit: permit.number().get() }, parts }).await?;
        Ok(held == holders)
    }
}

/// A question on its way.
pub(crate) struct Begun {
    keys: Vec<Vec<u8>>,
    /// `None` where nobody was asked.
    under_way: Option<UnderWay>,
}

struct UnderWay {
    ticket: Ticket,
    group: Group,
    asking: Asking,
}

/// Waits and bans are not longer than this many microseconds, some 71 years.
pub(crate) const LONGEST_WAIT: u64 = 1 << 51;

impl Part {
    /// Adds a charge on the same bucket: the less patient of the two has to be content.
    fn merge(&mut self, other: &Self) {
        self.cost += other.cost;
        if self.up_to.is_some() || other.up_to.is_some() {
            let patience =
                |part: &Self| part.up_to.unwrap_or(if part.edition.waits() { LONGEST_WAIT } else { 0 });
            self.up_to = Some(patience(self).min(patience(other)));
        }
    }
}

/// How the charges stand, from how their parts do.
pub(crate) fn set_status(standings: &[Standing], part_of: &[usize], permit: Option<u64>) -> SetStatus {
    let refused = standings.iter().any(|standing| standing.verdict >= 2);
    let permit = permit.filter(|_| !refused).and_then(NonZeroU64::new).map(PermitId::new);
    let held = permit.filter(|_| standings.iter().any(|standing| standing.slots));
    let statuses = part_of.iter().filter_map(|part| standings.get(*part)).map(|standing| {
        let status = standing.status();
        match permit {
            Some(permit) if standing.slots => status.held_by(permit),
            _ => status,
        }
    });
    SetStatus::new(statuses.collect(), held)
}

impl Standing {
    pub(crate) fn status(&self) -> Status {
        let time = Duration::from_micros(self.time);
        let decision = match self.verdict {
            0 => Decision::Allow,
            1 => Decision::Wait(time),
            2 => Decision::Deny(Retry::After(time)),
            3 => Decision::Deny(Retry::WhenReleased),
            _ => Decision::Deny(Retry::Never),
        };
        let units = |units: u64| u32::try_from(units).unwrap_or(u32::MAX);
        let status = Status::new(
            decision,
            units(self.limit),
            units(self.remaining),
            self.reset.map(Duration::from_micros),
        );
        if self.banned { status.said_by(DecidedBy::Ban) } else { status }
    }
}

impl Verb {
    const fn permit(&self) -> Option<u64> {
        match self {
            Self::Check { permit } | Self::Reserve { permit } | Self::Hold { permit, .. } => Some(*permit),
            _ => None,
        }
    }
}

fn unavailable(error: LinkError) -> StoreError {
    match error {
        error if error.may_have_run() => StoreError::Unanswered { why: error.to_string() },
        error => StoreError::Unavailable { why: error.to_string() },
    }
}

pub(crate) fn nonsense() -> StoreError {
    StoreError::Unanswered { why: "Redis answered something that is no answer to the question".to_owned() }
}

fn whole(value: &Value) -> Result<u64, StoreError> {
    let text = match value {
        Value::BulkString(bytes) => std::str::from_utf8(bytes).ok(),
        Value::Int(integer) => return u64::try_from(*integer).map_err(|_| nonsense()),
        _ => None,
    };
    text.and_then(|text| text.parse().ok()).ok_or_else(nonsense)
}
