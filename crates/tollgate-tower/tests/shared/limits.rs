//! The limits that the processes share, and a service behind them.

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use rustix::time::{ClockId, clock_gettime};
use std::{convert::Infallible, sync::Arc, time::Duration};
use tollgate::{Concurrency, OnFailure, Rate, TokenBucket};
use tollgate_redis::RedisStore;
use tollgate_tower::{LayerLimit, LimitLayer};

pub(crate) const RATE: u32 = 100;
pub(crate) const BURST: u32 = 40;
pub(crate) const SLOTS: u32 = 4;
pub(crate) const MAX_HOLD: Duration = Duration::from_millis(600);

/// Nanoseconds on the clock that all processes of a machine share.
pub(crate) fn now() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
}

/// The store, as every process opens it: patient, so that no failure policy decides on a busy machine.
pub(crate) fn store(url: &str, prefix: &str) -> Arc<RedisStore> {
    let builder = RedisStore::builder(url).prefix(prefix).timeout(Duration::from_secs(5));
    Arc::new(builder.on_failure(OnFailure::Closed).open().unwrap())
}

/// A rate, by which requests are checked.
pub(crate) fn rate(store: &Arc<RedisStore>) -> LimitLayer {
    let rate = TokenBucket::new(Rate::per_second(RATE).unwrap(), BURST).unwrap();
    LimitLayer::in_store(store, [LayerLimit::new("rate", rate).by_header("x-api-key")]).unwrap()
}

/// Slots, which requests enter.
pub(crate) fn slots(store: &Arc<RedisStore>) -> LimitLayer {
    let slots = Concurrency::new(SLOTS, MAX_HOLD).unwrap().with_queue(1_000);
    LimitLayer::in_store(store, [LayerLimit::new("slots", slots)]).unwrap().wait(Duration::from_secs(5))
}

pub(crate) fn request() -> Request<()> {
    Request::builder().header("x-api-key", "alice").body(()).unwrap()
}

/// Answers at once.
pub(crate) async fn answer(_: Request<()>) -> Result<Response<Full<Bytes>>, Infallible> {
    Ok(Response::new(Full::from("done")))
}
