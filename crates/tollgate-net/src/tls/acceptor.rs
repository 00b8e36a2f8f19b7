//! Handshakes, with a certificate that can be swapped.

use super::{Identity, TlsError};
use crate::Watcher;
use arc_swap::ArcSwap;
use rustls::{
    ServerConfig,
    crypto::ring,
    server::{ClientHello, ResolvesServerCert},
    sign::CertifiedKey,
};
use std::{fmt, sync::Arc, time::Duration};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    time,
};

pub use tokio_rustls::server::TlsStream;

/// How long a client may take to shake hands, unless something else was [asked for](TlsAcceptor::handshake_timeout).
const PATIENCE: Duration = Duration::from_secs(10);

/// Shakes hands. Clones are the same: a certificate swapped in one is swapped in all.
#[derive(Clone)]
pub struct TlsAcceptor {
    acceptor: tokio_rustls::TlsAcceptor,
    identity: Arc<Swappable>,
    patience: Duration,
}

/// No handshake came about. The peer's doing as a rule, and no reason to trouble anybody.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HandshakeError {
    /// The peer took longer than it may.
    #[error("the peer did not finish the TLS handshake within {0:?}")]
    Slow(Duration),
    /// The peer went away, spoke no TLS, or nothing that both sides support.
    #[error("no TLS: {0}")]
    Failed(#[from] std::io::Error),
}

impl TlsAcceptor {
    /// Serves `identity`, and offers the protocols of `alpn`, best first: `&["h2", "http/1.1"]`. With none, none is negotiated.
    #[must_use]
    pub fn new(identity: Identity, alpn: &[&str]) -> Self {
        let identity = Arc::new(Swappable(ArcSwap::new(identity.0)));
        let resolver: Arc<dyn ResolvesServerCert> = Arc::clone(&identity) as _;
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            // A fact about how this crate is built: its provider has suites for TLS 1.2 and 1.3.
            .expect("ring supports the default versions")
            .with_no_client_auth()
            .with_cert_resolver(resolver);
        config.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
        Self { acceptor: Arc::new(config).into(), identity, patience: PATIENCE }
    }

    /// As [`new`](Self::new), from the files themselves. Blocks.
    ///
    /// # Errors
    ///
    /// If they cannot be served; the error names the file and what is wrong with it.
    pub fn read(files: &super::TlsFiles, alpn: &[&str]) -> Result<Self, TlsError> {
        Ok(Self::new(Identity::read(files)?, alpn))
    }

    /// Gives a client this long to shake hands; ten seconds otherwise.
    #[must_use]
    pub fn handshake_timeout(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    /// Serves another certificate from the next handshake on.
    pub fn replace(&self, identity: Identity) {
        self.identity.0.store(identity.0);
    }

    /// Follows the certificate and its key for ever: what `watcher` sees in these two files is served from the next handshake
    /// on. A pair that cannot be served is logged, and the previous one stays in use. `on_reload` hears of both.
    pub async fn follow(
        self,
        listener: String,
        mut watcher: Watcher,
        on_reload: impl Fn(&Result<(), TlsError>) + Send,
    ) {
        loop {
            let changed = watcher.changed().await;
            let [cert, key] = &changed[..] else { continue };
            let taken = Identity::parse(cert, key).map(|identity| self.replace(identity));
            on_reload(&taken);
            match taken {
                Ok(()) => tracing::info!(listener, "certificate reloaded"),
                Err(error) => {
                    tracing::error!(listener, %error, "certificate not reloaded; the previous one stays in use");
                }
            }
        }
    }

    /// Shakes hands. [`TlsStream::get_ref`] tells which protocol was agreed on.
    ///
    /// # Errors
    ///
    /// If no handshake comes about in time.
    pub async fn accept<S>(&self, stream: S) -> Result<TlsStream<S>, HandshakeError>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        match time::timeout(self.patience, self.acceptor.accept(stream)).await {
            Ok(shaken) => Ok(shaken?),
            Err(_) => Err(HandshakeError::Slow(self.patience)),
        }
    }
}

impl fmt::Debug for TlsAcceptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsAcceptor")
            .field("identity", &Identity(self.identity.0.load_full()))
            .finish_non_exhaustive()
    }
}

#[derive(Debug)]
struct Swappable(ArcSwap<CertifiedKey>);

impl ResolvesServerCert for Swappable {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.load_full())
    }
}
