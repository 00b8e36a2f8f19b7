//! The gateway and the decision APIs: their listeners, opened as the file says.

use super::{
    certificates,
    opened::{Gauges, Options, bind},
};
use anyhow::{Context, Result};
use std::{net::SocketAddr, num::NonZeroUsize, sync::Arc};
use tokio::task::JoinHandle;
use tollgate::{Cells, Enter};
use tollgate_admin::Meters;
use tollgate_gateway::Gateway;
use tollgate_net::{ConnectionHandler, Drain, PoolSettings, TlsAcceptor, Tokens, WorkerPool};
use tollgate_rules::{
    DecisionService,
    decision::Api,
    model::{self, Listen},
};
use tollgate_service::{Json, JsonSettings, Resp, RespSettings, Rls, RlsSettings};

/// What HTTP listeners agree on in a TLS handshake, best first.
const HTTP: [&str; 2] = ["h2", "http/1.1"];

/// How often no connection could be accepted, by listener, when somebody asks.
pub(super) type AcceptErrors = Vec<(&'static str, Box<dyn Fn() -> u64 + Send + Sync>)>;

/// The listeners of a file, except the one of the admin API.
#[derive(Default)]
pub(super) struct Doors {
    pools: Vec<(&'static str, WorkerPool)>,
    /// Requests that are not answered yet, where a door counts them.
    in_flight: Gauges,
    /// Who follows their certificates.
    tasks: Vec<JoinHandle<()>>,
}

/// Which doors a file names.
pub(super) fn named(listen: &Listen) -> Vec<Api> {
    let doors = [(Api::Resp, &listen.resp), (Api::Http, &listen.http), (Api::Grpc, &listen.grpc)];
    doors.into_iter().filter(|(_, listener)| listener.is_some()).map(|(name, _)| name).collect()
}

impl Doors {
    /// Opens those that the file names.
    pub(super) fn open<S: Enter + Cells + 'static>(
        listen: &Listen,
        opening: &Opening<'_>,
        gateway: &Gateway<S>,
        decisions: &DecisionService<S>,
    ) -> Result<Self> {
        let mut doors = Self::default();
        if let Some(listener) = &listen.gateway {
            let in_flight = gateway.clone();
            doors.in_flight.push(("gateway", Box::new(move || in_flight.in_flight().inside())));
            doors.add_gateway(opening, listener, gateway.clone())?;
        }
        if let Some(listener) = &listen.resp {
            let door = Resp::new(decisions.clone(), resp_settings(listener));
            doors.add(opening, Api::Resp, listener, &[], door)?;
        }
        if let Some(listener) = &listen.http {
            let door = Json::new(decisions.clone(), json_settings(listener));
            doors.in_flight.push(("http", Box::new(door.in_flight())));
            doors.add(opening, Api::Http, listener, &HTTP, door)?;
        }
        if let Some(listener) = &listen.grpc {
            let door = Rls::new(decisions.clone(), rls_settings(listener), opening.drain.clone());
            doors.in_flight.push(("grpc", Box::new(door.in_flight())));
            doors.add(opening, Api::Grpc, listener, &HTTP, door)?;
        }
        Ok(doors)
    }

    /// Opens one of them; `alpn` are the protocols it can agree on in a TLS handshake.
    fn add<H: ConnectionHandler>(
        &mut self,
        opening: &Opening<'_>,
        name: Api,
        listener: &model::Listener,
        alpn: &[&str],
        handler: H,
    ) -> Result<()> {
        let mut settings = match name {
            Api::Grpc => PoolSettings::shared(),
            _ => PoolSettings::default(),
        };
        let name = name.as_str();
        let socket = bind(name, listener)?;
        settings.workers = opening.options.workers.unwrap_or(settings.workers);
        settings.max_connections = max_connections(listener);
        settings.tls = self.tls(opening, name, listener, alpn)?;
        let pool = WorkerPool::start(name, socket, settings, opening.drain, Arc::new(handler));
        self.pools.push((name, pool.with_context(|| format!("listen.{name}"))?));
        Ok(())
    }

    fn add_gateway<S: Enter + 'static>(
        &mut self,
        opening: &Opening<'_>,
        listener: &model::Listener,
        gateway: Gateway<S>,
    ) -> Result<()> {
        let name = "gateway";
        let socket = bind(name, listener)?;
        let mut settings = tollgate_gateway::Settings::default();
        settings.workers = opening.options.workers.unwrap_or(settings.workers);
        settings.max_connections = max_connections(listener);
        settings.tls = self.tls(opening, name, listener, &tollgate_gateway::ALPN)?;
        settings.limits.head = listener.max_header as usize;
        settings.limits.body = listener.max_body.unwrap_or(u64::MAX);
        settings.limits.head_timeout = listener.header_timeout;
        settings.limits.idle_timeout = listener.idle_timeout;
        settings.limits.body_timeout = listener.idle_timeout;
        settings.observer = Some(Arc::new(crate::log::AccessLines));
        let pool = tollgate_gateway::serve(socket, settings, opening.drain, gateway);
        self.pools.push((name, pool.context("listen.gateway")?));
        Ok(())
    }

    /// TLS where the listener has it, with certificates that are followed.
    fn tls(
        &mut self,
        opening: &Opening<'_>,
        name: &'static str,
        listener: &model::Listener,
        alpn: &[&str],
    ) -> Result<Option<TlsAcceptor>> {
        let Some(tls) = &listener.tls else { return Ok(None) };
        let (within, reload) = (listener.header_timeout, &opening.options.reload);
        let (acceptor, following) = certificates::follow(name, tls, alpn, within, opening.meters, reload)?;
        self.tasks.push(following);
        Ok(Some(acceptor))
    }

    /// Where they listen.
    pub(super) fn addresses(&self) -> impl Iterator<Item = (&'static str, SocketAddr)> {
        self.pools.iter().map(|(name, pool)| (*name, pool.address()))
    }

    /// How many connections each has, for whoever counts.
    pub(super) fn connections(&self) -> Gauges {
        self.pools.iter().map(|(name, pool)| (*name, Box::new(pool.connections()) as _)).collect()
    }

    /// How often each could accept no connection because something had run out.
    pub(super) fn accept_errors(&self) -> AcceptErrors {
        self.pools.iter().map(|(name, pool)| (*name, Box::new(pool.accept_errors()) as _)).collect()
    }

    /// How many requests are not answered yet, for whoever counts.
    pub(super) fn in_flight(&mut self) -> Gauges {
        std::mem::take(&mut self.in_flight)
    }

    /// Waits for their threads, which end when the drain is over.
    pub(super) fn join(self) {
        self.tasks.iter().for_each(JoinHandle::abort);
        self.pools.into_iter().for_each(|(_, pool)| pool.join());
    }
}

/// What every listener is opened with.
pub(super) struct Opening<'a> {
    pub(super) options: &'a Options,
    pub(super) drain: &'a Drain,
    pub(super) meters: &'a Meters,
}

fn max_connections(listener: &model::Listener) -> NonZeroUsize {
    NonZeroUsize::new(listener.max_connections as usize).unwrap_or(NonZeroUsize::MIN)
}

/// The words that a listener asks for.
fn tokens(listener: &model::Listener) -> Tokens {
    Tokens::new(listener.tokens.iter().map(|token| token.0.clone()))
}

fn resp_settings(listener: &model::Listener) -> RespSettings {
    let mut settings = RespSettings::default();
    settings.tokens = tokens(listener);
    settings.idle_timeout = listener.idle_timeout;
    settings
}

fn json_settings(listener: &model::Listener) -> JsonSettings {
    let mut settings = JsonSettings::default();
    settings.tokens = tokens(listener);
    settings.max_header = listener.max_header as usize;
    if let Some(most) = listener.max_body {
        settings.max_body = usize::try_from(most).unwrap_or(usize::MAX);
    }
    settings.max_in_flight = NonZeroUsize::new(listener.max_in_flight as usize).unwrap_or(NonZeroUsize::MIN);
    settings.header_timeout = listener.header_timeout;
    settings.idle_timeout = listener.idle_timeout;
    settings
}

fn rls_settings(listener: &model::Listener) -> RlsSettings {
    let mut settings = RlsSettings::default();
    settings.tokens = tokens(listener);
    if let Some(longest) = listener.max_body {
        settings.max_message = usize::try_from(longest).unwrap_or(usize::MAX);
    }
    settings.max_header = listener.max_header;
    settings.max_in_flight = NonZeroUsize::new(listener.max_in_flight as usize).unwrap_or(NonZeroUsize::MIN);
    settings.patience = listener.header_timeout;
    settings.idle = listener.idle_timeout;
    settings
}
