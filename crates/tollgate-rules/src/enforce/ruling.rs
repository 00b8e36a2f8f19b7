//! What rules say to a request.
//!
//! The charges of all rules that apply are one set, all made or none, in one question to the store. Where nothing in the set can
//! wait or hold, it is a plain check; otherwise the request enters, and the ruling comes when its turn does. A ruling that is
//! dropped before that gives the turn back; what it holds is given back when it is dropped.

use super::edition::Edition;
use crate::{
    ChargeId, Found, KeyTexts, KeyValues, Keyed, RuleCharge, RuleEntry, RuleId, Units,
    model::{Attribute, Excess},
};
use smallvec::SmallVec;
use std::{sync::Arc, time::Duration};
use tollgate::{
    Answer, Charge, Decision, Enter, Entered, Held, PermitId, Retry, SetStatus, Status, Store, StoreError,
};

/// What rules say to a request. Dropped, it gives back the slots it holds.
#[derive(Debug)]
#[must_use = "a ruling that is dropped gives its slots back"]
pub struct Ruling<P> {
    /// Whether it may go on.
    pub outcome: Outcome,
    /// How every charge of the set stands, in file order.
    pub stands: Vec<Stand>,
    /// What shadow rules would have said.
    pub shadows: Vec<Shadow>,
    /// What it holds until it is done.
    pub permits: Vec<P>,
}

/// Whether a request may go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It may, having waited so long.
    Pass {
        /// How long.
        waited: Duration,
    },
    /// It may not; nothing was charged.
    Refused {
        /// The first rule in the file that refuses: it says what the excess gets.
        by: RuleId,
        /// Why.
        why: Why,
    },
}

/// Why a request is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Why {
    /// No room.
    Limit {
        /// Which charge found none.
        charge: ChargeId,
        /// When the whole set would pass, if nothing else came.
        retry: Retry,
    },
    /// It lacks an attribute of a key, and the rule refuses that.
    Missing(Attribute),
    /// It has this more than once, and the rule's key names it.
    Repeated(Attribute),
    /// Its cost is the length of its body, which it does not tell.
    Length,
    /// The store could not decide, and no policy says what then.
    Store(StoreError),
}

/// How a charge stands.
#[derive(Clone, Copy, Debug)]
pub struct Stand {
    /// Which charge.
    pub charge: ChargeId,
    /// Which of its limit's overrides holds for its key, by its place; the limit itself where `None`.
    pub own: Option<usize>,
    /// How many units it is for.
    pub units: u32,
    /// How it stands.
    pub status: Status,
}

/// What a shadow rule would have said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shadow {
    /// Which rule.
    pub rule: RuleId,
    /// The charge that would have refused; `None` where it was charged.
    pub refused_by: Option<ChargeId>,
}

/// Whether a request has a body that it does not announce the length of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body {
    /// It has none, or tells its length.
    Known,
    /// Its length shows when it ends.
    Open,
}

/// A set of charges that is being put together.
#[derive(Default)]
struct Gathered<'f> {
    charges: SmallVec<[Due<'f>; 4]>,
    keys: SmallVec<[KeyValues<'f>; 4]>,
    enters: bool,
    paced: bool,
}

/// A charge that is due.
struct Due<'f> {
    charge: &'f RuleCharge,
    units: u32,
    own: Option<usize>,
}

/// What a set came to: how its charges stand, and what it holds.
struct Told<P> {
    status: SetStatus,
    held: Option<P>,
    waited: Duration,
}

/// How a set is put to a store.
trait Manner<S: Store> {
    /// What is held until the request is done.
    type Permit: Send + Sync;

    /// Whether it sleeps until the turn comes.
    const SLEEPS: bool;

    fn ask(store: &Arc<S>, charges: &[Charge<'_, S::Limit>], enters: bool)
    -> impl Answer<Told<Self::Permit>>;
}

/// The request goes when its turn comes, and holds its slots.
enum InTurn {}

/// Only the decision is wanted, at once; slots are held for as long as their limit lets them be.
enum AtOnce {}

impl<S: Enter> Manner<S> for InTurn {
    type Permit = S::Permit;

    const SLEEPS: bool = true;

    async fn ask(
        store: &Arc<S>,
        charges: &[Charge<'_, S::Limit>],
        enters: bool,
    ) -> Result<Told<S::Permit>, StoreError> {
        if !enters {
            let status = store.check(charges).await?;
            if let Some(permit) = status.permit() {
                give_back(store, charges, permit).await;
            }
            return Ok(Told { status, held: None, waited: Duration::ZERO });
        }
        Ok(match store.enter(charges).await? {
            Entered::In(permit) => Told {
                status: SetStatus::new(permit.statuses().iter().copied(), None),
                waited: permit.waited(),
                held: Some(permit),
            },
            Entered::Refused(refused) => {
                Told { status: refused.status(), held: None, waited: Duration::ZERO }
            }
        })
    }
}

impl<S: Store> Manner<S> for AtOnce {
    type Permit = ();

    const SLEEPS: bool = false;

    async fn ask(store: &Arc<S>, charges: &[Charge<'_, S::Limit>], _: bool) -> Result<Told<()>, StoreError> {
        let status = store.check(charges).await?;
        let waited = match status.decision() {
            Decision::Wait(wait) => wait,
            _ => Duration::ZERO,
        };
        Ok(Told { status, held: None, waited })
    }
}

impl<S: Enter> Edition<S> {
    /// Rules on a request, charging what it costs; comes back when its turn has come.
    pub fn rule(&self, found: &Found<'_, '_>, body: Body) -> impl Future<Output = Ruling<S::Permit>> + Send {
        self.decide::<InTurn>(found, body)
    }
}

impl<S: Store> Edition<S> {
    /// Rules on a request at once, charging what it costs: where it may go on later, the ruling says when. Nobody sleeps, and
    /// slots are given back by time alone.
    pub async fn foretell(&self, found: &Found<'_, '_>, body: Body) -> Ruling<()> {
        self.decide::<AtOnce>(found, body).await
    }

    async fn decide<M: Manner<S>>(&self, found: &Found<'_, '_>, body: Body) -> Ruling<M::Permit> {
        let mut ruling = Ruling {
            outcome: Outcome::Pass { waited: Duration::ZERO },
            stands: Vec::new(),
            shadows: Vec::new(),
            permits: Vec::new(),
        };
        // The global switch: nothing is refused, and no store is touched.
        if !self.program.file().enabled {
            return ruling;
        }
        let mut set = Gathered::default();
        for entry in found.entries().filter(|entry| !self.is_shadow(entry.id)) {
            if let Err(why) = self.gather(found, entry, body, &mut set) {
                ruling.outcome = Outcome::Refused { by: entry.id, why };
                return ruling;
            }
        }
        match self.ask::<M>(&set).await {
            Ok(None) => {}
            Ok(Some(told)) => {
                ruling.stands = set.stands(&told.status);
                if let Some(outcome) = refusal(&set, &told.status) {
                    ruling.outcome = outcome;
                    return ruling;
                }
                ruling.outcome = Outcome::Pass { waited: told.waited };
                ruling.permits.extend(told.held);
            }
            Err(error) => {
                if let Some(first) = set.charges.first() {
                    ruling.outcome = Outcome::Refused { by: first.charge.rule(), why: Why::Store(error) };
                }
                return ruling;
            }
        }
        for rule in found.rules().iter().filter(|rule| self.is_shadow(**rule)) {
            // In a box, so that a request without shadows is no larger for them.
            Box::pin(self.shadow::<M>(found, *rule, body, &mut ruling)).await;
        }
        ruling
    }

    /// What a shadow rule would have said; charged only where it would have passed.
    async fn shadow<M: Manner<S>>(
        &self,
        found: &Found<'_, '_>,
        rule: RuleId,
        body: Body,
        ruling: &mut Ruling<M::Permit>,
    ) {
        let mut set = Gathered::default();
        let entry = self.program.rule(rule);
        let refused_by = match self.gather(found, entry, body, &mut set) {
            Err(_) => entry.charges.first().map(|charge| charge.id()),
            Ok(()) if set.charges.is_empty() => None,
            Ok(()) => match self.watch::<M>(&set).await {
                Ok((refused_by, held)) => {
                    ruling.permits.extend(held);
                    refused_by.map(|by| set.charges[by].charge.id())
                }
                // A shadow rule whose store fails says nothing.
                Err(_) => return,
            },
        };
        ruling.shadows.push(Shadow { rule, refused_by });
    }

    /// Makes the charges of a shadow rule, and holds its slots; nothing of it ever sleeps. Which charge refuses, if one does.
    async fn watch<M: Manner<S>>(
        &self,
        set: &Gathered<'_>,
    ) -> Result<(Option<usize>, Option<M::Permit>), StoreError> {
        let texts = set.texts();
        let charges = self.charges(set, &texts);
        if !(M::SLEEPS && set.paced) {
            let told = M::ask(&self.store, &charges, set.enters).await?;
            return Ok((told.status.denied_by(), told.held));
        }
        // Whoever enters sleeps until a turn comes that has a pace, so slots are entered alone, and are given back where the
        // others refuse.
        let holds = |at: &usize| self.plans[set.charges[*at].charge.id().0].holds;
        let (slots, others): (Vec<_>, Vec<_>) = (0..charges.len()).partition(holds);
        let these = |places: &[usize]| places.iter().map(|at| charges[*at]).collect::<Vec<_>>();
        let mut held = None;
        if !slots.is_empty() {
            let told = M::ask(&self.store, &these(&slots), true).await?;
            if let Some(by) = told.status.denied_by() {
                return Ok((Some(slots[by]), None));
            }
            held = told.held;
        }
        let unheld = these(&others);
        let status = self.store.check(&unheld).await?;
        if let Some(permit) = status.permit() {
            give_back(&self.store, &unheld, permit).await;
        }
        match status.denied_by() {
            Some(by) => Ok((Some(others[by]), None)),
            None => Ok((None, held)),
        }
    }

    fn is_shadow(&self, rule: RuleId) -> bool {
        self.has_shadows && matches!(self.program.rule(rule).rule().excess, Excess::Shadow)
    }

    /// Adds what a rule charges.
    fn gather<'f>(
        &'f self,
        found: &'f Found<'_, '_>,
        rule: RuleEntry<'f>,
        body: Body,
        set: &mut Gathered<'f>,
    ) -> Result<(), Why> {
        for charge in rule.charges {
            let key = match found.key(charge) {
                Keyed::Key(values) => values,
                Keyed::Skip => continue,
                Keyed::Deny { missing } => return Err(Why::Missing(missing.clone())),
                Keyed::Repeated { attribute } => return Err(Why::Repeated(attribute.clone())),
            };
            let units = match (found.units(charge), body) {
                (Units::Known(units), _) => units,
                (Units::Unannounced, Body::Known) => 0,
                (Units::Unannounced, Body::Open) => return Err(Why::Length),
            };
            set.charges.push(Due { charge, units, own: found.override_of(charge, &key) });
            set.keys.push(key);
            set.enters |= self.plans[charge.id().0].enters;
            set.paced |= self.plans[charge.id().0].paced;
        }
        Ok(())
    }

    /// Puts a set to the store; `None` where it is empty.
    async fn ask<M: Manner<S>>(&self, set: &Gathered<'_>) -> Result<Option<Told<M::Permit>>, StoreError> {
        if set.charges.is_empty() {
            return Ok(None);
        }
        let texts = set.texts();
        let charges = self.charges(set, &texts);
        M::ask(&self.store, &charges, set.enters).await.map(Some)
    }

    fn charges<'c>(
        &'c self,
        set: &Gathered<'_>,
        texts: &'c [KeyTexts<'_>],
    ) -> SmallVec<[Charge<'c, S::Limit>; 4]> {
        let charge = |(due, texts): (&Due<'_>, &'c KeyTexts<'_>)| {
            let (limit, up_to) = (self.handle_of(due.charge, due.own), self.plans[due.charge.id().0].up_to);
            Charge { limit, key: texts.key(), cost: due.units, up_to }
        };
        set.charges.iter().zip(texts).map(charge).collect()
    }
}

/// Gives back slots that nobody of these rules holds: those that come into force in a moment have made a limit one of slots
/// that was none. Where that fails they come back by time.
async fn give_back<S: Store>(store: &Arc<S>, charges: &[Charge<'_, S::Limit>], permit: PermitId) {
    // In a box, so that a request, to which this hardly ever happens, is no larger for it.
    let _: Result<u32, StoreError> = Box::pin(store.leave(charges, permit)).await;
}

impl Gathered<'_> {
    fn texts(&self) -> SmallVec<[KeyTexts<'_>; 4]> {
        self.keys.iter().map(KeyValues::texts).collect()
    }

    fn stands(&self, status: &SetStatus) -> Vec<Stand> {
        let stand = |(Due { charge, units, own }, status): (&Due<'_>, &Status)| Stand {
            charge: charge.id(),
            own: *own,
            units: *units,
            status: *status,
        };
        self.charges.iter().zip(status.statuses()).map(stand).collect()
    }
}

/// How a refused set is refused: by the first rule in the file that finds no room.
fn refusal(set: &Gathered<'_>, status: &SetStatus) -> Option<Outcome> {
    let Decision::Deny(retry) = status.decision() else { return None };
    let first = status.statuses().iter().position(Status::is_deny).or(status.denied_by())?;
    let charge = set.charges.get(first)?.charge;
    Some(Outcome::Refused { by: charge.rule(), why: Why::Limit { charge: charge.id(), retry } })
}
