//! The server's certificate, and another one when its files change.

use std::time::Duration;
use tollgate_net::{Identity, ReloadRequests, TlsAcceptor, TlsError, TlsFiles, Watcher};

/// What is agreed on in a handshake, best first.
const ALPN: [&str; 2] = ["h2", "http/1.1"];

/// Shakes hands within `patience`.
pub(super) fn acceptor(files: &TlsFiles, patience: Duration) -> Result<TlsAcceptor, TlsError> {
    Ok(TlsAcceptor::read(files, &ALPN)?.handshake_timeout(patience))
}

/// Follows the files for ever, and reads them at once when that is requested. A pair that cannot be used is logged, and
/// the previous one stays in use.
pub(super) async fn follow(acceptor: TlsAcceptor, files: TlsFiles, reload: ReloadRequests) {
    let (watcher, mut contents) = Watcher::open([&files.cert, &files.key]).await;
    let mut watcher = watcher.reload_on(reload);
    loop {
        // The first time too: the files may have changed since they were read.
        if let [cert, key] = &contents[..] {
            match Identity::parse(cert, key) {
                Ok(identity) => {
                    acceptor.replace(identity);
                    tracing::info!(listener = "gateway", "certificate reloaded");
                }
                Err(error) => {
                    tracing::error!(
                        listener = "gateway",
                        %error,
                        "certificate not reloaded; the previous one stays in use"
                    );
                }
            }
        }
        contents = watcher.changed().await;
    }
}
