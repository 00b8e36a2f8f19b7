//! Certificates that are renewed while they are served.

use anyhow::{Context, Result};
use tokio::task::JoinHandle;
use tollgate_admin::Meters;
use tollgate_net::{Contents, Identity, ReloadRequests, TlsAcceptor, Watcher};
use tollgate_rules::model::TlsFiles;

/// Serves these files, and what they are changed to or reloaded with: the next handshake has the new pair. One that cannot be served (half of
/// it may not be written yet) is told in the log, and the old one goes on.
pub(super) fn follow(
    listener: &str,
    files: &TlsFiles,
    alpn: &[&str],
    meters: &Meters,
    reload: &ReloadRequests,
) -> Result<(TlsAcceptor, JoinHandle<()>)> {
    let (cert, key) = (Contents::read(&files.cert), Contents::read(&files.key));
    let identity = Identity::parse(&cert, &key).with_context(|| format!("listen.{listener}.tls"))?;
    let acceptor = TlsAcceptor::new(identity, alpn);
    let watcher = Watcher::knowing([cert, key]).reload_on(reload.clone());
    let following = keep_up(listener.to_owned(), watcher, acceptor.clone(), meters.clone());
    Ok((acceptor, tokio::spawn(following)))
}

async fn keep_up(listener: String, mut watcher: Watcher, acceptor: TlsAcceptor, meters: Meters) {
    loop {
        let changed = watcher.changed().await;
        let [cert, key] = &changed[..] else { continue };
        match Identity::parse(cert, key) {
            Ok(identity) => {
                acceptor.replace(identity);
                meters.reloaded();
                tracing::info!(listener, "certificate reloaded");
            }
            Err(error) => {
                meters.reload_failed();
                tracing::error!(listener, %error, "certificate not reloaded; the previous one stays in use");
            }
        }
    }
}
