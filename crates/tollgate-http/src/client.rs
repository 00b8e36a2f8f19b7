//! Whose request it is: the client's address behind proxies.
//!
//! Anybody can write `X-Forwarded-For`; what a proxy that is trusted has appended is true as far as that proxy saw. So the
//! field is read from the right, from the peer that the connection is from, and only for as long as whoever vouches for the
//! next address is trusted. The first address that is not a trusted proxy is the client, whatever stands to its left.

use http::HeaderMap;
use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// Proxies whose `X-Forwarded-For` is believed; none by default.
///
/// ```
/// use http::HeaderMap;
/// use tollgate_http::TrustedProxies;
///
/// let proxies = TrustedProxies::new(["10.0.0.0/8".parse()?]);
/// let mut headers = HeaderMap::new();
/// headers.insert("x-forwarded-for", "1.1.1.1, 203.0.113.7, 10.0.0.9".parse()?);
///
/// // The left-most address is whatever the client wrote.
/// assert_eq!(proxies.client("10.0.0.1".parse()?, &headers).to_string(), "203.0.113.7");
/// assert_eq!(proxies.client("192.0.2.1".parse()?, &headers).to_string(), "192.0.2.1");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct TrustedProxies(Vec<IpNet>);

impl TrustedProxies {
    /// Trusts whatever has an address in one of these networks.
    #[must_use]
    pub fn new(networks: impl IntoIterator<Item = IpNet>) -> Self {
        Self(networks.into_iter().map(unmapped_network).collect())
    }

    /// Whether this address is a proxy's that is trusted.
    #[must_use]
    pub fn trusts(&self, address: IpAddr) -> bool {
        let address = unmapped(address);
        self.0.iter().any(|network| network.contains(&address))
    }

    /// The client's address: the peer's, or where the peer is a trusted proxy what that says, and so on. An entry that is no
    /// address ends the search: it is not known who is behind, and whoever vouched for it is the last that is known.
    ///
    /// All lines of the field count, in their order, as the one list that they are.
    #[must_use]
    pub fn client(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        let mut client = unmapped(peer);
        if self.0.is_empty() {
            return client;
        }
        let lines = headers.get_all("x-forwarded-for").iter();
        let mut entries = lines.rev().flat_map(|line| line.as_bytes().rsplit(|byte| *byte == b','));
        while self.trusts(client) {
            match entries.next().and_then(address) {
                Some(next) => client = next,
                None => break,
            }
        }
        client
    }
}

/// An entry: an address, with a port or without.
fn address(entry: &[u8]) -> Option<IpAddr> {
    let text = std::str::from_utf8(entry).ok()?.trim_matches([' ', '\t']);
    let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).filter(|it| it.contains(':'));
    let address = bare.unwrap_or(text).parse::<IpAddr>();
    address.or_else(|_| text.parse::<SocketAddr>().map(|it| it.ip())).ok().map(unmapped)
}

/// An IPv4 address that is mapped into IPv6 is that IPv4 address.
#[must_use]
pub const fn unmapped(address: IpAddr) -> IpAddr {
    address.to_canonical()
}

/// The address that stands for one client's: an IPv4 address for itself, an IPv6 address for its /64, since that is what one
/// subscriber has. Otherwise a client could have a bucket for each of its 2^64 addresses.
///
/// ```
/// use tollgate_http::bucket_of;
///
/// assert_eq!(bucket_of("2001:db8:1:2:3:4:5:6".parse()?).to_string(), "2001:db8:1:2::");
/// assert_eq!(bucket_of("::ffff:192.0.2.1".parse()?).to_string(), "192.0.2.1");
/// # Ok::<(), std::net::AddrParseError>(())
/// ```
#[must_use]
pub const fn bucket_of(address: IpAddr) -> IpAddr {
    match unmapped(address) {
        IpAddr::V6(six) => IpAddr::V6(Ipv6Addr::from_bits(six.to_bits() & !(u64::MAX as u128))),
        four => four,
    }
}

/// A network of mapped IPv4 addresses is that network of IPv4 addresses.
fn unmapped_network(network: IpNet) -> IpNet {
    let IpNet::V6(six) = network else { return network };
    let four = six.addr().to_ipv4_mapped().zip(six.prefix_len().checked_sub(96));
    match four.and_then(|(address, prefix)| Ipv4Net::new(address, prefix).ok()) {
        Some(four) => IpNet::V4(four),
        None => IpNet::V6(Ipv6Net::trunc(&six)),
    }
}
