//! What `wait` and `enter` give: to be awaited by a task, or blocked on by a thread.

use super::{
    gate::{At, WaitAt},
    order::Order,
    passed::Passed,
    permit::Permit,
    reservation::Reservation,
    waiter_handle::{Next, WaiterHandle},
};
use crate::{
    clock::{Sleep, Timer, unparker},
    decision::Status,
    few::Few,
    store::StoreError,
    time::{Time, nanos},
};
use std::{
    future::Future,
    marker::PhantomData,
    pin::Pin,
    task::{Context, Poll, Waker},
    thread,
    time::Duration,
};

/// A turn that is waited for: await it, or [block](Self::blocking) on it.
///
/// Nothing happens before the first poll, which takes its place in the queue. Charges are made when it is released. Dropped
/// before that it leaves the queue, those behind it move up, and the limit is as if it had never come. Once released, its
/// turn is used up, whether it is polled or not.
///
/// ```
/// use std::time::Duration;
/// use tollgate::{Limiter, Rate, TokenBucket};
///
/// let limiter = Limiter::new(TokenBucket::new(Rate::per_minute(1)?, 3)?);
/// for _ in 0..3 {
///     limiter.wait().blocking()?; // a task would write: limiter.wait().await?
/// }
/// let refused = limiter.wait().cost(1).up_to(Duration::from_secs(1)).blocking();
/// assert!(refused.is_err(), "the next turn is a minute away");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "nothing is waited for until it is awaited, or told to block"]
pub struct Wait<'a, T: WaitAt, G = Passed> {
    turn: Result<WaiterHandle<'a, T>, Option<StoreError>>,
    sleep: Option<(Time, Sleep)>,
    granted: PhantomData<fn() -> G>,
}

/// What somebody gets whose turn has come.
pub trait Granted<'a>: Sized {
    /// From a turn that is due.
    fn from_turn<T: WaitAt + 'a>(turn: Reservation<'a, T>, waited: Duration) -> Self;
    /// From one charge that went through and holds no slots.
    fn from_status<T: WaitAt + 'a>(at: &At<'a, T>, status: Status, waited: Duration) -> Self;
}

impl<'a, T: WaitAt, G> Wait<'a, T, G> {
    pub(crate) const fn new(at: At<'a, T>, order: Order) -> Self {
        Self { turn: Ok(WaiterHandle::new(at, order)), sleep: None, granted: PhantomData }
    }

    /// A wait that ends before it begins, where there is no order.
    pub(crate) fn of(at: At<'a, T>, order: Result<Order, StoreError>) -> Self {
        match order {
            Ok(order) => Self::new(at, order),
            Err(error) => Self { turn: Err(Some(error)), sleep: None, granted: PhantomData },
        }
    }

    /// Waits this long at most. Where the turn would come later it is refused on arrival, judged by the queue ahead. Without
    /// this it waits for as long as it takes.
    pub const fn up_to(mut self, up_to: Duration) -> Self {
        if let Ok(turn) = &mut self.turn {
            turn.set_up_to(nanos(up_to));
        }
        self
    }

    pub(crate) fn set_cost(mut self, cost: u32) -> Self {
        if let Ok(turn) = &mut self.turn {
            turn.set_cost(cost);
        }
        self
    }
}

impl<'a, T: WaitAt + 'a, G: Granted<'a>> Wait<'a, T, G> {
    /// Waits on this thread.
    ///
    /// # Errors
    /// Where the turn is refused.
    pub fn blocking(mut self) -> Result<G, T::Error> {
        if let Some(granted) = self.try_at_once() {
            return Ok(granted);
        }
        self.block_queued()
    }

    /// By itself, so that a turn at once does not prepare for it.
    #[inline(never)]
    fn block_queued(mut self) -> Result<G, T::Error> {
        let waker = unparker();
        loop {
            match self.advance(&waker) {
                Ok(result) => return result,
                Err(until) => match &self.turn {
                    Ok(turn) => turn.gate().park(until),
                    Err(_) => thread::park(),
                },
            }
        }
    }

    /// By the shortest way, if there is room and nobody waits. What it gives is large: called, it would be moved twice.
    #[inline(always)]
    fn try_at_once(&mut self) -> Option<G> {
        let Ok(turn) = &mut self.turn else { return None };
        let status = turn.try_at_once()?;
        Some(G::from_status(turn.at(), status, Duration::ZERO))
    }

    /// The result; or until when to sleep.
    fn advance(&mut self, waker: &Waker) -> Result<Result<G, T::Error>, Option<Time>> {
        let turn = match &mut self.turn {
            Ok(turn) => turn,
            Err(error) => {
                let error = error.take().unwrap_or(StoreError::UnknownLimit);
                return Ok(Err(super::Ending::Store(error).into()));
            }
        };
        match turn.advance(waker) {
            Next::Pass(status, waited) => Ok(Ok(G::from_status(turn.at(), status, waited))),
            Next::Go(turn, waited) => Ok(Ok(G::from_turn(turn, waited))),
            Next::Stop(ending) => Ok(Err(ending.into())),
            Next::Sleep(until) => Err(until),
        }
    }
}

impl<'a, T, G> Future for Wait<'a, T, G>
where
    T: WaitAt<Clock: Timer> + 'a,
    G: Granted<'a>,
{
    type Output = Result<G, T::Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if let Some(granted) = self.try_at_once() {
            return Poll::Ready(Ok(granted));
        }
        self.poll_queued(context)
    }
}

impl<'a, T, G> Wait<'a, T, G>
where
    T: WaitAt<Clock: Timer> + 'a,
    G: Granted<'a>,
{
    /// By itself, so that a turn at once does not prepare for it.
    #[inline(never)]
    fn poll_queued(&mut self, context: &mut Context<'_>) -> Poll<Result<G, T::Error>> {
        loop {
            let until = match self.advance(context.waker()) {
                Ok(result) => return Poll::Ready(result),
                Err(Some(until)) => until,
                Err(None) => return Poll::Pending,
            };
            let Ok(turn) = &self.turn else { return Poll::Pending };
            if self.sleep.as_ref().is_none_or(|(time, _)| *time != until) {
                self.sleep = Some((until, turn.at().timer().sleep_until(until)));
            }
            let Some((_, sleep)) = &mut self.sleep else { return Poll::Pending };
            if sleep.as_mut().poll(context).is_pending() {
                return Poll::Pending;
            }
            self.sleep = None;
        }
    }
}

impl<'a> Granted<'a> for Passed {
    fn from_turn<T: WaitAt + 'a>(turn: Reservation<'a, T>, waited: Duration) -> Self {
        turn.pass(waited)
    }

    fn from_status<T: WaitAt + 'a>(_: &At<'a, T>, status: Status, waited: Duration) -> Self {
        Self::one(status, waited)
    }
}

impl<'a> Granted<'a> for Permit<'a> {
    fn from_turn<T: WaitAt + 'a>(turn: Reservation<'a, T>, waited: Duration) -> Self {
        turn.enter(waited)
    }

    fn from_status<T: WaitAt + 'a>(at: &At<'a, T>, status: Status, waited: Duration) -> Self {
        Self::new(at.clone(), Few::Many(Vec::new()), Passed::one(status, waited))
    }
}

impl<T: WaitAt, G> std::fmt::Debug for Wait<'_, T, G> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Wait").finish_non_exhaustive()
    }
}
