//! Questions that come at the same time travel together.
//!
//! A question that finds no call under way goes at once, so that nobody waits for company. Otherwise it waits for the call to
//! come back, or for [`ENOUGH`] others, and goes with all that came meanwhile: under load one call carries up to
//! [`MOST_CHARGES`] charges, so that Redis reads and writes a hot key once for all of them and is never held up for long.
//!
//! A question whose asker is gone when the answer comes has charged for nothing: that is taken back, unless the asker said
//! that it went on without the answer.

use crate::{
    call::Call,
    limit::Edition,
    link::{Group, Link, LinkError},
    question::{Question, Told, Verb},
    store::whole,
};
use redis::Value;
use std::{
    collections::{HashMap, VecDeque},
    future::Future,
    pin::{Pin, pin},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    task::{Context, Poll, ready},
    time::{Duration, Instant},
};
use tokio::sync::oneshot;
use tollgate::{Clock, ManualClock};

/// Calls under way at once, for keys that can be in one call; and so many questions must wait before another sets out beside those
/// under way: many in one call cost less than few in two.
const ABREAST: usize = 2;
const ENOUGH: usize = 32;
/// Where a call takes longer than this, waiting for one costs more than another: then they set out at once, up to so many.
const FAR: Duration = Duration::from_millis(2);
const ABREAST_FAR: usize = 16;
/// Charges in one call.
const MOST_CHARGES: usize = 64;

pub(crate) struct Gatherer {
    link: Arc<Link>,
    lanes: Mutex<HashMap<Group, Lane>>,
    /// Passed in by tests; else the server's own time counts.
    clock: Option<ManualClock>,
    /// The server's time when it last told us, in microseconds, and when that was. Our own wall clock may be off.
    told: Mutex<Option<(u64, Instant)>>,
    /// Whether the last call took long.
    is_far: AtomicBool,
}

/// What waits for one of the calls that its keys can be in.
#[derive(Default)]
struct Lane {
    waiting: VecDeque<Asked>,
    flying: usize,
}

struct Asked {
    question: Question,
    answer: oneshot::Sender<Result<Heard, LinkError>>,
    kept: Arc<AtomicBool>,
}

/// An answer on its way to whoever asked, with what it takes to undo it.
struct Heard {
    told: Told,
    question: Question,
    /// When the server decided.
    decided: u64,
}

/// A question under way.
pub(crate) struct Asking {
    gatherer: Arc<Gatherer>,
    group: Group,
    answer: oneshot::Receiver<Result<Heard, LinkError>>,
    kept: Arc<AtomicBool>,
}

impl Gatherer {
    pub(crate) fn new(link: Arc<Link>, clock: Option<ManualClock>) -> Self {
        Self { link, lanes: Mutex::default(), clock, told: Mutex::default(), is_far: AtomicBool::new(false) }
    }

    pub(crate) const fn link(&self) -> &Arc<Link> {
        &self.link
    }

    pub(crate) const fn clock(&self) -> Option<&ManualClock> {
        self.clock.as_ref()
    }

    /// Asks a question whose parts are all of one group.
    pub(crate) fn ask(self: &Arc<Self>, group: Group, question: Question) -> Asking {
        let (sender, answer) = oneshot::channel();
        let kept = Arc::new(AtomicBool::new(false));
        let asked = Asked { question, answer: sender, kept: Arc::clone(&kept) };
        let flight = {
            let mut lanes = self.lanes();
            let lane = lanes.entry(group).or_default();
            lane.waiting.push_back(asked);
            let (abreast, enough) = self.company();
            if lane.flying == 0 || (lane.flying < abreast && lane.waiting.len() >= enough) {
                lane.flying += 1;
                Some(lane.next_call())
            } else {
                None
            }
        };
        if let Some(asked) = flight {
            tokio::spawn(Arc::clone(self).fly(group, asked));
        }
        Asking { gatherer: Arc::clone(self), group, answer, kept }
    }

    /// Makes calls as long as somebody waits.
    async fn fly(self: Arc<Self>, group: Group, mut asked: Vec<Asked>) {
        let mut flight = Flight { gatherer: &self, group, has_landed: false };
        while !asked.is_empty() {
            let began = Instant::now();
            self.answer(group, asked).await;
            self.is_far.store(began.elapsed() > FAR, Relaxed);
            asked = self.land(group);
        }
        flight.has_landed = true;
    }

    /// Who goes next; if nobody does, the flight is over.
    fn land(&self, group: Group) -> Vec<Asked> {
        let mut lanes = self.lanes();
        let Some(lane) = lanes.get_mut(&group) else { return Vec::new() };
        let next = lane.next_call();
        if next.is_empty() {
            lane.flying -= 1;
            if lane.flying == 0 {
                lanes.remove(&group);
            }
        }
        next
    }

    async fn answer(self: &Arc<Self>, group: Group, asked: Vec<Asked>) {
        let questions: Vec<&Question> = asked.iter().map(|asked| &asked.question).collect();
        let mut parts = questions.iter().flat_map(|question| &question.parts);
        if self.clock.is_none() && self.told().is_none() && parts.any(|part| part.edition.calendar.is_some())
        {
            self.ask_the_time(group).await;
        }
        let call = Call::new(&questions, self.clock.as_ref().map(now_of), |edition| self.bounds(edition));
        let told = match self.make(group, &call).await {
            Ok(value) => call.read(value, &questions).map_err(|_| {
                self.link.distrust(group);
                LinkError::Unanswered { why: "the answer is not one of the script's".into() }
            }),
            Err(error) => Err(error),
        };
        match told {
            Ok((now, told)) => {
                self.hear(now);
                for (asked, told) in asked.into_iter().zip(told) {
                    self.deliver(group, asked, told, now);
                }
            }
            Err(error) => {
                for asked in asked {
                    let _ = asked.answer.send(Err(error.clone()));
                }
            }
        }
    }

    /// Makes a call. Where it takes long, whoever waits for it sets out beside it.
    async fn make(self: &Arc<Self>, group: Group, call: &Call) -> Result<Value, LinkError> {
        let mut call = pin!(self.link.call(group, &call.keys, &call.argument));
        match tokio::time::timeout(FAR, &mut call).await {
            Ok(answer) => answer,
            Err(_) => {
                self.is_far.store(true, Relaxed);
                self.set_out(group);
                call.await
            }
        }
    }

    /// Lets those set out who wait, as far as there may be calls abreast.
    fn set_out(self: &Arc<Self>, group: Group) {
        let mut calls = Vec::new();
        if let Some(lane) = self.lanes().get_mut(&group) {
            while lane.flying < ABREAST_FAR && !lane.waiting.is_empty() {
                let asked = lane.next_call();
                if !asked.is_empty() {
                    lane.flying += 1;
                    calls.push(asked);
                }
            }
        }
        for asked in calls {
            tokio::spawn(Arc::clone(self).fly(group, asked));
        }
    }

    /// Hands an answer over; where nobody is there for it any more, what was charged comes back.
    fn deliver(self: &Arc<Self>, group: Group, asked: Asked, told: Told, decided: u64) {
        let Asked { question, answer, kept } = asked;
        if let Err(Ok(heard)) = answer.send(Ok(Heard { told, question, decided }))
            && !kept.load(Relaxed)
        {
            self.undo(group, heard);
        }
    }

    /// Takes back what was charged for nobody.
    fn undo(self: &Arc<Self>, group: Group, heard: Heard) {
        if tokio::runtime::Handle::try_current().is_err() {
            return;
        }
        for undo in undone(heard) {
            self.tell(group, undo);
        }
    }

    /// Asks without an interest in the answer.
    pub(crate) fn tell(self: &Arc<Self>, group: Group, question: Question) {
        self.ask(group, question).keep();
    }

    /// Where the current and the next window of a calendar are, in microseconds: start, end, end.
    fn bounds(&self, edition: &Edition) -> Option<[u64; 3]> {
        let calendar = edition.calendar.as_ref()?;
        let (start, end) = calendar.window(self.server_time().saturating_mul(1_000));
        let (_, then) = calendar.window(end);
        Some([start, end, then].map(|nanos| nanos / 1_000))
    }

    /// What day it is only the server knows. Where it does not say, the call will not be answered either.
    async fn ask_the_time(&self, group: Group) {
        if let Ok(Value::Array(time)) = self.link.plain(group, redis::cmd("TIME")).await
            && let [seconds, micros] = &time[..]
            && let (Ok(seconds), Ok(micros)) = (whole(seconds), whole(micros))
        {
            self.hear(seconds.saturating_mul(1_000_000).saturating_add(micros));
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

    fn told(&self) -> Option<(u64, Instant)> {
        *self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Remembers what time it is there.
    fn hear(&self, time: u64) {
        *self.told.lock().unwrap_or_else(PoisonError::into_inner) = Some((time, Instant::now()));
    }

    /// How many calls may be under way, and how many questions make another worth it.
    fn company(&self) -> (usize, usize) {
        if self.is_far.load(Relaxed) { (ABREAST_FAR, 1) } else { (ABREAST, ENOUGH) }
    }

    fn lanes(&self) -> MutexGuard<'_, HashMap<Group, Lane>> {
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A flight that may end with its runtime: whoever waits for it is told, and the next may fly.
struct Flight<'a> {
    gatherer: &'a Gatherer,
    group: Group,
    has_landed: bool,
}

impl Drop for Flight<'_> {
    fn drop(&mut self) {
        if !self.has_landed
            && let Some(mut lane) = self.gatherer.lanes().remove(&self.group)
        {
            // Others that fly in this lane find it gone, and land; those who waited are answered by their channel's end.
            lane.waiting.clear();
        }
    }
}

impl Lane {
    fn next_call(&mut self) -> Vec<Asked> {
        // Whoever is gone already need not be asked for.
        self.waiting.retain(|asked| !asked.answer.is_closed() || asked.kept.load(Relaxed));
        let mut charges = 0;
        let mut fits = |asked: &Asked| {
            charges += asked.question.parts.len();
            charges <= MOST_CHARGES
        };
        // A set that is larger by itself goes alone.
        let count = self.waiting.iter().map_while(|asked| fits(asked).then_some(())).count();
        self.waiting.drain(..count.max(1).min(self.waiting.len())).collect()
    }
}

impl Asking {
    /// Says that what is charged stays charged, whether the answer is heard or not.
    pub(crate) fn keep(&self) {
        self.kept.store(true, Relaxed);
    }
}

impl Future for Asking {
    type Output = Result<Told, LinkError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let answer = ready!(Pin::new(&mut self.answer).poll(context));
        let lost = |_| LinkError::Unanswered { why: "the runtime is shutting down".into() };
        Poll::Ready(answer.map_err(lost).and_then(|answer| answer.map(|heard| heard.told)))
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        // From here on the other end finds nobody; what it sent before that is still here.
        self.answer.close();
        if let Ok(Ok(heard)) = self.answer.try_recv()
            && !self.kept.load(Relaxed)
        {
            self.gatherer.undo(self.group, heard);
        }
    }
}

/// What takes back a charge that was made and that nobody heard of.
fn undone(heard: Heard) -> Vec<Question> {
    let Heard { told, question, decided } = heard;
    let Told::Statuses(standings) = told else { return Vec::new() };
    if standings.iter().any(|standing| standing.verdict >= 2) {
        return Vec::new();
    }
    match question.verb {
        Verb::Check { permit } => {
            vec![Question { verb: Verb::TakeBack { permit, since: decided }, parts: question.parts }]
        }
        Verb::Reserve { .. } => {
            let taken = standings.into_iter().map(|standing| (standing.taken, u64::from(u32::MAX))).collect();
            vec![Question { verb: Verb::GiveBack { taken }, parts: question.parts }]
        }
        // Leases end by themselves.
        Verb::Lease { .. } => {
            vec![Question { verb: Verb::TakeBack { permit: 0, since: decided }, parts: question.parts }]
        }
        Verb::Hold { id, .. } => vec![Question { verb: Verb::Abandon { id }, parts: question.parts }],
        _ => Vec::new(),
    }
}

fn now_of(clock: &ManualClock) -> u64 {
    clock.now().as_nanos() / 1_000
}

fn micros_since(then: Instant) -> u64 {
    u64::try_from(then.elapsed().as_micros()).unwrap_or(u64::MAX)
}
