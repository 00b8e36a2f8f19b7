//! Certificates that are renewed while they are served.

use anyhow::{Context, Result};
use std::time::Duration;
use tokio::task::JoinHandle;
use tollgate_admin::Meters;
use tollgate_net::{Contents, Identity, ReloadRequests, TlsAcceptor, Watcher};
use tollgate_rules::model::TlsFiles;

/// Serves these files, and what they are changed to or reloaded with: the next handshake has the new pair. A pair that cannot be
/// served (half of it may not be written yet) is logged, and the previous one stays in use.
pub(super) fn follow(
    listener: &str,
    files: &TlsFiles,
    alpn: &[&str],
    handshake_timeout: Duration,
    meters: &Meters,
    reload: &ReloadRequests,
) -> Result<(TlsAcceptor, JoinHandle<()>)> {
    let (cert, key) = (Contents::read(&files.cert), Contents::read(&files.key));
    let identity = Identity::parse(&cert, &key).with_context(|| format!("listen.{listener}.tls"))?;
    let acceptor = TlsAcceptor::new(identity, alpn).handshake_timeout(handshake_timeout);
    let watcher = Watcher::knowing([cert, key]).reload_on(reload.clone());
    let meters = meters.clone();
    let following = acceptor.clone().follow(listener.to_owned(), watcher, move |taken| match taken {
        Ok(()) => meters.reloaded(),
        Err(_) => meters.reload_failed(),
    });
    Ok((acceptor, tokio::spawn(following)))
}
