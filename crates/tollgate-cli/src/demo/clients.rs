//! Who comes to the gateway: a few clients, each with its way.
//!
//! Some 350 requests a second in all; what each of them meets is up to `rules.yaml`.

use http::Method;
use std::time::Duration;

/// A client and its habits.
pub(super) struct Client {
    pub(super) name: &'static str,
    /// What it does, in a few words.
    pub(super) habit: &'static str,
    /// Connections that it uses at a time.
    pub(super) lanes: u32,
    /// How the lanes go about it.
    pub(super) step: Step,
    /// Between two rounds of a lane.
    pub(super) every: Duration,
    /// Requests in a row, in one round of a lane.
    pub(super) batch: u32,
    pub(super) method: Method,
    pub(super) path: fn(u64) -> String,
    pub(super) key: ApiKey,
}

/// Whether lanes begin their rounds together, or spread over the time of one.
#[derive(Clone, Copy)]
pub(super) enum Step {
    Together,
    Spread,
}

/// The `x-api-key` of a request.
#[derive(Clone, Copy)]
pub(super) enum ApiKey {
    /// The client's name.
    Own,
    /// Another one every time.
    Fresh,
    None,
}

impl Client {
    /// All of them, in the order in which they are shown.
    pub(super) fn all() -> Vec<Self> {
        let orders: fn(u64) -> String = |number| format!("/orders/{number}");
        let visitor = Self {
            name: "",
            habit: "",
            lanes: 1,
            step: Step::Spread,
            every: Duration::from_millis(50),
            batch: 1,
            method: Method::GET,
            path: orders,
            key: ApiKey::Own,
        };
        vec![
            Self {
                name: "steady",
                habit: "15 a second, below its limit",
                every: Duration::from_micros(66_667),
                ..visitor.like()
            },
            Self {
                name: "bursty",
                habit: "60 at once every 3 s, then silence",
                lanes: 6,
                step: Step::Together,
                every: Duration::from_secs(3),
                batch: 10,
                ..visitor.like()
            },
            Self { name: "greedy", habit: "80 a second, four times its limit", lanes: 4, ..visitor.like() },
            Self {
                name: "scraper",
                habit: "160 a second, a new API key each",
                lanes: 8,
                key: ApiKey::Fresh,
                ..visitor.like()
            },
            Self {
                name: "guesser",
                habit: "tries 5 passwords a second",
                every: Duration::from_millis(200),
                method: Method::POST,
                path: |_| "/login".to_owned(),
                key: ApiKey::None,
                ..visitor.like()
            },
            Self {
                name: "shoppers",
                habit: "6 come to the checkout together",
                lanes: 6,
                step: Step::Together,
                every: Duration::from_millis(500),
                method: Method::POST,
                path: |_| "/checkout".to_owned(),
                ..visitor.like()
            },
            Self {
                name: "download",
                habit: "fetches large files, two at a time",
                lanes: 2,
                every: Duration::from_millis(250),
                path: |number| format!("/export/{number}.csv"),
                ..visitor.like()
            },
        ]
    }

    fn like(&self) -> Self {
        Self { method: self.method.clone(), ..*self }
    }

    /// How long after the start a lane begins.
    pub(super) fn begins(&self, lane: u32) -> Duration {
        match self.step {
            // Well within a second as it is shown, so that a burst is seen in one.
            Step::Together => Duration::from_millis(300),
            Step::Spread => self.every * lane / self.lanes,
        }
    }
}
