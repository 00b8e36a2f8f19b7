//! A sample of the requests that came, to try a draft of the rules on.
//!
//! At most a hundred a second are kept, six thousand in all: where fewer come all of them are there. Once a second's hundred
//! are taken a request looks at one number and goes on. What authenticates somebody (`Authorization`, `Proxy-Authorization`,
//! the values of cookies) is kept as a hash under a secret of this process: keys stay apart, and nobody reads them here.
//!
//! **Memory.** A request takes at most 4 KiB, or is not kept: 24 MB at most, and about 3 MB as requests usually are.

use super::token::{self, NoRandomness};
use http::{HeaderMap, HeaderName, HeaderValue, header};
use ring::hmac;
use std::{
    collections::VecDeque,
    fmt,
    net::IpAddr,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU32, AtomicU64, Ordering::Relaxed},
    },
};
use tollgate_rules::{Request, decision::Body};

/// Requests that are kept of one second, and in all.
const A_SECOND: u32 = 100;
const KEPT: usize = 6000;
/// The longest that is kept.
const LONGEST: usize = 4096;

/// A sample of the requests that came. Clones are the same.
#[derive(Clone)]
pub struct Recorder(Arc<Inner>);

struct Inner {
    /// How many more of this second are kept.
    room: AtomicU32,
    /// How many requests there were until this second began.
    seen: AtomicU64,
    kept: Mutex<VecDeque<Arc<Recorded>>>,
    secret: hmac::Key,
}

/// A request that came.
pub(super) struct Recorded {
    /// Microseconds since 1970 began.
    pub(super) at: i64,
    pub(super) method: Box<str>,
    pub(super) path: Box<str>,
    pub(super) query: Option<Box<str>>,
    pub(super) host: Option<Box<str>>,
    pub(super) headers: HeaderMap,
    pub(super) ip: IpAddr,
    pub(super) body: Body,
    /// How many had come before its second.
    seen: u64,
}

/// What was kept, oldest first, of how many that came.
pub(super) struct Sample {
    pub(super) requests: Vec<Arc<Recorded>>,
    pub(super) of: u64,
}

impl Recorder {
    /// One that has kept nothing yet.
    ///
    /// # Errors
    /// Where the system has no random numbers to give.
    pub fn new() -> Result<Self, NoRandomness> {
        Ok(Self(Arc::new(Inner {
            room: AtomicU32::new(A_SECOND),
            seen: AtomicU64::new(0),
            kept: Mutex::default(),
            secret: hmac::Key::new(hmac::HMAC_SHA256, &token::random()?),
        })))
    }

    /// Whether there is room for one more: the first thing to ask on a hot path.
    #[inline]
    #[must_use]
    pub fn wants(&self) -> bool {
        self.0.room.load(Relaxed) > 0
    }

    /// Keeps a request, if there is still room for it; `at` is when it came, in microseconds since 1970 began.
    pub fn record(&self, request: &Request<'_>, body: Body, at: i64) {
        let taken = self.0.room.fetch_update(Relaxed, Relaxed, |room| room.checked_sub(1));
        if taken.is_err() || length(request) > LONGEST {
            return;
        }
        let recorded = Arc::new(Recorded {
            at,
            method: request.method.into(),
            path: request.path.into(),
            query: request.query.map(Into::into),
            host: request.host.map(Into::into),
            headers: self.hidden(request.headers),
            ip: request.ip,
            body,
            seen: self.0.seen.load(Relaxed),
        });
        // Nobody waits here: while somebody reads, one is left out.
        let Ok(mut kept) = self.0.kept.try_lock() else { return };
        if kept.len() == KEPT {
            kept.pop_front();
        }
        kept.push_back(recorded);
    }

    /// A second has passed, and so many requests came since the start.
    pub(crate) fn tick(&self, seen: u64) {
        self.0.seen.store(seen, Relaxed);
        self.0.room.store(A_SECOND, Relaxed);
    }

    pub(super) fn sample(&self) -> Sample {
        let kept = self.0.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let mut requests: Vec<_> = kept.iter().cloned().collect();
        drop(kept);
        // Threads put them in as they come to it.
        requests.sort_by_key(|request| request.at);
        let before = requests.first().map_or(0, |first| first.seen);
        let of = self.0.seen.load(Relaxed).saturating_sub(before).max(requests.len() as u64);
        Sample { requests, of }
    }

    fn hidden(&self, headers: &HeaderMap) -> HeaderMap {
        let mut kept = HeaderMap::with_capacity(headers.len());
        for (name, value) in headers {
            let value = if *name == header::AUTHORIZATION || *name == header::PROXY_AUTHORIZATION {
                self.print(value.as_bytes()).parse().ok()
            } else if *name == header::COOKIE {
                value.to_str().ok().and_then(|cookies| self.cookies(cookies).parse().ok())
            } else {
                // A copy: a value may be a part of all that was read with it.
                HeaderValue::from_bytes(value.as_bytes()).ok()
            };
            if let Some(value) = value {
                kept.append(name.clone(), value);
            }
        }
        kept
    }

    /// Cookies by their names, with other values.
    fn cookies(&self, cookies: &str) -> String {
        let pair = |pair: &str| match pair.trim().split_once('=') {
            Some((name, value)) => format!("{name}={}", self.print(value.as_bytes())),
            None => self.print(pair.as_bytes()),
        };
        cookies.split(';').map(pair).collect::<Vec<_>>().join("; ")
    }

    /// What it is known by here.
    fn print(&self, secret: &[u8]) -> String {
        token::digits(&hmac::sign(&self.0.secret, secret).as_ref()[..16])
    }
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorder").finish_non_exhaustive()
    }
}

fn length(request: &Request<'_>) -> usize {
    let header = |(name, value): (&HeaderName, &HeaderValue)| name.as_str().len() + value.len() + 32;
    let headers: usize = request.headers.iter().map(header).sum();
    let texts = [Some(request.method), Some(request.path), request.query, request.host];
    headers + texts.into_iter().flatten().map(str::len).sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    fn request<'a>(path: &'a str, headers: &'a HeaderMap) -> Request<'a> {
        let ip = Ipv4Addr::LOCALHOST.into();
        Request { method: "GET", path, query: None, host: None, headers, ip, at: 0 }
    }

    #[test]
    fn a_hundred_a_second_are_kept_and_six_thousand_in_all() {
        let recorder = Recorder::new().expect("random numbers");
        let headers = HeaderMap::new();
        for second in 0..70 {
            for _ in 0..150 {
                if recorder.wants() {
                    recorder.record(&request("/", &headers), Body::Known, second);
                }
            }
            assert!(!recorder.wants());
            recorder.tick(150 * (second as u64 + 1));
        }
        let sample = recorder.sample();
        assert_eq!((sample.requests.len(), sample.requests[0].at), (KEPT, 10));
        assert_eq!(sample.of, 150 * 60);
    }

    #[test]
    fn what_authenticates_is_kept_as_something_else_that_differs_as_it_did() {
        let recorder = Recorder::new().expect("random numbers");
        for secret in ["hunter2", "hunter2", "hunter3"] {
            let mut headers = HeaderMap::new();
            for (name, value) in [
                ("authorization", format!("Bearer {secret}")),
                ("proxy-authorization", format!("Basic {secret}")),
                ("cookie", format!("session={secret}; theme=dark; {secret}")),
                ("x-api-key", "k".to_owned()),
            ] {
                headers.append(HeaderName::from_static(name), value.parse().expect("a value"));
            }
            recorder.record(&request("/", &headers), Body::Known, 0);
        }
        let sample = recorder.sample();
        let [first, second, third] = &sample.requests[..] else { panic!("three were kept") };
        assert!(!format!("{:?}", first.headers).contains("hunter"), "{:?}", first.headers);
        assert_eq!(first.headers, second.headers);
        for name in ["authorization", "proxy-authorization", "cookie"] {
            assert_ne!(first.headers[name], third.headers[name], "{name}");
        }
        assert_eq!(first.headers["x-api-key"], "k");
        assert!(first.headers["cookie"].to_str().expect("text").starts_with("session="));
    }

    #[test]
    fn what_is_long_is_not_kept() {
        let recorder = Recorder::new().expect("random numbers");
        let headers = HeaderMap::new();
        recorder.record(&request(&"/x".repeat(LONGEST), &headers), Body::Known, 0);
        assert!(recorder.sample().requests.is_empty());
    }
}
