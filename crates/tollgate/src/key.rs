//! Whose bucket: a [`Key`], and the fingerprint a store keeps instead of it.
//!
//! A key is a list of values, each present or missing; `"k"` is `["k"]`. Identity is never a joined string: every value is
//! hashed with its length, a missing one unlike an empty one, and a number unlike its digits.

use crate::siphash::siphash;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Whose bucket is charged.
///
/// ```
/// use tollgate::Key;
///
/// let alice = Key::from("alice");
/// let seven = Key::from(7_u64);
/// let address = Key::from(std::net::Ipv4Addr::LOCALHOST);
/// let pair = Key::from(&[Some("tenant"), Some("alice")]);
/// let lacking = Key::from(&[Some("tenant"), None]);
/// let everyone = Key::from(());
/// # let _ = (alice, seven, address, pair, lacking, everyone);
/// ```
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Key<'a> {
    /// One bucket for all.
    All,
    /// One text.
    Text(&'a str),
    /// One value of any bytes. Text is the same as its bytes.
    Bytes(&'a [u8]),
    /// A number, which is not the same as its digits.
    Number(u64),
    /// An address; an IPv4 address mapped into IPv6 is that IPv4 address.
    Ip(IpAddr),
    /// Several values, of which some may be missing. A list of one text is that text.
    List(&'a [Option<&'a str>]),
}

/// What stands in a list for the length of a value that is missing.
const MISSING: u64 = u64::MAX;

impl Key<'_> {
    /// A 128-bit hash under a secret, separate for each `domain`: for stores outside this crate. Whoever does not know the
    /// secret cannot make two keys meet.
    #[must_use]
    pub fn hash(&self, secret: [u64; 2], domain: u64) -> [u64; 2] {
        self.fingerprint(secret, domain)
    }

    /// A 128-bit fingerprint under the store's secret, separate for each `domain` (a limit's serial number).
    #[inline(always)]
    pub(crate) fn fingerprint(&self, secret: [u64; 2], domain: u64) -> [u64; 2] {
        let listed;
        let number;
        let octets;
        let (shape, bytes): (u64, &[u8]) = match *self {
            Self::Text(text) | Self::List(&[Some(text)]) => (1, text.as_bytes()),
            Self::Bytes(bytes) => (1, bytes),
            Self::Number(it) => {
                number = it.to_le_bytes();
                (2, &number)
            }
            Self::Ip(address) => {
                octets = match address {
                    IpAddr::V4(four) => four.to_ipv6_mapped().octets(),
                    IpAddr::V6(six) => six.octets(),
                };
                (4, &octets)
            }
            Self::All | Self::List([]) => (0, &[]),
            Self::List(values) => {
                listed = measured(values);
                (3, &listed)
            }
        };
        // The limit and the key's shape go into the secret, where they cost no block of their own.
        siphash([secret[0] ^ domain, secret[1] ^ shape], bytes)
    }
}

/// The values, each after its length; a missing one is a length that no value has.
#[cold]
fn measured(values: &[Option<&str>]) -> Vec<u8> {
    let mut buffer = Vec::with_capacity(64);
    for value in values {
        buffer.extend(value.map_or(MISSING, |text| text.len() as u64).to_le_bytes());
        buffer.extend(value.unwrap_or_default().as_bytes());
    }
    buffer
}

impl From<()> for Key<'_> {
    fn from((): ()) -> Self {
        Self::All
    }
}

impl<'a> From<&'a str> for Key<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(text)
    }
}

impl<'a> From<&'a String> for Key<'a> {
    fn from(text: &'a String) -> Self {
        Self::Text(text)
    }
}

impl<'a> From<&'a [u8]> for Key<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Self::Bytes(bytes)
    }
}

impl From<u64> for Key<'_> {
    fn from(number: u64) -> Self {
        Self::Number(number)
    }
}

impl From<IpAddr> for Key<'_> {
    fn from(address: IpAddr) -> Self {
        Self::Ip(address)
    }
}

impl From<Ipv4Addr> for Key<'_> {
    fn from(address: Ipv4Addr) -> Self {
        Self::Ip(address.into())
    }
}

impl From<Ipv6Addr> for Key<'_> {
    fn from(address: Ipv6Addr) -> Self {
        Self::Ip(address.into())
    }
}

impl<'a, const N: usize> From<&'a [u8; N]> for Key<'a> {
    fn from(bytes: &'a [u8; N]) -> Self {
        Self::Bytes(bytes)
    }
}

impl<'a> From<&'a [Option<&'a str>]> for Key<'a> {
    fn from(values: &'a [Option<&'a str>]) -> Self {
        Self::List(values)
    }
}

impl<'a, const N: usize> From<&'a [Option<&'a str>; N]> for Key<'a> {
    fn from(values: &'a [Option<&'a str>; N]) -> Self {
        Self::List(values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    fn print(key: Key<'_>) -> [u64; 2] {
        key.fingerprint([1, 2], 3)
    }

    #[test]
    fn keys_that_would_collide_as_joined_strings_stay_apart() {
        let long = "x".repeat(100_000);
        let keys = [
            Key::All,
            Key::Text(""),
            Key::Text("a"),
            Key::Text("a_b_c"),
            Key::Text("7"),
            Key::Number(7),
            Key::Bytes(&[7, 0, 0, 0, 0, 0, 0, 0]),
            Key::Bytes(b"\xff\xfe"),
            Key::Text(&long),
            Key::List(&[None]),
            Key::List(&[Some("a"), Some("b_c")]),
            Key::List(&[Some("a_b"), Some("c")]),
            Key::List(&[Some("a"), None]),
            Key::List(&[Some("a"), Some("")]),
            Key::List(&[Some(""), Some("a")]),
            Key::List(&[None, Some("a")]),
            Key::List(&[Some("a"), None, None]),
        ];
        let mut seen = HashMap::new();
        for key in keys {
            assert!(seen.insert(print(key), key).is_none(), "{key:?} shares a fingerprint");
        }
    }

    #[test]
    fn a_list_of_one_is_that_one() {
        assert_eq!(print(Key::Text("k")), print(Key::List(&[Some("k")])));
        assert_eq!(print(Key::Text("k")), print(Key::Bytes(b"k")));
        assert_eq!(print(Key::All), print(Key::List(&[])));
        let mapped = Ipv4Addr::LOCALHOST.to_ipv6_mapped();
        assert_eq!(print(Key::from(Ipv4Addr::LOCALHOST)), print(Key::from(mapped)));
        assert_ne!(print(Key::from(Ipv4Addr::LOCALHOST)), print(Key::from(Ipv6Addr::LOCALHOST)));
    }

    #[test]
    fn limits_and_stores_do_not_share_fingerprints() {
        let key = Key::Text("k");
        assert_ne!(key.fingerprint([1, 2], 3), key.fingerprint([1, 2], 4));
        assert_ne!(key.fingerprint([1, 2], 3), key.fingerprint([9, 2], 3));
    }
}
