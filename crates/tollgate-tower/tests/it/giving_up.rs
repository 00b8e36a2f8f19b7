//! Cancelled requests and calls leave no gap in the queue: the limit's bound holds over the times at which the others are made,
//! and its rate is used.
//!
//! 200 a second for 100 units a second and a burst of one, all of which time out after half a second. Time is tokio's, paused: its
//! grain is a millisecond, which is the only excess over the bound that is accepted.

use crate::stage::{bucket, done, request, slots, store};
use http::Request;
use std::{
    future::Future,
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::time::{Instant, sleep_until, timeout};
use tollgate_tower::{CallLayer, LayerLimit, LimitLayer};
use tower::{Layer, ServiceExt, service_fn};

const RATE: f64 = 100.0;
const BURST: f64 = 1.0;
const BETWEEN_ARRIVALS: Duration = Duration::from_millis(5);
const PATIENCE: Duration = Duration::from_millis(500);
const ARRIVALS: u32 = 2_000;
const GRAIN: Duration = Duration::from_millis(1);
/// The queue is filling until then.
const FILLING: Duration = Duration::from_secs(1);

/// The times at which the inner service was called.
#[derive(Clone)]
struct Log(Arc<Mutex<Vec<Duration>>>, Instant);

impl Log {
    fn new() -> Self {
        Self(Arc::default(), Instant::now())
    }

    fn note(&self) {
        self.0.lock().unwrap().push(self.1.elapsed());
    }
}

/// Runs the load: each request arrives at its time and is dropped after its timeout.
async fn arrive<F: Future<Output: Send> + Send + 'static>(log: &Log, ask: impl Fn() -> F) {
    let mut asked = Vec::new();
    for arrival in 0..ARRIVALS {
        sleep_until(log.1 + BETWEEN_ARRIVALS * arrival).await;
        let asking = timeout(PATIENCE, ask());
        // A response that is kept would hold its slot.
        asked.push(tokio::spawn(async { drop(asking.await) }));
    }
    for asked in asked {
        asked.await.unwrap();
    }
}

/// Checks burst + rate * t over every window, up to the timer's grain, and that 95 % of the rate is used.
fn assert_bound_and_share(log: &Log, what: &str) {
    let went = log.0.lock().unwrap();
    let units = |time: Duration| RATE * time.as_secs_f64();
    let (mut worst, mut within) = (0.0, Duration::ZERO);
    for (first, from) in went.iter().enumerate() {
        for (count, to) in (1_u32..).zip(&went[first..]) {
            let excess = f64::from(count) - BURST - units(*to - *from);
            if excess > worst {
                (worst, within) = (excess, *to - *from);
            }
        }
    }
    let end = BETWEEN_ARRIVALS * ARRIVALS;
    let used = went.iter().filter(|at| (FILLING..end).contains(at)).count();
    let share = used as f64 / units(end - FILLING);
    assert!(
        worst <= units(GRAIN) + 1e-6,
        "{what}: {worst:.2} over the bound within {within:?}, {:.1} % of the rate used",
        share * 100.0
    );
    assert!(share >= 0.95, "{what}: {:.1} % of the rate used", share * 100.0);
}

#[tokio::test(start_paused = true)]
async fn cancelled_requests_leave_no_gap() {
    let tolls = [
        vec![LayerLimit::new("bucket", bucket(100, 1))],
        vec![LayerLimit::new("slots", slots(500, 500)), LayerLimit::new("bucket", bucket(100, 1))],
    ];
    for tolls in tolls {
        let what = format!("{} limits", tolls.len());
        let layer = LimitLayer::in_store(&store(), tolls).unwrap().wait(Duration::from_secs(10));
        let log = Log::new();
        let behind = log.clone();
        let service = layer.layer(service_fn(move |request: Request<()>| {
            behind.note();
            done(request)
        }));
        arrive(&log, || service.clone().oneshot(request())).await;
        assert_bound_and_share(&log, &what);
    }
}

#[tokio::test(start_paused = true)]
async fn cancelled_calls_leave_no_gap() {
    let layer = CallLayer::in_store(&store(), "calls", bucket(100, 1)).unwrap();
    let log = Log::new();
    let behind = log.clone();
    let service = layer.layer(service_fn(move |question: u32| {
        behind.note();
        async move { Ok::<_, std::convert::Infallible>(question) }
    }));
    arrive(&log, || service.clone().oneshot(1)).await;
    assert_bound_and_share(&log, "calls");
}
