//! All metrics of Tollgate.

use super::{Counter, Family, Histogram, Registry};
use std::{fmt, time::Duration};

/// All metrics of Tollgate. Clones share the same metrics.
///
/// Compiling rules creates their handles ([`rule`](Self::rule), [`route`](Self::route), [`upstream`](Self::upstream)), which
/// are kept with them. The same names return the same series again.
#[derive(Clone, Debug)]
pub struct Meters {
    registry: Registry,
    decisions: Family<Counter>,
    answers: Family<Counter>,
    ruled: Family<Counter>,
    waits: Family<Histogram>,
    requests: Family<Counter>,
    upstreams: Family<Histogram>,
    store: Histogram,
    reloads: [Counter; 2],
    looks: [Counter; 2],
}

/// The outcome of a request at a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// Allowed without delay.
    Allow,
    /// Delayed, then allowed.
    Wait,
    /// Denied, and rejected.
    Reject,
    /// Denied, and sent to another upstream.
    Divert,
    /// Denied, and answered with the substitute response.
    Degrade,
    /// Allowed, but would have been denied without shadow mode.
    Shadow,
    /// The rule matched but did not apply: it is switched off, or an attribute of its key is missing.
    Skip,
    /// The store did not answer, and the failure policy decided.
    Error,
}

/// Metrics of one rule.
#[derive(Clone, Debug)]
pub struct RuleMeter {
    outcomes: [Counter; Outcome::ALL.len()],
    waits: Histogram,
}

/// Metrics of all requests, each counted once whatever the number of its rules.
#[derive(Clone, Debug)]
pub struct RuledMeter {
    outcomes: [Counter; Outcome::ALL.len()],
}

/// Metrics of one limit in one decision API.
#[derive(Clone, Debug)]
pub struct AnswerMeter {
    outcomes: [Counter; ANSWERS.len()],
}

/// The outcomes of a decision API.
const ANSWERS: [Outcome; 6] =
    [Outcome::Allow, Outcome::Wait, Outcome::Reject, Outcome::Shadow, Outcome::Skip, Outcome::Error];

/// Metrics of one route.
#[derive(Clone, Debug)]
pub struct RouteMeter {
    classes: [Counter; CLASSES.len()],
}

const CLASSES: [&str; 6] = ["none", "1xx", "2xx", "3xx", "4xx", "5xx"];

impl Default for Meters {
    fn default() -> Self {
        Self::new()
    }
}

impl Meters {
    /// Creates metrics in a registry of their own.
    #[must_use]
    pub fn new() -> Self {
        let registry = Registry::new();
        registry.ask_gauge("tollgate_build_info", "Version of Tollgate; always 1.", &["version"], || {
            vec![(vec![env!("CARGO_PKG_VERSION").to_owned()], 1)]
        });
        let reloads = registry.counters(
            "tollgate_reloads_total",
            "Reloads of rule files and certificates, by result.",
            &["result"],
        );
        let looks = registry.counters(
            "tollgate_rules_looks_total",
            "Polls of the rule database, by whether it answered. Counted when what was read is in force or rejected.",
            &["result"],
        );
        Self {
            decisions: registry.counters(
                "tollgate_decisions_total",
                "Requests that a rule matched, by outcome.",
                &["route", "rule", "outcome"],
            ),
            answers: registry.counters(
                "tollgate_answers_total",
                "Charges that the decision APIs decided, by API, limit and outcome.",
                &["door", "limit", "outcome"],
            ),
            ruled: registry.counters(
                "tollgate_ruled_total",
                "Requests that rules decided, each counted once, by outcome.",
                &["outcome"],
            ),
            waits: registry.histograms(
                "tollgate_wait_seconds",
                "Time that delayed requests waited, in seconds.",
                &["route", "rule"],
            ),
            requests: registry.counters(
                "tollgate_requests_total",
                "Responses by the first digit of their status; none: the client disconnected before the response.",
                &["route", "status_class"],
            ),
            upstreams: registry.histograms(
                "tollgate_upstream_seconds",
                "Time until upstreams sent the head of a response, in seconds.",
                &["upstream"],
            ),
            store: registry
                .histograms("tollgate_store_seconds", "Duration of calls to Redis in seconds; one call can carry several decisions.", &[])
                .with(&[]),
            reloads: [reloads.with(&["ok"]), reloads.with(&["failed"])],
            looks: [looks.with(&["ok"]), looks.with(&["failed"])],
            registry,
        }
    }

    /// The registry, for further metrics.
    #[must_use]
    pub const fn registry(&self) -> &Registry {
        &self.registry
    }

    /// The counters of one rule on one route.
    #[must_use]
    pub fn rule(&self, route: &str, rule: &str) -> RuleMeter {
        RuleMeter {
            outcomes: Outcome::ALL.map(|outcome| self.decisions.with(&[route, rule, outcome.name()])),
            waits: self.waits.with(&[route, rule]),
        }
    }

    /// The counters of all requests.
    #[must_use]
    pub fn ruled(&self) -> RuledMeter {
        RuledMeter { outcomes: Outcome::ALL.map(|outcome| self.ruled.with(&[outcome.name()])) }
    }

    /// The counters of one limit in one decision API. The limit is a name from the rule file, never from a client.
    #[must_use]
    pub fn answers(&self, door: &str, limit: &str) -> AnswerMeter {
        AnswerMeter { outcomes: ANSWERS.map(|outcome| self.answers.with(&[door, limit, outcome.name()])) }
    }

    /// The counters of one route.
    #[must_use]
    pub fn route(&self, route: &str) -> RouteMeter {
        RouteMeter { classes: CLASSES.map(|class| self.requests.with(&[route, class])) }
    }

    /// The response times of this upstream.
    #[must_use]
    pub fn upstream(&self, name: &str) -> Histogram {
        self.upstreams.with(&[name])
    }

    /// The duration of calls to a store outside this process.
    #[must_use]
    pub const fn store(&self) -> &Histogram {
        &self.store
    }

    /// The number of responses so far.
    pub(crate) fn requests(&self) -> u64 {
        let mut all = 0_u64;
        self.requests.each(|_, counter| all = all.wrapping_add(counter.total()));
        all
    }

    /// Calls `tell` with the totals of every rule, in the order of route and rule.
    pub(crate) fn each_decision(&self, tell: impl FnMut([&str; 2], Outcome, u64)) {
        each(&self.decisions, tell);
    }

    /// Calls `tell` with the totals of every limit in every decision API, in the order of API and limit.
    pub(crate) fn each_answer(&self, tell: impl FnMut([&str; 2], Outcome, u64)) {
        each(&self.answers, tell);
    }

    /// Calls `tell` with the totals of all requests.
    pub(crate) fn each_ruled(&self, mut tell: impl FnMut(Outcome, u64)) {
        self.ruled.each(|labels, counter| {
            if let Some(outcome) = labels.first().and_then(|name| Outcome::named(name)) {
                tell(outcome, counter.total());
            }
        });
    }

    /// Counts a successful reload. Call it when the old rules have been dropped: unused series of removed rules disappear.
    pub fn reloaded(&self) {
        self.reloads[0].increment();
        self.registry.retire();
    }

    /// Counts a failed reload.
    pub fn reload_failed(&self) {
        self.reloads[1].increment();
    }

    /// Counts a successful poll of the rule database. Call it when what was read is in force or rejected.
    pub fn looked(&self) {
        self.looks[0].increment();
    }

    /// Counts a poll that the rule database did not answer.
    pub fn look_failed(&self) {
        self.looks[1].increment();
    }

    /// Registers `tollgate_connections` and `tollgate_in_flight` by listener; the functions are called at each scrape.
    ///
    /// # Panics
    ///
    /// If it is called twice.
    pub fn ask_listeners(
        &self,
        connections: impl Fn() -> Vec<(&'static str, usize)> + Send + Sync + 'static,
        in_flight: impl Fn() -> Vec<(&'static str, usize)> + Send + Sync + 'static,
    ) {
        let labelled = |ask: Vec<(&'static str, usize)>| {
            ask.into_iter().map(|(name, n)| (vec![name.to_owned()], n as u64)).collect::<Vec<_>>()
        };
        let (name, help) = ("tollgate_connections", "Open connections, by listener.");
        self.registry.ask_gauge(name, help, &["listener"], move || labelled(connections()));
        let (name, help) = ("tollgate_in_flight", "Requests in flight, by listener.");
        self.registry.ask_gauge(name, help, &["listener"], move || labelled(in_flight()));
    }
}

impl Meters {
    /// Registers `tollgate_accept_errors_total` by listener; the function is called at each scrape.
    ///
    /// # Panics
    ///
    /// If it is called twice.
    pub fn ask_accept_errors(&self, ask: impl Fn() -> Vec<(&'static str, u64)> + Send + Sync + 'static) {
        let labelled = move || ask().into_iter().map(|(name, n)| (vec![name.to_owned()], n)).collect();
        let help = "Failed accepts of connections for lack of file descriptors or memory, by listener.";
        self.registry.ask_counter("tollgate_accept_errors_total", help, &["listener"], labelled);
    }
}

fn each(family: &Family<Counter>, mut tell: impl FnMut([&str; 2], Outcome, u64)) {
    family.each(|labels, counter| {
        if let [first, second, outcome] = labels
            && let Some(outcome) = Outcome::named(outcome)
        {
            tell([first, second], outcome, counter.total());
        }
    });
}

impl RuledMeter {
    /// Counts a request that rules decided.
    #[inline]
    pub fn count(&self, outcome: Outcome) {
        self.outcomes[outcome as usize].increment();
    }
}

impl RuleMeter {
    /// Counts a request at this rule.
    #[inline]
    pub fn count(&self, outcome: Outcome) {
        self.outcomes[outcome as usize].increment();
    }

    /// Records how long a request waited. [Count](Self::count) it as well.
    #[inline]
    pub fn waited(&self, waited: Duration) {
        self.waits.observe(waited);
    }

    /// The number of requests with this outcome so far.
    #[must_use]
    pub fn total(&self, outcome: Outcome) -> u64 {
        self.outcomes[outcome as usize].total()
    }
}

impl AnswerMeter {
    /// Counts a decision. Outcomes that decision APIs do not have are not counted.
    #[inline]
    pub fn count(&self, outcome: Outcome) {
        if let Some(place) = ANSWERS.iter().position(|known| *known == outcome) {
            self.outcomes[place].increment();
        }
    }
}

impl RouteMeter {
    /// Counts a response with this status.
    #[inline]
    pub fn answered(&self, status: u16) {
        if let Some(class) = self.classes.get(usize::from(status / 100)) {
            class.increment();
        }
    }

    /// Counts a request whose client disconnected before the response.
    #[inline]
    pub fn abandoned(&self) {
        self.classes[0].increment();
    }
}

impl Outcome {
    /// All outcomes.
    pub const ALL: [Self; 8] = [
        Self::Allow,
        Self::Wait,
        Self::Reject,
        Self::Divert,
        Self::Degrade,
        Self::Shadow,
        Self::Skip,
        Self::Error,
    ];

    fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|outcome| outcome.name() == name)
    }

    /// Its value in labels.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Wait => "wait",
            Self::Reject => "reject",
            Self::Divert => "divert",
            Self::Degrade => "degrade",
            Self::Shadow => "shadow",
            Self::Skip => "skip",
            Self::Error => "error",
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
