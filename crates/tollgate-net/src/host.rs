//! Syntax check for the value of `Host` and `:authority`.
//!
//! RFC 3986 allows a registered name to contain almost anything: percent-encoded bytes, sub-delimiters, user
//! information. Servers, caches and logs behind a listener do not agree on what such a name means, so every HTTP
//! listener accepts the same narrow form and answers 400 to the rest:
//!
//! - `name`: ASCII letters, digits, `-`, `.` and `_`; a trailing dot is allowed, two dots in a row are not;
//! - `[address]`: an IPv6 address in brackets, without a zone id;
//! - each with an optional `:port` of digits, at most 65535. An empty port (`host:`) is refused.
//!
//! A value has at most [`MAX_BYTES`]. The check is one pass and does not allocate. It does not say whether a name
//! exists, nor whether an IPv4 address is well-formed: `999.1.1.1` is a name.

use std::net::Ipv6Addr;

/// The longest value that is accepted: a DNS name has at most 255 bytes.
const MAX_BYTES: usize = 255;

/// Whether this is a host with an optional port: `name`, `name:port`, `[v6]` or `[v6]:port`.
///
/// ```
/// use tollgate_net::is_valid_host;
///
/// assert!(is_valid_host(b"example.com:8080") && is_valid_host(b"[::1]:443"));
/// assert!(!is_valid_host(b"") && !is_valid_host(b"a/../b") && !is_valid_host(b"user@example.com"));
/// ```
#[must_use]
pub fn is_valid_host(host: &[u8]) -> bool {
    if host.len() > MAX_BYTES {
        return false;
    }
    let port = match host {
        [b'[', rest @ ..] => {
            let Some(end) = rest.iter().position(|&byte| byte == b']') else { return false };
            let (address, after) = rest.split_at(end);
            if !std::str::from_utf8(address).is_ok_and(|text| text.parse::<Ipv6Addr>().is_ok()) {
                return false;
            }
            &after[1..]
        }
        _ => {
            let mut before = 0;
            let is_end = |&byte: &u8| {
                let is_end = !is_name_byte(byte) || (byte == b'.' && before == b'.');
                before = byte;
                is_end
            };
            let end = host.iter().position(is_end).unwrap_or(host.len());
            let (name, port) = host.split_at(end);
            if name.iter().all(|&byte| byte == b'.') {
                return false;
            }
            port
        }
    };
    port.is_empty() || port.strip_prefix(b":").is_some_and(is_port)
}

/// Whether a name may have this byte.
fn is_name_byte(byte: u8) -> bool {
    const NAME: [bool; 256] = {
        let mut name = [false; 256];
        let mut byte: u8 = 0;
        while byte < 128 {
            name[byte as usize] = byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
            byte += 1;
        }
        name
    };
    NAME[usize::from(byte)]
}

/// Whether these are digits of a number up to 65535. Leading zeros are allowed, as in RFC 3986.
fn is_port(port: &[u8]) -> bool {
    let number = port.iter().try_fold(0_u32, |number, byte| {
        let digit = byte.is_ascii_digit().then(|| u32::from(byte - b'0'))?;
        Some(number * 10 + digit).filter(|&number| number <= u32::from(u16::MAX))
    });
    !port.is_empty() && number.is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_or_an_address_with_an_optional_port_is_valid() {
        let longest = "a".repeat(MAX_BYTES);
        let valid = [
            "localhost",
            "example.com",
            "EXAMPLE.com",
            "example.com.",
            "xn--bcher-kva.example",
            "my_service.default.svc",
            "10.0.0.7",
            "127.0.0.1:80",
            "a:0",
            "a:65535",
            "a:00080",
            "[::1]",
            "[::1]:443",
            "[2001:DB8::a:1]:65535",
            "[::ffff:10.0.0.7]",
            &longest,
        ];
        for host in valid {
            assert!(is_valid_host(host.as_bytes()), "{host:?}");
        }
    }

    #[test]
    fn anything_else_is_not_valid() {
        let too_long = "a".repeat(MAX_BYTES + 1);
        let invalid: [&[u8]; 40] = [
            b"",
            b" ",
            b".",
            b"..",
            b"a..",
            b"a..b",
            b"a..:80",
            b"a b",
            b" a",
            b"a ",
            b"a\tb",
            b"a\0",
            b"a/../b",
            b"a/",
            b"a\\b",
            b"<script>",
            b"a?b",
            b"a#b",
            b"a,b",
            b"a, b",
            b"user@a",
            b"user:secret@a",
            b"http://a",
            b"a%2eb",
            b"b\xc3\xbccher.example",
            b"\xff",
            b":",
            b":80",
            b"a:",
            b"a:b",
            b"a:+80",
            b"a:65536",
            b"a:80:80",
            b"::1",
            b"[::1",
            b"[]",
            b"[127.0.0.1]",
            b"[fe80::1%25eth0]",
            b"[::1]a",
            b"[::1]:",
        ];
        for host in invalid.into_iter().chain([too_long.as_bytes(), b"a:99999999999999999999"]) {
            assert!(!is_valid_host(host), "{:?}", String::from_utf8_lossy(host));
        }
    }
}
