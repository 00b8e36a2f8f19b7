//! The cases, and what all of them have in common.

mod calendar;
mod distributed;
mod giving_up;
mod hammered;
mod killed;
mod rolling;
mod sets;

use crate::{
    clock::ServerClock,
    crew,
    figures::Figures,
    history::{Ask, By},
    kinds,
    node::{self, KEYS},
    order::{Order, Task},
};
use std::{cell::Cell, env, time::Duration};
use testkit::RedisServer;
use tokio::runtime::Runtime;
use tollgate::{Charge, SetStatus};
use tollgate_redis::RedisStore;

/// How the load is spread over the nodes: unevenly.
const SHARES: [f64; 4] = [0.70, 0.20, 0.08, 0.02];
/// A charge costs so much on the average: three of one unit, and one of three.
const MEAN_COST: f64 = 1.5;
/// Of what a limit gives: three times as much is asked for in the storm, and a fifth of that before it.
const STORM: f64 = 3.0;

type Run = Box<dyn Fn(&Fleet) -> Result<(), String>>;

/// A case, by name.
pub(crate) struct Case {
    pub(crate) name: String,
    run: Run,
}

/// Every case.
pub(crate) fn all() -> Vec<Case> {
    let case =
        |name: &str, run: fn(&Fleet) -> Result<(), String>| Case { name: name.into(), run: Box::new(run) };
    let hammered = kinds::ALL
        .into_iter()
        .map(|kind| Case { name: kind.to_owned(), run: Box::new(move |fleet| hammered::run(fleet, kind)) });
    let mut cases: Vec<Case> = hammered.collect();
    cases.extend([
        case("sets", sets::run),
        case("calendar_ahead", calendar::ahead),
        case("distributed_bucket", distributed::run),
        case("rolling_raise", |fleet| rolling::run(fleet, "rolling_raise", ["lesser", "greater"])),
        case("rolling_lower", |fleet| rolling::run(fleet, "rolling_lower", ["greater", "lesser"])),
        case("killed_holding", killed::holding),
        case("killed_waiting", killed::waiting),
        case("killed_in_the_queue", killed::queueing),
        case("giving_up", giving_up::at_random),
        case("staying", giving_up::not_at_all),
    ]);
    cases
}

/// The server that fleets share, and what the checker itself needs to ask it.
pub(crate) struct Fleet {
    server: RedisServer,
    runtime: Runtime,
    figures: Figures,
    /// How long a case that hammers lasts.
    lasting: Duration,
    runs: Cell<u64>,
}

/// What a fleet did, and how the server's clock stood meanwhile.
struct Merged {
    asks: Vec<Ask>,
    clock: ServerClock,
}

impl Fleet {
    pub(crate) fn start() -> Self {
        let seconds = env::var("FLEET_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(1.2_f64);
        Self {
            server: RedisServer::start(),
            runtime: tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime"),
            figures: Figures::default(),
            lasting: Duration::from_secs_f64(seconds.clamp(0.5, 600.0)),
            runs: Cell::new(0),
        }
    }

    pub(crate) const fn figures(&self) -> &Figures {
        &self.figures
    }

    /// Runs a case, and looks whether anything was left behind that would stay for ever.
    pub(crate) fn run(&self, case: &Case) -> Result<(), String> {
        (case.run)(self)?;
        let forever = self.server.keys_without_ttl();
        if forever.is_empty() { Ok(()) } else { Err(format!("keys without an end: {forever:?}")) }
    }

    /// An order under a prefix that nobody else has.
    fn order(&self, task: Task, kinds: &[&str]) -> Order {
        self.runs.set(self.runs.get() + 1);
        Order::new(&self.server.url(), &format!("fleet{}", self.runs.get()), task, kinds)
    }

    /// Orders for four nodes that hammer unevenly, asking for so many units a second when the storm has come.
    fn hammering(&self, kinds: &[&str], units: f64) -> Vec<Order> {
        let order = self.order(Task::Hammer, kinds);
        let each = SHARES.into_iter().enumerate().map(|(place, share)| Order {
            rate: share * units / MEAN_COST,
            calm: self.lasting / 3,
            lasting: self.lasting,
            seed: 0x9E37_79B9_7F4A_7C15 ^ (place as u64 + 1),
            ..order.clone()
        });
        each.collect()
    }

    /// Lets them loose, and merges what they wrote down.
    fn let_loose(&self, orders: &[Order]) -> Result<Merged, String> {
        let nodes = crew::muster(orders)?;
        let before = ServerClock::measure(&self.server);
        let asks = crew::hear_out(nodes)?;
        let clock = before.until(ServerClock::measure(&self.server))?;
        match asks.iter().filter(|ask| ask.by == By::Other).count() {
            0 if asks.is_empty() => Err("nobody asked anything".into()),
            0 => Ok(Merged { asks, clock }),
            others => Err(format!("{others} decisions were neither the store's nor a lease's")),
        }
    }

    /// The checker's own store beside the nodes of an order.
    fn store(&self, order: &Order) -> Result<RedisStore, String> {
        node::open(&Order { lease: None, ..order.clone() }, 4)
    }

    /// How the order's limit in that place stands.
    fn peek(&self, order: &Order, place: usize) -> Result<SetStatus, String> {
        let store = self.store(order)?;
        let kind = kinds::kind(&order.kinds[place]);
        let limit = store.add_generation(&format!("limit{place}"), kind.limit, order.generation);
        let limit = limit.map_err(|problem| problem.to_string())?;
        let peeked = self.runtime.block_on(store.peek(&[Charge::new(&limit, KEYS[place]).cost(0)]));
        peeked.map_err(|problem| problem.to_string())
    }

    /// Bytes that the key in that place takes, if it is still there.
    fn memory(&self, order: &Order, place: usize) -> Option<u64> {
        self.server.memory_of(format!("{}:{{{}}}:limit{place}", order.prefix, KEYS[place]))
    }
}
