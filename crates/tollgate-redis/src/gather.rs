//! Questions that come at the same time travel together.
//!
//! A question that finds no call under way goes at once, by itself: its asker carries it, with no task in between. Otherwise it
//! waits for a call to come back, or for [enough](Company) others, and goes with all that came meanwhile: under load one call carries
//! up to [`MOST_CHARGES`] charges, so that Redis reads and writes a hot key once for all of them and is never held up for long.
//! Such a call is made by a task, a [`flight`](crate::flight), so that nobody depends on another's being polled; it lets those
//! who were just answered ask again before it takes off once more.
//!
//! A question whose asker is gone when the answer comes has charged for nothing: that is taken back, unless the asker said
//! that it went on without the answer.
//!
//! Up to two calls are under way at once, four where a call takes longer than 100 us, and with at least 16 (or 8) charges in
//! each, so that the server works while this node hands out answers. A call that 16 or more wait for is polled again and
//! again during its first 50 us, as long as calls come back within 100 us and the machine has a second core, because
//! sleeping and waking takes as long as such a call; other ready tasks run first each time. Where a call takes longer than 2
//! ms, no question waits for another call.

use crate::{
    flight::{Carried, Carrying, Flight},
    hash::Quick,
    limit::Edition,
    link::{Group, Link, LinkError},
    question::{GiveBackReason, Question, Told, Verb},
    slot::{Asked, Heard},
};
use std::{
    collections::{HashMap, VecDeque},
    future::Future,
    pin::Pin,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    task::{Context, Poll, ready},
    thread::available_parallelism,
    time::{Duration, Instant},
};
use tollgate::{Clock, ManualClock};

/// Where a call takes longer than this, others are under way meanwhile: as long as both ends have something to do nobody waits
/// for a core to wake up, or for the network.
const NEAR: Duration = Duration::from_micros(100);
/// Where it takes this long, waiting for one costs more than another.
pub(crate) const FAR: Duration = Duration::from_millis(2);
/// Charges in one call.
const MOST_CHARGES: usize = 64;

/// Whether calls may be busy-polled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BusyPoll {
    On,
    Off,
}

pub(crate) struct Gatherer {
    link: Arc<Link>,
    lanes: Mutex<HashMap<Group, Lane, Quick>>,
    /// Passed in by tests; else the server's own time counts.
    clock: Option<ManualClock>,
    /// The server's time when it last told us, in microseconds, and when that was. Our own wall clock may be off.
    told: Mutex<Option<(u64, Instant)>>,
    /// How long the last call took, in microseconds.
    took: AtomicU64,
    busy_poll: BusyPoll,
    /// Whether somebody else can run while a core looks for an answer.
    has_cores: bool,
    /// Who wants to know how long calls take.
    heard: OnceLock<Box<dyn Fn(Duration) + Send + Sync>>,
}

/// What waits for one of the calls that its keys can be in.
#[derive(Default)]
struct Lane {
    waiting: VecDeque<Arc<Asked>>,
    /// Tasks that make calls.
    flying: usize,
    /// Those of them whose call is under way.
    aloft: usize,
    /// Askers that carry their own question.
    carrying: usize,
    /// Whether the last call had company: then there will be some again.
    is_busy: bool,
}

/// How questions share calls.
#[derive(Clone, Copy, Debug)]
struct Company {
    /// Calls under way at once, for keys that can be in one call.
    abreast: usize,
    /// So many questions must wait before another sets out beside those under way: many in one call cost less than few in two.
    enough: usize,
    /// So many at least are in each of several calls that those who wait are shared between.
    least: usize,
}

impl Company {
    const NEAR: Self = Self { abreast: 2, enough: 32, least: 16 };
    const APART: Self = Self { abreast: 4, enough: 16, least: 8 };
    const FAR: Self = Self { abreast: 16, enough: 1, least: MOST_CHARGES };

    /// How many of those who wait go in one call, while so many calls are under way.
    fn share(self, waiting: usize, aloft: usize) -> usize {
        let calls = (waiting / self.least).min(self.abreast.saturating_sub(aloft));
        waiting.div_ceil(calls.max(1))
    }
}

/// Who makes the call, where a question goes by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Carrier {
    /// Whoever awaits the answer: nothing is sent before that.
    Asker,
    /// A task, from now on.
    Task,
}

/// A question under way.
pub(crate) struct Asking<'a> {
    gatherer: &'a Arc<Gatherer>,
    group: Group,
    asked: Arc<Asked>,
    /// The call, where the asker makes it; and whether it has begun to.
    carried: Option<Carried>,
    is_sent: bool,
}

impl Gatherer {
    pub(crate) fn new(link: Arc<Link>, clock: Option<ManualClock>, busy_poll: BusyPoll) -> Self {
        Self {
            link,
            lanes: Mutex::default(),
            clock,
            told: Mutex::default(),
            took: AtomicU64::new(0),
            busy_poll,
            has_cores: available_parallelism().is_ok_and(|cores| cores.get() > 1),
            heard: OnceLock::new(),
        }
    }

    pub(crate) const fn link(&self) -> &Arc<Link> {
        &self.link
    }

    pub(crate) const fn clock(&self) -> Option<&ManualClock> {
        self.clock.as_ref()
    }

    /// Asks a question whose parts are all of one group.
    pub(crate) fn ask(self: &Arc<Self>, group: Group, question: Question, carrier: Carrier) -> Asking<'_> {
        let asked = Arc::new(Asked::new(question));
        let (mut is_carried, mut sets_out) = (false, false);
        {
            let mut lanes = self.lanes();
            let lane = lanes.entry(group).or_default();
            if lane.is_empty() && carrier == Carrier::Asker {
                lane.carrying += 1;
                is_carried = true;
            } else {
                lane.waiting.push_back(Arc::clone(&asked));
                let Company { abreast, enough, .. } = self.company();
                sets_out = lane.flying == 0 || (lane.flying < abreast && lane.waiting.len() >= enough);
                lane.flying += usize::from(sets_out);
            }
        }
        if sets_out {
            tokio::spawn(Flight::new(self, group).fly());
        }
        let carry = || Box::pin(Carrying::new(self, group).carry(Arc::clone(&asked))) as Carried;
        let carried = is_carried.then(carry);
        Asking { gatherer: self, group, asked, carried, is_sent: false }
    }

    /// Asks without an interest in the answer.
    pub(crate) fn tell(self: &Arc<Self>, group: Group, question: Question) {
        self.ask(group, question, Carrier::Task).keep();
    }

    /// Who goes now; if nobody does, the flight is over.
    pub(crate) fn board(self: &Arc<Self>, group: Group) -> Vec<Arc<Asked>> {
        let company = self.company();
        let mut lanes = self.lanes();
        let Some(lane) = lanes.get_mut(&group) else { return Vec::new() };
        // A few who wait are taken along by the flight that comes back next.
        let is_needed = lane.flying <= 1 || lane.waiting.len() >= company.enough.min(company.least);
        let share = company.share(lane.waiting.len(), lane.aloft);
        let next = if is_needed { lane.next_call(share) } else { Vec::new() };
        lane.is_busy = if is_needed { next.len() > 1 } else { lane.is_busy };
        lane.aloft += usize::from(!next.is_empty());
        if next.is_empty() {
            // Saturating: a lane that is gone with a runtime, and made anew, does not know who flew in it.
            lane.flying = lane.flying.saturating_sub(1);
            if lane.is_empty() {
                lanes.remove(&group);
            }
        } else if !lane.waiting.is_empty() && lane.flying < company.abreast {
            lane.flying += 1;
            drop(lanes);
            tokio::spawn(Flight::new(self, group).fly());
        }
        next
    }

    /// Whether a call that so many wait for is worth a core that does nothing else: it comes back soon, and what the core could
    /// have slept is little for each of them.
    pub(crate) fn is_worth_polling(&self, aboard: usize) -> bool {
        self.busy_poll == BusyPoll::On
            && self.has_cores
            && aboard >= Company::NEAR.least
            && self.last_took() <= NEAR
    }

    /// A call has come back.
    pub(crate) fn landed(&self, group: Group) {
        if let Some(lane) = self.lanes().get_mut(&group) {
            lane.aloft = lane.aloft.saturating_sub(1);
        }
    }

    /// Whether those who go next should be waited for: who travelled in company comes in company.
    pub(crate) fn is_busy(&self, group: Group) -> bool {
        self.lanes().get(&group).is_some_and(|lane| lane.is_busy)
    }

    /// An asker has carried its question there.
    pub(crate) fn carried(&self, group: Group) {
        let mut lanes = self.lanes();
        if let Some(lane) = lanes.get_mut(&group) {
            lane.carrying = lane.carrying.saturating_sub(1);
            if lane.is_empty() {
                lanes.remove(&group);
            }
        }
    }

    /// A flight ended with its runtime. Others that fly in this lane find it gone, and land; those who waited are told.
    pub(crate) fn crash(&self, group: Group) {
        let lane = self.lanes().remove(&group);
        let waiting = lane.map(|lane| lane.waiting).unwrap_or_default();
        waiting.into_iter().for_each(|asked| asked.fail(LinkError::shutting_down()));
    }

    /// Lets those set out who wait, as far as there may be calls abreast.
    pub(crate) fn set_out(self: &Arc<Self>, group: Group) {
        let mut flights = 0;
        if let Some(lane) = self.lanes().get_mut(&group) {
            let charges: usize = lane.waiting.iter().map(|asked| asked.question.parts.len()).sum();
            flights = charges.div_ceil(MOST_CHARGES).min(Company::FAR.abreast.saturating_sub(lane.flying));
            lane.flying += flights;
        }
        for _ in 0..flights {
            tokio::spawn(Flight::new(self, group).fly());
        }
    }

    /// Hands an answer over; where nobody is there for it any more, what was charged comes back.
    pub(crate) fn deliver(self: &Arc<Self>, group: Group, asked: &Asked, told: Told, decided: u64) {
        if let Some(Ok(heard)) = asked.put(Ok(Heard { told, decided })) {
            self.undo(group, &asked.question, heard);
        }
    }

    /// Takes back what was charged for nobody.
    fn undo(self: &Arc<Self>, group: Group, question: &Question, heard: Heard) {
        if tokio::runtime::Handle::try_current().is_err() {
            return;
        }
        if let Some(undo) = undone(question, heard) {
            self.tell(group, undo);
        }
    }

    /// Where the current and the next window of a calendar are, in microseconds: start, end, end.
    pub(crate) fn bounds(&self, edition: &Edition) -> Option<[u64; 3]> {
        let calendar = edition.calendar.as_ref()?;
        let (start, end) = calendar.window(self.server_time().saturating_mul(1_000));
        let (_, then) = calendar.window(end);
        Some([start, end, then].map(|nanos| nanos / 1_000))
    }

    /// Asks what time it is there, where questions need to know and nobody has told us yet. What day it is only the server
    /// knows; where it does not say, the call will not be answered either.
    pub(crate) async fn know_the_time(&self, group: Group, asked: &[Arc<Asked>]) {
        let mut parts = asked.iter().flat_map(|asked| &asked.question.parts);
        let is_needed = parts.any(|part| part.edition.calendar.is_some());
        if is_needed
            && self.clock.is_none()
            && self.told().is_none()
            && let Ok(time) = self.link.time(group).await
        {
            self.hear(time);
        }
    }

    /// The server's time in microseconds, as far as we know: a little behind, never ahead.
    pub(crate) fn server_time(&self) -> u64 {
        match (&self.clock, self.told()) {
            (Some(clock), _) => now_of(clock),
            (None, Some((time, then))) => time.saturating_add(micros_since(then)),
            (None, None) => 0,
        }
    }

    /// The time that tests pass in.
    pub(crate) fn passed_in(&self) -> Option<u64> {
        self.clock.as_ref().map(now_of)
    }

    fn told(&self) -> Option<(u64, Instant)> {
        *self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Remembers what time it is there.
    pub(crate) fn hear(&self, time: u64) {
        *self.told.lock().unwrap_or_else(PoisonError::into_inner) = Some((time, Instant::now()));
    }

    /// Remembers how long a call took.
    pub(crate) fn took(&self, time: Duration) {
        self.took.store(u64::try_from(time.as_micros()).unwrap_or(u64::MAX), Relaxed);
        if let Some(hear) = self.heard.get() {
            hear(time);
        }
    }

    /// Tells how long every call takes from now on; the first who asks is told.
    pub(crate) fn on_call(&self, hear: Box<dyn Fn(Duration) + Send + Sync>) {
        // Whoever was there first stays.
        let _ = self.heard.set(hear);
    }

    pub(crate) fn last_took(&self) -> Duration {
        Duration::from_micros(self.took.load(Relaxed))
    }

    fn company(&self) -> Company {
        match self.last_took() {
            took if took <= NEAR => Company::NEAR,
            took if took <= FAR => Company::APART,
            _ => Company::FAR,
        }
    }

    fn lanes(&self) -> MutexGuard<'_, HashMap<Group, Lane, Quick>> {
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Lane {
    fn is_empty(&self) -> bool {
        self.flying == 0 && self.carrying == 0 && self.waiting.is_empty()
    }

    fn next_call(&mut self, most: usize) -> Vec<Arc<Asked>> {
        // Whoever is gone already need not be asked for.
        self.waiting.retain(|asked| !asked.is_forgone());
        let mut charges = 0;
        let mut fits = |asked: &Arc<Asked>| {
            charges += asked.question.parts.len();
            charges <= MOST_CHARGES
        };
        // A set that is larger by itself goes alone.
        let count = self.waiting.iter().take(most).map_while(|asked| fits(asked).then_some(())).count();
        self.waiting.drain(..count.max(1).min(self.waiting.len())).collect()
    }
}

impl Asking<'_> {
    /// Says that what is charged stays charged, whether the answer is heard or not.
    pub(crate) fn keep(&self) {
        self.asked.keep();
    }
}

impl Future for Asking<'_> {
    type Output = Result<Told, LinkError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.is_sent = true;
        if let Some(carried) = &mut self.carried {
            ready!(carried.as_mut().poll(context));
            self.carried = None;
        }
        self.asked.poll(context).map(|answer| answer.map(|heard| heard.told))
    }
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        // From here on the other end finds nobody; what it had sent before that is here.
        if let Some(Ok(heard)) = self.asked.leave() {
            self.gatherer.undo(self.group, &self.asked.question, heard);
        }
        // What is under way goes on: its answer has to be heard, so that what it charged can be taken back.
        if let Some(carried) = self.carried.take()
            && self.is_sent
            && tokio::runtime::Handle::try_current().is_ok()
        {
            tokio::spawn(carried);
        }
    }
}

/// What takes back a charge that was made and that nobody heard of.
fn undone(question: &Question, heard: Heard) -> Option<Question> {
    let Heard { told: Told::Statuses(standings), decided } = heard else { return None };
    if standings.iter().any(|standing| standing.verdict >= 2) {
        return None;
    }
    let verb = match question.verb {
        Verb::Check { permit } => Verb::TakeBack { permit, since: decided },
        Verb::Reserve { .. } => Verb::GiveBack {
            taken: standings.into_iter().map(|standing| (standing.taken, u64::from(u32::MAX))).collect(),
            reason: GiveBackReason::Unused,
        },
        // Leases end by themselves.
        Verb::Lease { .. } => Verb::TakeBack { permit: 0, since: decided },
        Verb::Hold { id, .. } => Verb::Abandon { id },
        _ => return None,
    };
    Some(Question { verb, parts: question.parts.clone() })
}

fn now_of(clock: &ManualClock) -> u64 {
    clock.now().as_nanos() / 1_000
}

fn micros_since(then: Instant) -> u64 {
    u64::try_from(then.elapsed().as_micros()).unwrap_or(u64::MAX)
}
