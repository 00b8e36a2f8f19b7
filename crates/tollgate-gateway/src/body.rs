//! What is answered: one body type for everything, so that no answer needs a box for its body.
//!
//! A body holds things until it has ended: the slot in the gauges, what the handler put there (a permit), and the line
//! for the access log. They are let go when the last frame was taken or, for an upgraded connection, when the tunnel ends.
//! If the body is dropped half-way, the client has aborted: the access log is written, and guards are kept while the server
//! still sends (see `guards`). Bytes are counted on the way.
//!
//! Headers that the answer's server sent and nobody here has looked at are with the body too, as lines: whoever writes the answer's head
//! writes them.
//!
//! Nothing is buffered here: a frame is asked of the upstream when the client has room for it.

use crate::{
    forward::Tunnelled, guards::Guards, passed::Passed, serve::Flight, timer::Deadline,
    upstream::h1::Download,
};
use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};
use std::{
    fmt,
    future::poll_fn,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};
use tokio::time::Instant;
use tollgate::{Bandwidth, PacedBody};

/// How much of a response is read for a client that is gone. The connection is closed when there is more: a server that
/// is sending notices that at once.
const MOST_DISCARDED: usize = 1 << 20;

/// The body of an answer.
pub struct Body {
    kind: Kind,
    sent: u64,
    // In the order of letting go: who sees nothing in flight finds nothing held by this process either.
    guards: Guards,
    flight: Option<Flight>,
    passed: Option<Box<Passed>>,
}

enum Kind {
    Empty,
    Full(Bytes),
    Http1(Box<Download>),
    Http2(Box<Stream>),
    Tunnel(Tunnelled),
    Paced(Box<PacedBody<Inner>>),
}

/// An answer over HTTP/2.
struct Stream {
    incoming: hyper::body::Incoming,
    silence: Duration,
    deadline: Deadline,
    grace: Duration,
}

impl Stream {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        match Pin::new(&mut self.incoming).poll_frame(context) {
            Poll::Ready(Some(Ok(frame))) => {
                self.deadline.set(Instant::now() + self.silence);
                Poll::Ready(Some(Ok(frame)))
            }
            Poll::Ready(Some(Err(_))) => {
                Poll::Ready(Some(Err(BodyError::Upstream { reason: "the stream was reset" })))
            }
            Poll::Ready(None) => Poll::Ready(None),
            Poll::Pending => self.deadline.poll(context).map(|()| Some(Err(BodyError::UpstreamTimeout))),
        }
    }
}

/// What a paced body paces: a body without its guards, which stay outside.
struct Inner(Kind);

/// A body broke off.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BodyError {
    /// The upstream closed the connection, or answered against the protocol, in the middle of a body.
    #[error("the upstream's answer broke off: {reason}")]
    Upstream {
        /// What happened.
        reason: &'static str,
    },
    /// The upstream sent nothing for too long in the middle of a body.
    #[error("the upstream stopped in the middle of its answer")]
    UpstreamTimeout,
    /// The client closed the connection, or sent a body against the protocol.
    #[error("the client's request broke off")]
    Client,
    /// The client sent nothing for too long in the middle of a body.
    #[error("the client stopped in the middle of its request")]
    ClientTimeout,
    /// The client's body is larger than allowed.
    #[error("the client's body is larger than {limit} bytes")]
    TooLarge {
        /// What is allowed.
        limit: u64,
    },
}

impl BodyError {
    /// Whether the client is to blame, and the server may still be at work.
    pub(crate) const fn is_by_client(&self) -> bool {
        matches!(self, Self::Client | Self::ClientTimeout | Self::TooLarge { .. })
    }
}

impl Body {
    /// No body.
    #[must_use]
    pub const fn empty() -> Self {
        Self::of(Kind::Empty)
    }

    /// These bytes.
    #[must_use]
    pub fn full(bytes: impl Into<Bytes>) -> Self {
        Self::of(Kind::Full(bytes.into()))
    }

    pub(crate) fn http1(download: Box<Download>) -> Self {
        Self::of(Kind::Http1(download))
    }

    /// From an HTTP/2 server, which may be silent for so long. If the client aborts, the rest is waited for during `grace`.
    pub(crate) fn http2(incoming: hyper::body::Incoming, silence: Duration, grace: Duration) -> Self {
        if incoming.is_end_stream() {
            return Self::empty();
        }
        let deadline = Deadline::new(Instant::now() + silence);
        Self::of(Kind::Http2(Box::new(Stream { incoming, silence, deadline, grace })))
    }

    pub(crate) const fn tunnel(tunnel: Tunnelled) -> Self {
        Self::of(Kind::Tunnel(tunnel))
    }

    /// The same body, of an answer with these headers beside those in its map.
    pub(crate) fn passing(mut self, passed: Box<Passed>) -> Self {
        self.passed = Some(passed);
        self
    }

    /// For header lines of our own, each with its end.
    pub(crate) fn own_lines(&mut self) -> &mut Vec<u8> {
        self.passed.get_or_insert_default().own()
    }

    pub(crate) fn take_passed(&mut self) -> Option<Box<Passed>> {
        self.passed.take()
    }

    const fn of(kind: Kind) -> Self {
        Self { kind, sent: 0, guards: Guards::new(), flight: None, passed: None }
    }

    /// Keeps `guard` until this body has ended; on the answer to an upgrade, until the tunnel ends. If the body is dropped
    /// before its end, the guard is kept until the server's response has ended or the upstream's `abort_grace` has passed.
    pub fn hold(&mut self, guard: impl Send + 'static) {
        match &self.kind {
            Kind::Tunnel(tunnel) => tunnel.hold(Box::new(guard)),
            _ => self.guards.hold(guard),
        }
    }

    /// Keeps all of these as [`hold`](Self::hold) does.
    pub(crate) fn hold_all(&mut self, guards: Guards) {
        match &self.kind {
            Kind::Tunnel(tunnel) => tunnel.hold(Box::new(guards)),
            _ => self.guards.extend(guards),
        }
    }

    /// Reads what is left and throws it away, up to [`MOST_DISCARDED`].
    pub(crate) async fn discard(mut self) {
        std::mem::replace(&mut self.kind, Kind::Empty).discard().await;
    }

    /// The same body, no faster than `bandwidth` from now on. What it holds stays held.
    #[must_use]
    pub fn pace(mut self, bandwidth: Bandwidth) -> Self {
        if matches!(self.kind, Kind::Empty | Kind::Tunnel(_)) {
            return self;
        }
        let kind = std::mem::replace(&mut self.kind, Kind::Empty);
        self.kind = Kind::Paced(Box::new(PacedBody::new(Inner(kind), bandwidth)));
        self
    }

    /// How many bytes of data have been taken out so far.
    #[must_use]
    pub const fn sent(&self) -> u64 {
        self.sent
    }

    pub(crate) fn fly(&mut self, flight: Flight) {
        match &self.kind {
            Kind::Tunnel(tunnel) => tunnel.hold(Box::new(flight)),
            _ => self.flight = Some(flight),
        }
    }

    /// Lets go of everything. The client may have aborted the response before its end.
    fn end(&mut self, is_aborted: bool) {
        let kind = std::mem::replace(&mut self.kind, Kind::Empty);
        match kind.grace() {
            Some(grace) => self.guards.keep_during(kind.discard(), grace),
            None => self.guards = Guards::new(),
        }
        if let Some(mut flight) = self.flight.take() {
            flight.landed(self.sent, is_aborted);
        }
    }
}

impl Kind {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        match self {
            Self::Empty | Self::Tunnel(_) => Poll::Ready(None),
            Self::Full(bytes) => {
                let bytes = std::mem::take(bytes);
                Poll::Ready((!bytes.is_empty()).then(|| Ok(Frame::data(bytes))))
            }
            Self::Http1(download) => download.poll_frame(context),
            Self::Http2(stream) => stream.poll(context),
            Self::Paced(paced) => Pin::new(&mut **paced).poll_frame(context),
        }
    }

    /// For how long the server's end is waited for if the client is gone; none if it has ended.
    fn grace(&self) -> Option<Duration> {
        match self {
            Self::Empty | Self::Full(_) | Self::Tunnel(_) => None,
            Self::Http1(download) => download.grace(),
            Self::Http2(stream) => (!stream.incoming.is_end_stream()).then_some(stream.grace),
            Self::Paced(paced) => paced.get_ref().0.grace(),
        }
    }

    async fn discard(self) {
        let mut kind = self;
        if let Self::Paced(paced) = kind {
            kind = paced.into_inner().0;
        }
        match &mut kind {
            Self::Http1(download) => download.discard(),
            Self::Http2(stream) => stream.silence = stream.grace,
            _ => {}
        }
        let mut left = MOST_DISCARDED;
        while let Some(Ok(frame)) = poll_fn(|context| kind.poll(context)).await {
            let Some(rest) = left.checked_sub(frame.data_ref().map_or(0, Bytes::len)) else { return };
            left = rest;
        }
    }

    fn ended(&self) -> bool {
        match self {
            Self::Empty | Self::Tunnel(_) => true,
            Self::Full(bytes) => bytes.is_empty(),
            Self::Http1(download) => download.ended(),
            Self::Http2(stream) => stream.incoming.is_end_stream(),
            Self::Paced(paced) => paced.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Empty | Self::Tunnel(_) => SizeHint::with_exact(0),
            Self::Full(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Self::Http1(download) => download.size_hint(),
            Self::Http2(stream) => stream.incoming.size_hint(),
            Self::Paced(paced) => paced.size_hint(),
        }
    }
}

impl HttpBody for Inner {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        self.0.poll(context)
    }

    fn is_end_stream(&self) -> bool {
        self.0.ended()
    }

    fn size_hint(&self) -> SizeHint {
        self.0.size_hint()
    }
}

impl HttpBody for Body {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let frame = ready!(self.kind.poll(context));
        match &frame {
            Some(Ok(frame)) => {
                self.sent += frame.data_ref().map_or(0, Bytes::len) as u64;
                if self.kind.ended() {
                    self.end(false);
                }
            }
            Some(Err(_)) | None => self.end(false),
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.kind.ended()
    }

    fn size_hint(&self) -> SizeHint {
        self.kind.size_hint()
    }
}

impl Drop for Body {
    fn drop(&mut self) {
        if self.flight.is_some() || !self.guards.is_empty() {
            self.end(!self.kind.ended());
        }
    }
}

impl Default for Body {
    fn default() -> Self {
        Self::empty()
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match &self.kind {
            Kind::Empty => "empty",
            Kind::Full(_) => "full",
            Kind::Http1(_) => "http/1.1",
            Kind::Http2(_) => "http/2",
            Kind::Tunnel(_) => "tunnel",
            Kind::Paced(_) => "paced",
        };
        f.debug_struct("Body").field("kind", &kind).field("sent", &self.sent).finish_non_exhaustive()
    }
}

impl From<Bytes> for Body {
    fn from(bytes: Bytes) -> Self {
        Self::full(bytes)
    }
}

impl From<String> for Body {
    fn from(text: String) -> Self {
        Self::full(text)
    }
}

impl From<&'static str> for Body {
    fn from(text: &'static str) -> Self {
        Self::full(text)
    }
}
