//! TLS to a server: rustls on ring, named here and nowhere installed, so that a program with another provider keeps it.

use crate::address;
use rustls::{
    ClientConfig, RootCertStore,
    crypto::ring,
    pki_types::{CertificateDer, ServerName, pem::PemObject},
};
use std::{path::Path, sync::Arc};
use tokio::{net::TcpStream, sync::OnceCell};
use tokio_rustls::{TlsConnector, client::TlsStream};

/// Whom to trust.
#[derive(Debug)]
pub(super) struct Trust {
    address: address::Tls,
    /// The system's authorities are a hundred files or more: read once. A private one is read anew for every connection, so
    /// that it can be replaced without a restart.
    system: OnceCell<Arc<ClientConfig>>,
}

impl Trust {
    pub(super) fn new(address: address::Tls) -> Self {
        Self { address, system: OnceCell::new() }
    }

    pub(super) async fn shake_hands(
        &self,
        name: &str,
        stream: TcpStream,
    ) -> Result<TlsStream<TcpStream>, String> {
        let config = match self.address.ca.clone() {
            Some(path) => aside(move || private(&path)).await?,
            None => Arc::clone(self.system.get_or_try_init(|| aside(system)).await?),
        };
        let name = ServerName::try_from(name.to_owned())
            .map_err(|_| format!("{name} is no name TLS could verify"))?;
        let connected = TlsConnector::from(config).connect(name, stream).await;
        connected.map_err(|error| format!("no TLS: {error}"))
    }
}

/// Files are read where blocking is allowed.
async fn aside(
    read: impl FnOnce() -> Result<Arc<ClientConfig>, String> + Send + 'static,
) -> Result<Arc<ClientConfig>, String> {
    tokio::task::spawn_blocking(read).await.map_err(|error| error.to_string())?
}

fn private(path: &Path) -> Result<Arc<ClientConfig>, String> {
    let told =
        |error: &dyn std::fmt::Display| format!("no certificate authority in {}: {error}", path.display());
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(path).map_err(|error| told(&error))? {
        roots.add(certificate.map_err(|error| told(&error))?).map_err(|error| told(&error))?;
    }
    if roots.is_empty() {
        return Err(told(&"it has no certificates"));
    }
    config(roots)
}

fn system() -> Result<Arc<ClientConfig>, String> {
    let mut roots = RootCertStore::empty();
    let (added, _) = roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    match added {
        0 => Err("the system has no certificate authorities; give one with ?ca=/path/ca.pem".to_owned()),
        _ => config(roots),
    }
}

fn config(roots: RootCertStore) -> Result<Arc<ClientConfig>, String> {
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    Ok(Arc::new(builder.with_root_certificates(roots).with_no_client_auth()))
}
