//! Who asks.
//!
//! The address of the connection is a fact; the address in `X-Forwarded-For` is a claim. Only the part of the claim that
//! trusted hops wrote is believed, read from the right: the first address from there that is not trusted is the client.

use http::{HeaderMap, HeaderValue};
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
}

impl ClientInfo {
    /// A peer that speaks for itself.
    #[must_use]
    pub fn new(peer: SocketAddr, scheme: Scheme) -> Self {
        let client_ip = peer.ip().to_canonical();
        // An address is made of digits, letters, dots and colons; an IPv6 zone is not part of it.
        let peer_text = HeaderValue::try_from(client_ip.to_string())
            .unwrap_or_else(|_| HeaderValue::from_static("unknown"));
        Self { peer, client_ip, scheme, trusted: false, peer_text }
    }

    /// Finds the client behind trusted proxies: if the peer is one, `X-Forwarded-For` is read from the right, through
    /// every address that is trusted, to the first that is not. An entry that is no address ends the search at the hop
    /// that wrote it.
    pub fn believe(&mut self, headers: &HeaderMap, trusted: impl Fn(IpAddr) -> bool) {
        let peer = self.peer.ip().to_canonical();
        self.trusted = trusted(peer);
        self.client_ip = peer;
        if !self.trusted {
            return;
        }
        for line in headers.get_all("x-forwarded-for").iter().rev() {
            let Ok(line) = line.to_str() else { return };
            for entry in line.rsplit(',') {
                let Some(address) = address(entry.trim()) else { return };
                self.client_ip = address;
                if !trusted(address) {
                    return;
                }
            }
        }
    }
}

/// An address as proxies write it: bare, in brackets, or with a port.
fn address(text: &str) -> Option<IpAddr> {
    let bare = text.parse::<IpAddr>().ok();
    let with_port = || text.parse::<SocketAddr>().ok().map(|address| address.ip());
    let bracketed = || text.strip_prefix('[')?.strip_suffix(']')?.parse::<IpAddr>().ok();
    bare.or_else(with_port).or_else(bracketed).map(|address| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(peer: &str, lines: &[&str]) -> ClientInfo {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append("x-forwarded-for", line.parse().expect("a header value"));
        }
        let mut client = ClientInfo::new(SocketAddr::new(peer.parse().expect("an address"), 1), Scheme::Http);
        client.believe(&headers, |address| address.to_string().starts_with("10."));
        client
    }

    fn check(peer: &str, lines: &[&str], expected: &str) {
        assert_eq!(client(peer, lines).client_ip.to_string(), expected, "{peer} {lines:?}");
    }

    #[test]
    fn only_what_trusted_hops_wrote_is_believed() {
        check("192.0.2.1", &["198.51.100.1"], "192.0.2.1");
        check("10.0.0.1", &[], "10.0.0.1");
        check("10.0.0.1", &["198.51.100.1"], "198.51.100.1");
        check("10.0.0.1", &["203.0.113.9, 198.51.100.1"], "198.51.100.1");
        check("10.0.0.1", &["203.0.113.9, 198.51.100.1, 10.0.0.7"], "198.51.100.1");
        check("10.0.0.1", &["203.0.113.9", "198.51.100.1,10.0.0.7"], "198.51.100.1");
        check("10.0.0.1", &["10.0.0.8, 10.0.0.7"], "10.0.0.8");
        check("10.0.0.1", &["203.0.113.9, nonsense"], "10.0.0.1");
        check("10.0.0.1", &["nonsense, 10.0.0.7"], "10.0.0.7");
        check("10.0.0.1", &["198.51.100.1:4711"], "198.51.100.1");
        check("10.0.0.1", &["[2001:db8::1]"], "2001:db8::1");
        check("10.0.0.1", &["[2001:db8::1]:80"], "2001:db8::1");
        check("::ffff:10.0.0.1", &["::ffff:198.51.100.1"], "198.51.100.1");
    }
}
