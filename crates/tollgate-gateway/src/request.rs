//! What is asked: a request's body on its way from the client.
//!
//! It ends in an error where the client sends more than allowed, or nothing for too long while somebody waits for it. The
//! timer is made when a frame is waited for, so that a body that is there at once costs none.

use crate::{body::BodyError, forward::may_trail, serve::Inlet};
use bytes::Bytes;
use http::{HeaderMap, HeaderName};
use http_body::{Body as HttpBody, Frame, SizeHint};
use hyper::body::Incoming;
use std::{
    fmt,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    task::{Context, Poll},
    time::Duration,
};
use tokio::time::Sleep;
use tollgate_rules::NamedHeaders;

/// The body of a request. Most have none, and the request is moved from hand to hand: so what there is of one is in a box.
pub struct RequestBody(Option<Box<Flow>>);

struct Flow {
    kind: Kind,
    limit: u64,
    left: u64,
    patience: Duration,
    waiting: Option<Pin<Box<Sleep>>>,
    /// Who sends the body on tells here that it goes on.
    progress: Option<Arc<AtomicU64>>,
    /// Headers that must not come as trailers.
    guarded: Option<Arc<NamedHeaders>>,
}

enum Kind {
    /// Nothing more can be read of it.
    Gone,
    Full(Bytes),
    Http1(Inlet),
    Http2(Incoming),
}

impl RequestBody {
    /// No body.
    #[must_use]
    pub const fn empty() -> Self {
        Self(None)
    }

    /// These bytes.
    #[must_use]
    pub fn full(bytes: impl Into<Bytes>) -> Self {
        Self::of(Kind::Full(bytes.into()), u64::MAX, Duration::MAX)
    }

    /// From a client by HTTP/1.1: at most `limit` bytes, with at most `patience` between frames.
    pub(crate) fn http1(inlet: Inlet, limit: u64, patience: Duration) -> Self {
        Self::of(Kind::Http1(inlet), limit, patience)
    }

    /// The same by HTTP/2.
    pub(crate) fn http2(incoming: Incoming, limit: u64, patience: Duration) -> Self {
        if incoming.is_end_stream() {
            return Self::empty();
        }
        Self::of(Kind::Http2(incoming), limit, patience)
    }

    /// A number that grows with every frame that is taken out: for those who do not take them out themselves.
    pub(crate) fn progress(&mut self) -> Arc<AtomicU64> {
        let flow = self.0.as_mut();
        flow.map_or_else(Arc::default, |flow| flow.progress.get_or_insert_default().clone())
    }

    /// Drops trailers that would add a header that rules depend on.
    pub(crate) fn guard_trailers(&mut self, named: &Arc<NamedHeaders>) {
        if let Some(flow) = &mut self.0 {
            flow.guarded = Some(named.clone());
        }
    }

    fn of(kind: Kind, limit: u64, patience: Duration) -> Self {
        Self(Some(Box::new(Flow {
            kind,
            limit,
            left: limit,
            patience,
            waiting: None,
            progress: None,
            guarded: None,
        })))
    }
}

impl Flow {
    fn poll_frame(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        match &mut self.kind {
            Kind::Gone => Poll::Ready(None),
            Kind::Full(bytes) => {
                let bytes = std::mem::take(bytes);
                Poll::Ready((!bytes.is_empty()).then(|| Ok(Frame::data(bytes))))
            }
            Kind::Http1(_) | Kind::Http2(_) => self.poll_incoming(context),
        }
    }

    fn poll_incoming(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let frame = match &mut self.kind {
            Kind::Http1(inlet) => inlet.poll_frame(context),
            Kind::Http2(incoming) => Pin::new(incoming).poll_frame(context).map_err(|_| BodyError::Client),
            Kind::Gone | Kind::Full(_) => Poll::Ready(None),
        };
        match frame {
            Poll::Ready(None) => Poll::Ready(None),
            Poll::Ready(Some(Err(_))) => {
                self.kind = Kind::Gone;
                Poll::Ready(Some(Err(BodyError::Client)))
            }
            Poll::Ready(Some(Ok(mut frame))) => {
                self.waiting = None;
                if let Some(trailers) = frame.trailers_mut() {
                    keep_harmless(trailers, self.guarded.as_deref());
                }
                if let Some(progress) = &self.progress {
                    progress.fetch_add(1, Relaxed);
                }
                let bytes = frame.data_ref().map_or(0, Bytes::len) as u64;
                let Some(left) = self.left.checked_sub(bytes) else {
                    return Poll::Ready(Some(Err(BodyError::TooLarge { limit: self.limit })));
                };
                self.left = left;
                Poll::Ready(Some(Ok(frame)))
            }
            Poll::Pending => {
                let waiting = self.waiting.get_or_insert_with(|| Box::pin(tokio::time::sleep(self.patience)));
                match waiting.as_mut().poll(context) {
                    Poll::Ready(()) => Poll::Ready(Some(Err(BodyError::ClientTimeout))),
                    Poll::Pending => Poll::Pending,
                }
            }
        }
    }
}

/// Leaves only trailers that no server could take for a header that is set or looked at here.
fn keep_harmless(trailers: &mut HeaderMap, guarded: Option<&NamedHeaders>) {
    let is_harmful = |name: &&HeaderName| {
        !may_trail(name)
            || name.as_str().contains('_')
            || guarded.is_some_and(|guarded| guarded.contains(name))
    };
    let harmful: Vec<_> = trailers.keys().filter(is_harmful).cloned().collect();
    for name in harmful {
        trailers.remove(name);
    }
}

impl HttpBody for RequestBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        match &mut self.0 {
            Some(flow) => flow.poll_frame(context),
            None => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self.0.as_ref().map(|flow| &flow.kind) {
            None | Some(Kind::Gone) => true,
            Some(Kind::Full(bytes)) => bytes.is_empty(),
            Some(Kind::Http1(inlet)) => inlet.is_end_stream(),
            Some(Kind::Http2(incoming)) => incoming.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self.0.as_ref().map(|flow| &flow.kind) {
            None | Some(Kind::Gone) => SizeHint::with_exact(0),
            Some(Kind::Full(bytes)) => SizeHint::with_exact(bytes.len() as u64),
            Some(Kind::Http1(inlet)) => inlet.size_hint(),
            Some(Kind::Http2(incoming)) => incoming.size_hint(),
        }
    }
}

impl fmt::Debug for RequestBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestBody").field("size", &self.size_hint()).finish_non_exhaustive()
    }
}
