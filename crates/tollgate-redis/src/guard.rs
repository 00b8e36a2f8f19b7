//! Keeps a store that does not answer out of the way of requests: a breaker for each server, what it is told, and the one probe
//! that finds out when the server is back.
//!
//! What happens is logged once a change, never once a request. Whoever looks after a breaker keeps nothing alive: it ends with
//! the store, also while the server is down.

use crate::{
    breaker::{Admission, Breaker, BreakerSettings, Change, Due, Outcome, Pass},
    hash::Quick,
    health::HealthState,
    link::{Group, Home, Link, random},
};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::{Duration, Instant},
};
use tollgate::Time;

/// So many probes in a row without a word, and the connection is not trusted any more: one that lost an answer gives every
/// question the answer to the one before, and would do so for good. Fewer would cut off answers that are only late, and those
/// are still good for taking back what was charged.
const UNHEARD: u32 = 4;

pub(crate) struct Guard {
    homes: Mutex<HashMap<Home, Watched, Quick>>,
    settings: BreakerSettings,
    /// How long a probe may take.
    timeout: Duration,
    opened: Instant,
}

/// A server's breaker, and whether somebody looks after it.
struct Watched {
    breaker: Breaker,
    is_watched: bool,
}

/// What may be asked: a call that was let through, and whom it goes to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ticket {
    home: Home,
    pass: Pass,
}

impl Guard {
    pub(crate) fn new(timeout: Duration) -> Self {
        Self {
            homes: Mutex::default(),
            settings: BreakerSettings::default(),
            timeout,
            opened: Instant::now(),
        }
    }

    /// Whether a call may be made; `None` where the server is known not to answer.
    pub(crate) fn admit(&self, home: Home) -> Option<Ticket> {
        let mut homes = self.homes();
        let watched = homes.entry(home).or_insert_with(|| Watched {
            breaker: Breaker::new(self.settings, self.now()),
            is_watched: false,
        });
        match watched.breaker.admit(|| self.now(), random) {
            Admission::Go(pass) => Some(Ticket { home, pass }),
            Admission::Skip => None,
        }
    }

    /// Sees to it that somebody looks after a breaker that is not closed: whoever did may have ended with its runtime.
    pub(crate) fn look_after(self: &Arc<Self>, link: &Arc<Link>, home: Home, probe: impl FnOnce() -> Probe) {
        let is_new = self.homes().get_mut(&home).is_some_and(|watched| {
            let needed = watched.breaker.next_look().is_some() && !watched.is_watched;
            watched.is_watched |= needed;
            needed
        });
        if is_new {
            tokio::spawn(watch(Arc::downgrade(self), Arc::downgrade(link), home, probe()));
        }
    }

    /// Hears how a call went, and why it failed. `probe` says how to find out whether the server is back, should it come to that.
    pub(crate) fn report(
        self: &Arc<Self>,
        link: &Arc<Link>,
        ticket: Ticket,
        why: Option<&str>,
        probe: impl FnOnce() -> Probe,
    ) {
        let outcome = if why.is_none() { Outcome::Answered } else { Outcome::Failed };
        let change = self.homes().get_mut(&ticket.home).and_then(|watched| {
            let is_news = outcome == Outcome::Failed || !watched.breaker.is_calm();
            is_news.then(|| watched.breaker.report(self.now(), ticket.pass, outcome, random()))?
        });
        change.iter().for_each(|change| log(change, why));
        if outcome == Outcome::Failed || change.is_some() {
            self.look_after(link, ticket.home, probe);
        }
    }

    /// The worst that any server is in, and how often one was given up.
    pub(crate) fn health(&self) -> (HealthState, u64) {
        let homes = self.homes();
        let worst = homes.values().map(|watched| watched.breaker.health()).max();
        let opened = homes.values().map(|watched| watched.breaker.opened()).sum();
        (worst.unwrap_or(HealthState::Healthy), opened)
    }

    /// When to look next; where there is nothing to look for, nobody looks any more.
    fn next_look(&self, home: Home) -> Option<Time> {
        let mut homes = self.homes();
        let watched = homes.get_mut(&home)?;
        let next = watched.breaker.next_look();
        watched.is_watched = next.is_some();
        next
    }

    fn now(&self) -> Time {
        Time::ZERO + self.opened.elapsed()
    }

    fn homes(&self) -> MutexGuard<'_, HashMap<Home, Watched, Quick>> {
        self.homes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Somebody looks after a breaker: until this is dropped, with a runtime that ends if need be.
struct Watching {
    guard: Weak<Guard>,
    home: Home,
}

impl Drop for Watching {
    fn drop(&mut self) {
        if let Some(guard) = self.guard.upgrade()
            && let Some(watched) = guard.homes().get_mut(&self.home)
        {
            watched.is_watched = false;
        }
    }
}

/// Looks after a breaker until it is closed, or the store is gone.
async fn watch(guard: Weak<Guard>, link: Weak<Link>, home: Home, probe: Probe) {
    let _watching = Watching { guard: Weak::clone(&guard), home };
    let mut unheard = 0;
    loop {
        let pause = guard.upgrade().and_then(|guard| Some(guard.next_look(home)? - guard.now()));
        let Some(pause) = pause else { return };
        tokio::time::sleep(pause).await;
        let (Some(guard), Some(link)) = (guard.upgrade(), link.upgrade()) else { return };
        let due = guard.homes().get_mut(&home).and_then(|watched| watched.breaker.look(guard.now()));
        match due {
            Some(Due::Probe(number)) => {
                let asked =
                    tokio::time::timeout(guard.timeout, link.plain(probe.group, probe.command())).await;
                let outcome = if matches!(asked, Ok(Ok(_))) { Outcome::Answered } else { Outcome::Failed };
                unheard = if asked.is_err() { unheard + 1 } else { 0 };
                if unheard == UNHEARD {
                    link.cut(probe.group, "the server left several questions unanswered");
                    unheard = 0;
                }
                let change = guard
                    .homes()
                    .get_mut(&home)
                    .and_then(|watched| watched.breaker.report_probe(guard.now(), number, outcome, random()));
                change.iter().for_each(|change| log(change, None));
            }
            Some(Due::Changed(change)) => log(&change, None),
            None => {}
        }
    }
}

/// What a probe writes: a key beside those that were asked for, so that it shows whether writes are taken there again.
#[derive(Clone, Debug)]
pub(crate) struct Probe {
    pub(crate) group: Group,
    pub(crate) key: Vec<u8>,
}

impl Probe {
    fn command(&self) -> redis::Cmd {
        redis::cmd("SET").arg(&self.key).arg(1).arg("PX").arg(1_000).take()
    }
}

fn log(change: &Change, why: Option<&str>) {
    match change {
        Change::Opened { .. } | Change::Relapsed { .. } => {
            tracing::warn!(target: "tollgate::redis", why, "{change}");
        }
        Change::Returning { .. } | Change::Closed { .. } => {
            tracing::info!(target: "tollgate::redis", "{change}");
        }
    }
}
