//! Whose bucket a request is charged to, and what becomes of a request that does not say.

use http::{HeaderName, request::Parts};
use std::{
    fmt,
    net::{IpAddr, SocketAddr},
    sync::Arc,
};
use tollgate::{Key, KeyValues, OwnedKey};
use tollgate_http::{TrustedProxies, bucket_of};

/// The address at the other end of the connection, for [`by_ip`](crate::LimitLayer::by_ip): a server without axum or tonic
/// puts it into the extensions of each request.
///
/// ```
/// use http::Request;
/// use tollgate_tower::PeerAddr;
///
/// # let peer = "192.0.2.1:4711".parse()?;
/// let mut request = Request::new(());
/// request.extensions_mut().insert(PeerAddr(peer));
/// # Ok::<(), std::net::AddrParseError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerAddr(pub SocketAddr);

/// What becomes of a request without what a limit counts by: the header, the address, the extension.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Missing {
    /// All such requests share one bucket.
    #[default]
    Share,
    /// That limit does not charge it.
    Skip,
    /// It is refused.
    Deny,
}

/// How a limit finds its key in a request.
#[derive(Clone)]
pub(crate) enum By {
    Everyone,
    Ip,
    Header(HeaderName),
    Lent(Arc<Lends>),
    Made(Arc<Makes>),
}

pub(crate) type Lends = dyn for<'r> Fn(&'r Parts) -> Option<Key<'r>> + Send + Sync;
pub(crate) type Makes = dyn Fn(&Parts) -> Option<OwnedKey> + Send + Sync;

/// A key that was found: lent by the request, or made from it.
pub(crate) enum Found<'r> {
    Lent(Key<'r>),
    Made(OwnedKey),
}

impl By {
    pub(crate) fn find<'r>(&'r self, request: &'r Parts, proxies: &TrustedProxies) -> Option<Found<'r>> {
        match self {
            Self::Everyone => Some(Found::Lent(Key::All)),
            Self::Ip => {
                let client = proxies.client(peer(request)?, &request.headers);
                Some(Found::Lent(Key::Ip(bucket_of(client))))
            }
            Self::Header(name) => {
                request.headers.get(name).map(|value| Found::Lent(Key::Bytes(value.as_bytes())))
            }
            Self::Lent(find) => find(request).map(Found::Lent),
            Self::Made(make) => make(request).map(Found::Made),
        }
    }
}

impl Found<'_> {
    /// The values of a list, which a key only borrows.
    pub(crate) fn values(&self) -> KeyValues<'_> {
        match self {
            Self::Lent(_) => Vec::new(),
            Self::Made(key) => key.values(),
        }
    }

    pub(crate) fn key<'a>(&'a self, values: &'a [Option<&'a str>]) -> Key<'a> {
        match self {
            Self::Lent(key) => *key,
            Self::Made(key) => key.key(values),
        }
    }
}

/// What all share whose key is missing: a list of one missing value, which no request can name.
pub(crate) const MISSING: Key<'static> = Key::List(&[None]);

/// The address at the other end of the connection.
fn peer(request: &Parts) -> Option<IpAddr> {
    let ours = request.extensions.get::<PeerAddr>().map(|peer| peer.0.ip());
    ours.or_else(|| of_axum(request)).or_else(|| of_tonic(request))
}

#[cfg(feature = "axum")]
fn of_axum(request: &Parts) -> Option<IpAddr> {
    request.extensions.get::<axum::extract::ConnectInfo<SocketAddr>>().map(|peer| peer.0.ip())
}

#[cfg(not(feature = "axum"))]
const fn of_axum(_: &Parts) -> Option<IpAddr> {
    None
}

#[cfg(feature = "tonic")]
fn of_tonic(request: &Parts) -> Option<IpAddr> {
    let info = request.extensions.get::<tonic::transport::server::TcpConnectInfo>()?;
    info.remote_addr().map(|peer| peer.ip())
}

#[cfg(not(feature = "tonic"))]
const fn of_tonic(_: &Parts) -> Option<IpAddr> {
    None
}

impl fmt::Debug for By {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Everyone => f.write_str("Everyone"),
            Self::Ip => f.write_str("Ip"),
            Self::Header(name) => f.debug_tuple("Header").field(name).finish(),
            Self::Lent(_) | Self::Made(_) => f.write_str("Closure"),
        }
    }
}
