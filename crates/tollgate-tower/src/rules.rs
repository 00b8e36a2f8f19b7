//! What a layer's clones share: its limits, how it decides requests, and what it responds.

use crate::{
    backend::{Admitting, Backend, Checked, Few, KeyCharge},
    key::{By, Found, MISSING, Missing},
    layer_limit::Terms,
    refusal::{Cause, Refusal},
};
use bytes::Bytes;
use http::{HeaderMap, Response, request::Parts};
use std::{sync::Arc, time::Duration};
use tollgate::{Decision, Limit, Retry, SetStatus, Status, StoreError, WaitError};
use tollgate_http::{HeaderStyle, Policies, Policy, RefusalStyle, TrustedProxies};

#[derive(Clone)]
pub(crate) struct Rules {
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) limits: Vec<KeyedLimit>,
    /// For limits that say nothing of their own.
    pub(crate) terms: Terms,
    pub(crate) proxies: TrustedProxies,
    pub(crate) wait: Option<Duration>,
    pub(crate) policies: Policies,
    pub(crate) refusal: RefusalStyle,
    pub(crate) on_refusal: Option<Arc<OnRefusal>>,
}

pub(crate) type OnRefusal = dyn Fn(&Refusal<'_>) -> Response<Bytes> + Send + Sync;

/// A limit of the layer, and how it finds its key.
#[derive(Clone)]
pub(crate) struct KeyedLimit {
    pub(crate) name: String,
    pub(crate) limit: Limit,
    pub(crate) terms: Terms,
    /// How long it delays by itself.
    pub(crate) delay: Option<Duration>,
    pub(crate) has_slots: bool,
}

/// How limits stand, by their places in the layer: what responses tell of them.
#[derive(Debug)]
pub(crate) struct LimitReport {
    /// Which limits charged; all, where it is nothing.
    which: Option<Vec<usize>>,
    /// `None` where no limit charged.
    status: Option<SetStatus>,
}

/// What becomes of a request.
pub(crate) enum RequestDecision {
    Pass(LimitReport),
    Refuse(Response<Bytes>),
    /// The store has to be asked, or the request may wait, or it holds slots.
    Later(Admitting, Option<Vec<usize>>),
}

impl Rules {
    pub(crate) fn decide(&self, request: &Parts) -> RequestDecision {
        let is_plain = self.is_plain();
        // One limit that always charges needs no lists.
        if let ([one], true) = (&self.limits[..], is_plain)
            && let Some(found) = self.by(one).find(request, &self.proxies)
        {
            let values = found.values();
            let cost = self.cost(one, request);
            let charge = KeyCharge { limit: 0, key: found.key(&values), cost, up_to: None };
            return self.check(&[charge], None, request);
        }
        let mut found = Few::new();
        for (index, limited) in self.limits.iter().enumerate() {
            let key = self.by(limited).find(request, &self.proxies);
            match (key, limited.terms.missing.or(self.terms.missing).unwrap_or_default()) {
                (Some(key), _) => found.push((index, key)),
                (None, Missing::Share) => found.push((index, Found::Lent(MISSING))),
                (None, Missing::Skip) => {}
                (None, Missing::Deny) => return RequestDecision::Refuse(self.without_key(request, limited)),
            }
        }
        let which =
            (found.len() < self.limits.len()).then(|| found.iter().map(|(index, _)| *index).collect());
        let values: Few<_> = found.iter().map(|(_, found)| found.values()).collect();
        let charges: Few<_> = found
            .iter()
            .zip(&values)
            .map(|((index, found), values)| {
                let limited = &self.limits[*index];
                let up_to = (!is_plain).then(|| self.patience(limited));
                let (key, cost) = (found.key(values), self.cost(limited, request));
                KeyCharge { limit: *index, key, cost, up_to }
            })
            .collect();
        if charges.is_empty() {
            return RequestDecision::Pass(LimitReport { which, status: None });
        }
        if is_plain {
            self.check(&charges, which, request)
        } else {
            RequestDecision::Later(Arc::clone(&self.backend).enter(&charges), which)
        }
    }

    fn check(
        &self,
        charges: &[KeyCharge<'_>],
        which: Option<Vec<usize>>,
        request: &Parts,
    ) -> RequestDecision {
        let status = match self.backend.check(charges) {
            Checked::Now(Ok(status)) => status,
            Checked::Now(Err(error)) => return RequestDecision::Refuse(self.undecided(request, &error)),
            Checked::Later(admitting) => return RequestDecision::Later(admitting, which),
        };
        let (decision, by) = (status.decision(), status.denied_by().unwrap_or(0));
        let report = LimitReport::new(which, status);
        match decision {
            Decision::Deny(retry) => RequestDecision::Refuse(self.refuse(request, &report, by, retry)),
            // Limits that make a request wait are entered, not checked.
            Decision::Allow | Decision::Wait(_) => RequestDecision::Pass(report),
        }
    }

    /// Whether every request is answered at once and holds nothing.
    fn is_plain(&self) -> bool {
        self.wait.is_none() && !self.limits.iter().any(|it| it.has_slots || it.delay.is_some())
    }

    fn by<'a>(&'a self, limited: &'a KeyedLimit) -> &'a By {
        limited.terms.by.as_ref().or(self.terms.by.as_ref()).unwrap_or(&By::Everyone)
    }

    fn cost(&self, limited: &KeyedLimit, request: &Parts) -> u32 {
        let cost = limited.terms.cost.as_ref().or(self.terms.cost.as_ref());
        cost.map_or(1, |cost| cost.of(request))
    }

    /// How long a charge may wait: as long as requests may, and for its own pace in any case.
    fn patience(&self, limited: &KeyedLimit) -> Duration {
        self.wait.unwrap_or_default().max(limited.delay.unwrap_or_default())
    }

    /// Writes the header fields of a request that passed.
    pub(crate) fn write_headers(&self, report: &LimitReport, headers: &mut HeaderMap) {
        self.policies.allow(report.pairs(), headers);
    }

    /// The response to a request that was not admitted.
    pub(crate) fn reject(
        &self,
        request: &Parts,
        which: Option<Vec<usize>>,
        error: &WaitError,
    ) -> Response<Bytes> {
        match error {
            WaitError::Refused(refused) => {
                let status = SetStatus::new(refused.statuses().iter().copied(), None);
                let report = LimitReport::new(which, status);
                self.refuse(request, &report, refused.denied_by(), refused.retry())
            }
            WaitError::Store(error) => self.undecided(request, error),
            // Whatever else a wait may come to end with.
            _ => self.undecided(request, &StoreError::UnknownLimit),
        }
    }

    /// `by` is the charge that was decisive. It may have room again, where a wait has ended; it is named all the same.
    fn refuse(&self, request: &Parts, report: &LimitReport, by: usize, retry: Retry) -> Response<Bytes> {
        let mut violated: Vec<_> = self.policies.violated(report.pairs()).collect();
        if violated.is_empty() {
            violated.extend(self.limits.get(report.place(by)).map(|limited| &*limited.name));
        }
        let after = tollgate_http::retry_after(retry, report.statuses());
        let mut response = self.answer(&Refusal {
            request,
            cause: Cause::Limit,
            violated: &violated,
            retry_after: after,
            style: self.refusal,
        });
        self.policies.refuse(report.pairs(), retry, response.headers_mut());
        response
    }

    fn without_key(&self, request: &Parts, limited: &KeyedLimit) -> Response<Bytes> {
        self.answer(&Refusal {
            request,
            cause: Cause::MissingKey,
            violated: &[&limited.name],
            retry_after: None,
            style: self.refusal,
        })
    }

    fn undecided(&self, request: &Parts, error: &StoreError) -> Response<Bytes> {
        let cause = Cause::Undecided(error);
        self.answer(&Refusal { request, cause, violated: &[], retry_after: None, style: self.refusal })
    }

    fn answer(&self, refusal: &Refusal<'_>) -> Response<Bytes> {
        self.on_refusal.as_ref().map_or_else(|| refusal.response(), |make| make(refusal))
    }

    /// Makes anew what is constant, after a change.
    pub(crate) fn set_headers(&mut self, style: HeaderStyle) {
        let policies = self.limits.iter().map(|it| Policy::of(it.name.clone(), &it.limit));
        self.policies = Policies::new(style, policies);
    }
}

impl LimitReport {
    pub(crate) const fn new(which: Option<Vec<usize>>, status: SetStatus) -> Self {
        Self { which, status: Some(status) }
    }

    fn statuses(&self) -> &[Status] {
        self.status.as_ref().map(SetStatus::statuses).unwrap_or_default()
    }

    /// The place of a charge's limit in the layer.
    fn place(&self, charge: usize) -> usize {
        self.which.as_ref().and_then(|which| which.get(charge).copied()).unwrap_or(charge)
    }

    fn pairs(&self) -> impl Iterator<Item = (usize, &Status)> + Clone {
        self.statuses().iter().enumerate().map(|(charge, status)| (self.place(charge), status))
    }
}
