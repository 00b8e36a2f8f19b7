//! What the rules decide about a request of the gateway.
//!
//! The charges of all rules that apply are one set, all made or none, in one question to the store. Where nothing in the set can
//! wait or hold, it is a plain check; otherwise the request enters, and the decision comes when its turn does. Dropped before
//! that, it gives the turn back; what a decision holds is given back when it is dropped. Shadow rules are sets of their own,
//! decided after it.

use super::{
    RequestRecord, RuleSnapshot, Session,
    admission::{Admission, AtOnce, InTurn, SetDecision},
};
use crate::{
    ChargeId, Found, KeyTexts, KeyValues, Keyed, RuleCharge, RuleEntry, RuleId, Units,
    model::{Attribute, Excess},
};
use smallvec::SmallVec;
use std::{sync::Arc, time::Duration};
use tollgate::{Charge, Decision, Enter, Retry, SetStatus, Status, Store, StoreError};

/// What the rules decided about a request. Dropped, it gives back the slots it holds.
#[derive(Debug)]
#[must_use = "a decision that is dropped gives its slots back"]
pub struct RequestDecision<P> {
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
    /// It may: the global switch is off, and no rule was applied.
    Skipped,
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

impl<S: Enter> Session<S> {
    /// Decides a request by the rules that apply to it, charging what it costs; comes back when its turn has come.
    pub fn decide_request(
        &self,
        found: &Found<'_, '_>,
        body: Body,
    ) -> impl Future<Output = RequestDecision<S::Permit>> + Send {
        self.rules.decide::<InTurn>(found, body)
    }
}

impl<S: Store> Session<S> {
    /// Decides a request at once, charging what it costs: where it may go on later, the decision says when. Nobody sleeps, and
    /// slots are given back by time alone.
    pub async fn decide_request_at_once(&self, found: &Found<'_, '_>, body: Body) -> RequestDecision<()> {
        self.rules.decide::<AtOnce>(found, body).await
    }
}

impl<S: Store> RuleSnapshot<S> {
    async fn decide<A: Admission<S>>(&self, found: &Found<'_, '_>, body: Body) -> RequestDecision<A::Permit> {
        let mut decision = RequestDecision {
            outcome: Outcome::Skipped,
            stands: Vec::new(),
            shadows: Vec::new(),
            permits: Vec::new(),
        };
        if let Some(store) = self.deciding_store() {
            decision.outcome = self.apply::<A>(store, found, body, &mut decision).await;
        }
        let RequestDecision { outcome, stands, shadows, .. } = &decision;
        self.recorder.request(&RequestRecord { found, outcome, stands, shadows });
        decision
    }

    /// Applies the rules; what is charged and held is added to the decision.
    async fn apply<A: Admission<S>>(
        &self,
        store: &Arc<S>,
        found: &Found<'_, '_>,
        body: Body,
        decision: &mut RequestDecision<A::Permit>,
    ) -> Outcome {
        let mut set = Gathered::default();
        for entry in found.entries().filter(|entry| !self.is_shadow(entry.id)) {
            if let Err(why) = self.gather(found, entry, body, &mut set) {
                return Outcome::Refused { by: entry.id, why };
            }
        }
        let mut waited = Duration::ZERO;
        if !set.charges.is_empty() {
            match self.ask::<A>(store, &set).await {
                Ok(decided) => {
                    decision.stands = set.stands(&decided.status);
                    if let Some(outcome) = refusal(&set, &decided.status) {
                        return outcome;
                    }
                    waited = decided.waited;
                    decision.permits.extend(decided.permit);
                }
                Err(error) => {
                    let by = set.charges[0].charge.rule();
                    return Outcome::Refused { by, why: Why::Store(error) };
                }
            }
        }
        for rule in found.rules().iter().filter(|rule| self.is_shadow(**rule)) {
            // In a box, so that a request without shadows is no larger for them.
            Box::pin(self.shadow::<A>(store, found, *rule, body, decision)).await;
        }
        Outcome::Pass { waited }
    }

    /// What a shadow rule would have said; charged only where it would have passed.
    async fn shadow<A: Admission<S>>(
        &self,
        store: &Arc<S>,
        found: &Found<'_, '_>,
        rule: RuleId,
        body: Body,
        decision: &mut RequestDecision<A::Permit>,
    ) {
        let mut set = Gathered::default();
        let entry = self.program.rule(rule);
        let refused_by = match self.gather(found, entry, body, &mut set) {
            Err(_) => entry.charges.first().map(|charge| charge.id()),
            Ok(()) if set.charges.is_empty() => None,
            Ok(()) => match self.watch::<A>(store, &set).await {
                Ok((refused_by, held)) => {
                    decision.permits.extend(held);
                    refused_by.map(|by| set.charges[by].charge.id())
                }
                // A shadow rule whose store fails says nothing.
                Err(_) => return,
            },
        };
        decision.shadows.push(Shadow { rule, refused_by });
    }

    /// Makes the charges of a shadow rule, and holds its slots; nothing of it ever sleeps. Which charge refuses, if one does.
    async fn watch<A: Admission<S>>(
        &self,
        store: &Arc<S>,
        set: &Gathered<'_>,
    ) -> Result<(Option<usize>, Option<A::Permit>), StoreError> {
        let texts = set.texts();
        let charges = self.charges(set, &texts);
        if !(A::SLEEPS && set.paced) {
            let decided = A::ask(store, &charges, set.enters).await?;
            return Ok((decided.status.denied_by(), decided.permit));
        }
        // Whoever enters sleeps until a turn comes that has a pace, so slots are entered alone, and are given back where the
        // others refuse.
        let holds = |at: &usize| self.plans[set.charges[*at].charge.id().0].holds;
        let (slots, others): (Vec<_>, Vec<_>) = (0..charges.len()).partition(holds);
        let these = |places: &[usize]| places.iter().map(|at| charges[*at]).collect::<Vec<_>>();
        let mut held = None;
        if !slots.is_empty() {
            let decided = A::ask(store, &these(&slots), true).await?;
            if let Some(by) = decided.status.denied_by() {
                return Ok((Some(slots[by]), None));
            }
            held = decided.permit;
        }
        match A::ask(store, &these(&others), false).await?.status.denied_by() {
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

    async fn ask<A: Admission<S>>(
        &self,
        store: &Arc<S>,
        set: &Gathered<'_>,
    ) -> Result<SetDecision<A::Permit>, StoreError> {
        let texts = set.texts();
        let charges = self.charges(set, &texts);
        A::ask(store, &charges, set.enters).await
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
