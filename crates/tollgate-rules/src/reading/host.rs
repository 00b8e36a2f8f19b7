//! The host that was asked for: in lower case, without port, user and the dot at the end. IPv6 is in brackets, in its
//! canonical form.

use std::{borrow::Cow, net::Ipv6Addr};

/// The host as rules see it.
pub(crate) fn normal_host(sent: &str) -> Cow<'_, str> {
    let host = sent.rsplit_once('@').map_or(sent, |(_, host)| host);
    if let Some(inside) = host.strip_prefix('[') {
        let inside = inside.split(']').next().unwrap_or_default();
        return canonical(inside).map_or_else(|| lower(host), Cow::Owned);
    }
    let host = match host.split_once(':') {
        // More than one colon, and no brackets: an address that somebody forgot them around.
        Some((_, port)) if port.contains(':') => {
            return canonical(host).map_or_else(|| lower(host), Cow::Owned);
        }
        Some((host, _)) => host,
        None => host,
    };
    lower(host.strip_suffix('.').unwrap_or(host))
}

fn canonical(address: &str) -> Option<String> {
    address.parse::<Ipv6Addr>().ok().map(|address| format!("[{address}]"))
}

fn lower(host: &str) -> Cow<'_, str> {
    if host.bytes().any(|byte| byte.is_ascii_uppercase()) {
        Cow::Owned(host.to_ascii_lowercase())
    } else {
        Cow::Borrowed(host)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_host_has_one_spelling() {
        for (sent, host) in [
            ("api.example", "api.example"),
            ("API.Example:8080", "api.example"),
            ("api.example.", "api.example"),
            ("api.example.:80", "api.example"),
            ("user:secret@api.example:80", "api.example"),
            ("192.0.2.7:80", "192.0.2.7"),
            ("[::1]", "[::1]"),
            ("[::1]:8080", "[::1]"),
            ("[0:0::0001]:80", "[::1]"),
            ("2001:DB8::1", "[2001:db8::1]"),
            ("", ""),
            (":80", ""),
            ("[nonsense", "[nonsense"),
        ] {
            assert_eq!(normal_host(sent), host, "{sent}");
        }
    }
}
