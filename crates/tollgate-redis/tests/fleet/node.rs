//! One node of the fleet: a process that says when it is ready, begins when it is released, and ends with its parent.

use crate::{
    clock,
    history::{Ask, By, Told},
    kinds::{self, Kind},
    order::{Order, Task},
};
use std::{
    cell::RefCell,
    io::{self, BufRead, Write},
    process::{self, ExitCode},
    rc::Rc,
    thread,
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use testkit::Random;
use tokio::{sync::oneshot, task::LocalSet, time::Instant};
use tollgate::{Charge, OnFailure, WaitError};
use tollgate_redis::{RedisLimit, RedisStore};

/// The keys, one for each of the limits.
pub(crate) const KEYS: [&str; 4] = ["a", "b", "c", "d"];
/// Longer than anything here takes on a busy machine, so that no failure policy decides.
const TIMEOUT: Duration = Duration::from_secs(5);
/// More asks under way than this are not begun: then the machine is too slow, and more would not help.
const MOST_UNDER_WAY: usize = 256;

struct Node {
    order: Order,
    store: RedisStore,
    limits: Vec<RedisLimit>,
    kinds: Vec<Kind>,
}

/// Opens a store as every node does.
pub(crate) fn open(order: &Order, nodes: u32) -> Result<RedisStore, String> {
    let builder = RedisStore::builder(&order.url)
        .prefix(&order.prefix)
        .timeout(TIMEOUT)
        .nodes(nodes)
        .on_failure(OnFailure::Closed);
    let builder = match order.lease {
        Some(lease) => builder.lease(lease),
        None => builder,
    };
    builder.open().map_err(|problem| problem.to_string())
}

pub(crate) fn run(words: &[String]) -> ExitCode {
    let Some(order) = Order::read(words) else {
        eprintln!("a node could not read its order: {words:?}");
        return ExitCode::FAILURE;
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    match LocalSet::new().block_on(&runtime, serve(order)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("a node failed: {problem}");
            ExitCode::FAILURE
        }
    }
}

async fn serve(order: Order) -> Result<(), String> {
    let store = open(&order, 4)?;
    let kinds: Vec<Kind> = order.kinds.iter().map(|name| kinds::kind(name)).collect();
    let mut limits = Vec::new();
    for (place, kind) in kinds.iter().enumerate() {
        // Generations of one limit share its name.
        let name = format!("limit{place}");
        let limit = store.add_generation(&name, kind.limit.clone(), order.generation);
        limits.push(limit.map_err(|problem| problem.to_string())?);
    }
    // The connection is there before it counts; limits are not born by this. Only who asks what day it is comes cold: its
    // first question is the one that counts.
    if order.kinds[0] != "daily" {
        let warm = store.add("warm", kinds::kind("quota").limit).map_err(|problem| problem.to_string())?;
        let warmed = store.peek(&[Charge::new(&warm, "w").cost(0)]).await;
        drop(warmed.map_err(|problem| problem.to_string())?);
    }
    let released = watch_parent();
    let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    say(&format!("ready {} {}", clock::now(), wall.as_nanos()));
    released.await.map_err(|_| "it was never released".to_owned())?;
    let node = Rc::new(Node { order, store, limits, kinds });
    match node.order.task {
        Task::Hammer => hammer(node).await,
        Task::Wait => node.wait().await,
        Task::Hold => node.hold().await,
        Task::Book => node.book().await,
        Task::GiveUp => give_up(node).await,
    }
}

/// Hears of the release. Without a parent there is nothing to do.
fn watch_parent() -> oneshot::Receiver<()> {
    let (release, released) = oneshot::channel();
    thread::spawn(move || {
        let mut lines = io::stdin().lock().lines();
        if let Some(Ok(_)) = lines.next() {
            let _ = release.send(());
        }
        if lines.next().is_none() {
            process::exit(3);
        }
    });
    released
}

fn say(line: &str) {
    let mut out = io::stdout().lock();
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

/// Charges at the order's rate, however long the answers take.
async fn hammer(node: Rc<Node>) -> Result<(), String> {
    let asks = Rc::new(RefCell::new(Vec::new()));
    let failure = Rc::new(RefCell::new(None));
    let began = Instant::now();
    let mut tasks = Vec::new();
    // The same load for exact and for leased.
    let mut random = Random::new(node.order.seed);
    let mut next = began + node.order.late;
    while next < began + node.order.lasting {
        tokio::time::sleep_until(next).await;
        let pace = if next < began + node.order.calm { node.order.rate / 5.0 } else { node.order.rate };
        // From a half to one and a half of the mean; what a slow machine missed is not made up for.
        let gap = Duration::from_secs_f64((0.5 + random.fraction()) / pace);
        next = (next + gap).max(Instant::now() - Duration::from_millis(2));
        tasks.retain(|task: &tokio::task::JoinHandle<()>| !task.is_finished());
        if tasks.len() >= MOST_UNDER_WAY {
            continue;
        }
        let (charged, cost) = node.next_charge(&mut random);
        let (node, asks, failure) = (Rc::clone(&node), Rc::clone(&asks), Rc::clone(&failure));
        tasks.push(tokio::task::spawn_local(async move {
            match node.ask(charged, cost).await {
                Ok(ask) => asks.borrow_mut().push(ask),
                Err(problem) => *failure.borrow_mut() = Some(problem),
            }
        }));
    }
    for task in tasks {
        task.await.map_err(|problem| problem.to_string())?;
    }
    if let Some(problem) = failure.borrow_mut().take() {
        return Err(problem);
    }
    let lines: Vec<String> = asks.borrow().iter().map(Ask::line).collect();
    say(&lines.join("\n"));
    Ok(())
}

/// Starts waiters at the order's rate. Each gives up after 0.1 to 0.9 s, unless the order has no calm. Writes down when each was released, after the
/// longest time by which a timer of this process was late.
async fn give_up(node: Rc<Node>) -> Result<(), String> {
    let released = Rc::new(RefCell::new(Vec::new()));
    let late = Rc::new(RefCell::new(Duration::ZERO));
    // The same load for exact and for leased.
    let mut random = Random::new(node.order.seed);
    let began = Instant::now();
    let probe = tokio::task::spawn_local({
        let late = Rc::clone(&late);
        async move {
            loop {
                let until = Instant::now() + Duration::from_millis(1);
                tokio::time::sleep_until(until).await;
                late.replace_with(|late| (*late).max(until.elapsed()));
            }
        }
    });
    let mut waiters = Vec::new();
    let mut next = began;
    while next < began + node.order.lasting {
        tokio::time::sleep_until(next).await;
        next += Duration::from_secs_f64((0.5 + random.fraction()) / node.order.rate);
        let patience = Duration::from_secs_f64(0.1 + 0.8 * random.fraction());
        let patience = if node.order.calm.is_zero() { Duration::from_secs(60) } else { patience };
        let (node, released) = (Rc::clone(&node), Rc::clone(&released));
        waiters.push(tokio::task::spawn_local(async move {
            let charge = node.charge();
            let waiting = node.store.wait(&charge).up_to(Duration::from_secs(60));
            match tokio::time::timeout(patience, waiting).await {
                Ok(Ok(_)) => released.borrow_mut().push(clock::now()),
                Ok(Err(problem)) => return Err(problem.to_string()),
                Err(_) => {}
            }
            Ok(())
        }));
    }
    for waiter in waiters {
        waiter.await.map_err(|problem| problem.to_string())??;
    }
    probe.abort();
    let times: Vec<String> = released.borrow().iter().map(u64::to_string).collect();
    say(&format!("{} {}", late.borrow().as_nanos(), times.join(" ")));
    Ok(())
}

impl Node {
    /// Which limits are charged next, and how much.
    fn next_charge(&self, random: &mut Random) -> (u32, u32) {
        let cost = [1, 1, 1, kinds::DEAREST as u32][random.below(4)];
        let charged = match self.limits.len() {
            // Whole sets, and halves of them that come in between.
            4 => [0b1111, 0b1111, 0b1111, 0b0011, 0b1100][random.below(5)],
            _ => 1,
        };
        (charged, cost)
    }

    async fn ask(&self, charged: u32, cost: u32) -> Result<Ask, String> {
        let charge = |place: usize| {
            let charge = Charge::new(&self.limits[place], KEYS[place]).cost(cost);
            self.kinds[place].patience.map_or(charge, |patience| charge.up_to(patience))
        };
        let places = (0..self.limits.len()).filter(|place| charged & (1 << place) != 0);
        let charges: Vec<_> = places.map(charge).collect();
        let asked = clock::now();
        let status = self.store.check(&charges).await.map_err(|problem| problem.to_string())?;
        let answered = clock::now();
        let left = match status.permit() {
            Some(permit) => {
                tokio::time::sleep(kinds::HELD).await;
                let leaving = clock::now();
                self.store.leave(&charges, permit).await.map_err(|problem| problem.to_string())?;
                Some((leaving, clock::now()))
            }
            None => None,
        };
        let said = status.statuses().iter().map(|status| By::from(status.decided_by()));
        let by = said.reduce(|one, other| if one == By::Store { other } else { one });
        let reset = status.statuses()[0].reset_after().unwrap_or_default();
        Ok(Ask {
            asked,
            answered,
            told: Told::from(status.decision()),
            by: by.unwrap_or(By::Other),
            reset: u64::try_from(reset.as_micros()).unwrap_or(u64::MAX),
            cost: cost.into(),
            charged,
            left,
            generation: self.order.generation,
        })
    }

    fn charge(&self) -> [Charge<'_, RedisLimit>; 1] {
        [Charge::new(&self.limits[0], KEYS[0]).cost(self.order.cost)]
    }

    async fn wait(&self) -> Result<(), String> {
        let asked = clock::now();
        let turn = self.store.wait(&self.charge()).up_to(Duration::from_millis(500)).await;
        let word = match turn {
            Ok(_) => "passed",
            Err(WaitError::Refused(_)) => "refused",
            Err(problem) => return Err(problem.to_string()),
        };
        say(&format!("{word} {asked} {}", clock::now()));
        Ok(())
    }

    async fn hold(&self) -> Result<(), String> {
        let permit = self.store.enter(&self.charge()).up_to(Duration::ZERO).await;
        let _permit = permit.map_err(|problem| problem.to_string())?;
        say(&format!("held {}", clock::now()));
        std::future::pending().await
    }

    async fn book(&self) -> Result<(), String> {
        let turn = self.store.reserve(&self.charge(), Duration::from_secs(2)).await;
        let turn = turn.map_err(|problem| problem.to_string())?;
        say(&format!("booked {} {}", clock::now(), turn.due_in().as_nanos()));
        turn.ready().await;
        say("came");
        std::future::pending().await
    }
}
