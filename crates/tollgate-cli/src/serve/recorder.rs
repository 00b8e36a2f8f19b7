//! What is recorded of decisions and responses: metrics, the busiest keys, a sample of the denials in the log and to whoever
//! listens, a sample of the requests to try drafts on, traces.

use crate::{log::Refusals, words::limit_name};
use http::header;
use std::{
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use tollgate_admin::{
    AnswerMeter, Histogram, KeyMeter, Meters, Outcome as Counted, Refusal, RouteMeter, RuleMeter, RuledMeter,
    Sketch, Traffic,
};
use tollgate_gateway::{NoResponseRecorder, ResponseRecord, ResponseRecorder, Tracer};
use tollgate_rules::{
    Keyed, Program, RuleId,
    decision::{
        Api, Body, ChargeOutcome, ChargeRecord, NoRecorder, Outcome, RecordedLimit, Recorder, RequestRecord,
        Why,
    },
    model::Excess,
};

/// The name of all limits that came with their request: there are as many as somebody cares to send.
const DEFINED: &str = "(defined)";
/// The name of all buckets whose numbers come with every request.
const THROTTLE: &str = "(cell)";

/// Whether metrics are kept, and with them everything else that is recorded: only a measurement of what that costs does
/// without.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Metrics {
    Kept,
    Not,
}

/// Makes the recorders of each file that comes into force.
#[derive(Clone)]
pub(super) struct Recorders {
    pub(super) metrics: Metrics,
    pub(super) meters: Meters,
    pub(super) sketch: Sketch,
    /// The decision APIs that are open.
    pub(super) apis: Vec<Api>,
    pub(super) told: Told,
}

/// Who is told of single requests, whatever rules are in force.
#[derive(Clone)]
pub(super) struct Told {
    pub(super) refusals: Refusals,
    /// Who listens, and what is recorded.
    pub(super) traffic: Traffic,
    pub(super) tracer: Option<Arc<dyn Tracer>>,
}

impl Recorders {
    /// Records the decisions by a file.
    pub(super) fn decisions(&self, program: &Program) -> Arc<dyn Recorder> {
        match self.metrics {
            Metrics::Kept => Arc::new(Decisions {
                requests: Requests::new(program, self),
                charges: Charges::new(program, self),
            }),
            Metrics::Not => Arc::new(NoRecorder),
        }
    }

    /// Records the responses of a gateway by a file.
    pub(super) fn responses(&self, program: &Program) -> Arc<dyn ResponseRecorder> {
        match self.metrics {
            Metrics::Kept => Arc::new(Responses::new(program, self)),
            Metrics::Not => Arc::new(NoResponseRecorder),
        }
    }
}

/// Decisions by one file: every handle is at hand, nothing is looked up by name.
struct Decisions {
    requests: Requests,
    charges: Charges,
}

impl Recorder for Decisions {
    fn charge(&self, record: &ChargeRecord<'_>) {
        self.charges.record(record);
    }

    fn request(&self, record: &RequestRecord<'_>) {
        self.requests.record(record);
    }
}

/// Requests of the gateway.
struct Requests {
    rules: Vec<RuleMeter>,
    /// Of all requests, each once.
    all: RuledMeter,
    keys: Vec<KeyMeter>,
    told: Told,
}

impl Requests {
    fn new(program: &Program, recorders: &Recorders) -> Self {
        let Recorders { meters, sketch, told, .. } = recorders;
        let rules = program.rules().map(|entry| {
            let route = entry.route.map_or("*", |route| program.route(route).name.as_str());
            meters.rule(route, &entry.rule().name)
        });
        let keys = program.charges().iter().map(|charge| sketch.limit(limit_name(program, charge)));
        Self { rules: rules.collect(), all: meters.ruled(), keys: keys.collect(), told: told.clone() }
    }

    fn record(&self, record: &RequestRecord<'_>) {
        if self.told.traffic.recorder.wants() {
            self.sample(record);
        }
        let program = record.found.program();
        let (denied_by, counted, waited) = match record.outcome {
            Outcome::Skipped => (None, Counted::Skip, Duration::ZERO),
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
        match denied_by {
            Some(by) => {
                self.rules[by.0].count(counted);
                self.log_refusal(record, &program.rule(by).rule().name);
                if let Outcome::Refused { why, .. } = record.outcome
                    && self.told.traffic.events.wants_refusal()
                {
                    self.tell_refusal(record, by, why);
                }
            }
            None => {
                let shadows = record.shadows;
                for rule in record.found.rules() {
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
        for stand in record.stands {
            let charge = &program.charges()[stand.charge.0];
            let Keyed::Key(values) = record.found.key(charge) else { continue };
            let texts = values.texts();
            let meter = &self.keys[stand.charge.0];
            if denied_by.is_none() {
                meter.used(texts.key(), stand.units.into());
            } else if stand.status.is_deny() {
                meter.refused(texts.key());
            }
        }
    }

    /// Tells whoever listens.
    fn tell_refusal(&self, record: &RequestRecord<'_>, by: RuleId, why: &Why) {
        let (found, program) = (record.found, record.found.program());
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
    fn sample(&self, record: &RequestRecord<'_>) {
        let request = record.found.request();
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let is_open = request.headers.contains_key(header::TRANSFER_ENCODING);
        let body = if is_open { Body::Open } else { Body::Known };
        self.told.traffic.recorder.record(
            request,
            body,
            i64::try_from(since.as_micros()).unwrap_or(i64::MAX),
        );
    }

    fn log_refusal(&self, record: &RequestRecord<'_>, rule: &str) {
        let route = record.found.route().map(|route| record.found.program().route(route).name.as_str());
        let request = record.found.request();
        self.told.refusals.log(route.unwrap_or("-"), rule, request.method, record.found.path(), request.ip);
    }
}

/// Charges through the decision APIs: how often, and by which keys.
struct Charges {
    /// By API, those of limits.
    apis: Vec<(Api, PerLimit<AnswerMeter>)>,
    keys: PerLimit<KeyMeter>,
    /// Of `CL.THROTTLE`, where Redis clients are let in.
    throttle: Option<(AnswerMeter, KeyMeter)>,
    /// Of Envoy's descriptors, by the place of their rule, where Envoy is let in.
    descriptors: Vec<(AnswerMeter, KeyMeter)>,
}

/// Something for every limit of the file, by its place there, and for those that come with requests.
struct PerLimit<T> {
    named: Vec<T>,
    defined: T,
}

impl Charges {
    fn new(program: &Program, recorders: &Recorders) -> Self {
        let Recorders { meters, sketch, apis, .. } = recorders;
        let both = |api: Api, name: &str| (meters.answers(api.as_str(), name), sketch.limit(name));
        // Named as envoyproxy/ratelimit names them, by what the files say: what clients sent is in no label.
        let descriptors = program.file().domains.rules().iter().filter(|_| apis.contains(&Api::Grpc));
        Self {
            apis: apis
                .iter()
                .map(|api| (*api, PerLimit::new(program, |limit| meters.answers(api.as_str(), limit))))
                .collect(),
            keys: PerLimit::new(program, |limit| sketch.limit(limit)),
            throttle: apis.contains(&Api::Resp).then(|| both(Api::Resp, THROTTLE)),
            descriptors: descriptors.map(|rule| both(Api::Grpc, &rule.full_key())).collect(),
        }
    }

    fn record(&self, record: &ChargeRecord<'_>) {
        let Some((answers, keys)) = self.meters(record) else { return };
        answers.count(match record.outcome {
            ChargeOutcome::Allowed => Counted::Allow,
            ChargeOutcome::Delayed => Counted::Wait,
            ChargeOutcome::Denied => Counted::Reject,
            ChargeOutcome::ShadowDenied => Counted::Shadow,
            ChargeOutcome::Skipped => Counted::Skip,
            ChargeOutcome::Unanswered => Counted::Error,
        });
        match record.outcome {
            ChargeOutcome::Allowed | ChargeOutcome::Delayed if record.units > 0 => {
                keys.used(record.key, record.units.into());
            }
            ChargeOutcome::Denied | ChargeOutcome::ShadowDenied => keys.refused(record.key),
            _ => {}
        }
    }

    fn meters(&self, record: &ChargeRecord<'_>) -> Option<(&AnswerMeter, &KeyMeter)> {
        let place = match record.limit {
            RecordedLimit::Named(place) => Some(place),
            RecordedLimit::Defined => None,
            RecordedLimit::Throttle => return self.throttle.as_ref().map(|(answers, keys)| (answers, keys)),
            RecordedLimit::Descriptor(rule) => {
                return self.descriptors.get(rule).map(|(answers, keys)| (answers, keys));
            }
        };
        let (_, limits) = self.apis.iter().find(|(api, _)| *api == record.api)?;
        Some((limits.at(place), self.keys.at(place)))
    }
}

impl<T> PerLimit<T> {
    fn new(program: &Program, make: impl Fn(&str) -> T) -> Self {
        let named = program.file().limits.iter().map(|limit| make(&limit.name)).collect();
        Self { named, defined: make(DEFINED) }
    }

    fn at(&self, place: Option<usize>) -> &T {
        place.map_or(&self.defined, |place| &self.named[place])
    }
}

/// Responses of the gateway, by one file.
struct Responses {
    routes: Vec<RouteMeter>,
    none: RouteMeter,
    upstreams: Vec<Histogram>,
    tracer: Option<Arc<dyn Tracer>>,
}

impl Responses {
    fn new(program: &Program, recorders: &Recorders) -> Self {
        let (file, meters) = (program.file(), &recorders.meters);
        Self {
            routes: file.routes.iter().map(|route| meters.route(&route.name)).collect(),
            none: meters.route(""),
            upstreams: file.upstreams.iter().map(|upstream| meters.upstream(&upstream.name)).collect(),
            tracer: recorders.told.tracer.clone(),
        }
    }
}

impl ResponseRecorder for Responses {
    fn response(&self, record: &ResponseRecord) {
        let route = record.route.map_or(&self.none, |route| &self.routes[route.0]);
        route.answered(record.status.as_u16());
        if let Some((upstream, took)) = record.upstream {
            self.upstreams[upstream].observe(took);
        }
    }

    fn tracer(&self) -> Option<Arc<dyn Tracer>> {
        self.tracer.clone()
    }
}
