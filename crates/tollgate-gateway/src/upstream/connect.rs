//! A new connection to a server, made within the upstream's `connect_timeout`: name looked up, addresses tried in turn,
//! TLS agreed on.
//!
//! Names are looked up for every new connection, so that a change in DNS is seen; connections are kept, so it is seldom.
//! Certificates are checked against the system's roots, which are read once.

use super::{stream::Stream, url::ServerUrl};
use rustls::{AlertDescription, ClientConfig, RootCertStore, pki_types::ServerName};
use std::{
    io,
    net::{IpAddr, SocketAddr},
    sync::{Arc, OnceLock},
    time::Duration,
};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// Why there is no connection.
#[derive(Debug, Clone)]
pub(crate) enum ConnectError {
    Timeout,
    Failed(String),
    /// An upgrade is asked of a server that speaks HTTP/2 only, which has none. The server is well.
    NoUpgrades,
}

impl From<io::Error> for ConnectError {
    fn from(error: io::Error) -> Self {
        Self::Failed(error.to_string())
    }
}

/// What TLS may be agreed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Offer {
    /// HTTP/2 or HTTP/1.1.
    Both,
    /// HTTP/1.1, for an upgrade.
    Http1,
}

/// What a new connection speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Version {
    Http1,
    Http2,
}

/// Client settings of TLS: one for each offer.
#[derive(Debug, Clone)]
pub(crate) struct Tls {
    both: Arc<ClientConfig>,
    http1: Arc<ClientConfig>,
}

impl Tls {
    /// By the system's roots, read once in the life of the process.
    pub(crate) fn system() -> Result<Self, String> {
        static SYSTEM: OnceLock<Result<Tls, String>> = OnceLock::new();
        SYSTEM
            .get_or_init(|| {
                let found = rustls_native_certs::load_native_certs();
                let mut roots = RootCertStore::empty();
                roots.add_parsable_certificates(found.certs);
                if roots.is_empty() {
                    return Err("the system has no root certificates".to_owned());
                }
                Self::with_roots(roots)
            })
            .clone()
    }

    pub(crate) fn with_roots(roots: RootCertStore) -> Result<Self, String> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut both = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let mut http1 = both.clone();
        both.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        http1.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self { both: Arc::new(both), http1: Arc::new(http1) })
    }
}

/// A connection in clear.
pub(crate) async fn plain(url: &ServerUrl, within: Duration) -> Result<Stream, ConnectError> {
    bounded(within, async { Ok(Stream::Left(tcp(url).await?)) }).await
}

/// A connection over TLS, and what was agreed on.
pub(crate) async fn tls(
    url: &ServerUrl,
    tls: &Tls,
    offer: Offer,
    within: Duration,
) -> Result<(Stream, Version), ConnectError> {
    bounded(within, async {
        let socket = tcp(url).await?;
        let name = ServerName::try_from(url.host.clone()).map_err(io::Error::other)?;
        let config = if offer == Offer::Both { &tls.both } else { &tls.http1 };
        let connected = TlsConnector::from(config.clone()).connect(name, socket).await;
        let stream = connected.map_err(|error| match offer {
            Offer::Http1 if is_spoken_otherwise(&error) => ConnectError::NoUpgrades,
            _ => error.into(),
        })?;
        let agreed = stream.get_ref().1.alpn_protocol() == Some(b"h2");
        let version = if agreed { Version::Http2 } else { Version::Http1 };
        Ok((Stream::Right(Box::new(stream)), version))
    })
    .await
}

async fn bounded<T>(
    within: Duration,
    connecting: impl Future<Output = Result<T, ConnectError>>,
) -> Result<T, ConnectError> {
    tokio::time::timeout(within, connecting).await.unwrap_or(Err(ConnectError::Timeout))
}

/// Whether the server speaks nothing of what it was offered.
fn is_spoken_otherwise(error: &io::Error) -> bool {
    let error = error.get_ref().and_then(|error| error.downcast_ref::<rustls::Error>());
    matches!(error, Some(rustls::Error::AlertReceived(AlertDescription::NoApplicationProtocol)))
}

async fn tcp(url: &ServerUrl) -> io::Result<TcpStream> {
    let socket = match url.host.parse::<IpAddr>() {
        Ok(address) => TcpStream::connect(SocketAddr::new(address, url.port)).await?,
        // Tries one address after the other.
        Err(_) => TcpStream::connect((url.host.as_str(), url.port)).await?,
    };
    socket.set_nodelay(true)?;
    // A tunnel has no other way to notice that its server is gone.
    let keep_alive = socket2::TcpKeepalive::new().with_time(Duration::from_secs(120));
    socket2::SockRef::from(&socket).set_tcp_keepalive(&keep_alive)?;
    Ok(socket)
}
