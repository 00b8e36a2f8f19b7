//! One state, whatever is cloned.

use crate::stage::{bucket, done, layer, request, slots, status, with_header};
use std::{
    future::{Future, poll_fn},
    pin::pin,
    task::Poll,
    time::Duration,
};
use tower::{Layer, Service, ServiceBuilder, ServiceExt, limit::ConcurrencyLimitLayer, service_fn};

/// A layer that made its state anew for every clone let 1500 of 1500 requests through at five a second.
#[tokio::test(start_paused = true)]
async fn state_per_clone_of_the_layer() {
    let layer = layer(bucket(5, 5));
    let service = layer.layer(service_fn(done));
    let mut passed = 0;
    for turn in 0..1500 {
        let passes = match turn % 3 {
            0 => status(&service, request()).await,
            1 => status(&layer.layer(service_fn(done)), request()).await,
            _ => status(&layer.clone().layer(service_fn(done)), request()).await,
        };
        passed += u32::from(passes == 200);
    }
    assert_eq!(passed, 5);
}

#[tokio::test(start_paused = true)]
async fn clones_with_other_terms_share_the_limit() {
    let layer = layer(bucket(1, 1));
    let by_key = layer.clone().by_header("x-api-key");
    let service = by_key.layer(service_fn(done));
    assert_eq!(status(&service, with_header("x-api-key", "a")).await, 200);
    assert_eq!(status(&service, with_header("x-api-key", "b")).await, 200);
    let same = layer.by_header("x-api-key").wait(Duration::ZERO).layer(service_fn(done));
    assert_eq!(status(&same, with_header("x-api-key", "a")).await, 429);
}

/// A clone that was ready and never used held the permit that it had taken for that.
#[tokio::test(start_paused = true)]
async fn a_ready_but_unused_clone_holds_nothing() {
    let service = layer(slots(1, 0)).layer(service_fn(done));
    let mut unused: Vec<_> = (0..10).map(|_| service.clone()).collect();
    for clone in &mut unused {
        clone.ready().await.unwrap();
    }
    assert_eq!(status(&service, request()).await, 200);
}

/// Who waits here for a turn does not hold up those whom the service behind could serve meanwhile.
#[tokio::test(start_paused = true)]
async fn whoever_waits_holds_no_readiness_of_the_service_behind() {
    let behind = ServiceBuilder::new().layer(ConcurrencyLimitLayer::new(1)).service(service_fn(done));
    let service = layer(bucket(1, 1)).wait(Duration::from_secs(10)).layer(behind.clone());
    assert_eq!(status(&service, request()).await, 200);
    let mut waiting = pin!(service.clone().oneshot(request()));
    poll_fn(|context| {
        assert!(waiting.as_mut().poll(context).is_pending());
        Poll::Ready(())
    })
    .await;
    let mut other = behind;
    let its_turn = tokio::time::timeout(Duration::from_millis(1), other.ready()).await;
    its_turn.expect("the service behind is free").unwrap().call(request()).await.unwrap();
    drop(other);
    assert_eq!(waiting.await.unwrap().status(), 200);
}
