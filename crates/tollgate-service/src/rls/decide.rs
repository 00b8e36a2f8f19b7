//! What descriptors are told.
//!
//! By the files' own meaning a descriptor is a counter: its hits are added to what was counted in this unit, and it is over
//! where that is more than its limit. Refused hits count, and each descriptor is by itself. The counters are windows of the
//! store that hold all a number can, so a limit that comes with the question, or changes, is only another number to compare
//! with. Limits that are ours (`algorithm`, `atomic`, `count_refused: false`) are the store's to decide.

use super::{
    answer::{Standing, answer},
    messages::{RateLimitDescriptor, RateLimitRequest, RateLimitResponse, WireUnit},
    units,
};
use crate::desk::{Described, Ledger, Stood};
use futures_util::future::join_all;
use smallvec::SmallVec;
use std::{
    num::NonZeroU32,
    time::{Duration, SystemTime},
};
use thiserror::Error;
use tollgate::{Charge, DecidedBy, Key, OnFailure, Status, Store, StoreError};
use tollgate_rules::{
    Edition,
    domains::{BucketValues, DescriptorRule, Domains, Measure, Unit},
};

/// Descriptors of one request; Envoy sends a handful.
const MOST_DESCRIPTORS: usize = 1_000;

/// Why a request has no answer.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum AskError {
    /// It names no domain.
    #[error("rate limit domain must not be empty")]
    NoDomain,
    /// It has no descriptors.
    #[error("rate limit descriptor list must not be empty")]
    NoDescriptors,
    /// It has more than are looked at.
    #[error("rate limit descriptor list must not be longer than {MOST_DESCRIPTORS}")]
    TooManyDescriptors,
    /// A limit that came with it names no unit.
    #[error("descriptors[{descriptor}].limit.unit must be one of SECOND, MINUTE, HOUR, DAY, MONTH or YEAR")]
    OverrideUnit {
        /// Which descriptor's.
        descriptor: usize,
    },
    /// No domain is loaded.
    #[error("no rate limit configuration loaded")]
    NotLoaded,
    /// As many are being decided as may be.
    #[error("too many requests are being decided: at most {most} at once")]
    Full {
        /// How many.
        most: usize,
    },
    /// The store did not answer, and no policy decides instead.
    #[error("the store cannot answer: {0}")]
    Store(#[from] StoreError),
}

/// What a descriptor is to be told by.
#[derive(Default)]
pub(super) enum Held<'a> {
    /// Nothing limits it.
    #[default]
    Free,
    /// It passes whatever comes, and is not counted.
    Unlimited,
    /// A counter, compared with a number.
    Counted { requests: u32, unit: Unit, values: BucketValues<'a> },
    /// A limit of the store, by the place of its rule.
    Limited { place: usize, values: BucketValues<'a> },
    /// Zero requests a unit, where refused hits are not counted: nothing is asked.
    Blocked { unit: Unit, values: BucketValues<'a> },
}

/// A descriptor, and what holds for it.
pub(super) struct Asked<'a> {
    pub(super) held: Held<'a>,
    pub(super) rule: Option<&'a DescriptorRule>,
    /// The place of that rule among all of the domains.
    place: Option<usize>,
    pub(super) hits: u32,
    pub(super) is_negative: bool,
}

pub(super) type Few<T> = SmallVec<[T; 4]>;

/// Decides a request.
pub(super) async fn decide<S: Store>(
    edition: &Edition<S>,
    ledger: &dyn Ledger,
    request: &RateLimitRequest,
) -> Result<RateLimitResponse, AskError> {
    if request.domain.is_empty() {
        return Err(AskError::NoDomain);
    }
    match request.descriptors.len() {
        0 => return Err(AskError::NoDescriptors),
        1..=MOST_DESCRIPTORS => {}
        _ => return Err(AskError::TooManyDescriptors),
    }
    let file = edition.program().file();
    let domains = &file.domains;
    if domains.is_empty() {
        return Err(AskError::NotLoaded);
    }
    let mut asked = Few::new();
    for (place, descriptor) in request.descriptors.iter().enumerate() {
        asked.push(asked_of(domains, request, place, descriptor)?);
    }
    drop_replaced(&mut asked);
    // The global switch: nothing is refused, and no store is touched.
    if !file.enabled {
        for asked in &mut asked {
            book(ledger, asked, Stood::Skipped);
            asked.held = Held::Free;
        }
    }
    let clerk = Clerk { edition, nodes: NonZeroU32::new(file.store.nodes).unwrap_or(NonZeroU32::MIN) };
    let standings = match clerk.standings(&asked, domains).await {
        Ok(standings) => standings,
        Err(error) => {
            asked.iter().for_each(|asked| book(ledger, asked, Stood::Unanswered));
            return Err(error.into());
        }
    };
    let all_shadow = domains.settings().shadow_mode;
    for (asked, standing) in asked.iter().zip(&standings) {
        if let Some(standing) = standing {
            book(ledger, asked, stood(asked, standing, all_shadow));
        }
    }
    Ok(answer(domains.settings(), request, &asked, standings))
}

fn stood(asked: &Asked<'_>, standing: &Standing, all_shadow: bool) -> Stood {
    match standing.is_over {
        true if all_shadow || asked.rule.is_some_and(|rule| rule.shadow_mode) => Stood::Shadow,
        true => Stood::Over,
        false => Stood::Within,
    }
}

/// Tells of a descriptor that something limits.
fn book(ledger: &dyn Ledger, asked: &Asked<'_>, stood: Stood) {
    let (Held::Counted { values, .. } | Held::Limited { values, .. } | Held::Blocked { values, .. }) =
        &asked.held
    else {
        return;
    };
    let hits = if asked.is_negative { 0 } else { asked.hits };
    ledger.described(&Described { rule: asked.place, key: Key::List(values), hits, stood });
}

/// What holds for one descriptor.
fn asked_of<'a>(
    domains: &'a Domains,
    request: &'a RateLimitRequest,
    place: usize,
    descriptor: &'a RateLimitDescriptor,
) -> Result<Asked<'a>, AskError> {
    let hits = descriptor.hits_addend.unwrap_or_else(|| request.hits_addend.max(1).into());
    let mut asked = Asked {
        held: Held::Free,
        rule: None,
        place: None,
        hits: u32::try_from(hits).unwrap_or(u32::MAX),
        is_negative: descriptor.is_negative_hits,
    };
    let name = request.domain.as_str();
    // Nothing limits an unknown domain, whatever limits come with the request.
    let Some(domain) = domains.get(name) else { return Ok(asked) };
    let entries = descriptor.entries.iter().map(|entry| (entry.key.as_str(), entry.value.as_str()));
    if let Some(limit) = &descriptor.limit {
        let unit = WireUnit::try_from(limit.unit).ok().filter(|unit| *unit != WireUnit::Week);
        let unit = unit.and_then(WireUnit::unit).ok_or(AskError::OverrideUnit { descriptor: place })?;
        let mut values = BucketValues::new();
        values.push(Some(name));
        entries.for_each(|(key, value)| values.extend([Some(key), Some(value)]));
        asked.held = Held::Counted { requests: limit.requests_per_unit, unit, values };
        return Ok(asked);
    }
    let Some(found) = domain.find(name, entries) else { return Ok(asked) };
    let rule = &domains.rules()[found.rule];
    let settings = domains.settings();
    let counts = settings.count_refused && !settings.atomic;
    (asked.rule, asked.place) = (Some(rule), Some(found.rule));
    asked.held = match rule.measure {
        Measure::PerUnit { requests, unit } if counts => {
            Held::Counted { requests, unit, values: found.values }
        }
        Measure::PerUnit { requests: 0, unit } => Held::Blocked { unit, values: found.values },
        Measure::Unlimited => Held::Unlimited,
        _ => Held::Limited { place: found.rule, values: found.values },
    };
    Ok(asked)
}

/// Removes the limits that another rule of the same request replaces: they are neither enforced nor counted. An unlimited
/// rule has nothing to remove and is still reported as unlimited.
fn drop_replaced(asked: &mut [Asked<'_>]) {
    let is_replacing = |asked: &Asked<'_>| asked.rule.is_some_and(|rule| !rule.replaces.is_empty());
    if !asked.iter().any(is_replacing) {
        return;
    }
    let replaced: Vec<&str> = asked
        .iter()
        .filter_map(|asked| asked.rule)
        .flat_map(|rule| rule.replaces.iter().map(|name| &**name))
        .collect();
    for asked in asked.iter_mut().filter(|asked| !matches!(asked.held, Held::Unlimited)) {
        if asked.rule.is_some_and(|rule| !rule.name.is_empty() && replaced.contains(&&*rule.name)) {
            (asked.held, asked.rule) = (Held::Free, None);
        }
    }
}

/// Asks the store.
struct Clerk<'e, S: Store> {
    edition: &'e Edition<S>,
    nodes: NonZeroU32,
}

impl<S: Store> Clerk<'_, S> {
    /// How every descriptor stands; `None` where nothing limits it.
    async fn standings(
        &self,
        asked: &[Asked<'_>],
        domains: &Domains,
    ) -> Result<Few<Option<Standing>>, StoreError> {
        if let [one] = asked {
            return Ok(Few::from_iter([self.standing(one).await?]));
        }
        let mut standings: Few<Option<Standing>> = asked.iter().map(|_| None).collect();
        let settings = domains.settings();
        let is_limited = |asked: &Asked<'_>| matches!(asked.held, Held::Limited { .. }) && is_enforced(asked);
        let together: Few<usize> = match settings.atomic && !settings.quota_mode {
            true => (0..asked.len()).filter(|at| is_limited(&asked[*at])).collect(),
            false => Few::new(),
        };
        for (at, standing) in together.iter().zip(self.together(asked, &together).await?) {
            standings[*at] = Some(standing);
        }
        // Side by side, so that a shared store hears them in one call.
        let alone: Few<usize> = (0..asked.len()).filter(|at| !together.contains(at)).collect();
        let told = join_all(alone.iter().map(|at| self.standing(&asked[*at]))).await;
        for (at, standing) in alone.iter().zip(told) {
            standings[*at] = standing?;
        }
        Ok(standings)
    }

    /// Charges all of some descriptors, or none: also none where another of the request has a limit of zero.
    async fn together(&self, asked: &[Asked<'_>], which: &[usize]) -> Result<Few<Standing>, StoreError> {
        if which.is_empty() {
            return Ok(Few::new());
        }
        let mut charges: Few<Charge<'_, S::Limit>> = Few::new();
        for asked in which.iter().map(|at| &asked[*at]) {
            let Held::Limited { place, values } = &asked.held else { continue };
            charges.push(self.charge(*place, values, asked.hits)?);
        }
        let is_blocked = |asked: &Asked<'_>| {
            matches!(asked.held, Held::Blocked { .. }) && asked.hits > 0 && is_enforced(asked)
        };
        let store = self.edition.store();
        let status = match asked.iter().any(is_blocked) {
            true => store.peek(&charges).await?,
            false => store.check(&charges).await?,
        };
        let told = which.iter().zip(status.statuses());
        Ok(told.filter_map(|(at, status)| limited(&asked[*at], status)).collect())
    }

    async fn standing(&self, asked: &Asked<'_>) -> Result<Option<Standing>, StoreError> {
        let name = asked.rule.map_or("", |rule| &*rule.name);
        match &asked.held {
            Held::Free | Held::Unlimited => Ok(None),
            Held::Blocked { unit, .. } => {
                let limit = units::per_unit(0, *unit, name);
                Ok(Some(Standing { is_over: asked.hits > 0, remaining: 0, reset: left_of(*unit), limit }))
            }
            Held::Limited { place, values } => {
                let charge = self.charge(*place, values, asked.hits)?;
                limited(asked, &self.charged(charge, asked.is_negative).await?)
                    .map(Some)
                    .ok_or(StoreError::UnknownLimit)
            }
            Held::Counted { requests, unit, values } => {
                let limit = self.edition.counter(*unit).ok_or(StoreError::UnknownLimit)?;
                let charge = Charge { limit, key: Key::List(values), cost: asked.hits, up_to: None };
                let status = self.charged(charge, asked.is_negative).await?;
                let limit = units::per_unit(*requests, *unit, name);
                if status.is_deny() {
                    self.saturate(charge, &status).await?;
                }
                Ok(Some(counted(&status, *requests, *unit, self.nodes, limit)))
            }
        }
    }

    fn charge<'c>(
        &'c self,
        place: usize,
        values: &'c BucketValues<'_>,
        cost: u32,
    ) -> Result<Charge<'c, S::Limit>, StoreError> {
        let limit = self.edition.descriptor_limit(place).ok_or(StoreError::UnknownLimit)?;
        Ok(Charge { limit, key: Key::List(values), cost, up_to: Some(Duration::ZERO) })
    }

    /// Makes a charge, or takes it back.
    async fn charged(&self, charge: Charge<'_, S::Limit>, is_negative: bool) -> Result<Status, StoreError> {
        let store = self.edition.store();
        let cost = match is_negative {
            true => {
                store.refund(charge.limit, charge.key, charge.cost).await?;
                0
            }
            false => charge.cost,
        };
        let set = store.check(&[charge.cost(cost)]).await?;
        set.statuses().first().copied().ok_or(StoreError::UnknownLimit)
    }

    /// A counter that cannot hold what came is full from then on.
    #[cold]
    async fn saturate(&self, charge: Charge<'_, S::Limit>, status: &Status) -> Result<(), StoreError> {
        if status.decided_by() == DecidedBy::Store && status.remaining() > 0 {
            let _ = self.edition.store().check(&[charge.cost(status.remaining())]).await?;
        }
        Ok(())
    }
}

/// Whether a descriptor's refusal is the request's.
fn is_enforced(asked: &Asked<'_>) -> bool {
    let is_plain = asked.rule.is_some_and(|rule| !rule.shadow_mode && !rule.quota_mode);
    is_plain && !asked.is_negative
}

/// How a limit of the store stands.
fn limited(asked: &Asked<'_>, status: &Status) -> Option<Standing> {
    let rule = asked.rule?;
    let limit = match &rule.measure {
        Measure::PerUnit { requests, unit } => units::per_unit(*requests, *unit, &rule.name),
        Measure::Limit(limit) => units::of_limit(limit, &rule.name),
        _ => return None,
    };
    let remaining = if status.is_deny() { 0 } else { status.remaining() };
    let reset = status.reset_after().unwrap_or(Duration::ZERO);
    Some(Standing { is_over: status.is_deny(), remaining, reset: whole_seconds(reset), limit })
}

/// How a counter stands, beside the number that it is compared with.
fn counted(
    status: &Status,
    requests: u32,
    unit: Unit,
    nodes: NonZeroU32,
    limit: super::messages::RateLimit,
) -> Standing {
    let reset = |status: &Status| match status.reset_after() {
        Some(reset) if !reset.is_zero() => whole_seconds(reset),
        _ => left_of(unit),
    };
    let (requests, is_over) = match status.decided_by() {
        DecidedBy::Failure(OnFailure::Open) => {
            return Standing { is_over: false, remaining: requests, reset: left_of(unit), limit };
        }
        DecidedBy::Failure(OnFailure::Closed) => (requests, true),
        // A share is one at least, as for every limit that a node has a share of.
        DecidedBy::Failure(OnFailure::Local) if requests > 0 => ((requests / nodes).max(1), status.is_deny()),
        _ => (requests, status.is_deny()),
    };
    let count = status.limit().saturating_sub(status.remaining());
    let is_over = is_over || count > requests;
    let remaining = if is_over { 0 } else { requests - count };
    Standing { is_over, remaining, reset: reset(status), limit }
}

/// Rounded up: whoever comes back then is not early.
const fn whole_seconds(time: Duration) -> u64 {
    if time.subsec_nanos() > 0 { time.as_secs().saturating_add(1) } else { time.as_secs() }
}

/// What is left of the unit that is now, where no store has said.
fn left_of(unit: Unit) -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
    let length = unit.length().as_secs();
    length - now % length
}
