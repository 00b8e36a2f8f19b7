//! Who asks.
//!
//! The address of the connection is a fact; the address in `X-Forwarded-For` is a claim. Whose claims are believed is the
//! handler's to say (`tollgate_http::TrustedProxies`), and what it came to is kept here.

use crate::interim::InterimSender;
use http::HeaderValue;
use std::net::{IpAddr, SocketAddr};

/// By which scheme the client came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scheme {
    /// In clear.
    Http,
    /// Over TLS.
    Https,
}

impl Scheme {
    /// `http` or `https`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }
}

/// Who asks: the other end of the connection, and whom it speaks for.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ClientInfo {
    /// The other end of the connection.
    pub peer: SocketAddr,
    /// The client: the peer, or whom a trusted peer speaks for. An IPv4 address is never in its IPv6 form.
    pub client_ip: IpAddr,
    /// By which scheme the peer came.
    pub scheme: Scheme,
    /// Whether the peer is a trusted proxy: what it says about forwarding is passed on, not replaced.
    pub trusted: bool,
    /// The peer's address as a header value, written once a connection.
    pub(crate) peer_text: HeaderValue,
    /// Takes interim responses to this request, where the client understands them.
    pub(crate) interim: Option<InterimSender>,
}

impl ClientInfo {
    /// A peer that speaks for itself.
    #[must_use]
    pub fn new(peer: SocketAddr, scheme: Scheme) -> Self {
        let client_ip = peer.ip().to_canonical();
        // An address is made of digits, letters, dots and colons; an IPv6 zone is not part of it.
        let peer_text = HeaderValue::try_from(client_ip.to_string())
            .unwrap_or_else(|_| HeaderValue::from_static("unknown"));
        Self { peer, client_ip, scheme, trusted: false, peer_text, interim: None }
    }
}
