//! What the admin listener is told: how the rules, the store and the upstreams are.

use super::holds;
use crate::described::Described;
use std::{
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::SystemTime,
};
use tollgate::{MemoryStore, Store};
use tollgate_admin::{
    Component, Condition, Explaining, Histogram, ReloadFailure, RuleMistake, RulesState, State, StoreMode,
    StoreState, Unexplained,
};
use tollgate_net::{Drain, Phase};
use tollgate_redis::{HealthState, RedisStore};
use tollgate_rules::DecisionService;

/// A store that tells how it is.
pub(crate) trait Tell {
    fn tell(&self) -> StoreState;

    /// Has the times of its calls written down, where it makes any.
    fn time_calls(&self, _: &Histogram) {}
}

impl Tell for MemoryStore {
    fn tell(&self) -> StoreState {
        StoreState {
            mode: StoreMode::Memory,
            last_error: None,
            keys: self.keys() as u64,
            evictions: self.evictions(),
        }
    }
}

impl Tell for RedisStore {
    fn tell(&self) -> StoreState {
        let health = self.health();
        let mode = match health.state {
            HealthState::Healthy if self.is_leased() => StoreMode::Leased,
            HealthState::Healthy => StoreMode::Exact,
            HealthState::Recovering => StoreMode::Recovering,
            _ => StoreMode::Degraded,
        };
        StoreState { mode, last_error: health.last_error.clone(), keys: 0, evictions: 0 }
    }

    fn time_calls(&self, times: &Histogram) {
        let times = times.clone();
        self.on_call(move |took| times.observe(took));
    }
}

/// How everything is.
pub(super) struct Status<S: Store> {
    decisions: DecisionService<S>,
    drain: Drain,
    rules: Mutex<RulesState>,
    /// Which book the rules in force are.
    revision: Mutex<String>,
    /// What ails the database that the rules come from, where something does.
    source: Mutex<Option<String>>,
    upstreams: Box<dyn Fn() -> Vec<Component> + Send + Sync>,
}

impl<S: Store> Status<S> {
    pub(super) fn new(
        decisions: DecisionService<S>,
        drain: Drain,
        file: PathBuf,
        upstreams: impl Fn() -> Vec<Component> + Send + Sync + 'static,
    ) -> Self {
        let rules = RulesState { file, generation: 1, loaded: SystemTime::now(), failure: None };
        let (rules, revision, source) = (Mutex::new(rules), Mutex::default(), Mutex::default());
        Self { decisions, drain, rules, revision, source, upstreams: Box::new(upstreams) }
    }

    /// Which book the rules in force are.
    pub(super) fn revision(&self) -> String {
        self.revision.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The rules in force are this book.
    pub(super) fn is_revision(&self, revision: &str) {
        revision.clone_into(&mut self.revision.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Something ails the database that the rules come from, or nothing does any more.
    pub(super) fn source_ails(&self, why: Option<String>) {
        *self.source.lock().unwrap_or_else(PoisonError::into_inner) = why;
    }

    /// What is in force is what there is again.
    pub(super) fn mended(&self) {
        self.rules.lock().unwrap_or_else(PoisonError::into_inner).failure = None;
    }

    /// Something else was taken, and this was not and still is not.
    pub(super) fn still_fails(&self, failure: &ReloadFailure) {
        let mut rules = self.rules.lock().unwrap_or_else(PoisonError::into_inner);
        rules.failure.get_or_insert_with(|| failure.clone());
    }

    /// Rules of this file or database were not put in force.
    pub(super) fn rejected(&self, source: &str, why: &str, mistakes: Vec<RuleMistake>) {
        let (at, file) = (SystemTime::now(), PathBuf::from(source));
        let failure = ReloadFailure { at, file, why: why.to_owned(), mistakes };
        self.rules.lock().unwrap_or_else(PoisonError::into_inner).failure = Some(failure);
    }

    /// Other rules are in force.
    pub(super) fn reloaded(&self) -> u64 {
        let mut rules = self.rules.lock().unwrap_or_else(PoisonError::into_inner);
        rules.generation += 1;
        rules.loaded = SystemTime::now();
        rules.failure = None;
        rules.generation
    }
}

impl<S: Store + Tell + 'static> State for Status<S> {
    fn rules(&self) -> RulesState {
        self.rules.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn store(&self) -> StoreState {
        self.decisions.store().tell()
    }

    fn phase(&self) -> Phase {
        self.drain.phase()
    }

    fn others(&self) -> Vec<Component> {
        let mut others = (self.upstreams)();
        if let Some(why) = self.source.lock().unwrap_or_else(PoisonError::into_inner).clone() {
            others.push(Component { name: "rules_from".to_owned(), condition: Condition::Ailing(why) });
        }
        others
    }

    fn explain(&self, question: &str) -> Explaining<'_> {
        let described = Described::read(question);
        Box::pin(async move {
            let described =
                described.map_err(|error| Unexplained::Question(error.describe("the question")))?;
            let rules = self.rules();
            let told = holds::told(&self.decisions.rules(), &described, &rules).await;
            told.map_err(|error| Unexplained::Store(error.to_string()))
        })
    }
}

/// Upstreams as components: one without a healthy server ails, and so does every route to it.
pub(super) fn upstreams(upstreams: &[Arc<tollgate_gateway::Upstream>]) -> Vec<Component> {
    let component = |upstream: &Arc<tollgate_gateway::Upstream>| {
        let (mut all, mut down) = (0, Vec::new());
        for server in upstream.servers() {
            all += 1;
            if !server.healthy {
                down.push(server.url.clone());
            }
        }
        let condition = match down.len() {
            0 => Condition::Well,
            some => {
                Condition::Ailing(format!("{some} of {all} servers are not reached: {}", down.join(", ")))
            }
        };
        Component { name: format!("upstream {}", upstream.name()), condition }
    };
    upstreams.iter().map(component).collect()
}
