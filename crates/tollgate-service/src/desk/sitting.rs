//! One door at the desk, by one edition of the rules.

use super::{
    Answered, AskError, DoorName, Ledger,
    defined::{Defined, Definitions},
};
use smallvec::SmallVec;
use std::{fmt, sync::Arc, time::Duration};
use tollgate::{
    Charge, DecidedBy, Decision, Enter, Entered, Key, Limit, PermitId, SetStatus, Status, Store, StoreError,
};
use tollgate_rules::{Edition, nearest};

/// Most questions are about one charge.
type Few<T> = SmallVec<[T; 2]>;

/// A seat at the desk. Hold it for one question, or for those of one pipeline.
pub struct Sitting<'d, S: Store> {
    definitions: &'d Definitions<S>,
    edition: Arc<Edition<S>>,
    pub(super) ledger: Arc<Arc<dyn Ledger>>,
}

/// Which limit is asked. To be used at the sitting that found it.
pub struct Which<S: Store>(Kind<S>);

enum Kind<S: Store> {
    /// By its place in the rule file.
    Named(usize),
    Defined(Arc<Defined<S>>),
}

/// One charge that is asked for.
pub struct Question<'q, S: Store> {
    /// On which limit.
    pub limit: &'q Which<S>,
    /// Whose bucket: the values of a rule's key attributes, in order.
    pub key: Key<'q>,
    /// How many units; zero asks without charging.
    pub cost: u32,
    /// How long it may wait for its turn; `None` for what the limit itself prescribes.
    pub up_to: Option<Duration>,
}

impl<'d, S: Store> Sitting<'d, S> {
    pub(super) fn new(
        definitions: &'d Definitions<S>,
        edition: Arc<Edition<S>>,
        ledger: Arc<Arc<dyn Ledger>>,
    ) -> Self {
        Self { definitions, edition, ledger }
    }

    /// The rules in force when this seat was taken.
    #[must_use]
    pub fn edition(&self) -> &Edition<S> {
        &self.edition
    }

    /// Who keeps the books, for a door that has limits of its own.
    pub(crate) fn ledger(&self) -> &dyn Ledger {
        &**self.ledger
    }

    /// The limit of this name in the rule file.
    ///
    /// # Errors
    /// Where there is none; then the nearest name is told.
    pub fn named(&self, name: impl AsRef<[u8]>) -> Result<Which<S>, AskError> {
        let name = name.as_ref();
        match self.edition.place_of(name) {
            Some(place) => Ok(Which(Kind::Named(place))),
            None => Err(self.unknown(&String::from_utf8_lossy(name))),
        }
    }

    #[cold]
    fn unknown(&self, name: &str) -> AskError {
        let limits = &self.edition.program().file().limits;
        let nearest = nearest(name, limits.iter().map(|limit| limit.name.as_str())).map(str::to_owned);
        AskError::UnknownLimit { name: name.to_owned(), nearest }
    }

    /// The limit that this text defines, in YAML or JSON: an algorithm's name and its numbers.
    ///
    /// # Errors
    /// Where it defines none, or the store cannot keep it.
    pub fn defined(&self, text: &str) -> Result<Which<S>, AskError>
    where
        S: 'static,
    {
        self.definitions.find(text).map(|defined| Which(Kind::Defined(defined)))
    }

    /// The limit itself: its algorithm and its numbers, as they are for keys that have none of their own.
    #[must_use]
    pub fn limit<'a>(&'a self, which: &'a Which<S>) -> &'a Limit {
        match &which.0 {
            Kind::Named(place) => &self.edition.program().file().limits[*place].limit,
            Kind::Defined(defined) => &defined.limit,
        }
    }

    /// The limit itself, with the numbers that hold for this key.
    #[must_use]
    pub fn limit_for<'a>(&'a self, which: &'a Which<S>, key: Key<'_>) -> &'a Limit {
        let own = match &which.0 {
            Kind::Named(place) => {
                let program = self.edition.program();
                let overrides = &program.file().limits[*place].overrides;
                program.override_of(*place, key).and_then(|own| overrides.get(own))
            }
            Kind::Defined(_) => None,
        };
        own.map_or_else(|| self.limit(which), |own| &own.limit)
    }

    /// Decides a set of charges: all are charged, or none is.
    ///
    /// # Errors
    /// Where the store does not answer and no policy decides instead.
    pub async fn check(&self, door: DoorName, asked: &[Question<'_, S>]) -> Result<SetStatus, AskError> {
        if !self.is_enabled() {
            return Ok(self.skip(door, asked));
        }
        // Nearly always one, which is no list to be collected.
        let (one, several);
        let charges: &[_] = match asked {
            [asked] => {
                one = [self.charge(asked)];
                &one
            }
            asked => {
                several = self.charges(asked);
                &several
            }
        };
        match self.store().check(charges).await {
            Ok(status) => {
                self.book(door, asked, &status, false);
                Ok(status)
            }
            Err(error) => Err(self.unanswered(door, asked, error)),
        }
    }

    /// What [`check`](Self::check) would answer, charging nothing.
    ///
    /// # Errors
    /// As [`check`](Self::check).
    pub async fn peek(&self, asked: &[Question<'_, S>]) -> Result<SetStatus, AskError> {
        if !self.is_enabled() {
            return Ok(self.untouched(asked));
        }
        Ok(self.store().peek(&self.charges(asked)).await?)
    }

    /// Takes up to `units` off the newest live use of a key.
    ///
    /// # Errors
    /// Where the store does not answer.
    pub async fn refund(&self, which: &Which<S>, key: Key<'_>, units: u32) -> Result<(), AskError> {
        Ok(self.store().refund(self.handle(which, key), key, units).await?)
    }

    /// Forgets what a key has used.
    ///
    /// # Errors
    /// Where the store does not answer.
    pub async fn reset(&self, which: &Which<S>, key: Key<'_>) -> Result<(), AskError> {
        Ok(self.store().reset(self.handle(which, key), key).await?)
    }

    /// Gives back what a permit holds under these charges. How many units came back.
    ///
    /// # Errors
    /// Where the store does not answer.
    pub async fn leave(&self, asked: &[Question<'_, S>], permit: PermitId) -> Result<u32, AskError> {
        Ok(self.store().leave(&self.charges(asked), permit).await?)
    }

    /// Lets a permit hold its slots for another `max_hold`. Whether it still held all of them.
    ///
    /// # Errors
    /// Where the store does not answer.
    pub async fn renew(&self, asked: &[Question<'_, S>], permit: PermitId) -> Result<bool, AskError> {
        Ok(self.store().renew(&self.charges(asked), permit).await?)
    }

    pub(super) fn is_enabled(&self) -> bool {
        self.edition.program().file().enabled
    }

    pub(super) fn store(&self) -> &Arc<S> {
        self.edition.store()
    }

    /// The limit that holds for a key: its own where it has one.
    fn handle<'a>(&'a self, which: &'a Which<S>, key: Key<'_>) -> &'a S::Limit {
        match &which.0 {
            Kind::Named(place) => self.edition.at(*place, key),
            Kind::Defined(defined) => &defined.handle,
        }
    }

    fn charges<'a>(&'a self, asked: &'a [Question<'a, S>]) -> Few<Charge<'a, S::Limit>> {
        asked.iter().map(|asked| self.charge(asked)).collect()
    }

    fn charge<'a>(&'a self, asked: &'a Question<'a, S>) -> Charge<'a, S::Limit> {
        Charge {
            limit: self.handle(asked.limit, asked.key),
            key: asked.key,
            cost: asked.cost,
            up_to: asked.up_to,
        }
    }

    fn book(&self, door: DoorName, asked: &[Question<'_, S>], status: &SetStatus, skipped: bool) {
        let book = |asked: &[_]| self.ledger.answered(&Answered { door, asked, status, skipped });
        match asked {
            [asked] => book(&[asked.booked()]),
            asked => book(&booked(asked)),
        }
    }

    #[cold]
    fn unanswered(&self, door: DoorName, asked: &[Question<'_, S>], error: StoreError) -> AskError {
        self.ledger.unanswered(door, &booked(asked));
        error.into()
    }

    /// The global switch is off: everything passes, and no store is touched.
    #[cold]
    fn skip(&self, door: DoorName, asked: &[Question<'_, S>]) -> SetStatus {
        let status = self.untouched(asked);
        self.book(door, asked, &status, true);
        status
    }

    fn untouched(&self, asked: &[Question<'_, S>]) -> SetStatus {
        let status = |asked: &Question<'_, S>| {
            let most = self.limit(asked.limit).most();
            Status::new(Decision::Allow, most, most, Some(Duration::ZERO)).said_by(DecidedBy::Switch)
        };
        SetStatus::new(asked.iter().map(status), None)
    }
}

/// A question as the books have it.
type Booked<'q> = (Option<usize>, Key<'q>, u32);

fn booked<'q, S: Store>(asked: &[Question<'q, S>]) -> Few<Booked<'q>> {
    asked.iter().map(Question::booked).collect()
}

impl<'q, S: Store> Question<'q, S> {
    fn booked(&self) -> Booked<'q> {
        let place = match self.limit.0 {
            Kind::Named(place) => Some(place),
            Kind::Defined(_) => None,
        };
        (place, self.key, self.cost)
    }
}

impl<S: Enter> Sitting<'_, S> {
    /// Decides as [`check`](Self::check) does, sleeps until its turn where that comes later, and holds what it entered until
    /// the permit is dropped. Dropped before, it gives its turn back. `None` where the global switch is off.
    ///
    /// # Errors
    /// As [`check`](Self::check).
    pub async fn enter(
        &self,
        door: DoorName,
        asked: &[Question<'_, S>],
    ) -> Result<Option<Entered<S::Permit>>, AskError> {
        use tollgate::Held;
        if !self.is_enabled() {
            let _ = self.skip(door, asked);
            return Ok(None);
        }
        let entered: Result<_, StoreError> = self.store().enter(&self.charges(asked)).await;
        let entered = entered.map_err(|error| self.unanswered(door, asked, error))?;
        match &entered {
            Entered::In(permit) => {
                let status = SetStatus::new(permit.statuses().iter().copied(), None);
                self.book(door, asked, &status, false);
            }
            Entered::Refused(refused) => self.book(door, asked, &refused.status(), false),
        }
        Ok(Some(entered))
    }
}

impl<S: Store> fmt::Debug for Sitting<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sitting").finish_non_exhaustive()
    }
}

impl<S: Store> fmt::Debug for Which<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Named(place) => write!(f, "Named({place})"),
            Kind::Defined(defined) => write!(f, "Defined({:?})", defined.limit),
        }
    }
}

impl<S: Store> fmt::Debug for Question<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Question")
            .field("limit", &self.limit)
            .field("key", &self.key)
            .field("cost", &self.cost)
            .field("up_to", &self.up_to)
            .finish()
    }
}
