//! How a question is put to Redis, and its answer heard: in time, or not at all.

use crate::{
    gather::{Asking, Carrier},
    guard::{Probe, Ticket},
    limit::RedisLimit,
    link::{Group, LinkError},
    names,
    question::{Flaw, Part, Question, Told, Verb},
    store::RedisStore,
};
use smallvec::smallvec;
use std::sync::Arc;
use tokio::time::Instant;
use tollgate::{Key, StoreError};

/// A question on its way.
pub(crate) struct Begun<'a> {
    /// One of its keys.
    key: Option<Arc<[u8]>>,
    /// `None` where nobody was asked.
    under_way: Option<UnderWay<'a>>,
}

struct UnderWay<'a> {
    ticket: Ticket,
    group: Group,
    asking: Asking<'a>,
    /// Not from when the answer is awaited: that may be after others were.
    deadline: Instant,
}

/// Somebody who listens for an answer. One who goes after half the timeout has seen enough: else callers who are less
/// patient than the store would wait for a dead server for good.
struct Listening<'a> {
    store: &'a RedisStore,
    ticket: Ticket,
    group: Group,
    key: &'a [u8],
    deadline: Instant,
    is_over: bool,
}

impl Drop for Listening<'_> {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        let timeout = self.store.shared.settings.timeout;
        let waited = timeout.saturating_sub(self.deadline.saturating_duration_since(Instant::now()));
        let is_running = tokio::runtime::Handle::try_current().is_ok();
        if is_running && waited * 2 >= timeout {
            let why = format!("no answer within {waited:?}, when its asker went");
            self.store.report(self.ticket, self.group, self.key, Some(why));
        }
    }
}

impl RedisStore {
    /// Asks a question whose parts are of one group.
    pub(crate) async fn ask_group(&self, group: Group, question: Question) -> Result<Told, StoreError> {
        self.finish(self.begin(group, question, self.deadline(), Carrier::Asker)).await
    }

    /// Until when an answer is waited for that is asked for now.
    pub(crate) fn deadline(&self) -> Instant {
        Instant::now() + self.shared.settings.timeout
    }

    /// Sends a question whose parts are of one group, to be heard with [`finish`](Self::finish); unless the server is known not
    /// to answer.
    pub(crate) fn begin(
        &self,
        group: Group,
        question: Question,
        deadline: Instant,
        carrier: Carrier,
    ) -> Begun<'_> {
        let key = question.parts.first().map(|part| Arc::clone(&part.key));
        let ticket = self.admit(group, key.as_deref().unwrap_or_default());
        let under_way = ticket.map(|ticket| UnderWay {
            ticket,
            group,
            asking: self.shared.gatherer.ask(group, question, carrier),
            deadline,
        });
        Begun { key, under_way }
    }

    /// Hears the answer, if it comes in time.
    pub(crate) async fn finish(&self, begun: Begun<'_>) -> Result<Told, StoreError> {
        let Begun { key, under_way } = begun;
        let Some(UnderWay { ticket, group, asking, deadline }) = under_way else { return Err(given_up()) };
        let key = key.as_deref().unwrap_or_default();
        match self.hear(ticket, group, key, deadline, asking).await? {
            Told::Flawed(key, flaw) => {
                let key = String::from_utf8_lossy(&key).into_owned();
                match flaw {
                    Flaw::Damaged => Err(StoreError::Damaged { key }),
                    Flaw::TooNew => Err(StoreError::TooNew { key }),
                }
            }
            told => Ok(told),
        }
    }

    /// Makes a call that is no question of the gatherer's, under the same breaker and timeout.
    pub(crate) async fn call<T, E: Into<StoreError>>(
        &self,
        group: Group,
        key: &[u8],
        call: impl Future<Output = Result<T, E>>,
    ) -> Result<T, StoreError> {
        let ticket = self.admit(group, key).ok_or_else(given_up)?;
        self.hear(ticket, group, key, self.deadline(), call).await
    }

    /// Whether a group's server may be asked. One that is known not to answer is looked after.
    fn admit(&self, group: Group, key: &[u8]) -> Option<Ticket> {
        let (link, guard) = (self.shared.gatherer.link(), &self.shared.guard);
        let home = link.home_of(group);
        let ticket = guard.admit(home);
        if ticket.is_none() {
            guard.look_after(link, home, || self.probe(group, key));
        }
        ticket
    }

    fn probe(&self, group: Group, key: &[u8]) -> Probe {
        Probe { group, key: names::probe(&self.shared.settings.prefix, key) }
    }

    /// Hears what a call says, if it does in time, and reports how the server is.
    async fn hear<T, E: Into<StoreError>>(
        &self,
        ticket: Ticket,
        group: Group,
        key: &[u8],
        deadline: Instant,
        call: impl Future<Output = Result<T, E>>,
    ) -> Result<T, StoreError> {
        let mut listening = Listening { store: self, ticket, group, key, deadline, is_over: false };
        let told = match tokio::time::timeout_at(deadline, call).await {
            Ok(told) => told.map_err(E::into),
            Err(_) => {
                let why = format!("no answer within {:?}", self.shared.settings.timeout);
                Err(StoreError::Unanswered { why })
            }
        };
        listening.is_over = true;
        // That somebody else wrote there is no fault of the server's.
        let outage = told.as_ref().err().filter(|error| is_outage(error));
        self.report(ticket, group, key, outage.map(ToString::to_string));
        told
    }

    /// Counts how a call went, and tells the breaker.
    fn report(&self, ticket: Ticket, group: Group, key: &[u8], why: Option<String>) {
        match &why {
            None => self.shared.counts.answered(),
            Some(why) => self.shared.counts.failed(why.clone()),
        }
        let probe = || self.probe(group, key);
        self.shared.guard.report(self.shared.gatherer.link(), ticket, why.as_deref(), probe);
    }

    pub(crate) async fn number(&self, question: Question) -> Result<u64, StoreError> {
        match self.ask(question).await? {
            Told::Number(number) => Ok(number),
            _ => Ok(0),
        }
    }

    /// A verb on one key.
    pub(crate) async fn on(&self, limit: &RedisLimit, key: Key<'_>, verb: Verb) -> Result<(), StoreError> {
        let part = self.part(limit, key, 0, None).await?;
        let bucket = Arc::clone(&part.key);
        self.number(Question { verb, parts: smallvec![part] }).await?;
        self.shared.queues.look_again(&bucket);
        Ok(())
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
}

impl From<LinkError> for StoreError {
    fn from(error: LinkError) -> Self {
        let why = error.to_string();
        if error.may_have_run() { Self::Unanswered { why } } else { Self::Unavailable { why } }
    }
}

/// Whether Redis did not answer.
pub(crate) const fn is_outage(error: &StoreError) -> bool {
    matches!(error, StoreError::Unavailable { .. } | StoreError::Unanswered { .. })
}

fn given_up() -> StoreError {
    StoreError::Unavailable {
        why: "it did not answer before, and is asked again from time to time".to_owned(),
    }
}

pub(crate) fn nonsense() -> StoreError {
    StoreError::Unanswered { why: "Redis answered something that is no answer to the question".to_owned() }
}
