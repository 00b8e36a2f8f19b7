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
        const EXPECTED: &str = "is not http://, https:// or h2c:// with a host and a port";
        let (scheme, rest) = text.split_once("://").ok_or(EXPECTED)?;
        let (speaks, usual_port) = match scheme {
            "http" => (Speaks::Http1, 80),
            "h2c" => (Speaks::Http2, 80),
            "https" => (Speaks::Tls, 443),
            _ => return Err(EXPECTED),
        };
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        let authority: Authority = rest.parse().map_err(|_| EXPECTED)?;
        let has_port = rest.len() > authority.host().len();
        let port = authority.port_u16().or((!has_port).then_some(usual_port)).ok_or(EXPECTED)?;
        if authority.host().is_empty() || rest.contains('@') {
            return Err(EXPECTED);
        }
        let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_owned();
        let host_header = HeaderValue::from_str(authority.as_str()).map_err(|_| EXPECTED)?;
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
