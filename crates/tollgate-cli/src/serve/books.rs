//! The books of the gateway: metrics by route and rule, the busiest keys, a sample of the refusals in the log and to whoever
//! listens, a sample of the requests to try drafts on, traces.

use crate::{log::Refusals, words::limit_name};
use http::header;
use std::{
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use tollgate_admin::{
    Histogram, KeyMeter, Meters, Outcome as Counted, Refusal, RouteMeter, RuleMeter, RuledMeter, Sketch,
    Traffic,
};
use tollgate_gateway::{Answered, Ledger, NoLedger, Ruled, Tracer};
use tollgate_rules::{
    Keyed, Program, RuleId,
    enforce::{self, Outcome, Why},
    model::Excess,
};

/// Whether metrics are kept, and with them all the books: only a measurement of what they cost does without.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Metrics {
    Kept,
    Not,
}

impl Metrics {
    pub(super) fn ledger(
        self,
        program: &Program,
        meters: &Meters,
        sketch: &Sketch,
        told: &Told,
    ) -> Arc<dyn Ledger> {
        match self {
            Self::Kept => Arc::new(Books::new(program, meters, sketch, told.clone())),
            Self::Not => Arc::new(NoLedger),
        }
    }
}

/// Who is told of single requests, whatever rules are in force.
#[derive(Clone)]
pub(super) struct Told {
    pub(super) refusals: Refusals,
    /// Who listens, and what is recorded.
    pub(super) traffic: Traffic,
    pub(super) tracer: Option<Arc<dyn Tracer>>,
}

/// Books for one edition of the rules: every handle is at hand, nothing is looked up by name.
struct Books {
    rules: Vec<RuleMeter>,
    /// Of all requests, each once.
    all: RuledMeter,
    routes: Vec<RouteMeter>,
    none: RouteMeter,
    upstreams: Vec<Histogram>,
    keys: Vec<KeyMeter>,
    told: Told,
}

impl Books {
    fn new(program: &Program, meters: &Meters, sketch: &Sketch, told: Told) -> Self {
        let file = program.file();
        let rules = program.rules().map(|entry| {
            let route = entry.route.map_or("*", |route| program.route(route).name.as_str());
            meters.rule(route, &entry.rule().name)
        });
        let keys = program.charges().iter().map(|charge| sketch.limit(limit_name(program, charge)));
        Self {
            rules: rules.collect(),
            all: meters.ruled(),
            routes: file.routes.iter().map(|route| meters.route(&route.name)).collect(),
            none: meters.route(""),
            upstreams: file.upstreams.iter().map(|upstream| meters.upstream(&upstream.name)).collect(),
            keys: keys.collect(),
            told,
        }
    }

    /// Tells whoever listens.
    fn tell_refusal(&self, ruled: &Ruled<'_>, by: RuleId, why: &Why) {
        let (found, program) = (ruled.found, ruled.found.program());
        let charge = match why {
            Why::Limit { charge, .. } => Some(&program.charges()[charge.0]),
            Why::Missing(_) | Why::Repeated(_) | Why::Length | Why::Store(_) => None,
        };
        let values = match charge.map(|charge| found.key(charge)) {
            Some(Keyed::Key(values)) => Some(values),
            _ => None,
        };
        let key: Vec<_> = values.iter().flat_map(|values| values.iter()).collect();
        self.told.traffic.events.refused(&Refusal {
            route: found.route().map(|route| program.route(route).name.as_str()),
            rule: &program.rule(by).rule().name,
            method: found.request().method,
            path: found.path(),
            ip: found.request().ip,
            limit: charge.map(|charge| limit_name(program, charge)),
            key: &key,
        });
    }

    /// Keeps the request, to try drafts on.
    #[cold]
    fn record(&self, ruled: &Ruled<'_>) {
        let request = ruled.found.request();
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let is_open = request.headers.contains_key(header::TRANSFER_ENCODING);
        let body = if is_open { enforce::Body::Open } else { enforce::Body::Known };
        self.told.traffic.recorder.record(
            request,
            body,
            i64::try_from(since.as_micros()).unwrap_or(i64::MAX),
        );
    }

    fn log_refusal(&self, ruled: &Ruled<'_>, rule: &str) {
        let route = ruled.found.route().map(|route| ruled.found.program().route(route).name.as_str());
        let request = ruled.found.request();
        self.told.refusals.log(route.unwrap_or("-"), rule, request.method, ruled.found.path(), request.ip);
    }
}

impl Ledger for Books {
    fn ruled(&self, ruled: &Ruled<'_>) {
        if self.told.traffic.recorder.wants() {
            self.record(ruled);
        }
        let program = ruled.found.program();
        let enabled = program.file().enabled;
        let (refuser, counted, waited) = match ruled.outcome {
            Outcome::Pass { waited } if !enabled => (None, Counted::Skip, *waited),
            Outcome::Pass { waited } if waited.is_zero() => (None, Counted::Allow, *waited),
            Outcome::Pass { waited } => (None, Counted::Wait, *waited),
            Outcome::Refused { by, why } => {
                let counted = match (&program.rule(*by).rule().excess, why) {
                    (_, Why::Store(_)) => Counted::Error,
                    (Excess::Divert(_), _) => Counted::Divert,
                    (Excess::Degrade(_), _) => Counted::Degrade,
                    _ => Counted::Reject,
                };
                (Some(*by), counted, Duration::ZERO)
            }
        };
        self.all.count(counted);
        match refuser {
            Some(by) => {
                self.rules[by.0].count(counted);
                self.log_refusal(ruled, &program.rule(by).rule().name);
                if let Outcome::Refused { why, .. } = ruled.outcome
                    && self.told.traffic.events.wants_refusal()
                {
                    self.tell_refusal(ruled, by, why);
                }
            }
            None => {
                let shadows = ruled.shadows;
                for rule in ruled.found.rules() {
                    if shadows.iter().any(|shadow| shadow.rule == *rule && shadow.refused_by.is_some()) {
                        self.rules[rule.0].count(Counted::Shadow);
                    } else {
                        self.rules[rule.0].count(counted);
                        if !waited.is_zero() {
                            self.rules[rule.0].waited(waited);
                        }
                    }
                }
            }
        }
        for stand in ruled.stands {
            let charge = &program.charges()[stand.charge.0];
            let Keyed::Key(values) = ruled.found.key(charge) else { continue };
            let texts = values.texts();
            let meter = &self.keys[stand.charge.0];
            if refuser.is_none() {
                meter.used(texts.key(), stand.units.into());
            } else if stand.status.is_deny() {
                meter.refused(texts.key());
            }
        }
    }

    fn answered(&self, answered: &Answered) {
        let route = answered.route.map_or(&self.none, |route| &self.routes[route.0]);
        route.answered(answered.status.as_u16());
        if let Some((upstream, took)) = answered.upstream {
            self.upstreams[upstream].observe(took);
        }
    }

    fn tracer(&self) -> Option<Arc<dyn Tracer>> {
        self.told.tracer.clone()
    }
}
