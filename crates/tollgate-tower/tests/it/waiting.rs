//! Requests that wait their turn.

use crate::stage::{Frames, bucket, done, layer, request, slots, status, store};
use http::{Request, Response};
use http_body_util::BodyExt;
use std::{convert::Infallible, time::Duration};
use tokio::{
    sync::mpsc,
    time::{Instant, sleep, timeout},
};
use tollgate::{Charge, Delay, FixedWindow, LeakyBucket, Rate};
use tollgate_tower::{LayerLimit, LimitLayer};
use tower::{Layer, ServiceExt, service_fn};

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn requests_go_in_the_order_they_came() {
    let limits: [tollgate::Limit; 3] =
        [bucket(10, 1).into(), FixedWindow::new(1, SECOND / 10).unwrap().into(), slots(1, 20).into()];
    for limit in limits {
        let (sender, mut order) = mpsc::unbounded_channel();
        let behind = service_fn(move |request: Request<()>| {
            sender.send(request.uri().path().to_owned()).unwrap();
            async {
                sleep(SECOND / 10).await;
                Ok::<_, Infallible>(Response::new(Frames(0)))
            }
        });
        let service = layer(limit.clone()).wait(60 * SECOND).layer(behind);
        let requests: Vec<_> = (0..10)
            .map(|turn| {
                let request = Request::builder().uri(format!("/{turn}")).body(()).unwrap();
                tokio::spawn(service.clone().oneshot(request))
            })
            .collect();
        for (turn, request) in requests.into_iter().enumerate() {
            assert_eq!(request.await.unwrap().unwrap().status(), 200);
            assert_eq!(order.recv().await.unwrap(), format!("/{turn}"), "{limit:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn one_that_would_wait_too_long_is_told_at_once() {
    let service = layer(bucket(1, 1)).wait(2 * SECOND).layer(service_fn(done));
    let began = Instant::now();
    let requests: Vec<_> = (0..5).map(|_| tokio::spawn(service.clone().oneshot(request()))).collect();
    let mut answers = Vec::new();
    for request in requests {
        answers.push(request.await.unwrap().unwrap());
    }
    let statuses: Vec<_> = answers.iter().map(|answer| answer.status().as_u16()).collect();
    assert_eq!(statuses, [200, 200, 200, 429, 429]);
    assert_eq!(began.elapsed(), 2 * SECOND);
    let refused = timeout(Duration::ZERO, service.clone().oneshot(request())).await.is_ok();
    assert!(!refused, "a turn two seconds away is waited for");
}

#[tokio::test(start_paused = true)]
async fn one_that_is_dropped_has_cost_nothing() {
    let store = store();
    let layer =
        LimitLayer::in_store(&store, [LayerLimit::new("it", bucket(1, 1))]).unwrap().wait(60 * SECOND);
    let handle = layer.handle(&store, "it").unwrap().clone();
    let service = layer.layer(service_fn(done));
    assert_eq!(status(&service, request()).await, 200);
    for _ in 0..20 {
        assert!(timeout(SECOND / 100, service.clone().oneshot(request())).await.is_err());
    }
    let status = store.peek(&[Charge::new(&handle, ()).cost(0)]).unwrap();
    assert!(status.statuses()[0].reset_after().unwrap() <= SECOND, "{status:?}");
}

#[tokio::test(start_paused = true)]
async fn a_queue_that_is_full_refuses_at_once() {
    let behind = service_fn(|_: Request<()>| async {
        sleep(SECOND).await;
        Ok::<_, Infallible>(Response::new(Frames(0)))
    });
    let service = layer(slots(1, 2)).wait(10 * SECOND).layer(behind);
    let requests: Vec<_> = (0..5).map(|_| tokio::spawn(service.clone().oneshot(request()))).collect();
    let mut statuses = Vec::new();
    for request in requests {
        statuses.push(request.await.unwrap().unwrap().status().as_u16());
    }
    assert_eq!(statuses, [200, 200, 200, 429, 429]);
}

/// A leaky bucket's own delay is its pace, and not a wait that somebody asked for.
#[tokio::test(start_paused = true)]
async fn a_bucket_that_delays_does_so_without_being_told_and_refuses_what_overflows() {
    let limit =
        LeakyBucket::new(Rate::per_second(1).unwrap(), 3).unwrap().with_delay(Delay::After(1)).unwrap();
    let service = layer(limit).layer(service_fn(done));
    let began = Instant::now();
    let requests: Vec<_> = (0..5)
        .map(|_| {
            let service = service.clone();
            tokio::spawn(async move {
                (service.oneshot(request()).await.unwrap().status().as_u16(), began.elapsed())
            })
        })
        .collect();
    let mut answers = Vec::new();
    for request in requests {
        answers.push(request.await.unwrap());
    }
    let expected = [(200, 0), (200, 1), (200, 2), (429, 0), (429, 0)];
    assert_eq!(answers, expected.map(|(status, seconds)| (status, Duration::from_secs(seconds))));
}

#[tokio::test(start_paused = true)]
async fn limits_that_nobody_waits_for_refuse_beside_one_that_holds_slots() {
    let tolls = || {
        [
            LayerLimit::new("window", FixedWindow::new(2, 10 * SECOND).unwrap()),
            LayerLimit::new("bucket", bucket(1, 2)),
            LayerLimit::new("slots", slots(5, 5)),
        ]
    };
    let service = LimitLayer::in_store(&store(), tolls()).unwrap().layer(service_fn(done));
    let began = Instant::now();
    let mut statuses = Vec::new();
    for _ in 0..4 {
        statuses.push(status(&service, request()).await);
    }
    assert_eq!((statuses, began.elapsed()), (vec![200, 200, 429, 429], Duration::ZERO));
}

#[tokio::test(start_paused = true)]
async fn one_that_waited_for_nothing_is_told_what_for() {
    let behind = service_fn(|_: Request<()>| async {
        sleep(10 * SECOND).await;
        Ok::<_, Infallible>(Response::new(Frames(0)))
    });
    let service = layer(slots(1, 2)).wait(SECOND).layer(behind);
    let first = tokio::spawn(service.clone().oneshot(request()));
    sleep(SECOND).await;
    let began = Instant::now();
    let refused = service.clone().oneshot(request()).await.unwrap();
    assert_eq!((refused.status().as_u16(), began.elapsed()), (429, SECOND));
    assert_eq!(refused.headers()["retry-after"], "1");
    let problem = refused.into_body().collect().await.unwrap().to_bytes();
    assert!(String::from_utf8_lossy(&problem).contains(r#""violated-policies":["default"]"#), "{problem:?}");
    first.abort();
}
