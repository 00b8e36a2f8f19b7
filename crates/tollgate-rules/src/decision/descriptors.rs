//! Decisions on the descriptors of a domain.
//!
//! By the files' own meaning a descriptor is a counter: its hits are added to what was counted in this unit, and it is over
//! where that is more than its limit. Refused hits count, and each descriptor is by itself. The counters are windows of the
//! store that hold all a number can, so a limit that comes with the request, or changes, is only another number to compare
//! with. Limits that are ours (`algorithm`, `atomic`, `count_refused: false`) are the store's to decide.

use super::{ChargeOutcome, RecordedLimit, RuleSnapshot, Session};
use crate::domains::{BucketValues, DescriptorRule, DomainSettings, Unit};
use futures_util::future::join_all;
use smallvec::SmallVec;
use std::{
    num::NonZeroU32,
    sync::Arc,
    time::{Duration, SystemTime},
};
use tollgate::{Charge, DecidedBy, Key, OnFailure, SetStatus, Status, Store, StoreError};

/// Something for each descriptor of a request.
pub type Descriptors<T> = SmallVec<[T; 4]>;

/// A descriptor, and what holds for it.
#[derive(Debug)]
pub struct DescriptorCharge<'a> {
    /// What limits it.
    pub limit: DescriptorLimit<'a>,
    /// The rule that it matched; `None` where its limit came with the request.
    pub rule: Option<&'a DescriptorRule>,
    /// The place of that rule among those of all domains.
    pub place: Option<usize>,
    /// How many hits.
    pub hits: u32,
    /// Whether the hits are given back.
    pub is_negative: bool,
}

/// What limits a descriptor.
#[derive(Debug, Default)]
pub enum DescriptorLimit<'a> {
    /// Nothing.
    #[default]
    None,
    /// Nothing, as its rule says.
    Unlimited,
    /// A counter, compared with a number.
    Counted {
        /// The most hits in a unit.
        requests: u32,
        /// The unit.
        unit: Unit,
        /// Whose counter.
        values: BucketValues<'a>,
    },
    /// A limit of the store.
    Limited {
        /// The place of its rule.
        place: usize,
        /// Whose bucket.
        values: BucketValues<'a>,
    },
    /// Zero requests a unit, where refused hits are not counted: the store is not asked.
    Blocked {
        /// The unit.
        unit: Unit,
        /// Whose bucket.
        values: BucketValues<'a>,
    },
}

/// The decision on a descriptor that something limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DescriptorDecision {
    /// Whether it is over its limit.
    pub is_over: bool,
    /// How many hits are left.
    pub remaining: u32,
    /// When its limit is as if never used, in whole seconds.
    pub reset: u64,
}

impl<S: Store> Session<S> {
    /// Decides the descriptors of a request; `None` where nothing limits one. While the global switch is off nothing does.
    ///
    /// # Errors
    /// Where the store does not answer and no failure policy decides instead.
    pub async fn decide_descriptors(
        &self,
        charges: &mut [DescriptorCharge<'_>],
    ) -> Result<Descriptors<Option<DescriptorDecision>>, StoreError> {
        let file = self.rules.program().file();
        let Some(store) = self.rules.deciding_store() else {
            for charge in charges.iter_mut() {
                self.record_descriptor(charge, ChargeOutcome::Skipped);
                charge.limit = DescriptorLimit::None;
            }
            return Ok(charges.iter().map(|_| None).collect());
        };
        let nodes = NonZeroU32::new(file.store.nodes).unwrap_or(NonZeroU32::MIN);
        let settings = file.domains.settings();
        let asking = Asking { rules: &self.rules, store, nodes };
        let decisions = match asking.all(charges, settings).await {
            Ok(decisions) => decisions,
            Err(error) => {
                charges.iter().for_each(|charge| self.record_descriptor(charge, ChargeOutcome::Unanswered));
                return Err(error);
            }
        };
        for (charge, decision) in charges.iter().zip(&decisions) {
            let Some(decision) = decision else { continue };
            let is_shadow = settings.shadow_mode || charge.rule.is_some_and(|rule| rule.shadow_mode);
            self.record_descriptor(
                charge,
                match decision.is_over {
                    true if is_shadow => ChargeOutcome::ShadowDenied,
                    true => ChargeOutcome::Denied,
                    false => ChargeOutcome::Allowed,
                },
            );
        }
        Ok(decisions)
    }

    /// Records a descriptor that something limits.
    fn record_descriptor(&self, charge: &DescriptorCharge<'_>, outcome: ChargeOutcome) {
        let values = match &charge.limit {
            DescriptorLimit::None | DescriptorLimit::Unlimited => return,
            DescriptorLimit::Counted { values, .. }
            | DescriptorLimit::Limited { values, .. }
            | DescriptorLimit::Blocked { values, .. } => values,
        };
        let limit = charge.place.map_or(RecordedLimit::Defined, RecordedLimit::Descriptor);
        let hits = if charge.is_negative { 0 } else { charge.hits };
        self.record(limit, Key::List(values), hits, outcome);
    }
}

/// Asks the store about the descriptors of one request.
struct Asking<'s, S: Store> {
    rules: &'s RuleSnapshot<S>,
    store: &'s Arc<S>,
    nodes: NonZeroU32,
}

impl<S: Store> Asking<'_, S> {
    async fn all(
        &self,
        charges: &[DescriptorCharge<'_>],
        settings: &DomainSettings,
    ) -> Result<Descriptors<Option<DescriptorDecision>>, StoreError> {
        if let [one] = charges {
            return Ok(Descriptors::from_iter([self.one(one).await?]));
        }
        let mut decisions: Descriptors<Option<DescriptorDecision>> = charges.iter().map(|_| None).collect();
        let is_limited = |charge: &DescriptorCharge<'_>| {
            matches!(charge.limit, DescriptorLimit::Limited { .. }) && is_enforced(charge)
        };
        let together: Descriptors<usize> = match settings.atomic && !settings.quota_mode {
            true => (0..charges.len()).filter(|at| is_limited(&charges[*at])).collect(),
            false => Descriptors::new(),
        };
        for (at, decision) in together.iter().zip(self.together(charges, &together).await?) {
            decisions[*at] = Some(decision);
        }
        // Side by side, so that a shared store hears them in one call.
        let alone: Descriptors<usize> = (0..charges.len()).filter(|at| !together.contains(at)).collect();
        let decided = join_all(alone.iter().map(|at| self.one(&charges[*at]))).await;
        for (at, decision) in alone.iter().zip(decided) {
            decisions[*at] = decision?;
        }
        Ok(decisions)
    }

    /// Charges all of some descriptors, or none: also none where another of the request has a limit of zero.
    async fn together(
        &self,
        all: &[DescriptorCharge<'_>],
        which: &[usize],
    ) -> Result<Descriptors<DescriptorDecision>, StoreError> {
        if which.is_empty() {
            return Ok(Descriptors::new());
        }
        let mut charges: Descriptors<Charge<'_, S::Limit>> = Descriptors::new();
        for asked in which.iter().map(|at| &all[*at]) {
            let DescriptorLimit::Limited { place, values } = &asked.limit else { continue };
            charges.push(self.charge(*place, values, asked.hits)?);
        }
        let is_blocked = |asked: &DescriptorCharge<'_>| {
            matches!(asked.limit, DescriptorLimit::Blocked { .. }) && asked.hits > 0 && is_enforced(asked)
        };
        let status: SetStatus = match all.iter().any(is_blocked) {
            true => self.store.peek(&charges).await?,
            false => self.store.check(&charges).await?,
        };
        Ok(status.statuses().iter().map(limited).collect())
    }

    async fn one(&self, asked: &DescriptorCharge<'_>) -> Result<Option<DescriptorDecision>, StoreError> {
        match &asked.limit {
            DescriptorLimit::None | DescriptorLimit::Unlimited => Ok(None),
            DescriptorLimit::Blocked { unit, .. } => {
                Ok(Some(DescriptorDecision { is_over: asked.hits > 0, remaining: 0, reset: left_of(*unit) }))
            }
            DescriptorLimit::Limited { place, values } => {
                let charge = self.charge(*place, values, asked.hits)?;
                Ok(Some(limited(&self.charged(charge, asked.is_negative).await?)))
            }
            DescriptorLimit::Counted { requests, unit, values } => {
                let limit = self.rules.counter(*unit).ok_or(StoreError::UnknownLimit)?;
                let charge = Charge { limit, key: Key::List(values), cost: asked.hits, up_to: None };
                let status = self.charged(charge, asked.is_negative).await?;
                if status.is_deny() {
                    self.saturate(charge, &status).await?;
                }
                Ok(Some(counted(&status, *requests, *unit, self.nodes)))
            }
        }
    }

    fn charge<'c>(
        &'c self,
        place: usize,
        values: &'c BucketValues<'_>,
        cost: u32,
    ) -> Result<Charge<'c, S::Limit>, StoreError> {
        let limit = self.rules.descriptor_limit(place).ok_or(StoreError::UnknownLimit)?;
        Ok(Charge { limit, key: Key::List(values), cost, up_to: Some(Duration::ZERO) })
    }

    /// Makes a charge, or takes it back.
    async fn charged(&self, charge: Charge<'_, S::Limit>, is_negative: bool) -> Result<Status, StoreError> {
        let cost = match is_negative {
            true => {
                self.store.refund(charge.limit, charge.key, charge.cost).await?;
                0
            }
            false => charge.cost,
        };
        let set = self.store.check(&[charge.cost(cost)]).await?;
        set.statuses().first().copied().ok_or(StoreError::UnknownLimit)
    }

    /// A counter that cannot hold what came is full from then on.
    #[cold]
    async fn saturate(&self, charge: Charge<'_, S::Limit>, status: &Status) -> Result<(), StoreError> {
        if status.decided_by() == DecidedBy::Store && status.remaining() > 0 {
            let _ = self.store.check(&[charge.cost(status.remaining())]).await?;
        }
        Ok(())
    }
}

/// Whether a descriptor's refusal is the request's.
fn is_enforced(charge: &DescriptorCharge<'_>) -> bool {
    let is_plain = charge.rule.is_some_and(|rule| !rule.shadow_mode && !rule.quota_mode);
    is_plain && !charge.is_negative
}

/// The decision of a limit of the store.
fn limited(status: &Status) -> DescriptorDecision {
    let remaining = if status.is_deny() { 0 } else { status.remaining() };
    let reset = status.reset_after().unwrap_or(Duration::ZERO);
    DescriptorDecision { is_over: status.is_deny(), remaining, reset: whole_seconds(reset) }
}

/// The decision of a counter, beside the number that it is compared with.
fn counted(status: &Status, requests: u32, unit: Unit, nodes: NonZeroU32) -> DescriptorDecision {
    let (requests, is_over) = match status.decided_by() {
        DecidedBy::Failure(OnFailure::Open) => {
            return DescriptorDecision { is_over: false, remaining: requests, reset: left_of(unit) };
        }
        DecidedBy::Failure(OnFailure::Closed) => (requests, true),
        // A share is one at least, as for every limit that a node has a share of.
        DecidedBy::Failure(OnFailure::Local) if requests > 0 => ((requests / nodes).max(1), status.is_deny()),
        _ => (requests, status.is_deny()),
    };
    let count = status.limit().saturating_sub(status.remaining());
    let is_over = is_over || count > requests;
    let remaining = if is_over { 0 } else { requests - count };
    let reset = match status.reset_after() {
        Some(reset) if !reset.is_zero() => whole_seconds(reset),
        _ => left_of(unit),
    };
    DescriptorDecision { is_over, remaining, reset }
}

/// Rounded up: a client that comes back then is not early.
const fn whole_seconds(time: Duration) -> u64 {
    if time.subsec_nanos() > 0 { time.as_secs().saturating_add(1) } else { time.as_secs() }
}

/// What is left of the unit that is now, where no store has said.
fn left_of(unit: Unit) -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
    let length = unit.length().as_secs();
    length - now % length
}
