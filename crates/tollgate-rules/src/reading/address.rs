//! Addresses and networks as text, written without the heap: every request has one, and most keys hold it.
//!
//! In keys an IPv4 address is itself and an IPv6 address is its /64, since whoever has one address of a /64 has all of
//! them. The text is what a person would write, so that other doors can name the same bucket.

use std::{
    fmt::{self, Write},
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

/// The longest text: an IPv6 network.
const LONGEST: usize = "1234:1234:1234:1234:1234:1234:1234:1234/127".len();

/// Room for it; with the length it is six words.
const ROOM: usize = 47;
const _: () = assert!(LONGEST <= ROOM, "the longest text has room");

/// An address or a network as text.
#[derive(Clone, Copy)]
#[repr(align(8))]
pub(crate) struct AddressText {
    /// Zeros behind the text.
    letters: [u8; ROOM],
    length: u8,
}

impl AddressText {
    fn of(text: fmt::Arguments<'_>) -> Self {
        let mut it = Self { length: 0, letters: [0; ROOM] };
        // It cannot fail: the buffer holds the longest there is.
        let _ = it.write_fmt(text);
        it
    }

    pub(crate) fn as_str(&self) -> &str {
        // The library looks at two aligned words at once, and at fewer letters one by one: zeros are text too.
        let length = usize::from(self.length);
        let words = &self.letters[..length.next_multiple_of(16).min(ROOM)];
        std::str::from_utf8(words).ok().and_then(|text| text.get(..length)).unwrap_or_default()
    }
}

impl Write for AddressText {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let start = usize::from(self.length);
        let end = start + text.len();
        self.letters.get_mut(start..end).ok_or(fmt::Error)?.copy_from_slice(text.as_bytes());
        self.length = u8::try_from(end).map_err(|_| fmt::Error)?;
        Ok(())
    }
}

/// What `ip` is in a key.
pub(crate) fn key_text(address: IpAddr) -> AddressText {
    match address.to_canonical() {
        IpAddr::V4(four) => four_text(four),
        six @ IpAddr::V6(_) => network_text(six, 64),
    }
}

/// The whole address.
pub(crate) fn address_text(address: IpAddr) -> AddressText {
    match address.to_canonical() {
        IpAddr::V4(four) => four_text(four),
        IpAddr::V6(six) => AddressText::of(format_args!("{six}")),
    }
}

/// The network of so many bits: up to 32 of IPv4 (where IPv6 is its /64), above that of IPv6 (where IPv4 is itself).
pub(crate) fn network_text(address: IpAddr, bits: u8) -> AddressText {
    match address.to_canonical() {
        IpAddr::V4(four) if bits >= 32 => four_text(four),
        IpAddr::V4(four) => {
            let kept = four.to_bits() & !u32::MAX.checked_shr(bits.into()).unwrap_or(0);
            AddressText::of(format_args!("{}/{bits}", Ipv4Addr::from_bits(kept)))
        }
        IpAddr::V6(six) if bits >= 128 => AddressText::of(format_args!("{six}")),
        IpAddr::V6(six) => {
            let bits = if bits <= 32 { 64 } else { bits };
            let kept = six.to_bits() & !u128::MAX.checked_shr(bits.into()).unwrap_or(0);
            AddressText::of(format_args!("{}/{bits}", Ipv6Addr::from_bits(kept)))
        }
    }
}

/// By a table: the formatter costs ten times as much, and nearly every request comes here.
fn four_text(address: Ipv4Addr) -> AddressText {
    let mut it = AddressText { length: 0, letters: [0; ROOM] };
    let mut at = 0;
    for octet in address.octets() {
        // Four letters are written each time: the next octet, or a zero, goes over what is too many.
        let (letters, length) = OCTETS[usize::from(octet)];
        it.letters[at..at + 4].copy_from_slice(&letters);
        at += length;
    }
    // Without the last dot, and without what was behind it.
    it.letters[at - 1] = 0;
    it.length = at as u8 - 1;
    it
}

/// Every octet in decimal with a dot behind it, zeros behind that, and how long it is with the dot.
const OCTETS: [([u8; 4], usize); 256] = {
    let mut octets = [([0; 4], 0); 256];
    let mut octet = 0;
    while octet < 256 {
        let digits = [octet / 100, octet / 10 % 10, octet % 10];
        let mut skipped = 0;
        while skipped < 2 && digits[skipped] == 0 {
            skipped += 1;
        }
        let (mut letters, mut length) = ([0; 4], 0);
        while skipped + length < 3 {
            letters[length] = b'0' + digits[skipped + length] as u8;
            length += 1;
        }
        letters[length] = b'.';
        octets[octet] = (letters, length + 1);
        octet += 1;
    }
    octets
};

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().expect(text)
    }

    #[test]
    fn keys_name_an_address_or_its_64() {
        for (address, key) in [
            ("192.0.2.7", "192.0.2.7"),
            ("0.10.100.255", "0.10.100.255"),
            ("::ffff:192.0.2.7", "192.0.2.7"),
            ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
            ("::1", "::/64"),
        ] {
            assert_eq!(key_text(ip(address)).as_str(), key, "{address}");
        }
    }

    #[test]
    fn networks_of_so_many_bits() {
        for (address, bits, text) in [
            ("192.0.2.7", 24, "192.0.2.0/24"),
            ("192.0.2.7", 32, "192.0.2.7"),
            ("192.0.2.7", 0, "0.0.0.0/0"),
            ("192.0.2.7", 56, "192.0.2.7"),
            ("2001:db8:1:2:3:4:5:6", 24, "2001:db8:1:2::/64"),
            ("2001:db8:1:2:3:4:5:6", 48, "2001:db8:1::/48"),
            ("2001:db8:1:2:3:4:5:6", 128, "2001:db8:1:2:3:4:5:6"),
            ("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", 127, "ffff:ffff:ffff:ffff:ffff:ffff:ffff:fffe/127"),
        ] {
            assert_eq!(network_text(ip(address), bits).as_str(), text, "{address} {bits}");
        }
        assert_eq!(address_text(ip("2001:db8::1")).as_str(), "2001:db8::1");
    }

    #[test]
    fn every_octet_is_written_as_the_library_writes_it() {
        for octet in 0..=255 {
            let address = Ipv4Addr::new(octet, 255 - octet, octet / 2, octet);
            assert_eq!(four_text(address).as_str(), address.to_string());
        }
    }
}
