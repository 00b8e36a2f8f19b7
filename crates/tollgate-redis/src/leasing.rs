//! Leases in use: decides from the ledger what it can, asks Redis for the rest, and renews in the background.
//!
//! Only sets whose every limit can be leased, and that do not wait, come here; all others are asked exactly, and the script
//! counts for them what is leased. The ledger ([`lease`](crate::lease)) is pure; this is its hands and feet.

use crate::{
    asking::nonsense,
    lease::{Answer, BucketId, Call, Ledger, Local, Need, Terms},
    limit::{Edition, RedisLimit},
    purse::{self, Purse},
    question::{Part, Parts, Question, Standing, Standings, Verb},
    recent,
    store::RedisStore,
};
use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicU64, Ordering::SeqCst},
    },
    time::Duration,
};
use tokio::sync::Notify;
use tollgate::{
    Charge, DecidedBy, Decision, Key, Numbers, SetStatus, Status, StoreError, Time, WindowNumbers,
};

/// What a store keeps to lease.
pub(crate) struct Leasing {
    desk: Mutex<Desk>,
    /// Something is due in the background.
    due: Arc<Notify>,
    secret: [u64; 2],
    life: Duration,
    /// Goes up when a lease is settled: what threads have in hand is of the past then.
    era: AtomicU64,
}

struct Desk {
    ledger: Ledger,
    /// Which bucket is which, for calls that nobody's question makes.
    parts: HashMap<BucketId, Part>,
    /// Whether somebody looks after what is due.
    is_kept: bool,
}

/// So many buckets may be named before those are forgotten that the ledger has not.
const MOST_NAMES: usize = 200_000;

impl Leasing {
    pub(crate) fn new(life: Duration, draw: impl Fn() -> u64) -> Self {
        let terms = Terms::new(life);
        let desk = Desk { ledger: Ledger::new(terms, draw()), parts: HashMap::new(), is_kept: false };
        Self {
            desk: Mutex::new(desk),
            due: Arc::default(),
            secret: [draw(), draw()],
            life: terms.life(),
            era: AtomicU64::new(0),
        }
    }

    fn desk(&self) -> MutexGuard<'_, Desk> {
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn bucket(&self, limit: &RedisLimit, key: &Key<'_>) -> BucketId {
        recent::bucket([self.secret[0], limit.named.number], key, || {
            let [high, low] = key.hash(self.secret, limit.named.number);
            BucketId(u128::from(high) << 64 | u128::from(low))
        })
    }
}

impl RedisStore {
    /// Decides a set by leases, where it can be; `None` where it is to be asked exactly.
    pub(crate) fn decide_by_lease(&self, charges: &[Charge<'_, RedisLimit>]) -> Option<SetStatus> {
        let leasing = self.shared.leasing.as_ref()?;
        let now = self.now();
        if let [charge] = charges {
            let need = self.need(leasing, charge)?;
            let era = leasing.era.load(SeqCst);
            let in_hand = purse::spend(need.bucket, need.cost, era, || now);
            return match in_hand {
                Some(status) => Some(SetStatus::one(status)),
                None => leasing.decide_and_take(now, need),
            };
        }
        let needs = self.needs(leasing, charges)?;
        leasing.decide(now, &needs)
    }

    /// The needs of a set that may be leased: no two of one bucket, none that waits.
    fn needs(&self, leasing: &Leasing, charges: &[Charge<'_, RedisLimit>]) -> Option<Vec<Need>> {
        let needs: Vec<Need> =
            charges.iter().map(|charge| self.need(leasing, charge)).collect::<Option<_>>()?;
        let is_again = |place: usize| needs[..place].iter().any(|need| need.bucket == needs[place].bucket);
        (!needs.is_empty() && !(0..needs.len()).any(is_again)).then_some(needs)
    }

    fn need(&self, leasing: &Leasing, charge: &Charge<'_, RedisLimit>) -> Option<Need> {
        let waits = charge.up_to.is_some_and(|up_to| !up_to.is_zero());
        if waits
            || charge.limit.is_exact
            || !charge.limit.named.is_leasable()
            || charge.limit.named.store != self.shared.id()
        {
            return None;
        }
        Some(Need { bucket: leasing.bucket(charge.limit, &charge.key), cost: charge.cost })
    }

    /// Asks Redis about a set whose buckets may be leased, with a report and a wish for each. `None` where that is not so.
    pub(crate) async fn ask_and_lease(
        &self,
        charges: &[Charge<'_, RedisLimit>],
    ) -> Option<Result<SetStatus, StoreError>> {
        let leasing = self.shared.leasing.as_ref()?;
        let needs = self.needs(leasing, charges)?;
        let parts = match self.parts(charges).await {
            Ok((parts, _)) => parts,
            Err(error) => return Some(Err(error)),
        };
        // Two handles of one limit are one bucket: that is for the exact way to add up.
        if parts.len() != needs.len() {
            return None;
        }
        self.only_group(&parts)?;
        let now = self.now();
        let call = {
            let mut desk = leasing.desk();
            desk.name(now, needs.iter().zip(&parts).map(|(need, part)| (need.bucket, part)));
            let call = desk.ledger.question(now, &needs);
            leasing.end_purses(&desk, std::slice::from_ref(&call));
            call
        };
        let standings = self.lend(leasing, call, parts).await;
        let all: Vec<usize> = (0..needs.len()).collect();
        Some(standings.map(|standings| crate::status::set_status(&standings, &all, None)))
    }

    /// Makes a call, and tells the ledger what came of it, whatever that was.
    async fn lend(&self, leasing: &Leasing, call: Call, parts: Parts) -> Result<Standings, StoreError> {
        let mut open = Open { leasing, call: Some(call) };
        let question =
            open.call.as_ref().map(|call| self.question(leasing, call, parts)).ok_or_else(nonsense)?;
        let standings = self.ask(question).await?.statuses()?;
        if let Some(call) = open.call.take() {
            let answers: Vec<Answer> = standings.iter().map(Standing::lent_as_told).collect();
            leasing.desk().ledger.answered(&call, self.now(), &answers);
            self.keep_leases(leasing);
        }
        Ok(standings)
    }

    fn question(&self, leasing: &Leasing, call: &Call, mut parts: Parts) -> Question {
        for (part, line) in parts.iter_mut().zip(&call.lines) {
            (part.cost, part.up_to) = (line.cost.into(), None);
        }
        let verb = Verb::Lease {
            shares: u64::from(self.shared.settings.nodes) * 4,
            micros: leasing.life.as_micros() as u64,
            lines: call.lines.clone(),
        };
        Question { verb, parts }
    }

    /// Sees to it that somebody looks after what is due, and knows that there is something.
    fn keep_leases(&self, leasing: &Leasing) {
        let begins = !std::mem::replace(&mut leasing.desk().is_kept, true);
        if begins {
            tokio::spawn(keep(Arc::downgrade(&self.shared), Arc::clone(&leasing.due)));
        } else {
            leasing.due.notify_one();
        }
    }

    /// Makes the calls that are due, and says when the next will be.
    fn call_what_is_due(&self, leasing: &Leasing) -> Option<Time> {
        let now = self.now();
        let mut desk = leasing.desk();
        let calls = desk.ledger.due(now);
        leasing.end_purses(&desk, &calls);
        let next = desk.ledger.next_due();
        self.send(&desk, calls);
        next
    }

    fn send(&self, desk: &Desk, calls: Vec<Call>) {
        for call in calls {
            let parts: Option<Parts> =
                call.lines.iter().map(|line| desk.parts.get(&line.bucket).cloned()).collect();
            let Some(parts) = parts else { continue };
            let store = self.clone();
            tokio::spawn(async move {
                if let Some(leasing) = &store.shared.leasing {
                    // An error has told the ledger already, and the breaker.
                    let _ = store.lend(leasing, call, parts).await;
                }
            });
        }
    }

    /// Forgets what this node was refused at a bucket: something happened there that may have made room.
    pub(crate) fn forget_refusal(&self, limit: &RedisLimit, key: &Key<'_>) {
        if let Some(leasing) = &self.shared.leasing {
            let bucket = leasing.bucket(limit, key);
            leasing.desk().ledger.forget_refusal(bucket);
        }
    }

    /// What an operator does to a key: this node has no lease of it then, and none afterwards that it took meanwhile.
    pub(crate) async fn by_hand(
        &self,
        limit: &RedisLimit,
        key: Key<'_>,
        verb: Verb,
    ) -> Result<(), StoreError> {
        self.close_lease(limit, &key).await;
        let done = self.on(limit, key, verb).await;
        self.close_lease(limit, &key).await;
        done
    }

    /// Lets go of a bucket's leases: an operator changes something there that they would not know of.
    async fn close_lease(&self, limit: &RedisLimit, key: &Key<'_>) {
        let Some(leasing) = &self.shared.leasing else { return };
        let bucket = leasing.bucket(limit, key);
        let (line, part) = {
            let mut desk = leasing.desk();
            let closed = (desk.ledger.close(self.now(), bucket), desk.parts.remove(&bucket));
            leasing.empty_purses(&desk);
            closed
        };
        if let (Some(line), Some(part)) = (line, part) {
            let call = Call { asked: self.now(), lines: vec![line] };
            let _ = self.lend(leasing, call, [part].into()).await;
        }
    }

    /// Lets go of all leases: the numbers changed.
    pub(crate) fn close_leases(&self) {
        let Some(leasing) = &self.shared.leasing else { return };
        let mut desk = leasing.desk();
        let calls = desk.ledger.drop_all(self.now());
        leasing.empty_purses(&desk);
        if tokio::runtime::Handle::try_current().is_ok() {
            self.send(&desk, calls);
        }
    }
}

impl Leasing {
    /// Decides one need, and fills the thread's purse where the lease has plenty.
    fn decide_and_take(&self, now: Time, need: Need) -> Option<SetStatus> {
        let set = self.decide(now, &[need])?;
        if set.is_allow() && need.cost == 1 {
            let mut desk = self.desk();
            let taken = desk.ledger.take_ahead(now, need.bucket);
            // Read while nothing can be settled.
            let era = self.era.load(SeqCst);
            drop(desk);
            if let (Some((units, until)), [status]) = (taken, set.statuses()) {
                purse::fill(need.bucket, Purse { units, until, era, status: *status });
            }
        }
        Some(set)
    }

    /// Ends what threads have in hand, if it may be of leases that these calls settle: the server is about to be told that it
    /// was used.
    fn end_purses(&self, desk: &Desk, calls: &[Call]) {
        let settles = |call: &Call| call.lines.iter().any(|line| line.settle.iter().any(Option::is_some));
        if calls.iter().any(settles) {
            self.empty_purses(desk);
        }
    }

    /// Ends what threads have in hand. Whoever holds the desk calls this after the leases are out of the ledger: nobody can
    /// fill a purse from them any more.
    fn empty_purses(&self, _desk: &Desk) {
        self.era.fetch_add(1, SeqCst);
    }

    fn decide(&self, now: Time, needs: &[Need]) -> Option<SetStatus> {
        let mut desk = self.desk();
        let decision = match desk.ledger.decide(now, needs) {
            Local::Allow { wake } => {
                if wake {
                    self.due.notify_one();
                }
                Decision::Allow
            }
            Local::Deny(retry) => Decision::Deny(retry),
            Local::Ask => return None,
        };
        if let [need] = needs {
            return desk.status(now, need, decision).map(SetStatus::one);
        }
        // Of a refused set each says for itself whether it has room.
        let own = |need: &Need| match decision {
            Decision::Deny(_) => desk.ledger.refusal(now, need).map_or(Decision::Allow, Decision::Deny),
            decision => decision,
        };
        let statuses =
            needs.iter().map(|need| desk.status(now, need, own(need))).collect::<Option<Vec<_>>>()?;
        drop(desk);
        Some(SetStatus::new(statuses, None))
    }
}

impl Desk {
    /// How a need stands in a set that was decided so.
    fn status(&self, now: Time, need: &Need, decision: Decision) -> Option<Status> {
        let known = self.ledger.standing(now, need.bucket)?;
        Some(Status::new(decision, known.limit, known.remaining, known.reset_after).said_by(DecidedBy::Lease))
    }

    /// Remembers which bucket is which.
    fn name<'a>(&mut self, now: Time, parts: impl Iterator<Item = (BucketId, &'a Part)>) {
        if self.parts.len() >= MOST_NAMES {
            let ledger = &self.ledger;
            self.parts.retain(|bucket, _| ledger.standing(now, *bucket).is_some());
        }
        for (bucket, part) in parts {
            self.parts.insert(bucket, part.clone());
        }
    }
}

impl Drop for Leasing {
    fn drop(&mut self) {
        // Whoever looks after it finds nothing any more, and ends.
        self.due.notify_one();
    }
}

/// Somebody looks after what is due: until this is dropped, with a runtime that ends if need be.
struct Keeping(Weak<crate::store::Shared>);

impl Drop for Keeping {
    fn drop(&mut self) {
        if let Some(shared) = self.0.upgrade()
            && let Some(leasing) = &shared.leasing
        {
            leasing.desk().is_kept = false;
        }
    }
}

/// A call under way: dropped without an answer, it failed.
struct Open<'a> {
    leasing: &'a Leasing,
    call: Option<Call>,
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        if let Some(call) = &self.call {
            self.leasing.desk().ledger.failed(call);
        }
    }
}

/// Looks after what is due as long as the store lives.
async fn keep(shared: Weak<crate::store::Shared>, due: Arc<Notify>) {
    let _keeping = Keeping(Weak::clone(&shared));
    loop {
        let Some(shared) = shared.upgrade() else { return };
        let store = RedisStore { shared };
        let Some(leasing) = &store.shared.leasing else { return };
        let next = store.call_what_is_due(leasing);
        let sleep = next.map(|at| store.sleep(at));
        drop(store);
        match sleep {
            Some(sleep) => tokio::select! {
                () = due.notified() => {}
                () = sleep => {}
            },
            None => due.notified().await,
        }
    }
}

impl Standing {
    /// What the ledger wants to know of it.
    pub(crate) fn lent_as_told(&self) -> Answer {
        Answer {
            denied: match self.status().decision() {
                Decision::Deny(retry) => Some(retry),
                _ => None,
            },
            limit: u32::try_from(self.limit).unwrap_or(u32::MAX),
            remaining: u32::try_from(self.remaining).unwrap_or(u32::MAX),
            reset_after: self.reset.map(Duration::from_micros),
            leased: u32::try_from(self.lent.0).unwrap_or(u32::MAX),
            life: Duration::from_micros(self.lent.1),
        }
    }
}

/// Whether a limit's units can be taken ahead.
pub(crate) fn is_leasable(edition: &Edition) -> bool {
    match edition.limit.numbers() {
        Numbers::Bucket(it) => it.books,
        Numbers::FixedWindow { windows, .. } => {
            matches!(windows, WindowNumbers::Epoch(_) | WindowNumbers::FirstHit(_))
        }
        Numbers::SlidingCounter { .. } => true,
        Numbers::Log { precision, .. } => precision.is_some(),
        _ => false,
    }
}
