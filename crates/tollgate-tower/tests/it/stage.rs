//! What the tests play on: a store in tokio's time, requests, and bodies that end when told to.

use bytes::Bytes;
use http::{Request, Response};
use http_body::{Body, Frame};
use http_body_util::Full;
use std::{
    convert::Infallible,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};
use tollgate::{Bounds, Concurrency, Limit, MemoryStore, Rate, TokenBucket, TokioClock};
use tollgate_tower::{LayerLimit, LimitLayer};
use tower::{Service, ServiceExt};

pub(crate) type Store = Arc<MemoryStore<TokioClock>>;

pub(crate) fn store() -> Store {
    Arc::new(MemoryStore::with_clock(Bounds { max_keys: 1000, ..Bounds::default() }, TokioClock::new()))
}

/// A layer of one limit in tokio's time.
pub(crate) fn layer(limit: impl Into<Limit>) -> LimitLayer {
    LimitLayer::in_store(&store(), [LayerLimit::new("default", limit)]).unwrap()
}

pub(crate) fn bucket(per_second: u32, burst: u32) -> TokenBucket {
    TokenBucket::new(Rate::per_second(per_second).unwrap(), burst).unwrap()
}

pub(crate) fn slots(limit: u32, queue: u32) -> Concurrency {
    Concurrency::new(limit, Duration::from_secs(30)).unwrap().with_queue(queue)
}

pub(crate) fn request() -> Request<()> {
    Request::new(())
}

pub(crate) fn with_header(name: &str, value: &str) -> Request<()> {
    Request::builder().header(name, value).body(()).unwrap()
}

/// Answers "done" at once.
pub(crate) async fn done(_: Request<()>) -> Result<Response<Full<Bytes>>, Infallible> {
    Ok(Response::new(Full::from("done")))
}

/// The status that a request gets.
pub(crate) async fn status<S, B>(service: &S, request: Request<()>) -> u16
where
    S: Service<Request<()>, Response = Response<B>> + Clone,
    S::Error: std::fmt::Debug,
{
    service.clone().oneshot(request).await.expect("an answer").status().as_u16()
}

/// A body of so many frames, each of which is there at once.
#[derive(Debug)]
pub(crate) struct Frames(pub(crate) usize);

impl Body for Frames {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.0 == 0 {
            return Poll::Ready(None);
        }
        self.0 -= 1;
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(b"some")))))
    }

    fn is_end_stream(&self) -> bool {
        self.0 == 0
    }
}
