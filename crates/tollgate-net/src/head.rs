//! Checks of a request's head that every HTTP listener makes before anything reads it.
//!
//! Two programs that read one request differently are a way around the checks of either. So a request is refused that
//! names a header twice of which some read the first and others the last, a host that is none ([`is_valid_host`]), a
//! target of another scheme than HTTP, or no host at all unless it is HTTP/1.0. In HTTP/2 `:authority` and `Host` must
//! agree; in HTTP/1.1 an absolute target goes before `Host` (RFC 9112, 3.2.2).
//!
//! Cost: no allocation. A request without repeated headers and with a path for a target costs one pass over its host.

use crate::is_valid_host;
use http::{HeaderMap, Uri, Version, header};
use thiserror::Error;

/// Why a request is answered 400 before anything else is read of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{}", self.reason())]
#[non_exhaustive]
pub enum HeadError {
    /// The target has another scheme than `http` or `https`, or no scheme.
    Target,
    /// `Host`, `:authority` or the authority of the target is not a host with an optional port.
    Host,
    /// A request without `Host` or `:authority`, later than HTTP/1.0.
    NoHost,
    /// A header is repeated that must not be.
    Repeated,
}

impl HeadError {
    /// The error in words, for the answer.
    #[must_use]
    pub const fn reason(self) -> &'static str {
        match self {
            Self::Target => "the request's target is malformed",
            Self::Host => "the request's host is malformed",
            Self::NoHost => "the request names no host",
            Self::Repeated => {
                "the request has Host, Authorization, Content-Type or Content-Length more than once"
            }
        }
    }
}

/// Checks the target, the host and repeated headers of a request.
///
/// # Errors
/// Where the request is to be answered 400.
pub fn check_head(uri: &Uri, version: Version, headers: &HeaderMap) -> Result<(), HeadError> {
    // Most targets are a path alone.
    if let Some(authority) = uri.authority() {
        if !matches!(uri.scheme_str(), Some("http" | "https")) {
            return Err(HeadError::Target);
        }
        if !is_valid_host(authority.as_str().as_bytes()) {
            return Err(HeadError::Host);
        }
    }
    check_repeated(headers)?;
    // Nearly all clients send it first, where it need not be looked up.
    let host = match headers.iter().next() {
        Some((name, host)) if *name == header::HOST => Some(host),
        _ => headers.get(header::HOST),
    };
    match (host, uri.authority()) {
        (None, _) if version == Version::HTTP_11 => Err(HeadError::NoHost),
        (None, None) if version > Version::HTTP_11 => Err(HeadError::NoHost),
        (Some(host), _) if !is_valid_host(host.as_bytes()) => Err(HeadError::Host),
        (Some(host), Some(authority)) if version > Version::HTTP_11 => {
            let is_same = host.as_bytes().eq_ignore_ascii_case(authority.as_str().as_bytes());
            if is_same { Ok(()) } else { Err(HeadError::Host) }
        }
        _ => Ok(()),
    }
}

/// Refuses `Host`, `Authorization`, `Content-Type` and `Content-Length` that are given more than once.
///
/// # Errors
/// [`HeadError::Repeated`].
pub fn check_repeated(headers: &HeaderMap) -> Result<(), HeadError> {
    // Most requests repeat no header.
    if headers.len() == headers.keys_len() {
        return Ok(());
    }
    let singletons = [header::HOST, header::AUTHORIZATION, header::CONTENT_TYPE, header::CONTENT_LENGTH];
    let is_repeated = |name| headers.get_all(name).iter().nth(1).is_some();
    if singletons.into_iter().any(is_repeated) { Err(HeadError::Repeated) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::{HeaderName, HeaderValue};

    fn check(uri: &str, version: Version, headers: &[(&str, &str)]) -> Result<(), HeadError> {
        let pair = |(name, value): &(&str, &str)| {
            Ok::<_, http::Error>((HeaderName::try_from(*name)?, HeaderValue::try_from(*value)?))
        };
        let mut map = HeaderMap::new();
        for header in headers {
            let (name, value) = pair(header).expect("a header");
            map.append(name, value);
        }
        check_head(&uri.parse().expect("a target"), version, &map)
    }

    #[test]
    fn a_host_is_needed_after_http_1_0_and_must_be_valid_everywhere() {
        let (one, two) = (Version::HTTP_11, Version::HTTP_2);
        for (uri, version, headers, expected) in [
            ("/", one, &[("host", "a:80")][..], Ok(())),
            ("/", one, &[("accept", "*/*"), ("host", "a")], Ok(())),
            ("http://a/", one, &[("host", "a")], Ok(())),
            ("http://a/", two, &[], Ok(())),
            ("/", Version::HTTP_10, &[], Ok(())),
            ("/", one, &[], Err(HeadError::NoHost)),
            ("/", one, &[("host", "")], Err(HeadError::Host)),
            ("/", one, &[("accept", "*/*"), ("host", "a/../b")], Err(HeadError::Host)),
            ("http://u@a/", two, &[], Err(HeadError::Host)),
            ("http://a/", two, &[("host", "a,b")], Err(HeadError::Host)),
            ("http://a/", two, &[("host", "b")], Err(HeadError::Host)),
            ("http://a/", two, &[("host", "A")], Ok(())),
            ("http://a/", one, &[("host", "b")], Ok(())),
            ("/", two, &[("host", "a")], Ok(())),
            ("/", two, &[], Err(HeadError::NoHost)),
            ("ftp://a/", one, &[("host", "a")], Err(HeadError::Target)),
            ("a:443", one, &[("host", "a")], Err(HeadError::Target)),
        ] {
            assert_eq!(check(uri, version, headers), expected, "{uri} {headers:?}");
        }
    }

    #[test]
    fn headers_that_are_read_once_must_not_be_repeated() {
        for name in ["host", "authorization", "content-type", "content-length"] {
            let headers = [("host", "a"), (name, "1"), ("x-other", "1"), (name, "1")];
            assert_eq!(check("/", Version::HTTP_11, &headers), Err(HeadError::Repeated), "{name}");
        }
        let headers = [("host", "a"), ("accept", "a"), ("accept", "b")];
        assert_eq!(check("/", Version::HTTP_11, &headers), Ok(()));
    }
}
