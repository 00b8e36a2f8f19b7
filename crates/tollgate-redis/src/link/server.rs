//! One server, and the one connection to it: made on first use, and made anew whenever it is lost.
//!
//! A task, the **keeper**, does that, and is the only one that dials: however many callers there are, there is one attempt at
//! a time. Callers look at the state it leaves behind. While an attempt is under way they wait for it (for how long is theirs
//! to say); between two attempts they are told at once that nothing was sent, and why.
//!
//! The keeper runs on the runtime of whoever called first. If that ends, the next caller starts another on its own.

use super::{
    Settings,
    backoff::Backoff,
    error::LinkError,
    finder::Finder,
    request::{Manner, Request},
    wire::{Pump, Wire},
};
use redis::Value;
use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::{
    sync::watch,
    task::AbortHandle,
    time::{Instant, sleep, sleep_until, timeout},
};

/// A server that can be asked.
pub(super) struct Server {
    shared: Arc<Shared>,
    keeper: Mutex<Option<AbortHandle>>,
}

struct Shared {
    finder: Finder,
    settings: Settings,
    state: watch::Sender<State>,
}

#[derive(Clone, Debug)]
enum State {
    /// Nobody has asked for it yet, or its keeper is gone.
    Asleep,
    /// An attempt is under way.
    Trying,
    Up(Arc<Wire>),
    /// The last attempt failed, and the next is still to come.
    Down(Arc<str>),
}

/// A connection that lived for so long was a good one: when it is lost, the next attempt is made at once.
const STEADY: Duration = Duration::from_secs(1);

/// A connection that lived for less is one that comes and goes, as to a server that lets us in and then refuses. The log is
/// told of the first such, not of one every second for as long as that lasts.
const NOTEWORTHY: Duration = Duration::from_secs(10);

impl Server {
    pub(super) fn new(finder: Finder, settings: Settings) -> Self {
        let shared = Shared { finder, settings, state: watch::Sender::new(State::Asleep) };
        Self { shared: Arc::new(shared), keeper: Mutex::new(None) }
    }

    /// Asks it, once connected.
    pub(super) async fn ask(&self, request: &Request<'_>, manner: Manner) -> Result<Value, LinkError> {
        let wire = self.wire().await?;
        let answer = request.over(&wire, manner).await;
        if let Some("READONLY" | "MASTERDOWN") = answer.as_ref().err().and_then(LinkError::code) {
            // It is a replica now, or still: whoever is the primary is found by dialling anew.
            wire.retire("the server is a read-only replica");
        }
        answer
    }

    /// Whether it is connected at this moment.
    pub(super) fn is_up(&self) -> bool {
        matches!(&*self.shared.state.borrow(), State::Up(wire) if wire.is_open())
    }

    /// Closes the connection, if there is one, with everything that is under way on it.
    pub(super) fn cut(&self, why: &'static str) {
        if let State::Up(wire) = &*self.shared.state.borrow() {
            wire.cut(why);
        }
    }

    async fn wire(&self) -> Result<Arc<Wire>, LinkError> {
        if let State::Up(wire) = &*self.shared.state.borrow()
            && wire.is_open()
        {
            return Ok(Arc::clone(wire));
        }
        let mut states = self.shared.state.subscribe();
        loop {
            match &*states.borrow_and_update() {
                State::Up(wire) if wire.is_open() => return Ok(Arc::clone(wire)),
                State::Down(why) => return Err(LinkError::not_sent(Arc::clone(why))),
                State::Up(_) | State::Trying | State::Asleep => {}
            }
            self.wake();
            if states.changed().await.is_err() {
                return Err(LinkError::not_sent("the link was closed"));
            }
        }
    }

    fn wake(&self) {
        let is_mine = self.shared.state.send_if_modified(|state| {
            let is_asleep = matches!(state, State::Asleep);
            if is_asleep {
                *state = State::Trying;
            }
            is_asleep
        });
        if is_mine {
            let keeper = tokio::spawn(keep(Arc::clone(&self.shared)));
            *self.keeper.lock().unwrap_or_else(PoisonError::into_inner) = Some(keeper.abort_handle());
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(keeper) = self.keeper.get_mut().unwrap_or_else(PoisonError::into_inner).take() {
            keeper.abort();
        }
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("at", &self.shared.finder).field("state", &self.shared.state).finish()
    }
}

async fn keep(shared: Arc<Shared>) {
    let _asleep = PutToSleep(&shared);
    let mut backoff = Backoff::new(shared.settings.pause_from, shared.settings.pause_to);
    let mut found = None;
    let mut failures = 0_u32;
    // Connections in a row that came and went.
    let mut short = 0_u32;
    loop {
        shared.state.send_replace(State::Trying);
        let dialled = match found.take() {
            Some(already) => Ok(already),
            None => shared.finder.dial().await,
        };
        let why = match dialled {
            Ok((wire, pump)) => {
                let wire = Arc::new(wire);
                match short {
                    0 | 1 => {
                        tracing::info!(target: "tollgate::redis", server = %wire.peer, failures, "connected to Redis");
                    }
                    _ => {
                        tracing::debug!(target: "tollgate::redis", server = %wire.peer, failures, "connected to Redis once more");
                    }
                }
                failures = 0;
                shared.state.send_replace(State::Up(Arc::clone(&wire)));
                let up_since = Instant::now();
                found = stay(&shared, &wire, pump).await;
                if found.is_some() {
                    tracing::warn!(target: "tollgate::redis", server = %wire.peer, "the sentinels named another primary");
                    continue;
                }
                let lived = up_since.elapsed();
                short = if lived < NOTEWORTHY { short.saturating_add(1) } else { 0 };
                match short {
                    0 | 1 => {
                        tracing::warn!(target: "tollgate::redis", server = %wire.peer, why = wire.ending(), "lost Redis");
                    }
                    _ => {
                        tracing::debug!(target: "tollgate::redis", server = %wire.peer, why = wire.ending(), "lost Redis once more");
                    }
                }
                if lived >= STEADY {
                    backoff.reset();
                    continue;
                }
                wire.ending().to_owned()
            }
            Err(why) => {
                failures += 1;
                if failures == 1 && short < 2 {
                    tracing::warn!(target: "tollgate::redis", why, "Redis cannot be reached");
                }
                why
            }
        };
        shared.state.send_replace(State::Down(why.into()));
        sleep(backoff.pause()).await;
    }
}

/// Stays with a wire until it is over, or until there is a better one.
async fn stay(shared: &Shared, wire: &Wire, mut pump: Pump) -> Option<(Wire, Pump)> {
    let idle = shared.settings.idle_for;
    let (mut ping_at, mut reads) = (Instant::now() + idle, 0);
    let mut elsewhere = std::pin::pin!(shared.finder.elsewhere(&wire.peer));
    loop {
        tokio::select! {
            _ = &mut pump => return None,
            () = wire.retired() => return None,
            better = &mut elsewhere => {
                wire.retire("the primary is another now");
                return Some(better);
            }
            () = sleep_until(ping_at) => {
                if wire.reads() == reads {
                    // Its silence is what the pump looks for. Nobody waits for the answer here.
                    let _ = timeout(shared.settings.silent_for, wire.send(&redis::cmd("PING"))).await;
                }
                (ping_at, reads) = (Instant::now() + idle, wire.reads());
            }
        }
    }
}

struct PutToSleep<'a>(&'a Shared);

impl Drop for PutToSleep<'_> {
    fn drop(&mut self) {
        self.0.state.send_replace(State::Asleep);
    }
}
