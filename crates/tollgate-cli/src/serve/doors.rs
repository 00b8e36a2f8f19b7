//! The doors that answer questions, opened as the file says.

use super::opened::{Options, bind};
use anyhow::{Context, Result};
use std::{num::NonZeroUsize, sync::Arc};
use tollgate::{Cells, Enter};
use tollgate_net::{Crew, CrewSettings, Door, Drain, TlsAcceptor, TlsFiles, Tokens};
use tollgate_rules::model;
use tollgate_service::{Desk, Resp, RespSettings};

/// The door for Redis clients.
pub(super) fn open_resp<S: Enter + Cells + 'static>(
    listener: &model::Listener,
    options: &Options,
    drain: &Drain,
    desk: Desk<S>,
) -> Result<Crew> {
    let mut settings = RespSettings::default();
    settings.tokens = tokens(listener);
    settings.idle_timeout = listener.idle_timeout;
    open("resp", listener, &[], options, drain, Resp::new(desk, settings))
}

/// Opens one of them: the name it has under `listen`, and the protocols it can agree on in a TLS handshake.
fn open<D: Door>(
    name: &str,
    listener: &model::Listener,
    alpn: &[&str],
    options: &Options,
    drain: &Drain,
    door: D,
) -> Result<Crew> {
    let socket = bind(name, listener)?;
    let mut settings = CrewSettings::default();
    if let Some(workers) = options.workers {
        settings.workers = workers;
    }
    let most = NonZeroUsize::new(listener.max_connections as usize);
    settings.max_connections = most.unwrap_or(NonZeroUsize::MIN);
    if let Some(tls) = &listener.tls {
        let files = TlsFiles { cert: tls.cert.clone(), key: tls.key.clone() };
        let acceptor = TlsAcceptor::read(&files, alpn).with_context(|| format!("listen.{name}.tls"))?;
        settings.tls = Some(acceptor);
    }
    Crew::start(name, socket, settings, drain, Arc::new(door)).with_context(|| format!("listen.{name}"))
}

/// The words that a listener asks for.
fn tokens(listener: &model::Listener) -> Tokens {
    Tokens::new(listener.tokens.iter().map(|token| token.0.clone()))
}
