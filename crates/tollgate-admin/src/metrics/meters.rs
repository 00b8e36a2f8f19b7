//! What Tollgate counts.

use super::{Counter, Family, Histogram, Registry};
use std::{fmt, time::Duration};

/// What Tollgate counts. Clones are the same meters.
///
/// Handles are had when rules are compiled ([`rule`](Self::rule), [`route`](Self::route), [`upstream`](Self::upstream)), and
/// kept with them. Compiling the same names again has the same series again.
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

/// What became of a request at a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// It passed at once.
    Allow,
    /// It passed after a wait.
    Wait,
    /// It was refused.
    Reject,
    /// It was sent to another upstream.
    Divert,
    /// It got the answer for excess.
    Degrade,
    /// It would have been refused, and passed.
    Shadow,
    /// The rule matched and did not apply: switched off, or its key was missing.
    Skip,
    /// Nobody could decide, and the failure policy did.
    Error,
}

/// What is counted at one rule.
#[derive(Clone, Debug)]
pub struct RuleMeter {
    outcomes: [Counter; Outcome::ALL.len()],
    waits: Histogram,
}

/// What is counted of all requests, each once, whichever rules it met.
#[derive(Clone, Debug)]
pub struct RuledMeter {
    outcomes: [Counter; Outcome::ALL.len()],
}

/// What is counted of one limit at one door that answers questions.
#[derive(Clone, Debug)]
pub struct AnswerMeter {
    outcomes: [Counter; ANSWERS.len()],
}

/// What becomes of a question.
const ANSWERS: [Outcome; 6] =
    [Outcome::Allow, Outcome::Wait, Outcome::Reject, Outcome::Shadow, Outcome::Skip, Outcome::Error];

/// What is counted on one route.
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
    /// A registry of its own, with everything at nothing.
    #[must_use]
    pub fn new() -> Self {
        let registry = Registry::new();
        registry.ask_gauge("tollgate_build_info", "Which version this is.", &["version"], || {
            vec![(vec![env!("CARGO_PKG_VERSION").to_owned()], 1)]
        });
        let reloads = registry.counters(
            "tollgate_reloads_total",
            "Changed rule files and certificates, by whether they are in use now.",
            &["result"],
        );
        let looks = registry.counters(
            "tollgate_rules_looks_total",
            "How often the database with the rules was looked at, by whether it answered; what was new is in force, or told.",
            &["result"],
        );
        Self {
            decisions: registry.counters(
                "tollgate_decisions_total",
                "Requests that a rule matched, by what became of them.",
                &["route", "rule", "outcome"],
            ),
            answers: registry.counters(
                "tollgate_answers_total",
                "Questions about a limit that a door has answered, by the answer.",
                &["door", "limit", "outcome"],
            ),
            ruled: registry.counters(
                "tollgate_ruled_total",
                "Requests that rules decided, each once, by what became of them.",
                &["outcome"],
            ),
            waits: registry.histograms(
                "tollgate_wait_seconds",
                "How long requests waited for their turn.",
                &["route", "rule"],
            ),
            requests: registry.counters(
                "tollgate_requests_total",
                "Requests that were answered, by the first digit of the status; none: the client left before.",
                &["route", "status_class"],
            ),
            upstreams: registry.histograms(
                "tollgate_upstream_seconds",
                "How long upstreams took until the head of their answer.",
                &["upstream"],
            ),
            store: registry
                .histograms("tollgate_store_seconds", "How long a shared store took to answer a call, which may carry several questions.", &[])
                .with(&[]),
            reloads: [reloads.with(&["ok"]), reloads.with(&["failed"])],
            looks: [looks.with(&["ok"]), looks.with(&["failed"])],
            registry,
        }
    }

    /// Where all of it is, for what else is counted.
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

    /// The counters of one limit at one door. The limit is a name of the rule file, never what somebody sent.
    #[must_use]
    pub fn answers(&self, door: &str, limit: &str) -> AnswerMeter {
        AnswerMeter { outcomes: ANSWERS.map(|outcome| self.answers.with(&[door, limit, outcome.name()])) }
    }

    /// The counters of one route.
    #[must_use]
    pub fn route(&self, route: &str) -> RouteMeter {
        RouteMeter { classes: CLASSES.map(|class| self.requests.with(&[route, class])) }
    }

    /// How long this upstream takes.
    #[must_use]
    pub fn upstream(&self, name: &str) -> Histogram {
        self.upstreams.with(&[name])
    }

    /// How long the store takes to decide, where it is not this process.
    #[must_use]
    pub const fn store(&self) -> &Histogram {
        &self.store
    }

    /// How many requests were answered so far.
    pub(crate) fn requests(&self) -> u64 {
        let mut all = 0_u64;
        self.requests.each(|_, counter| all = all.wrapping_add(counter.total()));
        all
    }

    /// What every rule counted so far: route and rule, in order.
    pub(crate) fn each_decision(&self, tell: impl FnMut([&str; 2], Outcome, u64)) {
        each(&self.decisions, tell);
    }

    /// What every limit at every door counted so far: door and limit, in order.
    pub(crate) fn each_answer(&self, tell: impl FnMut([&str; 2], Outcome, u64)) {
        each(&self.answers, tell);
    }

    /// What all requests came to so far.
    pub(crate) fn each_ruled(&self, mut tell: impl FnMut(Outcome, u64)) {
        self.ruled.each(|labels, counter| {
            if let Some(outcome) = labels.first().and_then(|name| Outcome::named(name)) {
                tell(outcome, counter.total());
            }
        });
    }

    /// A changed file is in use. To be called when the old rules are dropped: series of rules that are gone and were never
    /// used disappear.
    pub fn reloaded(&self) {
        self.reloads[0].increment();
        self.registry.retire();
    }

    /// A changed file could not be used.
    pub fn reload_failed(&self) {
        self.reloads[1].increment();
    }

    /// The database with the rules was looked at. To be called when what it told is in force, or refused.
    pub fn looked(&self) {
        self.looks[0].increment();
    }

    /// The database with the rules did not answer.
    pub fn look_failed(&self) {
        self.looks[1].increment();
    }

    /// `tollgate_connections` and `tollgate_in_flight`, by listener, are asked for when somebody reads.
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
        let (name, help) = ("tollgate_connections", "Connections that are open, by listener.");
        self.registry.ask_gauge(name, help, &["listener"], move || labelled(connections()));
        let (name, help) = ("tollgate_in_flight", "Requests that are not answered yet, by listener.");
        self.registry.ask_gauge(name, help, &["listener"], move || labelled(in_flight()));
    }
}

impl Meters {
    /// `tollgate_accept_errors_total`, by listener, is asked for when somebody reads.
    ///
    /// # Panics
    ///
    /// If it is called twice.
    pub fn ask_accept_errors(&self, ask: impl Fn() -> Vec<(&'static str, u64)> + Send + Sync + 'static) {
        let labelled = move || ask().into_iter().map(|(name, n)| (vec![name.to_owned()], n)).collect();
        let help =
            "How often no connection could be accepted for want of descriptors or memory, by listener.";
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
    /// The rules have decided a request.
    #[inline]
    pub fn count(&self, outcome: Outcome) {
        self.outcomes[outcome as usize].increment();
    }
}

impl RuleMeter {
    /// A request came to this rule.
    #[inline]
    pub fn count(&self, outcome: Outcome) {
        self.outcomes[outcome as usize].increment();
    }

    /// A request waited so long for its turn; it is to be [counted](Self::count) as well.
    #[inline]
    pub fn waited(&self, waited: Duration) {
        self.waits.observe(waited);
    }

    /// How many had this outcome so far.
    #[must_use]
    pub fn total(&self, outcome: Outcome) -> u64 {
        self.outcomes[outcome as usize].total()
    }
}

impl AnswerMeter {
    /// A question was answered; those that doors do not give are not counted.
    #[inline]
    pub fn count(&self, outcome: Outcome) {
        if let Some(place) = ANSWERS.iter().position(|known| *known == outcome) {
            self.outcomes[place].increment();
        }
    }
}

impl RouteMeter {
    /// A request was answered with this status.
    #[inline]
    pub fn answered(&self, status: u16) {
        if let Some(class) = self.classes.get(usize::from(status / 100)) {
            class.increment();
        }
    }

    /// The client left before it was answered.
    #[inline]
    pub fn abandoned(&self) {
        self.classes[0].increment();
    }
}

impl Outcome {
    /// All of them.
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

    /// As it is called in labels.
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
