//! The server's certificate: read from files, and read again when they change.
//!
//! Every few seconds the files' times and sizes are looked at, through links, so that a Kubernetes swap of a directory is
//! seen. A pair that cannot be used is told in the log, and the old one goes on.

use super::settings::{ServeError, TlsSettings};
use arc_swap::ArcSwap;
use rustls::{
    ServerConfig,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    server::{ClientHello, ResolvesServerCert},
    sign::CertifiedKey,
};
use std::{
    fmt, fs,
    path::Path,
    sync::Arc,
    time::{Duration, SystemTime},
};
use tokio_rustls::TlsAcceptor;

const LOOK_EVERY: Duration = Duration::from_secs(2);

#[derive(Clone)]
pub(super) struct Certificates {
    acceptor: TlsAcceptor,
    current: Arc<Current>,
}

struct Current(ArcSwap<CertifiedKey>);

impl fmt::Debug for Current {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Current")
    }
}

impl ResolvesServerCert for Current {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.load_full())
    }
}

impl Certificates {
    pub(super) fn read(settings: &TlsSettings) -> Result<Self, ServeError> {
        let current = Arc::new(Current(ArcSwap::from_pointee(read(settings)?)));
        let wrong = |error: rustls::Error| ServeError::Tls {
            file: settings.cert.display().to_string(),
            reason: error.to_string(),
        };
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(wrong)?
            .with_no_client_auth()
            .with_cert_resolver(current.clone());
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Self { acceptor: TlsAcceptor::from(Arc::new(config)), current })
    }

    pub(super) const fn acceptor(&self) -> &TlsAcceptor {
        &self.acceptor
    }

    /// Looks at the files for ever.
    pub(super) async fn follow(self, settings: TlsSettings) {
        let mut known = marks(&settings);
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            let found = marks(&settings);
            if found == known {
                continue;
            }
            match read(&settings) {
                Ok(pair) => {
                    tracing::info!(cert = %settings.cert.display(), "a new certificate is in use");
                    self.current.0.store(Arc::new(pair));
                    known = found;
                }
                // Asked again next time: one file may have been written and the other not yet.
                Err(error) => {
                    tracing::warn!(%error, "the new certificate cannot be used; the old one goes on");
                }
            }
        }
    }
}

type Mark = Option<(SystemTime, u64)>;

fn marks(settings: &TlsSettings) -> (Mark, Mark) {
    let mark = |path: &Path| {
        let about = fs::metadata(path).ok()?;
        Some((about.modified().ok()?, about.len()))
    };
    (mark(&settings.cert), mark(&settings.key))
}

fn read(settings: &TlsSettings) -> Result<CertifiedKey, ServeError> {
    let wrong = |path: &Path, reason: String| ServeError::Tls { file: path.display().to_string(), reason };
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_file_iter(&settings.cert)
        .and_then(Iterator::collect)
        .map_err(|error| wrong(&settings.cert, error.to_string()))?;
    if chain.is_empty() {
        return Err(wrong(&settings.cert, "holds no certificate".to_owned()));
    }
    let key = PrivateKeyDer::from_pem_file(&settings.key)
        .map_err(|error| wrong(&settings.key, error.to_string()))?;
    CertifiedKey::from_der(chain, key, &ring::default_provider())
        .map_err(|error| wrong(&settings.key, error.to_string()))
}
