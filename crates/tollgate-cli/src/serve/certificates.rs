//! Certificates that are renewed while they are served.

use anyhow::{Context, Result};
use tokio::task::JoinHandle;
use tollgate_admin::Meters;
use tollgate_net::{Contents, Identity, TlsAcceptor, Watcher};
use tollgate_rules::model::TlsFiles;

/// Serves these files, and what they are changed to: the next handshake has the new pair. One that cannot be served (half of
/// it may not be written yet) is told in the log, and the old one goes on.
pub(super) fn follow(
    listener: &str,
    files: &TlsFiles,
    alpn: &[&str],
    meters: &Meters,
) -> Result<(TlsAcceptor, JoinHandle<()>)> {
    let (cert, key) = (Contents::read(&files.cert), Contents::read(&files.key));
    let identity = Identity::parse(&cert, &key).with_context(|| format!("listen.{listener}.tls"))?;
    let acceptor = TlsAcceptor::new(identity, alpn);
    let following = keep_up(listener.to_owned(), [cert, key], acceptor.clone(), meters.clone());
    Ok((acceptor, tokio::spawn(following)))
}

async fn keep_up(listener: String, files: [Contents; 2], acceptor: TlsAcceptor, meters: Meters) {
    let mut watcher = Watcher::knowing(files);
    loop {
        let changed = watcher.changed().await;
        let [cert, key] = &changed[..] else { continue };
        match Identity::parse(cert, key) {
            Ok(identity) => {
                acceptor.replace(identity);
                meters.reloaded();
                tracing::info!(listener, "the certificate was changed");
            }
            Err(error) => {
                meters.reload_failed();
                tracing::error!(listener, "the certificate stays as it was: {error}");
            }
        }
    }
}
