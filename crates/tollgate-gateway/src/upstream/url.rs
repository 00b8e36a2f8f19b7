//! Where a server is.

use http::{HeaderValue, uri::Authority};

/// A server's URL, taken apart once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServerUrl {
    pub(crate) speaks: Speaks,
    /// Without brackets.
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) authority: Authority,
    /// For requests of our own; a client's request keeps its own.
    pub(crate) host_header: HeaderValue,
    pub(crate) text: String,
}

/// What is spoken on a connection to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Speaks {
    /// HTTP/1.1 in clear.
    Http1,
    /// HTTP/2 in clear, known beforehand.
    Http2,
    /// TLS, which says which of the two.
    Tls,
}

impl ServerUrl {
    pub(crate) fn parse(text: &str) -> Result<Self, &'static str> {
        let (scheme, rest) = text
            .split_once("://")
            .ok_or("has no scheme: write http://host:port, https://host:port or h2c://host:port")?;
        let (speaks, usual_port) = match scheme {
            "http" => (Speaks::Http1, 80),
            "h2c" => (Speaks::Http2, 80),
            "https" => (Speaks::Tls, 443),
            _ => return Err("has a scheme that is not known here: use http, https or h2c"),
        };
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        if rest.contains(['/', '?', '#']) {
            return Err("has a path: a server is a host and a port; use strip_prefix to change paths");
        }
        if rest.contains('@') {
            return Err("holds a user name or password, which is not sent: remove it");
        }
        let authority: Authority = rest.parse().map_err(|_| "is not a host and a port")?;
        if authority.host().is_empty() {
            return Err("has no host");
        }
        let port = match authority.port_u16() {
            Some(port) => port,
            None if rest.len() > authority.host().len() => {
                return Err("has a port that is no number up to 65535");
            }
            None => usual_port,
        };
        let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_owned();
        let host_header =
            HeaderValue::from_str(authority.as_str()).map_err(|_| "is not a host and a port")?;
        Ok(Self { speaks, host, port, authority, host_header, text: text.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_and_ports() {
        let url = ServerUrl::parse("http://[::1]:8080").expect("a URL");
        assert_eq!((url.host.as_str(), url.port, url.speaks), ("::1", 8080, Speaks::Http1));
        let url = ServerUrl::parse("https://example.org/").expect("a URL");
        assert_eq!((url.host.as_str(), url.port, url.speaks), ("example.org", 443, Speaks::Tls));
        assert_eq!(ServerUrl::parse("h2c://a:1").map(|url| url.speaks), Ok(Speaks::Http2));
    }

    #[test]
    fn what_is_no_server() {
        for text in [
            "a:1",
            "ftp://a:1",
            "http://",
            "http://a:1/path",
            "http://u:p@a",
            "http://a:99999",
            "http://a b:1",
            "http://a:",
        ] {
            assert!(ServerUrl::parse(text).is_err(), "{text}");
        }
    }
}
