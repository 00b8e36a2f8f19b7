//! What the gateway needs to know of the rules in force, made once for all requests.

use super::{Tracer, responses::ResponseRecorder};
use crate::{Upstream, UpstreamError};
use std::sync::Arc;
use thiserror::Error;
use tollgate::{Bandwidth, Enter, Rate};
use tollgate_http::{HeaderStyle, Policies, Policy, RefusalStyle, TrustedProxies};
use tollgate_rules::{
    ChargedLimit, Found, Program, RuleCharge, RuleFile,
    decision::{Outcome, Session, Stand},
    model::{self, Excess, Rule},
};

/// The rules in force, and what goes with them.
pub(super) struct Active<S: Enter> {
    pub(super) session: Session<S>,
    /// What responses tell of each charge, by its id; then of every override of each named limit.
    pub(super) policies: Policies,
    /// Where among the policies the overrides of a named limit begin, by its place in the file.
    overrides: Vec<usize>,
    pub(super) proxies: TrustedProxies,
    pub(super) refusal: RefusalStyle,
    /// By their place in the file.
    pub(super) upstreams: Vec<Arc<Upstream>>,
    pub(super) responses: Arc<dyn ResponseRecorder>,
    pub(super) tracer: Option<Arc<dyn Tracer>>,
    /// Whether any rule has a bandwidth: where none has, no rule is looked at for it.
    has_paces: bool,
}

/// The upstreams of a file that is about to be in force.
#[derive(Debug)]
pub struct Prepared {
    upstreams: Vec<Arc<Upstream>>,
}

/// A file whose upstreams cannot be had; nothing was changed.
#[derive(Debug, Error)]
#[error("upstream {name:?}: {source}")]
pub struct PrepareError {
    name: String,
    source: UpstreamError,
}

impl Prepared {
    /// The upstreams of the first file.
    ///
    /// # Errors
    /// Where an upstream cannot be had.
    pub fn first(file: &RuleFile) -> Result<Self, PrepareError> {
        Self::new(file, &[])
    }

    pub(super) fn new(file: &RuleFile, old: &[Arc<Upstream>]) -> Result<Self, PrepareError> {
        let prepare = |upstream: &model::Upstream| {
            let made = match old.iter().find(|old| old.name() == upstream.name) {
                Some(old) => Upstream::replace(old, upstream.clone()),
                None => Upstream::new(upstream.clone()),
            };
            made.map_err(|source| PrepareError { name: upstream.name.clone(), source })
        };
        Ok(Self { upstreams: file.upstreams.iter().map(prepare).collect::<Result<_, _>>()? })
    }
}

impl<S: Enter> Active<S> {
    pub(super) fn new(session: Session<S>, prepared: Prepared, responses: Arc<dyn ResponseRecorder>) -> Self {
        let program = session.rules().program();
        let file = program.file();
        let style = match file.headers {
            model::HeaderStyle::Draft10 => HeaderStyle::Draft10,
            model::HeaderStyle::XRateLimit => HeaderStyle::XRateLimit,
            model::HeaderStyle::None => HeaderStyle::None,
        };
        let refusal = match file.refusal {
            model::RefusalStyle::Problem => RefusalStyle::Problem,
            model::RefusalStyle::Soul => RefusalStyle::Soul,
            model::RefusalStyle::Plain => RefusalStyle::Plain,
        };
        let mut told = policies(program);
        let mut overrides = Vec::with_capacity(file.limits.len());
        for named in &file.limits {
            overrides.push(told.len());
            told.extend(named.overrides.iter().map(|own| Policy::of(named.name.as_str(), &own.limit)));
        }
        let policies = Policies::new(style, told);
        let proxies = TrustedProxies::new(file.trusted_proxies.iter().copied());
        let (upstreams, tracer) = (prepared.upstreams, responses.tracer());
        let has_paces = program.rules().any(|entry| entry.rule().bandwidth.is_some());
        Self { policies, overrides, proxies, refusal, upstreams, responses, tracer, has_paces, session }
    }

    /// The rules in force.
    pub(super) fn program(&self) -> &Program {
        self.session.rules().program()
    }

    /// Where the policy of a charge is among those that are told.
    pub(super) fn policy_of(&self, stand: &Stand) -> usize {
        let limit = || self.program().charges().get(stand.charge.0).map(RuleCharge::limit);
        match stand.own.and_then(|own| Some((own, limit()?))) {
            Some((own, ChargedLimit::Named(place))) => self.overrides[place] + own,
            _ => stand.charge.0,
        }
    }

    /// The slowest pace of the rules that were applied and are no shadows.
    pub(super) fn slowest(&self, found: &Found<'_, '_>, outcome: &Outcome) -> Option<Bandwidth> {
        if !self.has_paces || matches!(outcome, Outcome::Skipped) {
            return None;
        }
        let in_force = found.entries().filter(|entry| !matches!(entry.rule().excess, Excess::Shadow));
        let paces = in_force.filter_map(|entry| entry.rule().bandwidth);
        paces.min_by(|one, other| {
            let (one, other) = (one.rate(), other.rate());
            let times =
                |amount: Rate, period: Rate| u128::from(amount.amount().get()) * period.period().as_nanos();
            times(one, other).cmp(&times(other, one))
        })
    }
}

/// How each charge is told of, in the order of their ids: by the limit's name, or the rule's where it is the rule's own.
fn policies(program: &Program) -> Vec<Policy> {
    let of_rule =
        program.rules().flat_map(|entry| entry.charges.iter().map(move |charge| (entry.rule(), charge)));
    let policy = |(rule, charge): (&Rule, &RuleCharge)| match charge.limit() {
        ChargedLimit::Named(place) => {
            let named = &program.file().limits[place];
            Policy::of(named.name.as_str(), &named.limit)
        }
        ChargedLimit::Inline(place) => {
            let name = if rule.limits.len() > 1 {
                format!("{}-{}", rule.name, charge.place() + 1)
            } else {
                rule.name.clone()
            };
            Policy::of(name, &program.inline_limits()[place].limit)
        }
    };
    of_rule.map(policy).collect()
}
