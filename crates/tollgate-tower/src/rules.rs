//! What a layer's clones share: its limits, what it asks of requests, and what it tells them.

use crate::{
    gate::{Entering, Gate},
    held::Keeper,
    key::{By, Found, MISSING, Missing},
    refusal::{Cause, Refusal},
    toll::Terms,
};
use bytes::Bytes;
use http::{HeaderMap, Response, request::Parts};
use std::{sync::Arc, time::Duration};
use tollgate::{Charge, Decision, Limit, LimitHandle, Retry, Status, StoreError, WaitError};
use tollgate_http::{HeaderStyle, Policies, Policy, RefusalStyle, TrustedProxies};

#[derive(Clone)]
pub(crate) struct Rules {
    pub(crate) gate: Arc<dyn Gate>,
    pub(crate) keeper: Arc<Keeper>,
    pub(crate) limits: Vec<Limited>,
    /// For limits that say nothing of their own.
    pub(crate) terms: Terms,
    pub(crate) proxies: TrustedProxies,
    pub(crate) wait: Option<Duration>,
    pub(crate) policies: Policies,
    pub(crate) refusal: RefusalStyle,
    pub(crate) on_refusal: Option<Arc<OnRefusal>>,
}

pub(crate) type OnRefusal = dyn Fn(&Refusal<'_>) -> Response<Bytes> + Send + Sync;

/// A limit in the store.
#[derive(Clone)]
pub(crate) struct Limited {
    pub(crate) name: String,
    pub(crate) limit: Limit,
    pub(crate) handle: LimitHandle,
    pub(crate) terms: Terms,
    /// How long it delays by itself.
    pub(crate) delay: Option<Duration>,
    /// Whether it holds slots.
    pub(crate) holds: bool,
}

/// How limits stand, by their numbers in the layer.
#[derive(Debug)]
pub(crate) struct Told {
    /// Which limits charged; all, where it is nothing.
    which: Option<Vec<usize>>,
    statuses: Vec<Status>,
}

/// What becomes of a request.
pub(crate) enum Decided {
    Pass(Told),
    Refuse(Response<Bytes>),
    /// It may have to wait, or holds something.
    Enter(Entering, Option<Vec<usize>>),
}

impl Rules {
    pub(crate) fn decide(&self, request: &Parts) -> Decided {
        let is_plain = self.is_plain();
        // One limit that always charges needs no lists.
        if let ([one], true) = (&self.limits[..], is_plain)
            && let Some(found) = self.by(one).find(request, &self.proxies)
        {
            let values = found.values();
            let charge = Charge::new(&one.handle, found.key(&values)).cost(self.cost(one, request));
            return match self.gate.check_one(&charge) {
                Ok(status) => {
                    let told = Told { which: None, statuses: vec![status] };
                    self.decided(status.decision(), told, 0, request)
                }
                Err(error) => Decided::Refuse(self.undecided(request, &error)),
            };
        }
        let mut found = Vec::with_capacity(self.limits.len());
        for (index, limited) in self.limits.iter().enumerate() {
            let key = self.by(limited).find(request, &self.proxies);
            match (key, limited.terms.missing.or(self.terms.missing).unwrap_or_default()) {
                (Some(key), _) => found.push((index, key)),
                (None, Missing::Share) => found.push((index, Found::Lent(MISSING))),
                (None, Missing::Skip) => {}
                (None, Missing::Deny) => return Decided::Refuse(self.without_key(request, limited)),
            }
        }
        let which =
            (found.len() < self.limits.len()).then(|| found.iter().map(|(index, _)| *index).collect());
        let values: Vec<_> = found.iter().map(|(_, found)| found.values()).collect();
        let charges: Vec<_> = found
            .iter()
            .zip(&values)
            .map(|((index, found), values)| {
                let limited = &self.limits[*index];
                let charge =
                    Charge::new(&limited.handle, found.key(values)).cost(self.cost(limited, request));
                if is_plain { charge } else { charge.up_to(self.patience(limited)) }
            })
            .collect();
        if charges.is_empty() {
            return Decided::Pass(Told { which, statuses: Vec::new() });
        }
        if !is_plain {
            return Decided::Enter(self.gate.enter(&charges), which);
        }
        match self.gate.check(&charges) {
            Ok(set) => {
                let told = Told { which, statuses: set.statuses().to_vec() };
                self.decided(set.decision(), told, set.denied_by().unwrap_or(0), request)
            }
            Err(error) => Decided::Refuse(self.undecided(request, &error)),
        }
    }

    fn decided(&self, decision: Decision, told: Told, by: usize, request: &Parts) -> Decided {
        match decision {
            Decision::Deny(retry) => Decided::Refuse(self.refused(request, &told, by, retry)),
            // Limits that make a request wait are entered, not checked.
            Decision::Allow | Decision::Wait(_) => Decided::Pass(told),
        }
    }

    /// Whether every request is answered at once and holds nothing.
    fn is_plain(&self) -> bool {
        self.wait.is_none() && !self.limits.iter().any(|it| it.holds || it.delay.is_some())
    }

    fn by<'a>(&'a self, limited: &'a Limited) -> &'a By {
        limited.terms.by.as_ref().or(self.terms.by.as_ref()).unwrap_or(&By::Everyone)
    }

    fn cost(&self, limited: &Limited, request: &Parts) -> u32 {
        let cost = limited.terms.cost.as_ref().or(self.terms.cost.as_ref());
        cost.map_or(1, |cost| cost.of(request))
    }

    /// How long a charge may wait: as long as requests may, and for its own pace in any case.
    fn patience(&self, limited: &Limited) -> Duration {
        self.wait.unwrap_or_default().max(limited.delay.unwrap_or_default())
    }

    /// Tells of a request that passed.
    pub(crate) fn tell(&self, told: &Told, headers: &mut HeaderMap) {
        self.policies.allow(told.pairs(), headers);
    }

    /// The answer to a request whose turn did not come.
    pub(crate) fn turned_away(
        &self,
        request: &Parts,
        which: Option<Vec<usize>>,
        error: &WaitError,
    ) -> Response<Bytes> {
        match error {
            WaitError::Refused(refused) => {
                let told = Told { which, statuses: refused.statuses().to_vec() };
                self.refused(request, &told, refused.denied_by(), refused.retry())
            }
            WaitError::Store(error) => self.undecided(request, error),
            // Whatever else a wait may come to end with.
            _ => self.undecided(request, &StoreError::UnknownLimit),
        }
    }

    /// `by` is the charge that was decisive. It may have room again, where a wait has ended; it is named all the same.
    fn refused(&self, request: &Parts, told: &Told, by: usize, retry: Retry) -> Response<Bytes> {
        let mut violated: Vec<_> = self.policies.violated(told.pairs()).collect();
        if violated.is_empty() {
            violated.extend(self.limits.get(told.number(by)).map(|limited| &*limited.name));
        }
        let after = tollgate_http::retry_after(retry, &told.statuses);
        let mut response = self.answer(&Refusal {
            request,
            cause: Cause::Limit,
            violated: &violated,
            retry_after: after,
            style: self.refusal,
        });
        self.policies.refuse(told.pairs(), retry, response.headers_mut());
        response
    }

    fn without_key(&self, request: &Parts, limited: &Limited) -> Response<Bytes> {
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

impl Told {
    pub(crate) const fn new(which: Option<Vec<usize>>, statuses: Vec<Status>) -> Self {
        Self { which, statuses }
    }

    /// A charge's limit in the layer.
    fn number(&self, charge: usize) -> usize {
        self.which.as_ref().and_then(|which| which.get(charge).copied()).unwrap_or(charge)
    }

    fn pairs(&self) -> impl Iterator<Item = (usize, &Status)> + Clone {
        self.statuses.iter().enumerate().map(|(charge, status)| (self.number(charge), status))
    }
}
