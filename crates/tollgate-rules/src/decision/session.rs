//! Decisions for one API, by one snapshot of the rules: limits by name, or by a definition that comes with the request.

use super::{
    Api, ChargeOutcome, ChargeRecord, DecisionError, RecordedLimit, RuleSnapshot, SetDecision,
    admission::{Admission, InTurn},
    definitions::Defined,
};
use crate::nearest;
use smallvec::SmallVec;
use std::{fmt, sync::Arc, time::Duration};
use tollgate::{
    Charge, DecidedBy, Decision, Enter, Key, Limit, PermitId, SetStatus, Status, Store, StoreError,
};

/// Most sets are one charge.
type Few<T> = SmallVec<[T; 2]>;

/// Decides for one API. Hold it for one request, or for those of one pipeline.
pub struct Session<S: Store> {
    pub(super) rules: Arc<RuleSnapshot<S>>,
    api: Api,
}

/// A limit that a session has found. To be used at that session.
pub struct LimitRef<S: Store>(Kind<S>);

enum Kind<S: Store> {
    /// By its place in the rule file.
    Named(usize),
    Defined(Arc<Defined<S>>),
}

/// A charge that an API asks for.
pub struct ChargeRequest<'q, S: Store> {
    /// On which limit.
    pub limit: &'q LimitRef<S>,
    /// Whose bucket: the values of a rule's key attributes, in order.
    pub key: Key<'q>,
    /// How many units; zero asks without charging.
    pub cost: u32,
    /// How long it may wait for its turn; `None` for what the limit itself prescribes.
    pub up_to: Option<Duration>,
}

impl<S: Store> Session<S> {
    pub(super) const fn new(rules: Arc<RuleSnapshot<S>>, api: Api) -> Self {
        Self { rules, api }
    }

    /// The rules in force when the session was opened.
    #[must_use]
    pub fn rules(&self) -> &RuleSnapshot<S> {
        &self.rules
    }

    /// The limit of this name in the rule file.
    ///
    /// # Errors
    /// Where there is none; the error suggests a similar name.
    pub fn named(&self, name: impl AsRef<[u8]>) -> Result<LimitRef<S>, DecisionError> {
        let name = name.as_ref();
        match self.rules.place_of(name) {
            Some(place) => Ok(LimitRef(Kind::Named(place))),
            None => Err(self.unknown(&String::from_utf8_lossy(name))),
        }
    }

    #[cold]
    fn unknown(&self, name: &str) -> DecisionError {
        let limits = &self.rules.program().file().limits;
        let nearest = nearest(name, limits.iter().map(|limit| limit.name.as_str())).map(str::to_owned);
        DecisionError::UnknownLimit { name: name.to_owned(), nearest }
    }

    /// The limit that this text defines, in YAML or JSON: an algorithm's name and its numbers.
    ///
    /// # Errors
    /// Where it defines none, or the store cannot keep it.
    pub fn defined(&self, text: &str) -> Result<LimitRef<S>, DecisionError>
    where
        S: 'static,
    {
        self.rules.definitions.find(text).map(|defined| LimitRef(Kind::Defined(defined)))
    }

    /// The limit itself: its algorithm and its numbers, as they are for keys that have none of their own.
    #[must_use]
    pub fn limit<'a>(&'a self, limit: &'a LimitRef<S>) -> &'a Limit {
        match &limit.0 {
            Kind::Named(place) => &self.rules.program().file().limits[*place].limit,
            Kind::Defined(defined) => &defined.limit,
        }
    }

    /// The limit itself, with the numbers that hold for this key.
    #[must_use]
    pub fn limit_for<'a>(&'a self, limit: &'a LimitRef<S>, key: Key<'_>) -> &'a Limit {
        let own = match &limit.0 {
            Kind::Named(place) => {
                let program = self.rules.program();
                let overrides = &program.file().limits[*place].overrides;
                program.override_of(*place, key).and_then(|own| overrides.get(own))
            }
            Kind::Defined(_) => None,
        };
        own.map_or_else(|| self.limit(limit), |own| &own.limit)
    }

    /// Decides a set of charges: all are charged, or none is.
    ///
    /// # Errors
    /// Where the store does not answer and no failure policy decides instead.
    pub async fn check(&self, set: &[ChargeRequest<'_, S>]) -> Result<SetStatus, DecisionError> {
        let Some(store) = self.rules.deciding_store() else { return Ok(self.skip(set)) };
        // Nearly always one, which is no list to be collected.
        let (one, several);
        let charges: &[_] = match set {
            [request] => {
                one = [self.charge(request)];
                &one
            }
            set => {
                several = self.charges(set);
                &several
            }
        };
        match store.check(charges).await {
            Ok(status) => {
                self.record_set(set, &status);
                Ok(status)
            }
            Err(error) => Err(self.unanswered(set, error)),
        }
    }

    /// What [`check`](Self::check) would answer, charging and recording nothing.
    ///
    /// # Errors
    /// As [`check`](Self::check).
    pub async fn peek(&self, set: &[ChargeRequest<'_, S>]) -> Result<SetStatus, DecisionError> {
        let Some(store) = self.rules.deciding_store() else { return Ok(self.untouched(set)) };
        Ok(store.peek(&self.charges(set)).await?)
    }

    /// Decides as [`check`](Self::check) does, sleeps until its turn where that comes later, and holds what it entered until
    /// the permit is dropped. Dropped before, it gives its turn back.
    ///
    /// # Errors
    /// As [`check`](Self::check).
    pub async fn enter(&self, set: &[ChargeRequest<'_, S>]) -> Result<SetDecision<S::Permit>, DecisionError>
    where
        S: Enter,
    {
        let Some(store) = self.rules.deciding_store() else {
            return Ok(SetDecision { status: self.skip(set), waited: Duration::ZERO, permit: None });
        };
        match InTurn::ask(store, &self.charges(set), true).await {
            Ok(decision) => {
                self.record_set(set, &decision.status);
                Ok(decision)
            }
            Err(error) => Err(self.unanswered(set, error)),
        }
    }

    /// Takes up to `units` off the newest live use of a key.
    ///
    /// # Errors
    /// Where the store does not answer.
    pub async fn refund(&self, limit: &LimitRef<S>, key: Key<'_>, units: u32) -> Result<(), DecisionError> {
        Ok(self.rules.store.refund(self.handle(limit, key), key, units).await?)
    }

    /// Forgets what a key has used.
    ///
    /// # Errors
    /// Where the store does not answer.
    pub async fn reset(&self, limit: &LimitRef<S>, key: Key<'_>) -> Result<(), DecisionError> {
        Ok(self.rules.store.reset(self.handle(limit, key), key).await?)
    }

    /// Gives back what a permit holds under these charges. How many units came back.
    ///
    /// # Errors
    /// Where the store does not answer.
    pub async fn leave(&self, set: &[ChargeRequest<'_, S>], permit: PermitId) -> Result<u32, DecisionError> {
        Ok(self.rules.store.leave(&self.charges(set), permit).await?)
    }

    /// Lets a permit hold its slots for another `max_hold`. Whether it still held all of them.
    ///
    /// # Errors
    /// Where the store does not answer.
    pub async fn renew(&self, set: &[ChargeRequest<'_, S>], permit: PermitId) -> Result<bool, DecisionError> {
        Ok(self.rules.store.renew(&self.charges(set), permit).await?)
    }

    pub(super) fn record(&self, limit: RecordedLimit, key: Key<'_>, units: u32, outcome: ChargeOutcome) {
        self.rules.recorder.charge(&ChargeRecord { api: self.api, limit, key, units, outcome });
    }

    /// The limit that holds for a key: its own where it has one.
    fn handle<'a>(&'a self, limit: &'a LimitRef<S>, key: Key<'_>) -> &'a S::Limit {
        match &limit.0 {
            Kind::Named(place) => self.rules.at(*place, key),
            Kind::Defined(defined) => &defined.handle,
        }
    }

    fn charges<'a>(&'a self, set: &'a [ChargeRequest<'a, S>]) -> Few<Charge<'a, S::Limit>> {
        set.iter().map(|request| self.charge(request)).collect()
    }

    fn charge<'a>(&'a self, request: &'a ChargeRequest<'a, S>) -> Charge<'a, S::Limit> {
        let ChargeRequest { limit, key, cost, up_to } = *request;
        Charge { limit: self.handle(limit, key), key, cost, up_to }
    }

    /// Records the charges of a set that passed, or those that deny it.
    fn record_set(&self, set: &[ChargeRequest<'_, S>], status: &SetStatus) {
        let passed = match status.decision() {
            Decision::Allow => Some(ChargeOutcome::Allowed),
            Decision::Wait(_) => Some(ChargeOutcome::Delayed),
            Decision::Deny(_) => None,
        };
        for (request, status) in set.iter().zip(status.statuses()) {
            match passed {
                Some(outcome) => self.record_one(request, outcome),
                None if status.is_deny() => self.record_one(request, ChargeOutcome::Denied),
                None => {}
            }
        }
    }

    fn record_one(&self, request: &ChargeRequest<'_, S>, outcome: ChargeOutcome) {
        let limit = match request.limit.0 {
            Kind::Named(place) => RecordedLimit::Named(place),
            Kind::Defined(_) => RecordedLimit::Defined,
        };
        self.record(limit, request.key, request.cost, outcome);
    }

    #[cold]
    fn unanswered(&self, set: &[ChargeRequest<'_, S>], error: StoreError) -> DecisionError {
        set.iter().for_each(|request| self.record_one(request, ChargeOutcome::Unanswered));
        error.into()
    }

    /// The global switch is off: everything passes, and the store is not asked.
    #[cold]
    fn skip(&self, set: &[ChargeRequest<'_, S>]) -> SetStatus {
        set.iter().for_each(|request| self.record_one(request, ChargeOutcome::Skipped));
        self.untouched(set)
    }

    fn untouched(&self, set: &[ChargeRequest<'_, S>]) -> SetStatus {
        let status = |request: &ChargeRequest<'_, S>| {
            let most = self.limit_for(request.limit, request.key).most();
            Status::new(Decision::Allow, most, most, Some(Duration::ZERO)).said_by(DecidedBy::Switch)
        };
        SetStatus::new(set.iter().map(status), None)
    }
}

impl<S: Store> Clone for Session<S> {
    fn clone(&self) -> Self {
        Self { rules: Arc::clone(&self.rules), api: self.api }
    }
}

impl<S: Store> fmt::Debug for Session<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("api", &self.api).finish_non_exhaustive()
    }
}

impl<S: Store> fmt::Debug for LimitRef<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Named(place) => write!(f, "Named({place})"),
            Kind::Defined(defined) => write!(f, "Defined({:?})", defined.limit),
        }
    }
}

impl<S: Store> fmt::Debug for ChargeRequest<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChargeRequest")
            .field("limit", &self.limit)
            .field("key", &self.key)
            .field("cost", &self.cost)
            .field("up_to", &self.up_to)
            .finish()
    }
}
