//! Who somebody is: by the token they show, or by the session they had for it.
//!
//! Where the file names no users the listener is on this machine alone, and whoever reaches it is `local` and may do
//! everything. Guessing is slow: those who showed a wrong token are held to a few tries a minute by our own limiter, by
//! address, and at the login also all together. Whoever knows a token is not held up by what others guess elsewhere.

use super::{
    gate,
    sessions::Sessions,
    token::{self, NoRandomness},
};
use http::{HeaderMap, Request, header};
use std::{
    fmt,
    net::{IpAddr, Ipv6Addr},
    sync::{Arc, PoisonError, RwLock},
    time::{Duration, Instant},
};
use tollgate::{Bounds, Decision, Key, KeyedLimiter, LimitError, Rate, Retry, Status, TokenBucket};
use tollgate_rules::model::{Role, TokenHash, User};

/// The cookie that holds a session's name.
pub(super) const COOKIE: &str = "tollgate_session";

/// Wrong tokens from one address at a login: so many at once, and so many a minute after that.
const WRONG_AT_ONCE: u32 = 10;
const WRONG_A_MINUTE: u32 = 6;
/// Wrong tokens from one address with requests: programs share addresses, and one must not lock out the others soon.
const BEARERS_AT_ONCE: u32 = 100;
const BEARERS_A_MINUTE: u32 = 60;
/// Wrong tokens from everywhere at a login.
const LOGINS_AT_ONCE: u32 = 100;
const LOGINS_A_MINUTE: u32 = 60;

/// Who may come in. Clones are the same.
#[derive(Clone)]
pub struct Access(Arc<Inner>);

struct Inner {
    users: RwLock<Arc<[User]>>,
    line: Line,
    sessions: Sessions,
    /// Logins that failed, by address.
    wrong: KeyedLimiter,
    /// Requests with a wrong token, by address.
    bearers: KeyedLimiter,
    /// Logins that failed, all together.
    logins: KeyedLimiter,
}

/// What is between a browser and this listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line {
    /// Nothing that hides what is said.
    Plain,
    /// TLS.
    Tls,
    /// A proxy, which has TLS, and tells who asks in `X-Forwarded-For` and what for in `X-Forwarded-Host`.
    Proxied,
}

/// Somebody who was let in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Who {
    /// What the audit log calls them.
    pub name: String,
    /// What they may do.
    pub role: Role,
}

/// Why somebody was not let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stopped {
    /// Nothing was shown, or nothing that is known.
    Unknown,
    /// Too many tries; the next may be made then.
    TooOften(Duration),
    /// The system has no random numbers to give.
    NoRandomness,
}

impl Access {
    /// For these users, on such a line.
    ///
    /// # Panics
    /// Never: the numbers of its limits make sense.
    #[must_use]
    pub fn new(users: Vec<User>, line: Line) -> Self {
        let limiter = |a_minute, at_once| -> Result<KeyedLimiter, LimitError> {
            let bounds = Bounds { max_keys: 10_000, ..Bounds::default() };
            Ok(KeyedLimiter::with_bounds(TokenBucket::new(Rate::per_minute(a_minute)?, at_once)?, bounds))
        };
        Self(Arc::new(Inner {
            users: RwLock::new(users.into()),
            line,
            sessions: Sessions::default(),
            wrong: limiter(WRONG_A_MINUTE, WRONG_AT_ONCE).expect("a limit"),
            bearers: limiter(BEARERS_A_MINUTE, BEARERS_AT_ONCE).expect("a limit"),
            logins: limiter(LOGINS_A_MINUTE, LOGINS_AT_ONCE).expect("a limit"),
        }))
    }

    /// Whoever is on this machine.
    #[must_use]
    pub fn local() -> Self {
        Self::new(Vec::new(), Line::Plain)
    }

    /// Other users from now on. Sessions of those who are gone, or have another token, are over.
    pub fn replace(&self, users: Vec<User>) {
        *self.0.users.write().unwrap_or_else(PoisonError::into_inner) = users.into();
    }

    /// Whether anybody has to say who they are.
    pub(super) fn asks(&self) -> bool {
        !self.users().is_empty()
    }

    pub(super) fn line(&self) -> Line {
        self.0.line
    }

    /// Who sent a request.
    pub(crate) fn who_sent<B>(&self, request: &Request<B>) -> Result<Who, Stopped> {
        self.who(request.headers(), gate::peer(request))
    }

    /// Who sent these headers, from this address.
    fn who(&self, headers: &HeaderMap, peer: IpAddr) -> Result<Who, Stopped> {
        if !self.asks() {
            return Ok(Who { name: "local".to_owned(), role: Role::Admin });
        }
        if let Some(shown) = headers.get(header::AUTHORIZATION) {
            let shown = shown.to_str().ok().and_then(|value| {
                let (scheme, token) = value.split_once(' ')?;
                scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
            });
            let from = self.address(headers, peer);
            return self.shown(shown.unwrap_or_default(), from, &self.0.bearers).map(|(who, _)| who);
        }
        let token = sessions(headers).next().and_then(|name| self.0.sessions.token(name, Instant::now()));
        token.and_then(|token| self.user(&token)).ok_or(Stopped::Unknown)
    }

    /// Opens a session for whoever knows this token. Who they are, and the session's name.
    pub(super) fn login(
        &self,
        token: &str,
        headers: &HeaderMap,
        peer: IpAddr,
    ) -> Result<(Who, String), Stopped> {
        let from = self.address(headers, peer);
        let (who, hash) = self.shown(token, from, &self.0.wrong).map_err(|stopped| match stopped {
            // An address that has no tries left takes none of everybody's, and somebody with many addresses takes none of
            // those who know a token.
            Stopped::Unknown => refused(&self.0.logins.check(Key::All)).map_or(stopped, Stopped::TooOften),
            stopped => stopped,
        })?;
        let session = self.0.sessions.open(hash, Instant::now());
        session.map(|name| (who, name)).map_err(|NoRandomness| Stopped::NoRandomness)
    }

    /// Ends the session of whoever sent these headers, if they have one.
    pub(super) fn logout(&self, headers: &HeaderMap) {
        sessions(headers).for_each(|name| self.0.sessions.end(name));
    }

    /// Whoever knows this token. From an address with too many wrong ones none is looked at: who guesses learns nothing.
    fn shown(&self, token: &str, from: IpAddr, wrong: &KeyedLimiter) -> Result<(Who, TokenHash), Stopped> {
        let from = group(from);
        if let Some(wait) = refused(&wrong.peek(from, 1)) {
            return Err(Stopped::TooOften(wait));
        }
        let hash = token::hash(token);
        match self.user(&hash) {
            Some(who) => Ok((who, hash)),
            None => match refused(&wrong.check(from)) {
                Some(wait) => Err(Stopped::TooOften(wait)),
                None => Err(Stopped::Unknown),
            },
        }
    }

    /// Every user is looked at, whichever it is.
    fn user(&self, hash: &TokenHash) -> Option<Who> {
        self.users().iter().fold(None, |found, user| {
            let is_this = token::same(&user.token, hash);
            if is_this { Some(Who { name: user.name.clone(), role: user.role }) } else { found }
        })
    }

    fn users(&self) -> Arc<[User]> {
        Arc::clone(&self.0.users.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Where it came from: as the proxy in front says, where there is one.
    fn address(&self, headers: &HeaderMap, peer: IpAddr) -> IpAddr {
        if self.0.line != Line::Proxied {
            return peer;
        }
        let told =
            headers.get_all("x-forwarded-for").iter().next_back().and_then(|value| value.to_str().ok());
        // The last is what our own proxy added; those before it anybody may have written.
        told.and_then(|list| list.rsplit(',').next()?.trim().parse().ok()).unwrap_or(peer)
    }
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Access").field("users", &self.users().len()).field("line", &self.0.line).finish()
    }
}

/// The sessions that a browser sent: one, unless somebody has planted another.
pub(super) fn sessions(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let pairs = cookies.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.filter(|(name, _)| *name == COOKIE).map(|(_, value)| value)
}

/// How long to wait, where it is refused.
fn refused(status: &Status) -> Option<Duration> {
    match status.decision() {
        Decision::Deny(Retry::After(after)) => Some(after),
        Decision::Deny(_) => Some(Duration::from_secs(60)),
        Decision::Allow | Decision::Wait(_) => None,
    }
}

/// Whose tries are counted together: an address, or the /64 that one machine of IPv6 has.
fn group(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(four) => four.into(),
        IpAddr::V6(six) => Ipv6Addr::from_bits(six.to_bits() & (u128::MAX << 64)).into(),
    }
}
