//! The surveyor: draws the map on first use and whenever it is doubted, one survey at a time, seldom enough to be no burden.
//!
//! Whoever answers first is believed. A node that a redirection named is asked before all others, since it knows of the move
//! before word of it has gone round.

use super::{Host, Node, Shared, State, map::Map};
use crate::link::{
    backoff::Backoff,
    request::{Manner, Request},
};
use std::{
    sync::{Arc, PoisonError},
    time::Duration,
};
use tokio::{
    task::JoinSet,
    time::{Instant, sleep, timeout},
};

/// So many nodes are asked at once. One of them may be gone without a word, and its silence is long.
const AT_ONCE: usize = 3;

/// How long the witness is listened to before others are asked.
const WITNESS: Duration = Duration::from_millis(250);

/// A map that was not doubted for so long was a good one.
const STEADY: Duration = Duration::from_secs(2);

pub(super) async fn keep(shared: Arc<Shared>) {
    let _asleep = PutToSleep(&shared);
    let mut backoff = Backoff::new(shared.settings.pause_from, shared.settings.pause_to);
    loop {
        match (survey(&shared).await, known(&shared)) {
            (Ok(map), old) => {
                if old.is_none_or(|old| !old.agrees(&map)) {
                    tracing::info!(target: "tollgate::redis", nodes = map.nodes().len(), "drew the map of the cluster");
                    backoff.reset();
                }
                shared.nodes().retain(|host, _| map.has(host));
                shared.state.send_replace(State::Known(Arc::new(map)));
            }
            (Err(why), old) => {
                tracing::debug!(target: "tollgate::redis", why, "no map of the cluster");
                if old.is_none() {
                    shared.state.send_replace(State::Unknown(why.into()));
                }
            }
        }
        let drawn = Instant::now();
        sleep(backoff.pause()).await;
        if known(&shared).is_some() {
            shared.doubt.notified().await;
            if drawn.elapsed() >= STEADY {
                backoff.reset();
            }
        } else {
            shared.state.send_replace(State::Trying);
        }
    }
}

fn known(shared: &Shared) -> Option<Arc<Map>> {
    match &*shared.state.borrow() {
        State::Known(map) => Some(Arc::clone(map)),
        _ => None,
    }
}

async fn survey(shared: &Arc<Shared>) -> Result<Map, String> {
    let witness = shared.witness.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(host) = witness
        && let Ok(Ok(map)) = timeout(WITNESS, drawn_by(Arc::clone(shared), host)).await
    {
        return Ok(map);
    }
    let mut mistakes = Vec::new();
    for few in candidates(shared).chunks(AT_ONCE) {
        let mut asked = JoinSet::new();
        for host in few {
            asked.spawn(drawn_by(Arc::clone(shared), host.clone()));
        }
        while let Some(answer) = asked.join_next().await {
            match answer {
                Ok(Ok(map)) => return Ok(map),
                Ok(Err(mistake)) => mistakes.push(mistake),
                Err(_) => {}
            }
        }
    }
    Err(mistakes.join("; "))
}

/// The nodes of the map, connected ones first, and then the ones that were given to begin with.
fn candidates(shared: &Shared) -> Vec<Host> {
    let mut nodes: Vec<Node> = known(shared).map_or_else(Vec::new, |map| map.nodes().to_vec());
    nodes.sort_by_key(|node| !node.server.is_up());
    let mut hosts: Vec<Host> = nodes.iter().map(|node| (*node.host).clone()).collect();
    for seed in &shared.seeds {
        if !hosts.contains(seed) {
            hosts.push(seed.clone());
        }
    }
    hosts
}

async fn drawn_by(shared: Arc<Shared>, host: Host) -> Result<Map, String> {
    let mut question = redis::cmd("CLUSTER");
    question.arg("SLOTS");
    let server = shared.node(host.clone()).server;
    let request = Request::plain(question);
    let patience = shared.settings.connect_within;
    let answer = timeout(patience, server.ask(&request, Manner::Plain)).await;
    let answer = answer.map_err(|_| format!("{host}: no answer in time"))?;
    let answer = answer.map_err(|error| format!("{host}: {error}"))?;
    let map = Map::draw(&answer, &host, |host| shared.node(host));
    map.filter(|map| !map.nodes().is_empty()).ok_or_else(|| format!("{host} knows of no slots"))
}

struct PutToSleep<'a>(&'a Shared);

impl Drop for PutToSleep<'_> {
    fn drop(&mut self) {
        self.0.state.send_replace(State::Asleep);
    }
}
