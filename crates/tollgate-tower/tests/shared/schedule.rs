//! One schedule of requests, played to the layers on any store whose clock stands still.

use crate::limits::answer;
use http::{Request, Response};
use std::{fmt::Debug, sync::Arc, time::Duration};
use testkit::RedisServer;
use tokio::runtime::Builder;
use tollgate::{
    Bounds, Concurrency, DecidedBy, Enter, FixedWindow, ManualClock, MemoryStore, OnFailure, Rate,
    SlidingLog, StoreLimiter, TokenBucket,
};
use tollgate_redis::RedisStore;
use tollgate_tower::{CallError, CallLayer, LayerLimit, LimitLayer, Missing};
use tower::{Layer, Service, ServiceExt, service_fn};

const SECOND: Duration = Duration::from_secs(1);

pub(crate) fn in_memory() {
    let clock = ManualClock::new();
    let store = MemoryStore::with_clock(Bounds::default(), clock.clone());
    play(&Arc::new(store), &clock);
}

pub(crate) fn in_redis(server: &RedisServer) {
    let clock = ManualClock::new();
    let builder = RedisStore::builder(&server.url()).prefix("tower-schedule").clock(clock.clone());
    play(&Arc::new(builder.timeout(5 * SECOND).open().unwrap()), &clock);
}

fn play<S: Enter + 'static>(store: &Arc<S>, clock: &ManualClock) {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        sets(store, clock).await;
        slots(store).await;
        waits(store, clock).await;
        calls(store, clock).await;
        limiter(store, clock).await;
    });
}

/// What a request is told: its status, and how its limits stand.
async fn told<S, B>(service: &S, key: Option<&str>) -> (u16, String)
where
    S: Service<Request<()>, Response = Response<B>> + Clone,
    S::Error: Debug,
{
    let request = match key {
        Some(key) => Request::builder().header("x-api-key", key),
        None => Request::builder(),
    };
    let response = service.clone().oneshot(request.body(()).unwrap()).await.unwrap();
    let limits = response.headers().get("ratelimit").map(|value| value.to_str().unwrap().to_owned());
    (response.status().as_u16(), limits.unwrap_or_default())
}

/// Two limits, charged together or not at all.
async fn sets<S: Enter + 'static>(store: &Arc<S>, clock: &ManualClock) {
    let limits = [
        LayerLimit::new("per-key", TokenBucket::new(Rate::per_second(1).unwrap(), 2).unwrap())
            .by_header("x-api-key")
            .missing(Missing::Skip),
        LayerLimit::new("all", SlidingLog::new(4, 10 * SECOND).unwrap()),
    ];
    let service = LimitLayer::in_store(store, limits).unwrap().layer(service_fn(answer));
    let schedule: [(u64, Option<&str>, u16, &str); 8] = [
        (0, Some("a"), 200, r#""per-key";r=1;t=1, "all";r=3"#),
        (0, Some("a"), 200, r#""per-key";r=0;t=1, "all";r=2"#),
        (0, Some("a"), 429, r#""per-key";r=0;t=1"#),
        (1, Some("b"), 200, r#""per-key";r=1;t=1, "all";r=1"#),
        (0, None, 200, r#""all";r=0"#),
        (1, Some("b"), 429, r#""all";r=0"#),
        (7, Some("a"), 429, r#""all";r=0"#),
        (1, Some("a"), 200, r#""per-key";r=1;t=1, "all";r=1"#),
    ];
    for (place, (after, key, status, limits)) in schedule.into_iter().enumerate() {
        clock.advance(Duration::from_secs(after));
        let (was, stood) = told(&service, key).await;
        assert_eq!(was, status, "request {place}: {stood}");
        let times = |text: &str| text.split(", ").map(|it| it.to_owned()).collect::<Vec<_>>();
        let same = times(&stood).len() == times(limits).len()
            && times(&stood).iter().zip(times(limits)).all(|(stood, limits)| stood.starts_with(&limits));
        assert!(same, "request {place}: {stood} is not {limits}");
    }
}

/// Slots are held until the body ends; who waits for one gets it then.
async fn slots<S: Enter + 'static>(store: &Arc<S>) {
    let limit = Concurrency::new(2, 60 * SECOND).unwrap().with_queue(5);
    let layer = LimitLayer::in_store(store, [LayerLimit::new("slots", limit)]).unwrap();
    let service = layer.clone().layer(service_fn(answer));
    let get = || service.clone().oneshot(Request::new(()));
    let (first, second) = (get().await.unwrap(), get().await.unwrap());
    assert_eq!((first.status().as_u16(), second.status().as_u16()), (200, 200));
    assert_eq!(get().await.unwrap().status(), 429);
    let patient = layer.wait(30 * SECOND).layer(service_fn(answer));
    let mut waiting = Box::pin(patient.oneshot(Request::new(())));
    assert!(tokio::time::timeout(SECOND / 20, &mut waiting).await.is_err(), "both slots are held");
    drop(first);
    let third = waiting.await.unwrap();
    assert_eq!(third.status(), 200);
    drop((second, third));
    eventually(async || get().await.unwrap().status() == 200).await;
}

/// A slot comes back when its store has heard of it, which a shared one does a little later.
async fn eventually(mut is_so: impl AsyncFnMut() -> bool) {
    let begun = std::time::Instant::now();
    while !is_so().await {
        assert!(begun.elapsed() < 30 * SECOND, "still not so");
        tokio::time::sleep(SECOND / 1_000).await;
    }
}

/// A request waits for its turn, as long as it may.
async fn waits<S: Enter + 'static>(store: &Arc<S>, clock: &ManualClock) {
    let limit = TokenBucket::new(Rate::per_second(1).unwrap(), 1).unwrap();
    let layer = LimitLayer::in_store(store, [LayerLimit::new("paced", limit)]).unwrap();
    let service = layer.wait(2 * SECOND).layer(service_fn(answer));
    assert_eq!(told(&service, None).await.0, 200);
    let mut next = Box::pin(told(&service, None));
    assert!(tokio::time::timeout(SECOND / 20, &mut next).await.is_err(), "its turn is a second away");
    let begun = clock_of(clock);
    let status = loop {
        match tokio::time::timeout(SECOND / 200, &mut next).await {
            Ok((status, _)) => break status,
            Err(_) => clock.advance(SECOND / 20),
        }
    };
    let waited = clock_of(clock) - begun;
    assert_eq!(status, 200);
    assert!(waited >= SECOND * 9 / 10 && waited <= 2 * SECOND, "it waited {waited:?}");
}

fn clock_of(clock: &ManualClock) -> Duration {
    use tollgate::{Clock, Time};
    clock.now() - Time::ZERO
}

/// Calls that go out wait their turn, or are not made.
async fn calls<S: Enter + 'static>(store: &Arc<S>, clock: &ManualClock) {
    let limit = TokenBucket::new(Rate::per_second(1).unwrap(), 1).unwrap();
    let layer = CallLayer::in_store(store, "partner", limit).unwrap().wait(Duration::ZERO);
    let service = layer.layer(service_fn(async |number: u32| Ok::<_, std::convert::Infallible>(number + 1)));
    assert_eq!(service.clone().oneshot(1).await.unwrap(), 2);
    let refused = service.clone().oneshot(1).await;
    let Err(CallError::Refused(refused)) = refused else { panic!("it is full: {refused:?}") };
    assert_eq!(refused.retry_after(), Some(SECOND));
    clock.advance(SECOND);
    assert_eq!(service.oneshot(2).await.unwrap(), 3);
}

/// One limit by itself, with everything that can be done to a key.
async fn limiter<S: Enter + 'static>(store: &Arc<S>, clock: &ManualClock) {
    let limiter = StoreLimiter::new(store, "quota", FixedWindow::forever(3).unwrap()).unwrap();
    let limiter = limiter.on_failure(OnFailure::Closed);
    assert_eq!(limiter.check_n("a", 2).await.unwrap().remaining(), 1);
    assert!(limiter.check_n("a", 2).await.unwrap().is_deny());
    assert!(limiter.peek("a", 1).await.unwrap().is_allow());
    limiter.refund("a", 1).await.unwrap();
    assert!(limiter.check_n("a", 2).await.unwrap().is_allow(), "two had been left again");
    assert!(limiter.check("a").await.unwrap().is_deny());
    limiter.grant("a", 1).await.unwrap();
    assert!(limiter.check("a").await.unwrap().is_allow(), "one above the limit");
    limiter.reset("a").await.unwrap();
    assert!(limiter.check_n("a", 3).await.unwrap().is_allow());
    limiter.ban("b", SECOND).await.unwrap();
    assert_eq!(limiter.check("b").await.unwrap().decided_by(), DecidedBy::Ban);
    clock.advance(SECOND);
    assert!(limiter.check("b").await.unwrap().is_allow());
    limiter.change(FixedWindow::forever(4).unwrap()).unwrap();
    assert!(limiter.check("a").await.unwrap().is_allow(), "three of four were used");
    assert!(limiter.enter("a").up_to(Duration::ZERO).await.is_err());
    assert_eq!(limiter.enter("b").cost(2).up_to(Duration::ZERO).await.map(drop).ok(), Some(()));
}
