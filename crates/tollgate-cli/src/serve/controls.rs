//! What the admin API asks of the program: everything that is open, every key of every limit, and the rules as they are kept.

use super::{opened::Gauges, reload::Followers, state::Tell};
use std::{fs, net::SocketAddr, sync::Arc, time::SystemTime};
use tollgate::{Charge, Decision, Enter, Key, Status, Store, StoreError};
use tollgate_admin::{
    Doing, Held, KeyAct, KeyError, Node, OpenListener, Operated, UpstreamServer, UpstreamState,
};
use tollgate_book::{Book, Keeper, Wrong};
use tollgate_rules::{Edition, Program, RuleFile, nearest};

/// The program, as the admin API has it.
pub(super) struct Controls<S: Enter> {
    pub(super) followers: Arc<Followers<S>>,
    pub(super) keeper: Arc<dyn Keeper>,
    pub(super) node: Node,
    pub(super) addresses: Vec<(&'static str, SocketAddr)>,
    pub(super) connections: Arc<Gauges>,
    pub(super) in_flight: Arc<Gauges>,
}

impl<S: Enter + Tell + 'static> Operated for Controls<S> {
    fn node(&self) -> Node {
        self.node.clone()
    }

    fn listeners(&self) -> Vec<OpenListener> {
        let asked =
            |gauges: &Gauges, name| gauges.iter().find(|(known, _)| *known == name).map(|(_, gauge)| gauge());
        let listener = |(name, address): &(&'static str, SocketAddr)| OpenListener {
            name: (*name).to_owned(),
            address: address.to_string(),
            connections: asked(&self.connections, *name),
            in_flight: asked(&self.in_flight, *name),
        };
        self.addresses.iter().map(listener).collect()
    }

    fn upstreams(&self) -> Vec<UpstreamState> {
        let upstreams = self.followers.gateway.iter().flat_map(|gateway| gateway.upstreams());
        let state = |upstream: Arc<tollgate_gateway::Upstream>| UpstreamState {
            name: upstream.name().to_owned(),
            servers: upstream
                .servers()
                .map(|server| UpstreamServer {
                    url: server.url,
                    weight: server.weight,
                    healthy: server.healthy,
                })
                .collect(),
        };
        upstreams.map(state).collect()
    }

    fn in_force(&self, look: &mut dyn FnMut(&Program, &str)) {
        let revision = self.followers.status.revision();
        look(self.followers.enforcer.edition().program(), &revision);
    }

    fn key<'a>(&'a self, limit: &'a str, key: Key<'a>, act: KeyAct) -> Doing<'a, Result<Held, KeyError>> {
        Box::pin(async move {
            let edition = self.followers.enforcer.edition();
            let handle = handle(&edition, limit, key).ok_or_else(|| unknown(edition.program(), limit))?;
            let held = done(&**edition.store(), handle, key, act).await;
            held.map_err(|error| KeyError::Store(error.to_string()))
        })
    }

    fn keeper(&self) -> Arc<dyn Keeper> {
        Arc::clone(&self.keeper)
    }

    fn judge(&self, book: &Book) -> Result<RuleFile, Vec<Wrong>> {
        self.followers.judge(book)
    }

    fn take<'a>(&'a self, book: &'a Book) -> Doing<'a, Result<(), String>> {
        Box::pin(async { self.followers.take_book(book) })
    }
}

/// This node: the machine's name, and where its admin listener is.
pub(super) fn node(admin: SocketAddr) -> Node {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").ok().map(|name| name.trim().to_owned());
    let name = name.filter(|name| !name.is_empty()).unwrap_or_else(|| admin.ip().to_string());
    Node { name: format!("{name}:{}", admin.port()), started: SystemTime::now() }
}

/// The limit of that name, as `/v1/top` has it; the numbers are the key's own where it has some.
fn handle<'e, S: Store>(edition: &'e Edition<S>, name: &str, key: Key<'_>) -> Option<&'e S::Limit> {
    if let Some(place) = edition.place_of(name) {
        return Some(edition.at(place, key));
    }
    let program = edition.program();
    let inline = program.inline_limits().iter().find(|inline| inline.name == name)?;
    Some(edition.limit_of(&program.charges()[inline.charge.0], key))
}

fn unknown(program: &Program, name: &str) -> KeyError {
    let named = program.file().limits.iter().map(|limit| limit.name.as_str());
    let inline = program.inline_limits().iter().map(|inline| inline.name.as_str());
    KeyError::UnknownLimit { nearest: nearest(name, named.chain(inline)).map(str::to_owned) }
}

async fn done<S: Store>(store: &S, limit: &S::Limit, key: Key<'_>, act: KeyAct) -> Result<Held, StoreError> {
    match act {
        KeyAct::Look => {}
        KeyAct::Reset => store.reset(limit, key).await?,
        KeyAct::Grant(units) => store.grant(limit, key, units).await?,
        KeyAct::Ban(lasting) => store.ban(limit, key, lasting).await?,
    }
    let peek = async |cost| -> Result<Option<Status>, StoreError> {
        let told = store.peek(&[Charge::new(limit, key).cost(cost)]).await?;
        Ok(told.statuses().first().copied())
    };
    let asked = peek(1).await?.ok_or(StoreError::UnknownLimit)?;
    // One that would pass tells how it would stand after it; as it stands now, none is told.
    let now = match asked.decision() {
        Decision::Deny(_) => asked,
        Decision::Allow | Decision::Wait(_) => peek(0).await?.unwrap_or(asked),
    };
    Ok(Held { asked, now })
}
