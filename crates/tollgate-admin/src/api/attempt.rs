//! `/v1/changes/try`: which of the requests that came would have been treated otherwise by a draft.
//!
//! The rules in force and the draft each rule on the same recorded requests at the times at which they came, from empty
//! buckets in memory, on a clock that is moved by hand. How long requests took is not recorded, so slots of concurrency
//! limits are left out of both.

use super::{
    Api,
    asked::Said,
    book::{self, Changes},
    problem::Problem,
    recorder::{Recorded, Sample},
};
use axum::{Json, extract::State};
use http::StatusCode;
use serde_json::{Value, json};
use std::{
    pin::pin,
    sync::Arc,
    task::{Context, Poll, Waker},
};
use tollgate::{Bounds, Limit, ManualClock, MemoryStore, Time};
use tollgate_book::BookError;
use tollgate_rules::{
    DecisionService, Request, RuleFile,
    decision::{self, Outcome, Session},
    model::{LimitSource, NamedLimit, Rule},
};

/// Requests whose fate differs that are told one by one.
const DIFFER: usize = 100;

pub(super) async fn attempt(
    State(api): State<Api>,
    Said(changes): Said<Changes>,
) -> Result<Json<Value>, Problem> {
    let changes = changes.checked()?;
    // Thousands of rulings are milliseconds of work, and one at a time is enough of it.
    let one = Arc::clone(&api.working).acquire_owned().await;
    book::aside(async move {
        // Held by the work itself: whoever hangs up does not make room for more of it.
        let _one = one;
        let draft = book::draft(&api, &changes).await?;
        let draft = draft.map_err(|mistakes| book::refused(BookError::Wrong(mistakes)))?;
        let mut now = None;
        api.program.in_force(&mut |program, _| now = Some(program.file().clone()));
        let now =
            now.ok_or_else(|| Problem::new(StatusCode::SERVICE_UNAVAILABLE, "no rules are in force yet"))?;
        let compared = compare(now, draft, &api.recorder.sample());
        compared.map(Json).ok_or_else(|| {
            Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "the rules have a limit that memory cannot keep")
        })
    })
    .await
}

/// What became of a request.
#[derive(Clone, PartialEq, Eq)]
struct Fate {
    decision: &'static str,
    rule: Option<String>,
    /// Why the request would be answered 400, where it would.
    reason: Option<String>,
}

#[derive(Default)]
struct Tally {
    passed: u64,
    delayed: u64,
    refused: u64,
    /// Answered 400 before any rule is asked.
    invalid: u64,
}

/// Both, side by side; nothing where memory cannot keep a limit.
fn compare(now: RuleFile, draft: RuleFile, sample: &Sample) -> Option<Value> {
    let (mut now, mut draft) = (Play::new(now)?, Play::new(draft)?);
    let mut differ = Vec::new();
    let mut differing = 0_u64;
    for request in &sample.requests {
        let fates = (now.rule(request), draft.rule(request));
        if fates.0 == fates.1 {
            continue;
        }
        differing += 1;
        if differ.len() < DIFFER {
            differ.push(json!({
                "at_ms": request.at / 1000,
                "method": request.method,
                "path": request.path,
                "ip": request.ip,
                "now": fates.0.told(),
                "draft": fates.1.told(),
            }));
        }
    }
    let at = |request: Option<&Arc<Recorded>>| request.map(|request| request.at / 1000);
    Some(json!({
        "recorded": {
            "requests": sample.requests.len(),
            "of": sample.of,
            "from_ms": at(sample.requests.first()),
            "to_ms": at(sample.requests.last()),
        },
        "now": now.tally.told(),
        "draft": draft.tally.told(),
        "differing": differing,
        "differ": differ,
    }))
}

/// One file in force, on nobody's account.
struct Play {
    clock: ManualClock,
    session: Session<MemoryStore<ManualClock>>,
    tally: Tally,
}

impl Play {
    fn new(file: RuleFile) -> Option<Self> {
        let clock = ManualClock::new();
        let bounds = Bounds { max_keys: 50_000, ..Bounds::default() };
        let store = Arc::new(MemoryStore::with_clock(bounds, clock.clone()));
        let session = DecisionService::new(store, without_slots(file)).ok()?.session(decision::Api::Gateway);
        Some(Self { clock, session, tally: Tally::default() })
    }

    fn rule(&mut self, recorded: &Recorded) -> Fate {
        self.clock.set(Time::from_micros(u64::try_from(recorded.at).unwrap_or(0)));
        let request = Request {
            method: &recorded.method,
            path: &recorded.path,
            query: recorded.query.as_deref(),
            host: recorded.host.as_deref(),
            headers: &recorded.headers,
            ip: recorded.ip,
            at: recorded.at,
        };
        let program = self.session.rules().program();
        let found = program.find(&request);
        if let Some(invalid) = found.invalid() {
            self.tally.invalid += 1;
            return Fate { decision: "invalid", rule: None, reason: Some(invalid.to_string()) };
        }
        // Without a route there is nothing to decide.
        let outcome = match found.route() {
            None => Outcome::Skipped,
            Some(_) => at_once(self.session.decide_request_at_once(&found, recorded.body))
                .map_or(Outcome::Skipped, |decision| decision.outcome),
        };
        match outcome {
            Outcome::Pass { waited } if !waited.is_zero() => {
                self.tally.delayed += 1;
                Fate { decision: "wait", rule: None, reason: None }
            }
            Outcome::Pass { .. } | Outcome::Skipped => {
                self.tally.passed += 1;
                Fate { decision: "allow", rule: None, reason: None }
            }
            Outcome::Refused { by, .. } => {
                self.tally.refused += 1;
                let entry = program.rule(by);
                let route = entry.route.map_or("*", |route| program.route(route).name.as_str());
                Fate { decision: "deny", rule: Some(format!("{route}/{}", entry.rule().name)), reason: None }
            }
        }
    }
}

/// What a future gives that never waits: memory answers at once.
fn at_once<T>(future: impl Future<Output = T>) -> Option<T> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => Some(value),
        Poll::Pending => None,
    }
}

fn without_slots(mut file: RuleFile) -> RuleFile {
    let limits: Vec<NamedLimit> = file.limits.clone();
    let keeps = |limit: &LimitSource| {
        let limit = match limit {
            LimitSource::Named(place) => &limits[*place].limit,
            LimitSource::Inline(limit) => limit,
        };
        !matches!(limit, Limit::Concurrency(_))
    };
    let routes = file.routes.iter_mut().flat_map(|route| &mut route.rules);
    let strip = |rule: &mut Rule| rule.limits.retain(|it| keeps(&it.limit));
    file.everywhere.iter_mut().chain(routes).for_each(strip);
    file
}

impl Fate {
    fn told(&self) -> Value {
        json!({ "decision": self.decision, "rule": self.rule, "reason": self.reason })
    }
}

impl Tally {
    fn told(&self) -> Value {
        json!({
            "passed": self.passed, "delayed": self.delayed, "refused": self.refused, "invalid": self.invalid,
        })
    }
}
