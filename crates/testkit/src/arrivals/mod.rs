//! Requests that arrive at given times, and what became of each.
//!
//! A schedule is played by a plain HTTP/1.1 client of ours, on real time, against anything that listens: nginx, the
//! gateway, an upstream. Connections are opened before the first request is due, so that what is measured is the request
//! and not the connecting; and requests that are due at one instant are written in the order of the schedule. Who is who
//! is said by a header or by the address a request comes from: every address of 127.0.0.0/8 is this machine.
//!
//! Two plays of a schedule are compared by [`Arrivals::differences`].

mod fate;
mod play;

pub use fate::{Difference, Fate};

use crate::http;
use std::{
    net::{Ipv4Addr, SocketAddr},
    time::Duration,
};

/// The header with a request's place in its schedule, by which a log's lines are told apart.
pub(crate) const NUMBER: &str = "x-arrival";

/// A schedule of requests.
///
/// ```
/// use testkit::{Arrival, Arrivals, Upstream};
///
/// let upstream = Upstream::ok();
/// let schedule = Arrivals::new([
///     Arrival::at_ms(0).header("x-key", "alice"),
///     Arrival::at_ms(0).from([127, 0, 0, 2]),
///     Arrival::at_ms(5).path("/orders").on(1),
///     Arrival::at_ms(10).path("/orders").on(1),
/// ]);
/// let seen = schedule.play(upstream.address());
/// assert!(seen.iter().all(|seen| seen.status() == 200));
/// assert_eq!(upstream.connections(), 3);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrivals(Vec<Arrival>);

/// One request of a schedule: `GET /` from 127.0.0.1, on a connection of its own, unless told otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrival {
    at: Duration,
    from: Ipv4Addr,
    method: String,
    path: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    connection: Option<u32>,
    give_up_after: Option<Duration>,
}

/// What became of a request. Times are since the play began.
#[derive(Clone, Debug)]
pub struct Seen {
    /// Its place in the schedule.
    pub number: usize,
    /// When it was written; a little after it was due.
    pub asked: Duration,
    /// The answer, or why there is none that is whole.
    pub answer: Result<Answered, String>,
}

/// An answer, as it came.
#[derive(Clone, Debug)]
pub struct Answered {
    /// As in 200.
    pub status: u16,
    /// As they were written, in order.
    pub headers: Vec<(String, String)>,
    /// Without what frames it.
    pub body: Vec<u8>,
    /// When its first byte came.
    pub began: Duration,
    /// When its last byte came.
    pub ended: Duration,
    /// How much of the body was there by when, in order; a line for every time that something came.
    pub progress: Vec<(Duration, u64)>,
}

impl Arrivals {
    /// These, whose order decides among those that are due at one instant.
    pub fn new(arrivals: impl IntoIterator<Item = Arrival>) -> Self {
        Self(arrivals.into_iter().collect())
    }

    /// A plain request at each of these milliseconds.
    pub fn at_ms(times: impl IntoIterator<Item = u64>) -> Self {
        Self::new(times.into_iter().map(Arrival::at_ms))
    }

    /// So many plain requests at once.
    pub fn at_once(count: usize) -> Self {
        Self::at_ms(vec![0; count])
    }

    /// Changes each of them.
    #[must_use]
    pub fn each(self, change: impl FnMut(Arrival) -> Arrival) -> Self {
        Self::new(self.0.into_iter().map(change))
    }

    /// Each of them, in the order given.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Arrival> {
        self.0.iter()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Plays them, and waits for the last answer; what became of each, in the order of the schedule. Blocks the thread.
    ///
    /// # Panics
    ///
    /// Where an address to come from is none of this machine's.
    pub fn play(&self, address: SocketAddr) -> Vec<Seen> {
        play::play(&self.0, address)
    }
}

impl Arrival {
    /// A request that is due so many milliseconds after the play begins.
    pub fn at_ms(at: u64) -> Self {
        Self::at(Duration::from_millis(at))
    }

    /// A request that is due so long after the play begins. The timer is good to a millisecond.
    pub fn at(at: Duration) -> Self {
        Self {
            at,
            from: Ipv4Addr::LOCALHOST,
            method: "GET".into(),
            path: "/".into(),
            headers: Vec::new(),
            body: Vec::new(),
            connection: None,
            give_up_after: None,
        }
    }

    /// When it is due, since the play begins.
    pub const fn due(&self) -> Duration {
        self.at
    }

    /// Where it comes from.
    pub const fn source(&self) -> Ipv4Addr {
        self.from
    }

    /// The same, due at once.
    #[must_use]
    pub fn at_once(self) -> Self {
        Self { at: Duration::ZERO, ..self }
    }

    /// From this address, which begins with 127.
    ///
    /// # Panics
    ///
    /// If it does not.
    #[must_use]
    pub fn from(self, address: impl Into<Ipv4Addr>) -> Self {
        let from = address.into();
        assert!(from.is_loopback(), "{from} is not an address of this machine alone");
        Self { from, ..self }
    }

    /// With another method than `GET`.
    #[must_use]
    pub fn method(self, method: &str) -> Self {
        Self { method: method.into(), ..self }
    }

    /// For this path, and query if any, instead of `/`.
    #[must_use]
    pub fn path(self, path: &str) -> Self {
        Self { path: path.into(), ..self }
    }

    /// With a header more. Whoever sets `host` has no other.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// With a body, and its length in a header.
    #[must_use]
    pub fn body(self, body: impl Into<Vec<u8>>) -> Self {
        Self { body: body.into(), ..self }
    }

    /// On the connection of this number, which stays open between those that name it. Each waits there until the one
    /// before is answered, also past its time. The first says where it comes from.
    #[must_use]
    pub fn on(self, connection: u32) -> Self {
        Self { connection: Some(connection), ..self }
    }

    /// Closes the connection this long after asking, if the answer has not ended by then.
    #[must_use]
    pub fn give_up_after(self, time: Duration) -> Self {
        Self { give_up_after: Some(time), ..self }
    }
}

impl Seen {
    /// The answer.
    ///
    /// # Panics
    ///
    /// If there is none.
    #[track_caller]
    pub fn answered(&self) -> &Answered {
        match &self.answer {
            Ok(answered) => answered,
            Err(why) => panic!("request {} has no answer: {why}", self.number),
        }
    }

    /// Its status. Panics as [`answered`](Self::answered) does, and so do the others.
    #[track_caller]
    pub fn status(&self) -> u16 {
        self.answered().status
    }

    /// From asking until the answer began.
    #[track_caller]
    pub fn waited(&self) -> Duration {
        self.answered().began.saturating_sub(self.asked)
    }

    /// From asking until the answer had ended.
    #[track_caller]
    pub fn took(&self) -> Duration {
        self.answered().ended.saturating_sub(self.asked)
    }

    /// The first header of this name, in whatever case.
    #[track_caller]
    pub fn header(&self, name: &str) -> Option<&str> {
        http::header(&self.answered().headers, name)
    }

    /// The body as text.
    #[track_caller]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.answered().body).into_owned()
    }
}

impl Answered {
    /// How much of the body had come by then, since the play began.
    pub fn bytes_by(&self, time: Duration) -> u64 {
        self.progress.iter().take_while(|(at, _)| *at <= time).last().map_or(0, |(_, bytes)| *bytes)
    }
}
