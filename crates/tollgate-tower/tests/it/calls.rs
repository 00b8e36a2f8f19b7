//! Calls that go out, and wait their turn.

use crate::stage::{bucket, slots, store};
use std::{
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering::SeqCst},
    },
    time::Duration,
};
use tokio::time::{Instant, sleep, timeout};
use tollgate::{Charge, Concurrency};
use tollgate_tower::{CallError, CallLayer};
use tower::{Layer, Service, ServiceExt, service_fn};

const SECOND: Duration = Duration::from_secs(1);

async fn echo(question: u32) -> Result<u32, Infallible> {
    Ok(question)
}

#[tokio::test(start_paused = true)]
async fn calls_wait_for_as_long_as_it_takes_and_in_order() {
    let service = CallLayer::in_store(&store(), "calls", bucket(1, 1)).unwrap().layer(service_fn(echo));
    let began = Instant::now();
    let calls: Vec<_> = (0..10)
        .map(|turn| {
            let service = service.clone();
            tokio::spawn(async move { (service.oneshot(turn).await.unwrap(), began.elapsed()) })
        })
        .collect();
    for (turn, call) in (0..).zip(calls) {
        assert_eq!(call.await.unwrap(), (turn, turn * SECOND));
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_late_is_not_made() {
    let layer = CallLayer::in_store(&store(), "calls", bucket(1, 1)).unwrap().wait(Duration::ZERO);
    let made = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&made);
    let service = layer.layer(service_fn(move |question| {
        count.fetch_add(1, SeqCst);
        echo(question)
    }));
    assert_eq!(service.clone().oneshot(1).await.unwrap(), 1);
    let error = service.clone().oneshot(2).await.unwrap_err();
    let CallError::Refused(refused) = &error else { panic!("refused, not {error}") };
    assert_eq!(refused.retry_after(), Some(SECOND));
    assert!(error.to_string().starts_with("not called: the turn would come later"), "{error}");
    assert_eq!(made.load(SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn an_error_of_the_call_is_the_calls() {
    let service = CallLayer::in_store(&store(), "calls", bucket(1, 1)).unwrap();
    let service = service.layer(service_fn(|_: u32| async { Err::<(), _>("broken") }));
    let error = service.oneshot(1).await.unwrap_err();
    assert!(matches!(error, CallError::Call("broken")));
    assert_eq!(error.to_string(), "broken");
}

#[tokio::test(start_paused = true)]
async fn every_key_has_its_turns() {
    let layer = CallLayer::in_store(&store(), "calls", bucket(1, 1)).unwrap();
    let layer = layer.wait(Duration::ZERO).by(|question: &u32| question % 2);
    let service = layer.layer(service_fn(echo));
    assert!(service.clone().oneshot(1).await.is_ok());
    assert!(service.clone().oneshot(2).await.is_ok());
    assert!(service.clone().oneshot(3).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn slots_are_held_until_the_call_has_ended_and_come_back_when_it_is_dropped() {
    let store = store();
    let limit = Concurrency::new(2, 3 * SECOND).unwrap().with_queue(1);
    let layer = CallLayer::in_store(&store, "calls", limit).unwrap();
    let handle = layer.handle(&store).unwrap().clone();
    let left = || store.peek(&[Charge::new(&handle, ()).cost(0)]).unwrap().statuses()[0].remaining();
    let service = layer.layer(service_fn(|_: ()| async {
        sleep(10 * SECOND).await;
        Ok::<_, Infallible>(())
    }));
    let calls = [(); 2].map(|()| tokio::spawn(service.clone().oneshot(())));
    sleep(9 * SECOND).await;
    assert_eq!(left(), 0, "renewed while it lasts");
    let late = timeout(SECOND / 2, service.clone().oneshot(())).await;
    assert!(late.is_err(), "waits for a slot");
    for call in calls {
        call.await.unwrap().unwrap();
    }
    assert_eq!(left(), 2);
    assert!(timeout(SECOND, service.clone().oneshot(())).await.is_err());
    assert_eq!(left(), 2, "dropped on its way");
}

#[tokio::test(start_paused = true)]
async fn a_ready_but_unused_clone_holds_nothing() {
    let layer = CallLayer::in_store(&store(), "calls", slots(1, 0)).unwrap();
    let service = layer.layer(service_fn(echo));
    let mut unused: Vec<_> = (0..10).map(|_| service.clone()).collect();
    for clone in &mut unused {
        clone.ready().await.unwrap();
    }
    assert_eq!(service.clone().ready().await.unwrap().call(7).await.unwrap(), 7);
}
