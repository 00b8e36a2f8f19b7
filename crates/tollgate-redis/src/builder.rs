//! How a store is set up: everything but the address has a default.

use crate::{
    address::Address,
    gather::{BusyPoll, Gatherer},
    link::{self, Link},
    script::SCRIPT,
    store::{RedisStore, Shared},
};
use std::{sync::Arc, time::Duration};
use thiserror::Error;
use tollgate::{ManualClock, OnFailure};

/// A store about to be opened, see [`RedisStore::builder`].
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until it is opened"]
pub struct RedisStoreBuilder {
    url: String,
    pub(crate) settings: Settings,
}

#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) prefix: String,
    pub(crate) timeout: Duration,
    /// `None` where failures are the caller's to deal with.
    pub(crate) on_failure: Option<OnFailure>,
    pub(crate) nodes: u32,
    pub(crate) lease: Option<Duration>,
    pub(crate) busy_poll: BusyPoll,
    pub(crate) clock: Option<ManualClock>,
}

/// Why a store could not be opened. That Redis is down is no reason: a store opens without it, and heals.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The address makes no sense.
    #[error("{problem}")]
    Address {
        /// What is wrong with it, and what would do.
        problem: String,
    },
    /// A setting makes no sense.
    #[error("{setting} {problem}")]
    Setting {
        /// The setting's name.
        setting: &'static str,
        /// What is wrong with it.
        problem: &'static str,
    },
}

const LONGEST_TIMEOUT: Duration = Duration::from_secs(3_600);
const SHORTEST_LEASE: Duration = Duration::from_millis(50);
const LONGEST_LEASE: Duration = Duration::from_secs(5);

impl Default for Settings {
    fn default() -> Self {
        Self {
            prefix: "tg".to_owned(),
            timeout: Duration::from_millis(20),
            on_failure: Some(OnFailure::default()),
            nodes: 1,
            lease: None,
            busy_poll: BusyPoll::On,
            clock: None,
        }
    }
}

impl RedisStoreBuilder {
    pub(crate) fn new(url: &str) -> Self {
        Self { url: url.to_owned(), settings: Settings::default() }
    }

    /// What all keys begin with, `tg` if not said: stores with different prefixes share nothing.
    pub fn prefix(mut self, prefix: &str) -> Self {
        self.settings.prefix = prefix.to_owned();
        self
    }

    /// How long a question waits for its answer, 20 ms if not said.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.settings.timeout = timeout;
        self
    }

    /// What is decided while Redis does not answer; [`OnFailure::Local`] if not said. A limit may have its own.
    pub fn on_failure(mut self, on_failure: OnFailure) -> Self {
        self.settings.on_failure = Some(on_failure);
        self
    }

    /// Leaves failures to the caller: what Redis does not answer is an error, whatever the limits say.
    pub fn errors_on_failure(mut self) -> Self {
        self.settings.on_failure = None;
        self
    }

    /// How many nodes share the limits, 1 if not said: deciding by itself a node takes that part of each, and leases are
    /// sized by it.
    pub fn nodes(mut self, nodes: u32) -> Self {
        self.settings.nodes = nodes;
        self
    }

    /// Takes units ahead for keys in demand, each for this long (50 ms to 5 s), so that most decisions need no round trip.
    pub fn lease(mut self, lease: Duration) -> Self {
        self.settings.lease = Some(lease);
        self
    }

    /// Sleeps until a call is answered, always. Otherwise a call to a server nearby that many callers wait for is looked at again
    /// and again for up to 50 µs first, on one thread of the runtime: waking up would take as long as the call.
    pub fn without_busy_poll(mut self) -> Self {
        self.settings.busy_poll = BusyPoll::Off;
        self
    }

    /// Passes this clock's time in, instead of letting the server's count: for tests and replays, under a prefix of their
    /// own. Its keys expire after an hour.
    pub fn clock(mut self, clock: ManualClock) -> Self {
        self.settings.clock = Some(clock);
        self
    }

    /// Opens the store. Nothing is sent before the first question.
    ///
    /// # Errors
    /// Where the address or a setting makes no sense.
    pub fn open(self) -> Result<RedisStore, OpenError> {
        let Settings { prefix, timeout, nodes, lease, .. } = &self.settings;
        let wrong = |setting, problem| Err(OpenError::Setting { setting, problem });
        if prefix.is_empty() || prefix.contains(['{', '}']) {
            return wrong("prefix", "must be some text without braces, which mean something in a key");
        }
        if timeout.is_zero() {
            return wrong("timeout", "must be greater than zero");
        }
        if *timeout > LONGEST_TIMEOUT {
            return wrong("timeout", "must be at most 1h");
        }
        if *nodes == 0 {
            return wrong("nodes", "must be at least 1");
        }
        if lease.is_some_and(|lease| !(SHORTEST_LEASE..=LONGEST_LEASE).contains(&lease)) {
            return wrong("lease", "must be from 50ms to 5s");
        }
        let address =
            Address::parse(&self.url).map_err(|error| OpenError::Address { problem: error.to_string() })?;
        let link = Arc::new(Link::open(address, SCRIPT, link::Settings::default()));
        let gatherer = Arc::new(Gatherer::new(link, self.settings.clock.clone(), self.settings.busy_poll));
        Ok(RedisStore { shared: Arc::new(Shared::new(self.settings, gatherer)) })
    }
}
