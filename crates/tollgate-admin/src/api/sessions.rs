//! Who has logged in, until they log out or half a day has passed.
//!
//! A browser holds a random name in a cookie that no script reads; what is kept here is the hash of that name and of the
//! token it was had for. Who the user is and what they may do is looked up anew with every request, so that a user who is
//! taken out of the file is out at once. Sessions live in memory: after a restart everybody logs in again.

use super::token::{self, NoRandomness};
use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};
use tollgate_rules::model::TokenHash;

/// How long a session lasts.
pub(super) const LASTING: Duration = Duration::from_secs(12 * 3600);

/// At most so many: the one that ends first makes room.
const MOST: usize = 1000;

/// Sessions that are open.
#[derive(Default)]
pub(super) struct Sessions(Mutex<HashMap<[u8; 32], Session>>);

struct Session {
    token: TokenHash,
    ends: Instant,
}

impl Sessions {
    /// Opens one for whoever showed this token. Its name is for the cookie.
    pub(super) fn open(&self, token: TokenHash, now: Instant) -> Result<String, NoRandomness> {
        let name = token::digits(&token::random()?);
        let mut open = self.hold();
        open.retain(|_, session| session.ends > now);
        if open.len() >= MOST
            && let Some(oldest) = open.iter().min_by_key(|(_, session)| session.ends).map(|(hash, _)| *hash)
        {
            open.remove(&oldest);
        }
        open.insert(token::hash(&name).0, Session { token, ends: now + LASTING });
        Ok(name)
    }

    /// The token that the session of this name was opened with.
    pub(super) fn token(&self, name: &str, now: Instant) -> Option<TokenHash> {
        // Looked up by its hash: how long that takes tells nothing about a name.
        let open = self.hold();
        open.get(&token::hash(name).0).filter(|session| session.ends > now).map(|session| session.token)
    }

    /// Ends the session of this name.
    pub(super) fn end(&self, name: &str) {
        self.hold().remove(&token::hash(name).0);
    }

    fn hold(&self) -> MutexGuard<'_, HashMap<[u8; 32], Session>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_lasts_half_a_day_or_until_it_is_ended() {
        let (sessions, now) = (Sessions::default(), Instant::now());
        let token = token::hash("t");
        let name = sessions.open(token, now).expect("random numbers");
        assert_eq!(sessions.token(&name, now), Some(token));
        assert_eq!(sessions.token(&name, now + LASTING), None);
        assert_eq!(sessions.token("another", now), None);
        sessions.end(&name);
        assert_eq!(sessions.token(&name, now), None);
    }

    #[test]
    fn there_are_never_more_than_a_thousand() {
        let (sessions, now) = (Sessions::default(), Instant::now());
        let open = |seconds| sessions.open(token::hash("t"), now + Duration::from_secs(seconds));
        let first = open(0).expect("random numbers");
        let names: Vec<_> = (1..=MOST as u64).map(|at| open(at).expect("random numbers")).collect();
        assert_eq!(sessions.hold().len(), MOST);
        assert_eq!(sessions.token(&first, now), None, "the oldest made room");
        assert!(names.iter().all(|name| sessions.token(name, now).is_some()));
    }
}
