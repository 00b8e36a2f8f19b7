//! The doors that answer questions, opened as the file says.

use super::opened::{Options, bind};
use anyhow::{Context, Result};
use std::{num::NonZeroUsize, sync::Arc};
use tollgate::Store;
use tollgate_net::{Crew, CrewSettings, Door, Drain, TlsAcceptor, TlsFiles, Tokens};
use tollgate_rules::model;
use tollgate_service::{Desk, Rls, RlsSettings};

/// Opens Envoy's rate limit service.
pub(super) fn open_grpc<S: Store + 'static>(
    listener: &model::Listener,
    options: &Options,
    drain: &Drain,
    desk: Desk<S>,
) -> Result<Crew> {
    let mut settings = RlsSettings::default();
    settings.tokens = tokens(listener);
    if let Some(longest) = listener.max_body {
        settings.max_message = usize::try_from(longest).unwrap_or(usize::MAX);
    }
    settings.max_header = listener.max_header;
    settings.patience = listener.header_timeout;
    settings.idle = listener.idle_timeout;
    let door = Rls::new(desk, settings, drain.clone());
    open("grpc", listener, &["h2", "http/1.1"], options, drain, door)
}

/// Opens one of them: the name it has under `listen`, and the protocols it can agree on in a TLS handshake.
pub(super) fn open<D: Door>(
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
pub(super) fn tokens(listener: &model::Listener) -> Tokens {
    Tokens::new(listener.tokens.iter().map(|token| token.0.clone()))
}
