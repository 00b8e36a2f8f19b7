//! Slots are held for as long as a response takes, and come back whatever ends it.

use crate::stage::{Frames, layer, request, slots, status, store};
use http::{Request, Response};
use http_body_util::BodyExt;
use std::{convert::Infallible, future::pending, time::Duration};
use tokio::time::{advance, sleep, timeout};
use tollgate::{Charge, Concurrency, Permit};
use tollgate_tower::{LayerLimit, LimitLayer};
use tower::{Layer, Service, ServiceExt, service_fn};

async fn frames(_: Request<()>) -> Result<Response<Frames>, Infallible> {
    Ok(Response::new(Frames(3)))
}

#[tokio::test(start_paused = true)]
async fn a_slot_is_held_until_the_body_ends() {
    let service = layer(slots(1, 0)).layer(service_fn(frames));
    let mut body = service.clone().oneshot(request()).await.unwrap().into_body();
    for left in [2, 1, 0] {
        assert_eq!(status(&service, request()).await, 429, "{} frames to come", left + 1);
        body.frame().await.unwrap().unwrap();
    }
    // Nobody asks for a frame after the last: the body has said that there is none.
    let next = service.clone().oneshot(request()).await.unwrap();
    assert_eq!(next.status(), 200);
    assert_eq!(status(&service, request()).await, 429);
    drop(next);
    assert_eq!(status(&service, request()).await, 200, "a body that is dropped has ended");
}

#[tokio::test(start_paused = true)]
async fn a_body_that_is_empty_holds_nothing() {
    let empty = |_: Request<()>| async { Ok::<_, Infallible>(Response::new(Frames(0))) };
    let service = layer(slots(1, 0)).layer(service_fn(empty));
    let kept = service.clone().oneshot(request()).await.unwrap();
    assert_eq!(status(&service, request()).await, 200);
    drop(kept);
}

#[tokio::test(start_paused = true)]
async fn a_slot_comes_back_with_an_error() {
    let fails = |_: Request<()>| async { Err::<Response<Frames>, _>("broken") };
    let service = layer(slots(1, 0)).layer(service_fn(fails));
    for _ in 0..3 {
        assert_eq!(service.clone().oneshot(request()).await.unwrap_err(), "broken");
    }
}

#[tokio::test(start_paused = true)]
async fn a_slot_comes_back_with_a_panic() {
    let behind = |request: Request<()>| {
        assert!(request.uri().path() != "/call", "in the call");
        async move {
            assert!(request.uri().path() != "/future", "in the future");
            Ok::<_, Infallible>(Response::new(Frames(1)))
        }
    };
    let service = layer(slots(1, 0)).layer(service_fn(behind));
    for path in ["/call", "/future"] {
        let request = Request::builder().uri(path).body(()).unwrap();
        let panicked = tokio::spawn(service.clone().oneshot(request)).await.unwrap_err();
        assert!(panicked.is_panic(), "{path}");
        assert_eq!(status(&service, self::request()).await, 200, "after a panic {path}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_slot_comes_back_with_a_future_that_is_dropped() {
    let never = |_: Request<()>| pending::<Result<Response<Frames>, Infallible>>();
    let service = layer(slots(1, 0)).layer(service_fn(never));
    for _ in 0..3 {
        let late = timeout(Duration::from_secs(1), service.clone().oneshot(request())).await;
        assert!(late.is_err(), "served, not refused: the slot was free");
    }
}

/// A client that reads slowly, or not at all: its body is not polled, and its slot is not somebody else's meanwhile.
#[tokio::test(start_paused = true)]
async fn a_slot_is_renewed_while_the_body_lives() {
    let limit = Concurrency::new(1, Duration::from_secs(3)).unwrap();
    let service = layer(limit).layer(service_fn(frames));
    let body = service.clone().oneshot(request()).await.unwrap().into_body();
    for second in 0..100 {
        sleep(Duration::from_secs(1)).await;
        assert_eq!(status(&service, request()).await, 429, "after {second} s");
    }
    drop(body);
    assert_eq!(status(&service, request()).await, 200);
    // And so is the next, though the task that renewed has ended meanwhile.
    sleep(Duration::from_secs(60)).await;
    let body = service.clone().oneshot(request()).await.unwrap().into_body();
    sleep(Duration::from_secs(60)).await;
    assert_eq!(status(&service, request()).await, 429);
    drop(body);
}

#[tokio::test(start_paused = true)]
async fn a_slot_is_renewed_while_the_service_works() {
    let slow = |_: Request<()>| async {
        sleep(Duration::from_secs(60)).await;
        Ok::<_, Infallible>(Response::new(Frames(1)))
    };
    let limit = Concurrency::new(1, Duration::from_secs(3)).unwrap();
    let service = layer(limit).layer(service_fn(slow));
    let working = tokio::spawn(service.clone().oneshot(request()));
    sleep(Duration::from_secs(30)).await;
    assert_eq!(status(&service, request()).await, 429);
    assert_eq!(working.await.unwrap().unwrap().status(), 200);
}

/// A layer lives longer than a runtime in some tests and some programs.
#[test]
fn another_runtime_renews_what_it_holds() {
    let limit = Concurrency::new(1, Duration::from_secs(3)).unwrap();
    let layer = LimitLayer::new(limit);
    for _ in 0..2 {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let service = layer.layer(service_fn(frames));
            let body = service.clone().oneshot(request()).await.unwrap().into_body();
            assert_eq!(tokio::runtime::Handle::current().metrics().num_alive_tasks(), 1);
            drop(body);
        });
    }
}

#[tokio::test(start_paused = true)]
async fn the_task_that_renews_ends_when_nothing_is_held() {
    let service = layer(slots(5, 0)).layer(service_fn(frames));
    let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let bodies: Vec<_> = [(); 5].map(|()| service.clone().oneshot(request())).into();
    let mut held = Vec::new();
    for body in bodies {
        held.push(body.await.unwrap());
    }
    assert_eq!(tasks(), 1, "one for all");
    sleep(Duration::from_secs(100)).await;
    assert_eq!(tasks(), 1);
    drop(held);
    sleep(Duration::from_secs(100)).await;
    assert_eq!(tasks(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_service_that_gets_ready_late_keeps_its_slot() {
    #[derive(Clone)]
    struct Late;
    impl Service<Request<()>> for Late {
        type Response = Response<Frames>;
        type Error = Infallible;
        type Future = std::future::Ready<Result<Response<Frames>, Infallible>>;
        fn poll_ready(&mut self, _: &mut std::task::Context<'_>) -> std::task::Poll<Result<(), Infallible>> {
            std::task::Poll::Pending
        }
        fn call(&mut self, _: Request<()>) -> Self::Future {
            std::future::ready(Ok(Response::new(Frames(1))))
        }
    }
    let store = store();
    let limit = Concurrency::new(1, Duration::from_secs(3)).unwrap().with_queue(1);
    let layer = LimitLayer::in_store(&store, [LayerLimit::new("slots", limit)])
        .unwrap()
        .wait(Duration::from_secs(10));
    let handle = layer.handle(&store, "slots").unwrap().clone();
    let first = store.enter(&[Charge::new(&handle, ())]).await.unwrap();
    // Called without asking whether it is ready, which a service may not mind.
    let waiting = tokio::spawn(layer.layer(Late).call(request()));
    sleep(Duration::from_secs(1)).await;
    drop::<Permit<'_>>(first);
    sleep(Duration::from_secs(60)).await;
    assert_eq!(store.peek(&[Charge::new(&handle, ()).cost(0)]).unwrap().statuses()[0].remaining(), 0);
    waiting.abort();
    advance(Duration::from_millis(1)).await;
    assert_eq!(store.peek(&[Charge::new(&handle, ()).cost(0)]).unwrap().statuses()[0].remaining(), 1);
}
