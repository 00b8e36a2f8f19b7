//! How descriptors stand, put into an answer: codes, statuses, headers, metadata.

use super::{
    messages::{
        Code, DescriptorStatus, Duration, HeaderValue, Kind, RateLimit, RateLimitDescriptor,
        RateLimitRequest, RateLimitResponse, Struct, Value, WireUnit,
    },
    units,
};
use std::collections::BTreeMap;
use tollgate_rules::{
    decision::{DescriptorCharge, DescriptorDecision, DescriptorLimit},
    domains::{DomainSettings, Measure, Metadata},
};

/// The answer to a request. Its overall code is never unknown: Envoy would let the request pass.
pub(super) fn answer(
    settings: &DomainSettings,
    request: &RateLimitRequest,
    charges: &[DescriptorCharge<'_>],
    decisions: &[Option<DescriptorDecision>],
) -> RateLimitResponse {
    let mut statuses = Vec::with_capacity(charges.len());
    let mut tally = Tally::default();
    for (charge, decision) in charges.iter().zip(decisions) {
        let rule = charge.rule;
        let is_quota = settings.quota_mode || rule.is_some_and(|rule| rule.quota_mode);
        let is_shadow = rule.is_some_and(|rule| rule.shadow_mode);
        let is_over = decision.is_some_and(|decision| decision.is_over) && !is_shadow;
        if !matches!(charge.limit, DescriptorLimit::Unlimited) {
            tally.add(is_quota, is_over);
        }
        statuses.push((status(charge, decision.as_ref(), is_over), is_quota));
    }
    let headers = if settings.headers { headers(&statuses) } else { Vec::new() };
    let metadata = settings.dynamic_metadata.then(|| metadata(request, charges, &statuses));
    let is_refused = tally.is_refused() && !settings.shadow_mode;
    RateLimitResponse {
        overall_code: if is_refused { Code::OverLimit } else { Code::Ok }.into(),
        statuses: statuses.into_iter().map(|(status, _)| status).collect(),
        response_headers_to_add: headers,
        request_headers_to_add: Vec::new(),
        raw_body: Vec::new(),
        dynamic_metadata: metadata,
    }
}

/// How many are over, and of which sort.
#[derive(Default)]
struct Tally {
    is_over: bool,
    quotas: usize,
    quotas_over: usize,
}

impl Tally {
    fn add(&mut self, is_quota: bool, is_over: bool) {
        match is_quota {
            true => {
                self.quotas += 1;
                self.quotas_over += usize::from(is_over);
            }
            false => self.is_over |= is_over,
        }
    }

    /// One that is over refuses; of quotas, all must be.
    const fn is_refused(&self) -> bool {
        self.is_over || (self.quotas > 0 && self.quotas == self.quotas_over)
    }
}

fn status(
    charge: &DescriptorCharge<'_>,
    decision: Option<&DescriptorDecision>,
    is_over: bool,
) -> DescriptorStatus {
    let code = if is_over { Code::OverLimit } else { Code::Ok }.into();
    match decision {
        Some(decision) => DescriptorStatus {
            code,
            limit_remaining: decision.remaining,
            duration_until_reset: Some(Duration {
                seconds: i64::try_from(decision.reset).unwrap_or(i64::MAX),
                nanos: 0,
            }),
            current_limit: limit_of(charge),
        },
        None => DescriptorStatus {
            code,
            limit_remaining: if matches!(charge.limit, DescriptorLimit::Unlimited) { u32::MAX } else { 0 },
            ..DescriptorStatus::default()
        },
    }
}

/// The limit of a descriptor, as it is told.
fn limit_of(charge: &DescriptorCharge<'_>) -> Option<RateLimit> {
    let name = charge.rule.map_or("", |rule| &*rule.name);
    match (&charge.limit, charge.rule.map(|rule| &rule.measure)) {
        (DescriptorLimit::Counted { requests, unit, .. }, _)
        | (DescriptorLimit::Limited { .. }, Some(Measure::PerUnit { requests, unit })) => {
            Some(units::per_unit(*requests, *unit, name))
        }
        (DescriptorLimit::Blocked { unit, .. }, _) => Some(units::per_unit(0, *unit, name)),
        (DescriptorLimit::Limited { .. }, Some(Measure::Limit(limit))) => Some(units::of_limit(limit, name)),
        _ => None,
    }
}

/// Headers of the descriptor that matters most: the last that refuses by itself, else the one with the least left.
fn headers(statuses: &[(DescriptorStatus, bool)]) -> Vec<HeaderValue> {
    let limits = || statuses.iter().filter(|(status, _)| status.current_limit.is_some());
    let refusing = limits().rfind(|(status, is_quota)| status.code() == Code::OverLimit && !is_quota);
    let Some((status, _)) = refusing.or_else(|| limits().min_by_key(|(status, _)| status.limit_remaining))
    else {
        return Vec::new();
    };
    let limit = status.current_limit.as_ref().map_or(0, |limit| limit.requests_per_unit);
    let reset = status.duration_until_reset.map_or(0, |reset| reset.seconds);
    [
        ("RateLimit-Limit", limit.to_string()),
        ("RateLimit-Remaining", status.limit_remaining.to_string()),
        ("RateLimit-Reset", reset.to_string()),
    ]
    .map(|(key, value)| HeaderValue { key: key.to_owned(), value, raw_value: Vec::new() })
    .into()
}

/// The request, and the merged metadata of the descriptors that have quota left: those that a limit held for and let pass.
/// Envoy routes by it, so a descriptor that is over its limit must not be in it.
fn metadata(
    request: &RateLimitRequest,
    charges: &[DescriptorCharge<'_>],
    statuses: &[(DescriptorStatus, bool)],
) -> Struct {
    let mut merged = Metadata::Struct(Vec::new());
    for (charge, (status, _)) in charges.iter().zip(statuses) {
        let limited = charge.rule.filter(|rule| rule.measure != Measure::Unlimited);
        if status.code() == Code::Ok
            && let Some(metadata) = limited.and_then(|rule| rule.metadata.as_ref())
        {
            merged.merge(metadata);
        }
    }
    let descriptors: Vec<Value> = request.descriptors.iter().map(|it| descriptor(it).into()).collect();
    let mut fields = BTreeMap::from([
        ("domain".to_owned(), request.domain.clone().into()),
        ("descriptors".to_owned(), descriptors.into()),
    ]);
    if request.hits_addend != 0 {
        fields.insert("hitsAddend".to_owned(), f64::from(request.hits_addend).into());
    }
    if !matches!(&merged, Metadata::Struct(fields) if fields.is_empty()) {
        fields.insert("metadata".to_owned(), value(&merged));
    }
    Struct { fields }
}

fn descriptor(descriptor: &RateLimitDescriptor) -> BTreeMap<String, Value> {
    let entry = |entry: &super::messages::Entry| Value::from(format!("{}={}", entry.key, entry.value));
    let entries: Vec<_> = descriptor.entries.iter().map(entry).collect();
    let mut fields = BTreeMap::from([("entries".to_owned(), entries.into())]);
    if let Some(limit) = &descriptor.limit {
        let unit = WireUnit::try_from(limit.unit).unwrap_or(WireUnit::Unknown).name();
        let text = format!("requests_per_unit:{} unit:{unit}", limit.requests_per_unit);
        fields.insert("limit".to_owned(), text.into());
    }
    if let Some(hits) = descriptor.hits_addend {
        // As JSON has numbers: exact up to 2^53.
        fields.insert("hitsAddend".to_owned(), (hits as f64).into());
    }
    fields
}

fn value(metadata: &Metadata) -> Value {
    match metadata {
        Metadata::Null => Value { kind: Some(Kind::NullValue(0)) },
        Metadata::Bool(it) => (*it).into(),
        Metadata::Number(it) => (*it).into(),
        Metadata::Text(it) => it.clone().into(),
        Metadata::List(items) => items.iter().map(value).collect::<Vec<_>>().into(),
        Metadata::Struct(fields) => {
            fields.iter().map(|(name, it)| (name.clone(), value(it))).collect::<BTreeMap<_, _>>().into()
        }
    }
}
