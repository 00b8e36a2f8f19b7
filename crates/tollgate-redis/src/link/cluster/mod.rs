//! A cluster: which node has a slot, and what to do when it says that it has not.
//!
//! A call is sent to the node the map names. A redirection (MOVED, ASK) is an answer, and says that nothing was run, so
//! following it charges once. Whatever casts doubt on the map has it drawn anew in the background (`survey.rs`), one survey at
//! a time. Calls do not wait for that: while the map is wrong, redirections lead them.

mod map;
mod survey;

use super::{
    Settings,
    error::LinkError,
    finder::Finder,
    request::{Manner, Request},
    server::Server,
    wire::Dialling,
};
use crate::address::Host;
use map::{Map, redirection};
use redis::Value;
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::{
    sync::{Notify, watch},
    task::AbortHandle,
    time::sleep,
};

/// So many redirections and pauses in one call, and then it is told no. A slot that moves takes two.
const STEPS: u32 = 8;

/// A node that says TRYAGAIN holds some of the keys and waits for the others: they take a moment.
const MOMENT: Duration = Duration::from_millis(5);

#[derive(Debug)]
pub(super) struct Cluster {
    shared: Arc<Shared>,
    surveyor: Mutex<Option<AbortHandle>>,
}

#[derive(Debug)]
struct Shared {
    seeds: Vec<Host>,
    dialling: Arc<Dialling>,
    settings: Settings,
    nodes: Mutex<HashMap<Host, Arc<Server>>>,
    state: watch::Sender<State>,
    doubt: Notify,
    /// The node that a redirection named last: it knows best.
    witness: Mutex<Option<Host>>,
}

#[derive(Clone, Debug)]
enum State {
    /// Nobody has asked yet, or the surveyor is gone.
    Asleep,
    /// The first survey is under way.
    Trying,
    Known(Arc<Map>),
    /// There is no map, and the next survey is still to come.
    Unknown(Arc<str>),
}

impl Cluster {
    pub(super) fn new(seeds: Vec<Host>, dialling: Arc<Dialling>, settings: Settings) -> Self {
        let shared = Shared {
            seeds,
            dialling,
            settings,
            nodes: Mutex::default(),
            state: watch::Sender::new(State::Asleep),
            doubt: Notify::new(),
            witness: Mutex::default(),
        };
        Self { shared: Arc::new(shared), surveyor: Mutex::new(None) }
    }

    pub(super) async fn ask(&self, slot: u16, request: &Request<'_>) -> Result<Value, LinkError> {
        let mut node = self.node_of(slot).await?;
        let mut manner = Manner::Plain;
        let mut step = 0;
        loop {
            let answer = node.server.ask(request, manner).await;
            let Err(error) = &answer else { return answer };
            step += 1;
            if matches!(error, LinkError::Refused { .. }) && step > STEPS {
                return answer;
            }
            match (error.code(), error) {
                (Some(code @ ("MOVED" | "ASK")), LinkError::Refused { message, .. }) => {
                    let Some(host) = redirection(message, &node.host) else { return answer };
                    manner = if code == "ASK" { Manner::Asking } else { Manner::Plain };
                    if manner == Manner::Plain {
                        self.shared.doubt(Some(host.clone()));
                    }
                    node = self.shared.node(host);
                }
                (Some("TRYAGAIN"), _) => {
                    sleep(MOMENT * step).await;
                    node = self.node_of(slot).await?;
                    manner = Manner::Plain;
                }
                // Its node is gone, or the cluster knows of none for now: that passes, but not at once.
                (Some("CLUSTERDOWN" | "READONLY" | "MASTERDOWN" | "LOADING"), _) | (None, _) => {
                    self.shared.doubt(None);
                    return answer;
                }
                _ => return answer,
            }
        }
    }

    /// Closes the connection to the slot's node, if there is one.
    pub(super) fn cut(&self, slot: u16, why: &'static str) {
        if let State::Known(map) = &*self.shared.state.borrow()
            && let Some(node) = map.node_of(slot)
        {
            node.server.cut(why);
        }
    }

    /// Tells the slot's node from others; zero while nobody knows it.
    pub(super) fn home_of(&self, slot: u16) -> usize {
        match &*self.shared.state.borrow() {
            State::Known(map) => map.node_of(slot).map_or(0, |node| Arc::as_ptr(&node.server).addr()),
            _ => 0,
        }
    }

    async fn node_of(&self, slot: u16) -> Result<Node, LinkError> {
        if let State::Known(map) = &*self.shared.state.borrow() {
            return self.node_in(map, slot);
        }
        let mut states = self.shared.state.subscribe();
        loop {
            match &*states.borrow_and_update() {
                State::Known(map) => return self.node_in(map, slot),
                State::Unknown(why) => return Err(LinkError::not_sent(Arc::clone(why))),
                State::Trying | State::Asleep => {}
            }
            self.wake();
            if states.changed().await.is_err() {
                return Err(LinkError::not_sent("the link was closed"));
            }
        }
    }

    fn node_in(&self, map: &Map, slot: u16) -> Result<Node, LinkError> {
        map.node_of(slot).cloned().ok_or_else(|| {
            self.shared.doubt(None);
            LinkError::not_sent("no node of the cluster has the slot")
        })
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
            let surveyor = tokio::spawn(survey::keep(Arc::clone(&self.shared)));
            *self.surveyor.lock().unwrap_or_else(PoisonError::into_inner) = Some(surveyor.abort_handle());
        }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if let Some(surveyor) = self.surveyor.get_mut().unwrap_or_else(PoisonError::into_inner).take() {
            surveyor.abort();
        }
    }
}

/// A node that can be asked.
#[derive(Clone, Debug)]
struct Node {
    host: Arc<Host>,
    server: Arc<Server>,
}

impl Shared {
    /// The node at an address: the one in use, or a new one.
    fn node(&self, host: Host) -> Node {
        let server = Arc::clone(self.nodes().entry(host.clone()).or_insert_with(|| {
            let (dialling, patience) = (Arc::clone(&self.dialling), self.settings.connect_within);
            let finder = Finder::Fixed { host: host.clone(), dialling, patience };
            Arc::new(Server::new(finder, self.settings.clone()))
        }));
        Node { host: Arc::new(host), server }
    }

    fn nodes(&self) -> MutexGuard<'_, HashMap<Host, Arc<Server>>> {
        self.nodes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn doubt(&self, witness: Option<Host>) {
        if witness.is_some() {
            *self.witness.lock().unwrap_or_else(PoisonError::into_inner) = witness;
        }
        self.doubt.notify_one();
    }
}
