//! A request of Envoy's: what limits each of its descriptors, put to the decision service.

use super::{
    answer::answer,
    messages::{RateLimitDescriptor, RateLimitRequest, RateLimitResponse, WireUnit},
};
use thiserror::Error;
use tollgate::{Store, StoreError};
use tollgate_rules::{
    decision::{DescriptorCharge, DescriptorLimit, Descriptors, Session},
    domains::{BucketValues, Domains, Measure},
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

/// Decides a request.
pub(super) async fn decide<S: Store>(
    session: &Session<S>,
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
    let domains = &session.rules().program().file().domains;
    if domains.is_empty() {
        return Err(AskError::NotLoaded);
    }
    let mut charges = Descriptors::new();
    for (place, descriptor) in request.descriptors.iter().enumerate() {
        charges.push(charge_of(domains, request, place, descriptor)?);
    }
    drop_replaced(&mut charges);
    let decisions = session.decide_descriptors(&mut charges).await?;
    Ok(answer(domains.settings(), request, &charges, &decisions))
}

/// What holds for one descriptor.
fn charge_of<'a>(
    domains: &'a Domains,
    request: &'a RateLimitRequest,
    place: usize,
    descriptor: &'a RateLimitDescriptor,
) -> Result<DescriptorCharge<'a>, AskError> {
    let hits = descriptor.hits_addend.unwrap_or_else(|| request.hits_addend.max(1).into());
    let mut charge = DescriptorCharge {
        limit: DescriptorLimit::None,
        rule: None,
        place: None,
        hits: u32::try_from(hits).unwrap_or(u32::MAX),
        is_negative: descriptor.is_negative_hits,
    };
    let name = request.domain.as_str();
    // Nothing limits an unknown domain, whatever limits come with the request.
    let Some(domain) = domains.get(name) else { return Ok(charge) };
    let entries = descriptor.entries.iter().map(|entry| (entry.key.as_str(), entry.value.as_str()));
    if let Some(limit) = &descriptor.limit {
        let unit = WireUnit::try_from(limit.unit).ok().filter(|unit| *unit != WireUnit::Week);
        let unit = unit.and_then(WireUnit::unit).ok_or(AskError::OverrideUnit { descriptor: place })?;
        let mut values = BucketValues::new();
        values.push(Some(name));
        entries.for_each(|(key, value)| values.extend([Some(key), Some(value)]));
        charge.limit = DescriptorLimit::Counted { requests: limit.requests_per_unit, unit, values };
        return Ok(charge);
    }
    let Some(found) = domain.find(name, entries) else { return Ok(charge) };
    let rule = &domains.rules()[found.rule];
    let settings = domains.settings();
    let counts = settings.count_refused && !settings.atomic;
    (charge.rule, charge.place) = (Some(rule), Some(found.rule));
    charge.limit = match rule.measure {
        Measure::PerUnit { requests, unit } if counts => {
            DescriptorLimit::Counted { requests, unit, values: found.values }
        }
        Measure::PerUnit { requests: 0, unit } => DescriptorLimit::Blocked { unit, values: found.values },
        Measure::Unlimited => DescriptorLimit::Unlimited,
        _ => DescriptorLimit::Limited { place: found.rule, values: found.values },
    };
    Ok(charge)
}

/// Removes the limits that another rule of the same request replaces: they are neither enforced nor counted. An unlimited
/// rule has nothing to remove and is still reported as unlimited.
fn drop_replaced(charges: &mut [DescriptorCharge<'_>]) {
    let is_replacing =
        |charge: &DescriptorCharge<'_>| charge.rule.is_some_and(|rule| !rule.replaces.is_empty());
    if !charges.iter().any(is_replacing) {
        return;
    }
    let replaced: Vec<&str> = charges
        .iter()
        .filter_map(|charge| charge.rule)
        .flat_map(|rule| rule.replaces.iter().map(|name| &**name))
        .collect();
    for charge in charges.iter_mut().filter(|charge| !matches!(charge.limit, DescriptorLimit::Unlimited)) {
        if charge.rule.is_some_and(|rule| !rule.name.is_empty() && replaced.contains(&&*rule.name)) {
            (charge.limit, charge.rule) = (DescriptorLimit::None, None);
        }
    }
}
