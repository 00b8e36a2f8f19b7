//! What the admin API asks of the program: everything that is open, every key of every limit, and the rules as they are kept.

use super::{opened::Gauges, pipeline::RulePipeline, state::Tell};
use std::{fs, net::SocketAddr, sync::Arc, time::SystemTime};
use tollgate::{Decision, Enter, Key, Store, StoreError};
use tollgate_admin::{
    Doing, Held, KeyAct, KeyError, Node, OpenListener, Operated, UpstreamServer, UpstreamState,
};
use tollgate_book::{Book, Keeper, Wrong};
use tollgate_rules::{Program, RuleFile, decision::KeyControl, nearest};

/// The program, as the admin API has it.
pub(super) struct Controls<S: Enter> {
    pub(super) pipeline: Arc<RulePipeline<S>>,
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
        let upstreams = self.pipeline.gateway.upstreams().into_iter();
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
        let revision = self.pipeline.status.revision();
        look(self.pipeline.decisions.rules().program(), &revision);
    }

    fn key<'a>(&'a self, limit: &'a str, key: Key<'a>, act: KeyAct) -> Doing<'a, Result<Held, KeyError>> {
        Box::pin(async move {
            let rules = self.pipeline.decisions.rules();
            let control = rules.key_control(limit, key).ok_or_else(|| unknown(rules.program(), limit))?;
            done(&control, act).await.map_err(|error| KeyError::Store(error.to_string()))
        })
    }

    fn keeper(&self) -> Arc<dyn Keeper> {
        Arc::clone(&self.pipeline.keeper)
    }

    fn judge(&self, book: &Book) -> Result<RuleFile, Vec<Wrong>> {
        self.pipeline.judge(book)
    }

    fn take<'a>(&'a self, book: &'a Book) -> Doing<'a, Result<(), String>> {
        Box::pin(self.pipeline.publish_change(book))
    }
}

/// This node: the machine's name, and where its admin listener is.
pub(super) fn node(admin: SocketAddr) -> Node {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").ok().map(|name| name.trim().to_owned());
    let name = name.filter(|name| !name.is_empty()).unwrap_or_else(|| admin.ip().to_string());
    Node { name: format!("{name}:{}", admin.port()), started: SystemTime::now() }
}

fn unknown(program: &Program, name: &str) -> KeyError {
    let named = program.file().limits.iter().map(|limit| limit.name.as_str());
    let inline = program.inline_limits().iter().map(|inline| inline.name.as_str());
    KeyError::UnknownLimit { nearest: nearest(name, named.chain(inline)).map(str::to_owned) }
}

async fn done<S: Store>(control: &KeyControl<'_, S>, act: KeyAct) -> Result<Held, StoreError> {
    match act {
        KeyAct::Look => {}
        KeyAct::Reset => control.reset().await?,
        KeyAct::Grant(units) => control.grant(units).await?,
        KeyAct::Ban(lasting) => control.ban(lasting).await?,
    }
    let asked = control.status(1).await?;
    // One that would pass tells how it would stand after it; as it stands now, none is told.
    let now = match asked.decision() {
        Decision::Deny(_) => asked,
        Decision::Allow | Decision::Wait(_) => control.status(0).await?,
    };
    Ok(Held { asked, now })
}
