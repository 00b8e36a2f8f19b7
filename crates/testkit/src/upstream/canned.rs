//! What an upstream answers.

use super::Asked;
use std::time::Duration;

/// A response, said in advance. Made of a status and a body, then changed by what follows.
///
/// ```
/// use std::time::Duration;
/// use testkit::Canned;
///
/// let slow = Canned::text("here you are").after(Duration::from_millis(50)).header("x-served-by", "a");
/// let long = Canned::bytes(1_000_000).chunked().every(10_000, Duration::from_millis(1));
/// let broken = Canned::bytes(1_000).cut_after(10);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Canned {
    pub(super) status: u16,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Body,
    pub(super) chunked: bool,
    pub(super) after: Duration,
    /// So many bytes at a time, with a pause before each but the first.
    pub(super) pieces: Option<(u64, Duration)>,
    pub(super) cut_after: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Body {
    Said(Vec<u8>),
    /// So many bytes of the pattern of [`Canned::bytes`].
    Pattern(u64),
}

impl Canned {
    /// 200, and this text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::of(Body::Said(text.into().into_bytes()))
    }

    /// 200, and `count` bytes, made as they go: the letters of the alphabet over and over.
    pub fn bytes(count: u64) -> Self {
        Self::of(Body::Pattern(count))
    }

    /// 200, and the request's head as it came in, lines ended as on the wire.
    pub fn echo(asked: &Asked) -> Self {
        Self::text(asked.head())
    }

    /// What the query asks for: `/any?status=404&size=5000&delay=20&piece=1000&pause=5&chunked&echo`, each of which may
    /// be left out; `delay` and `pause` in milliseconds. For load generators and `curl`, which cannot be told otherwise.
    ///
    /// # Panics
    ///
    /// Where something else is asked for, or a number is none; the client finds its connection closed.
    pub fn by_query(asked: &Asked) -> Self {
        let query = asked.target.split_once('?').map_or("", |(_, query)| query);
        let mut canned = Self::text("ok\n");
        let (mut piece, mut pause) = (None, Duration::ZERO);
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let number = || value.parse::<u64>().unwrap_or_else(|_| panic!("not a number: {pair}"));
            match name {
                "status" => canned = canned.status(u16::try_from(number()).expect("a status")),
                "size" => canned.body = Body::Pattern(number()),
                "delay" => canned = canned.after(Duration::from_millis(number())),
                "piece" => piece = Some(number()),
                "pause" => pause = Duration::from_millis(number()),
                "chunked" => canned = canned.chunked(),
                "echo" => canned.body = Self::echo(asked).body,
                _ => panic!("not a wish we know: {pair}"),
            }
        }
        match piece {
            Some(bytes) => canned.every(bytes, pause),
            None => canned,
        }
    }

    fn of(body: Body) -> Self {
        let none = Vec::new();
        Self {
            status: 200,
            headers: none,
            body,
            chunked: false,
            after: Duration::ZERO,
            pieces: None,
            cut_after: None,
        }
    }

    /// Another status than 200.
    #[must_use]
    pub fn status(self, status: u16) -> Self {
        Self { status, ..self }
    }

    /// A header more.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Begins this long after the request was read.
    #[must_use]
    pub fn after(self, after: Duration) -> Self {
        Self { after, ..self }
    }

    /// In chunks, instead of with a length.
    #[must_use]
    pub fn chunked(self) -> Self {
        Self { chunked: true, ..self }
    }

    /// The body in pieces of so many bytes, with a pause between them.
    #[must_use]
    pub fn every(self, bytes: u64, pause: Duration) -> Self {
        assert!(bytes > 0, "pieces of nothing would never end");
        Self { pieces: Some((bytes, pause)), ..self }
    }

    /// Closes the connection after so many bytes of the body, though more were announced.
    #[must_use]
    pub fn cut_after(self, bytes: u64) -> Self {
        Self { cut_after: Some(bytes), ..self }
    }

    pub(super) fn size(&self) -> u64 {
        match &self.body {
            Body::Said(bytes) => bytes.len() as u64,
            Body::Pattern(count) => *count,
        }
    }
}

impl Body {
    /// So many bytes from here on.
    pub(super) fn part(&self, from: u64, count: u64) -> Vec<u8> {
        match self {
            Self::Said(bytes) => {
                let from = usize::try_from(from).unwrap_or(usize::MAX);
                let count = usize::try_from(count).unwrap_or(usize::MAX);
                bytes.iter().skip(from).take(count).copied().collect()
            }
            Self::Pattern(_) => (from..from + count).map(|at| b'a' + (at % 26) as u8).collect(),
        }
    }
}
