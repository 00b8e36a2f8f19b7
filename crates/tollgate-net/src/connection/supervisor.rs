//! Runs a connection: ends it when it is idle or too slow, and lets it finish when the drain closes.
//!
//! One timer a connection. Between two looks a poll of the connection costs a few loads.

use super::{ConnectionActivity, activity::Verdict};
use std::{
    future::poll_fn,
    pin::{Pin, pin},
    task::{Context, Poll},
    time::Duration,
};
use tokio::{
    task::unconstrained,
    time::{Instant, Sleep, sleep_until},
};

/// How long a connection that was told to finish may take for it when nothing is under way.
const GOODBYE: Duration = Duration::from_secs(1);

/// How long a connection may take for what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectionTimeouts {
    /// From the first byte of a head to its last.
    pub head: Duration,
    /// Without a request under way.
    pub idle: Duration,
    /// Without taking a byte that is to be written.
    pub write: Duration,
}

impl ConnectionTimeouts {
    /// So long for a head, and so long for silence and for a write.
    #[must_use]
    pub const fn new(head: Duration, idle: Duration) -> Self {
        Self { head, idle, write: idle }
    }
}

/// Runs `connection` until it ends, is cut off because it is too slow, or was idle for too long. When the drain closes and
/// when it is idle, `finish` is called once: the connection is to end by itself when nothing is under way. When the drain
/// closes, a connection is idle a second after its last request: a client that was just answered may have sent its next
/// one already, which would be lost.
///
/// To be awaited by the connection's own task, and by nothing that could poll it with another waker.
pub async fn supervise<C: Future>(
    mut connection: Pin<&mut C>,
    finish: impl Fn(Pin<&mut C>),
    activity: &ConnectionActivity,
    timeouts: &ConnectionTimeouts,
) {
    let mut closing = pin!(activity.guard().closing());
    let mut supervisor = Supervisor {
        activity,
        timeouts,
        timer: Box::pin(sleep_until(Instant::now())),
        is_registered: false,
        finish_by: None,
    };
    poll_fn(|context| {
        loop {
            if connection.as_mut().poll(context).is_ready() {
                return Poll::Ready(());
            }
            match supervisor.poll(closing.as_mut(), context) {
                Step::Wait => return Poll::Pending,
                Step::Finish => finish(connection.as_mut()),
                Step::Cut => return Poll::Ready(()),
            }
        }
    })
    .await;
}

struct Supervisor<'a> {
    activity: &'a ConnectionActivity,
    timeouts: &'a ConnectionTimeouts,
    timer: Pin<Box<Sleep>>,
    /// The timer and the drain know whom to wake.
    is_registered: bool,
    /// The connection was told to finish, and is cut off then if nothing is under way.
    finish_by: Option<Instant>,
}

enum Step {
    Wait,
    Finish,
    Cut,
}

impl Supervisor<'_> {
    /// What to do now. A few loads unless the timer fired, a time was marked, or the drain has begun.
    fn poll(&mut self, closing: Pin<&mut impl Future<Output = ()>>, context: &mut Context<'_>) -> Step {
        let is_closing = self.is_closing(closing, context) && self.finish_by.is_none();
        if is_closing && self.activity.is_busy() {
            // The response under way is marked as the last one.
            return self.finish();
        }
        // A timer that was never polled does not fire.
        let is_due =
            self.timer.is_elapsed() || self.activity.takes_look() || is_closing || !self.is_registered;
        self.is_registered = true;
        if !is_due {
            return Step::Wait;
        }
        loop {
            let next = match (self.activity.look(self.timeouts), self.finish_by) {
                (Verdict::LookAt(next), _) => next,
                (Verdict::Idle, None) => return self.finish(),
                (Verdict::Idle, Some(by)) if Instant::now() < by => by,
                _ => return Step::Cut,
            };
            // Told to finish, it is looked at soon: a peer that never takes notice must not hold up the drain.
            let next = if self.finish_by.is_some() { next.min(Instant::now() + GOODBYE) } else { next };
            self.timer.as_mut().reset(next);
            // Unconstrained: a task that has used up its turn would be told to wait without being registered.
            if Pin::new(&mut unconstrained(self.timer.as_mut())).poll(context).is_pending() {
                return Step::Wait;
            }
        }
    }

    /// Whether the drain closes. Registered with it once, and again from the moment it has begun.
    fn is_closing(&self, closing: Pin<&mut impl Future<Output = ()>>, context: &mut Context<'_>) -> bool {
        let guard = self.activity.guard();
        if guard.is_closing() {
            return true;
        }
        if self.is_registered && !guard.is_leaving() {
            return false;
        }
        Pin::new(&mut unconstrained(closing)).poll(context).is_ready()
    }

    fn finish(&mut self) -> Step {
        self.finish_by = Some(Instant::now() + GOODBYE);
        // So that the timer is set anew.
        self.is_registered = false;
        Step::Finish
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ConnectionGuard, Drain, DrainTimes, connection::LAST_REQUEST, worker_pool::ConnectionSlot};
    use std::{cell::Cell, future::pending};
    use tokio::time::{sleep, timeout};

    const HEAD: Duration = Duration::from_secs(10);
    const IDLE: Duration = Duration::from_secs(75);
    const WRITE: Duration = Duration::from_secs(60);

    fn activity() -> (ConnectionActivity, Drain) {
        let drain = Drain::new(DrainTimes { pause: Duration::from_secs(5), deadline: 10 * IDLE });
        let guard = ConnectionGuard::new(ConnectionSlot::lone(), drain.guard());
        (ConnectionActivity::new(guard), drain)
    }

    fn timeouts() -> ConnectionTimeouts {
        ConnectionTimeouts { write: WRITE, ..ConnectionTimeouts::new(HEAD, IDLE) }
    }

    /// How long a connection lasts that does this, and how long until it is told to finish, if it is.
    async fn lasts(
        activity: &ConnectionActivity,
        connection: impl Future<Output = ()>,
    ) -> (Duration, Option<Duration>) {
        let (begun, finished) = (Instant::now(), Cell::new(None));
        let finish = |_: Pin<&mut _>| finished.set(Some(begun.elapsed()));
        supervise(pin!(connection), finish, activity, &timeouts()).await;
        (begun.elapsed(), finished.get())
    }

    fn is_about(time: Duration, expected: Duration) -> bool {
        (expected..expected + Duration::from_millis(100)).contains(&time)
    }

    #[tokio::test(start_paused = true)]
    async fn silence_lasts_longer_than_a_head_and_a_request_as_long_as_it_takes() {
        let (silent, _drain) = activity();
        let (took, finished) = lasts(&silent, pending()).await;
        assert!(finished.is_some_and(|at| is_about(at, IDLE)) && is_about(took, IDLE + GOODBYE), "{took:?}");

        let (slow, _drain) = activity();
        slow.begin_head();
        let (took, finished) = lasts(&slow, pending()).await;
        assert!(is_about(took, HEAD) && finished.is_none(), "{took:?}");

        let (answering, _drain) = activity();
        answering.begin_head();
        answering.end_head();
        answering.begin_request();
        assert!(
            timeout(10 * IDLE, lasts(&answering, pending())).await.is_err(),
            "cut off while it is answered"
        );
        answering.end_request();
        let (took, _) = lasts(&answering, pending()).await;
        assert!(is_about(took, IDLE + GOODBYE), "{took:?}");
    }

    /// A letter every second does not make a head.
    #[tokio::test(start_paused = true)]
    async fn who_drips_a_head_is_not_waited_for() {
        let (activity, _drain) = activity();
        let dripping = async {
            loop {
                activity.begin_head();
                sleep(Duration::from_secs(1)).await;
            }
        };
        let (took, _) = lasts(&activity, dripping).await;
        assert!(is_about(took, HEAD), "{took:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn who_moves_bytes_is_not_idle_and_no_head_is_awaited() {
        let (activity, _drain) = activity();
        let talking = async {
            for _ in 0..10 {
                activity.bytes_moved();
                sleep(IDLE / 2).await;
            }
            pending::<()>().await;
        };
        let (_, finished) = lasts(&activity, talking).await;
        // The last byte was moved in the second half of an idle time, and it is looked at once in that time.
        assert!(finished.is_some_and(|at| (5 * IDLE..=7 * IDLE).contains(&at)), "{finished:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn work_is_not_idle_and_a_client_that_takes_nothing_is_cut_off() {
        let (working, _drain) = activity();
        working.begin_work();
        assert!(timeout(10 * IDLE, lasts(&working, pending())).await.is_err(), "cut off while it works");
        working.end_work();
        let (_, finished) = lasts(&working, pending()).await;
        assert!(finished.is_some_and(|at| is_about(at, IDLE)), "{finished:?}");

        let (deaf, _drain) = activity();
        deaf.begin_request();
        deaf.mark_write(&Poll::<()>::Pending);
        let (took, finished) = lasts(&deaf, pending()).await;
        assert!(is_about(took, WRITE) && finished.is_none(), "{took:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn when_the_drain_closes_a_last_request_has_a_second() {
        let closes = Duration::from_secs(5);
        let (resting, drain) = activity();
        drain.begin();
        let (_, (took, finished)) = tokio::join!(timeout(2 * HEAD, drain.run()), lasts(&resting, pending()));
        assert!(finished.is_some_and(|at| is_about(at, closes)), "{finished:?}");
        assert!(is_about(took, closes + GOODBYE), "{took:?}");

        let (recent, drain) = activity();
        recent.begin_request();
        drain.begin();
        let answering = async {
            sleep(closes - LAST_REQUEST / 2).await;
            recent.end_request();
            pending::<()>().await;
        };
        let (_, (_, finished)) = tokio::join!(timeout(2 * HEAD, drain.run()), lasts(&recent, answering));
        assert!(finished.is_some_and(|at| is_about(at, closes + LAST_REQUEST / 2)), "{finished:?}");

        let (busy, drain) = activity();
        busy.begin_request();
        drain.begin();
        let answering = async {
            sleep(HEAD).await;
            busy.end_request();
        };
        let (_, (took, finished)) = tokio::join!(timeout(2 * HEAD, drain.run()), lasts(&busy, answering));
        assert!(finished.is_some_and(|at| is_about(at, closes)), "{finished:?}");
        assert!(is_about(took, HEAD), "{took:?}");
    }
}
