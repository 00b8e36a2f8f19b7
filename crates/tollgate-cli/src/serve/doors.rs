//! The doors that answer questions, opened as the file says.

use super::{
    certificates,
    opened::{Gauges, Options, bind},
};
use anyhow::{Context, Result};
use std::{net::SocketAddr, num::NonZeroUsize, sync::Arc};
use tokio::task::JoinHandle;
use tollgate::{Cells, Enter};
use tollgate_admin::Meters;
use tollgate_net::{Crew, CrewSettings, Door, Drain, Tokens};
use tollgate_rules::{
    DecisionService,
    decision::Api,
    model::{self, Listen},
};
use tollgate_service::{Json, JsonSettings, Resp, RespSettings, Rls, RlsSettings};

/// The doors of a file, which all ask one decision service.
#[derive(Default)]
pub(super) struct Doors {
    crews: Vec<(&'static str, Crew)>,
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
        options: &Options,
        drain: &Drain,
        meters: &Meters,
        decisions: &DecisionService<S>,
    ) -> Result<Self> {
        let mut doors = Self::default();
        let opening = Opening { options, drain, meters };
        if let Some(listener) = &listen.resp {
            let door = Resp::new(decisions.clone(), resp_settings(listener));
            doors.add(&opening, Api::Resp, listener, &[], door)?;
        }
        if let Some(listener) = &listen.http {
            let door = Json::new(decisions.clone(), json_settings(listener));
            doors.in_flight.push(("http", Box::new(door.in_flight())));
            doors.add(&opening, Api::Http, listener, &["h2", "http/1.1"], door)?;
        }
        if let Some(listener) = &listen.grpc {
            let door = Rls::new(decisions.clone(), rls_settings(listener), drain.clone());
            doors.in_flight.push(("grpc", Box::new(door.in_flight())));
            doors.add(&opening, Api::Grpc, listener, &["h2", "http/1.1"], door)?;
        }
        Ok(doors)
    }

    /// Opens one of them; `alpn` are the protocols it can agree on in a TLS handshake.
    fn add<D: Door>(
        &mut self,
        opening: &Opening<'_>,
        name: Api,
        listener: &model::Listener,
        alpn: &[&str],
        door: D,
    ) -> Result<()> {
        let name = name.as_str();
        let socket = bind(name, listener)?;
        let mut settings = CrewSettings::default();
        if let Some(workers) = opening.options.workers {
            settings.workers = workers;
        }
        let most = NonZeroUsize::new(listener.max_connections as usize);
        settings.max_connections = most.unwrap_or(NonZeroUsize::MIN);
        if let Some(tls) = &listener.tls {
            let (acceptor, following) =
                certificates::follow(name, tls, alpn, opening.meters, &opening.options.reload)?;
            settings.tls = Some(acceptor);
            self.tasks.push(following);
        }
        let crew = Crew::start(name, socket, settings, opening.drain, Arc::new(door));
        self.crews.push((name, crew.with_context(|| format!("listen.{name}"))?));
        Ok(())
    }

    /// Where they listen.
    pub(super) fn addresses(&self) -> impl Iterator<Item = (&'static str, SocketAddr)> {
        self.crews.iter().map(|(name, crew)| (*name, crew.address()))
    }

    /// How many connections each has, for whoever counts.
    pub(super) fn connections(&self) -> Gauges {
        self.crews.iter().map(|(name, crew)| (*name, Box::new(crew.connections()) as _)).collect()
    }

    /// How many requests are not answered yet, for whoever counts.
    pub(super) fn in_flight(&mut self) -> Gauges {
        std::mem::take(&mut self.in_flight)
    }

    /// Waits for their threads, which end when the drain is over.
    pub(super) fn join(self) {
        self.tasks.iter().for_each(JoinHandle::abort);
        self.crews.into_iter().for_each(|(_, crew)| crew.join());
    }
}

/// What every door is opened with.
struct Opening<'a> {
    options: &'a Options,
    drain: &'a Drain,
    meters: &'a Meters,
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
