//! The server's certificate, and another one when its files change.

use std::time::Duration;
use tollgate_net::{Identity, TlsAcceptor, TlsError, TlsFiles, Watcher};

/// What is agreed on in a handshake, best first.
const ALPN: [&str; 2] = ["h2", "http/1.1"];

/// Shakes hands within `patience`.
pub(super) fn acceptor(files: &TlsFiles, patience: Duration) -> Result<TlsAcceptor, TlsError> {
    Ok(TlsAcceptor::read(files, &ALPN)?.handshake_timeout(patience))
}

/// Looks at the files for ever. A pair that cannot be used is told in the log, and the old one goes on.
pub(super) async fn follow(acceptor: TlsAcceptor, files: TlsFiles) {
    let (mut watcher, mut contents) = Watcher::open([&files.cert, &files.key]).await;
    loop {
        // The first time too: the files may have changed since they were read.
        if let [cert, key] = &contents[..] {
            match Identity::parse(cert, key) {
                Ok(identity) => acceptor.replace(identity),
                Err(error) => {
                    tracing::warn!(%error, "the new certificate cannot be used; the old one goes on");
                }
            }
        }
        contents = watcher.changed().await;
        tracing::info!(cert = %files.cert.display(), "the certificate's files have changed");
    }
}
