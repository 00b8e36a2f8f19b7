//! What the tests play on: a gateway with a rule file, a store whose clock stands still, and two upstreams behind it.

use std::{
    net::SocketAddr,
    num::{NonZeroU32, NonZeroUsize},
    sync::{Arc, LazyLock},
};
use testkit::{Arrival, Arrivals, Canned, Seen, Upstream, eventually};
use tokio::runtime::{Builder, Runtime};
use tollgate::{Bounds, Charge, Enter, Key, ManualClock, MemoryStore};
use tollgate_gateway::{Gateway, NoResponseRecorder, Prepared, Settings};
use tollgate_net::{Drain, DrainTimes, Listener, WorkerPool};
use tollgate_rules::{
    DecisionService, RuleFile,
    decision::{Api, NoRecorder, Recorder},
    parse_rules,
};

/// Where listeners are bound: they need a runtime, and most tests have none.
static BINDING: LazyLock<Runtime> =
    LazyLock::new(|| Builder::new_current_thread().enable_all().build().expect("a runtime"));

/// A store in memory, whose clock moves when told to.
pub(crate) type Still = MemoryStore<ManualClock>;

/// A gateway in front of two upstreams, `up` and `spare`. Everything ends when it is dropped.
pub(crate) struct Stage<S: Enter + 'static = Still> {
    // First, so that nobody asks who is gone.
    pub(crate) server: WorkerPool,
    pub(crate) gateway: Gateway<S>,
    pub(crate) decisions: DecisionService<S>,
    /// Does what the query asks for.
    pub(crate) up: Arc<Upstream>,
    /// Answers `spare`.
    pub(crate) spare: Arc<Upstream>,
}

/// A rule file with these two upstreams, unless it has its own.
pub(crate) fn file(up: &Upstream, spare: &Upstream, rules: &str) -> RuleFile {
    let (up, spare) = (up.url(), spare.url());
    let upstreams = format!(
        "upstreams: {{ up: {{ servers: [ \"{up}\" ], abort_grace: 2s }}, spare: {{ servers: [ \"{spare}\" ] }} }}"
    );
    let upstreams = if rules.contains("upstreams:") { "" } else { &upstreams };
    let text = format!("version: 1\n{upstreams}\n{rules}");
    parse_rules(&text, |_| None).unwrap_or_else(|mistakes| panic!("{mistakes}\n{text}"))
}

/// One route for everything, with one rule of this inside: `limits: [...]`, and what follows.
pub(crate) fn one_rule(rule: &str) -> String {
    format!("routes: [ {{ name: all, upstream: up, rules: [ {{ name: only, {rule} }} ] }} ]\n")
}

impl Stage {
    /// With a clock that stands still.
    pub(crate) fn still(rules: &str) -> (Self, ManualClock) {
        let clock = ManualClock::new();
        let store = MemoryStore::with_clock(Bounds::default(), clock.clone());
        (Self::open(Arc::new(store), rules), clock)
    }
}

impl Stage<MemoryStore> {
    /// With the clock of the machine.
    pub(crate) fn real(rules: &str) -> Self {
        Self::open(Arc::new(MemoryStore::new()), rules)
    }
}

impl<S: Enter + 'static> Stage<S> {
    pub(crate) fn open(store: Arc<S>, rules: &str) -> Self {
        Self::with(store, rules, NonZeroUsize::MAX, Upstream::by_query())
    }

    pub(crate) fn with(store: Arc<S>, rules: &str, max_in_flight: NonZeroUsize, up: Upstream) -> Self {
        Self::recorded(store, rules, max_in_flight, up, Arc::new(NoRecorder))
    }

    /// The same, and decisions are recorded.
    pub(crate) fn recorded(
        store: Arc<S>,
        rules: &str,
        max_in_flight: NonZeroUsize,
        up: Upstream,
        recorder: Arc<dyn Recorder>,
    ) -> Self {
        let spare = Upstream::start(|_| Canned::text("spare\n"));
        let file = file(&up, &spare, rules);
        let prepared = Prepared::first(&file).expect("good upstreams");
        let decisions = DecisionService::recorded(store, file, move |_| Arc::clone(&recorder))
            .expect("limits that the store can keep");
        let session = decisions.session(Api::Gateway);
        let gateway = Gateway::new(session, prepared, Arc::new(NoResponseRecorder), max_in_flight);
        let mut settings = Settings::default();
        settings.workers = NonZeroUsize::new(2).expect("not zero");
        let entered = BINDING.enter();
        let listener = Listener::bind(([127, 0, 0, 1], 0).into(), NonZeroU32::new(1024).expect("not zero"));
        let drain = Drain::new(DrainTimes::default());
        let server = tollgate_gateway::serve(listener.expect("a port"), settings, &drain, gateway.clone());
        let server = server.expect("threads");
        drop(entered);
        Self { server, gateway, decisions, up: Arc::new(up), spare: Arc::new(spare) }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// Puts other rules in force.
    pub(crate) fn reload(&self, rules: &str) {
        let file = file(&self.up, &self.spare, rules);
        let prepared = self.gateway.prepare(&file).expect("good upstreams");
        self.decisions.reload(file).expect("limits that the store can keep");
        self.gateway.adopt(self.decisions.session(Api::Gateway), prepared, Arc::new(NoResponseRecorder));
    }

    /// Asks once.
    pub(crate) fn ask(&self, arrival: Arrival) -> Seen {
        let mut seen = Arrivals::new([arrival]).play(self.address());
        seen.remove(0)
    }

    /// Gets a path once.
    pub(crate) fn get(&self, path: &str) -> Seen {
        self.ask(Arrival::at_ms(0).path(path))
    }

    /// The statuses of so many of this, one after the other.
    pub(crate) fn times(&self, count: usize, arrival: &Arrival) -> Vec<u16> {
        (0..count).map(|_| self.ask(arrival.clone()).status()).collect()
    }

    /// The statuses of these, one after the other.
    pub(crate) fn statuses(&self, arrivals: impl IntoIterator<Item = Arrival>) -> Vec<u16> {
        arrivals.into_iter().map(|arrival| self.ask(arrival).status()).collect()
    }

    /// Waits until so many requests are in the gateway, waiting or being answered, and so many have reached the upstream.
    #[track_caller]
    pub(crate) fn stands(&self, inside: usize, through: usize) {
        eventually(&format!("{inside} inside and {through} through"), || {
            let now = (self.gateway.in_flight().inside(), self.up.asked().len());
            (now == (inside, through)).then_some(())
        });
    }

    /// Waits until nothing is under way.
    #[track_caller]
    pub(crate) fn rests(&self) {
        eventually("everything to end", || {
            (self.gateway.in_flight().inside() == 0 && self.server.gauges().in_flight == 0).then_some(())
        });
    }
}

impl<C: tollgate::Timer + Send + Sync + 'static> Stage<MemoryStore<C>> {
    /// What is left of a named limit for a key.
    pub(crate) fn left(&self, limit: &str, key: Key<'_>) -> u32 {
        let rules = self.decisions.rules();
        let place = rules.place_of(limit);
        let handle = rules.at(place.expect("a limit"), key).clone();
        let status = self.decisions.store().peek(&[Charge::new(&handle, key).cost(0)]).expect("an answer");
        status.statuses()[0].remaining()
    }
}

/// A plain request.
pub(crate) fn get(path: &str) -> Arrival {
    Arrival::at_ms(0).path(path)
}
