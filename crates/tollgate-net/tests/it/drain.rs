//! The way out, on a clock that is moved.

use rustix::process::{Signal, getpid, kill_process};
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout};
use tollgate_net::{Drain, DrainTimes, Drained, Phase, stop_on_signals};

const PAUSE: Duration = Duration::from_secs(5);
const DEADLINE: Duration = Duration::from_secs(25);

fn drain() -> Drain {
    Drain::new(DrainTimes { pause: PAUSE, deadline: DEADLINE })
}

/// Runs it aside, and tells how it ended and how long that took.
async fn run(drain: &Drain) -> (Drained, Duration) {
    let begun = Instant::now();
    let drained = drain.run().await;
    (drained, begun.elapsed())
}

#[tokio::test(start_paused = true)]
async fn readiness_flips_before_the_listener_closes() {
    let drain = drain();
    let listener = drain.guard();
    let seen = async {
        assert_eq!(drain.phase(), Phase::Serving);
        drain.begin();
        drain.reached(Phase::Leaving).await;
        let not_ready = Instant::now();
        assert!(!listener.is_closing());
        listener.closing().await;
        assert_eq!(not_ready.elapsed(), PAUSE);
        assert_eq!(drain.phase(), Phase::Closing);
        drop(listener);
    };
    let ((drained, took), ()) = tokio::join!(run(&drain), seen);
    assert_eq!((drained, took, drain.phase()), (Drained::Empty, PAUSE, Phase::Over));
}

#[tokio::test(start_paused = true)]
async fn requests_in_flight_finish_and_nobody_waits_longer_than_they_do() {
    let drain = drain();
    let request = drain.guard();
    drain.begin();
    let answered = async {
        request.closing().await;
        sleep(Duration::from_secs(7)).await;
        drop(request);
    };
    let told = timeout(Duration::from_secs(3600), drain.drained());
    let ((drained, took), (), told) = tokio::join!(run(&drain), answered, told);
    assert!(told.is_ok(), "who waits for the last is told");
    assert_eq!((drained, took), (Drained::Empty, PAUSE + Duration::from_secs(7)));
}

#[tokio::test(start_paused = true)]
async fn who_does_not_finish_is_cut_off_at_the_deadline() {
    let drain = drain();
    let (stuck, finished) = (drain.guard(), drain.guard());
    let copy = stuck.clone();
    assert_eq!(drain.guards(), 3);
    drop(finished);
    drain.begin();
    let ((drained, took), ()) = tokio::join!(run(&drain), stuck.over());
    assert_eq!((drained, took), (Drained::Left(2), PAUSE + DEADLINE));
    drop((stuck, copy));
    assert_eq!(drain.guards(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_guard_that_is_gone_before_the_listener_closes_does_not_end_it_early() {
    let drain = drain();
    drop(drain.guard());
    assert!(timeout(DEADLINE, drain.drained()).await.is_err(), "nobody asked to leave");
    drain.begin();
    let listener = drain.guard();
    let come_and_gone = async {
        for _ in 0..10 {
            drop(drain.guard());
            sleep(PAUSE / 20).await;
        }
        listener.closing().await;
        drop(listener);
    };
    let ((drained, took), ()) = tokio::join!(run(&drain), come_and_gone);
    assert_eq!((drained, took), (Drained::Empty, PAUSE));
}

#[tokio::test(start_paused = true)]
async fn asked_twice_it_ends_at_once() {
    for asked_again_after in [Duration::from_secs(1), PAUSE + Duration::from_secs(1)] {
        let drain = drain();
        let stuck = drain.guard();
        drain.begin();
        let again = async {
            sleep(asked_again_after).await;
            drain.begin();
        };
        let ((drained, took), ()) = tokio::join!(run(&drain), again);
        assert_eq!((drained, took), (Drained::Left(1), asked_again_after));
        drop(stuck);
    }
}

#[tokio::test]
async fn sigterm_begins_and_sigint_ends_it() {
    let hour = Duration::from_secs(3600);
    let drain = Drain::new(DrainTimes { pause: hour, deadline: hour });
    stop_on_signals(&drain).expect("signals can be caught");
    let signals = async {
        kill_process(getpid(), Signal::TERM).expect("we may signal ourselves");
        drain.reached(Phase::Leaving).await;
        kill_process(getpid(), Signal::INT).expect("we may signal ourselves");
    };
    let both = async { tokio::join!(drain.run(), signals) };
    let (drained, ()) = timeout(Duration::from_secs(30), both).await.expect("signals arrive");
    assert_eq!(drained, Drained::Empty);
}
