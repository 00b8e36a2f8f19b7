//! Calls under way: how questions get there and their answers back.

use crate::{
    call::Call,
    gather::{FAR, Gatherer},
    link::{Group, LinkError},
    question::Question,
    slot::Asked,
};
use redis::Value;
use std::{
    future::{Future, poll_fn},
    pin::{Pin, pin},
    sync::Arc,
    task::Poll,
    time::{Duration, Instant},
};
use tokio::runtime::{Handle, RuntimeFlavor};

/// So long a call that many wait for is busy-polled before it is slept for: with a server nearby, waking up takes as long as the
/// call.
const BUSY_POLL: Duration = Duration::from_micros(50);

/// On a runtime of one thread, a yield that takes longer than this has let another task run: the scheduler's own part of it takes
/// about one microsecond.
const QUIET_YIELD: Duration = Duration::from_micros(3);

/// How a call is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WaitStrategy {
    /// By the one who asked, and nobody else.
    Single,
    /// Asleep. Where it takes long, another call is made for those who have come meanwhile.
    Sleep,
    /// As [`Sleep`](Self::Sleep), after a busy-poll.
    BusyPoll,
}

/// A call that an asker makes.
pub(crate) type Carried = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A task that makes calls as long as somebody waits. It may end with its runtime: whoever waits for it is told then, and the
/// next may fly.
pub(crate) struct Flight {
    gatherer: Arc<Gatherer>,
    group: Group,
    has_landed: bool,
}

impl Flight {
    pub(crate) fn new(gatherer: &Arc<Gatherer>, group: Group) -> Self {
        Self { gatherer: Arc::clone(gatherer), group, has_landed: false }
    }

    pub(crate) async fn fly(mut self) {
        let (gatherer, group) = (Arc::clone(&self.gatherer), self.group);
        loop {
            if gatherer.is_busy(group) {
                // Those who were just answered ask again.
                tokio::task::yield_now().await;
            }
            let asked = gatherer.board(group);
            if asked.is_empty() {
                break;
            }
            let began = Instant::now();
            let is_polled = gatherer.is_worth_polling(asked.len());
            let strategy = if is_polled { WaitStrategy::BusyPoll } else { WaitStrategy::Sleep };
            answer(&gatherer, group, asked, strategy).await;
            gatherer.landed(group);
            gatherer.took(began.elapsed());
        }
        self.has_landed = true;
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        if !self.has_landed {
            self.gatherer.crash(self.group);
        }
    }
}

/// A call that carries one question, for its asker to make.
pub(crate) struct Carrying {
    gatherer: Arc<Gatherer>,
    group: Group,
}

impl Carrying {
    pub(crate) fn new(gatherer: &Arc<Gatherer>, group: Group) -> Self {
        Self { gatherer: Arc::clone(gatherer), group }
    }

    pub(crate) async fn carry(self, asked: Arc<Asked>) {
        let began = Instant::now();
        answer(&self.gatherer, self.group, vec![asked], WaitStrategy::Single).await;
        self.gatherer.took(began.elapsed());
    }
}

impl Drop for Carrying {
    fn drop(&mut self) {
        self.gatherer.carried(self.group);
    }
}

/// Makes a call of these, and hands out the answers.
async fn answer(gatherer: &Arc<Gatherer>, group: Group, asked: Vec<Arc<Asked>>, strategy: WaitStrategy) {
    gatherer.know_the_time(group, &asked).await;
    let asked = Aboard(asked);
    let questions: Vec<&Question> = asked.0.iter().map(|asked| &asked.question).collect();
    let call = Call::new(&questions, gatherer.passed_in(), |edition| gatherer.bounds(edition));
    let told = match make(gatherer, group, &call, strategy).await {
        Ok(value) => call.read(value, &questions).map_err(|_| {
            gatherer.link().distrust(group);
            LinkError::Unanswered { why: "the answer is not one of the script's".into() }
        }),
        Err(error) => Err(error),
    };
    drop(questions);
    match told {
        Ok((now, told)) => {
            gatherer.hear(now);
            for (asked, told) in asked.alight().iter().zip(told) {
                gatherer.deliver(group, asked, told, now);
            }
        }
        Err(error) => asked.alight().iter().for_each(|asked| asked.fail(error.clone())),
    }
}

/// Makes a call.
async fn make(
    gatherer: &Arc<Gatherer>,
    group: Group,
    call: &Call,
    strategy: WaitStrategy,
) -> Result<Value, LinkError> {
    let mut call = pin!(gatherer.link().call(group, &call.keys, &call.argument));
    if strategy == WaitStrategy::Single {
        return call.await;
    }
    if strategy == WaitStrategy::BusyPoll
        && let Some(answer) = busy_poll(call.as_mut()).await
    {
        return answer;
    }
    match tokio::time::timeout(FAR, &mut call).await {
        Ok(answer) => answer,
        Err(_) => {
            gatherer.took(FAR * 2);
            gatherer.set_out(group);
            call.await
        }
    }
}

/// Polls a call again and again, for a short while, and yields each time: tasks that are ready go first. Stops at once on a
/// runtime of one thread where another task has run meanwhile: that one has better things to do, and looks for the answer between
/// them.
async fn busy_poll<C: Future>(mut call: Pin<&mut C>) -> Option<C::Output> {
    let has_one_thread = Handle::current().runtime_flavor() == RuntimeFlavor::CurrentThread;
    let began = Instant::now();
    loop {
        let state = poll_fn(|context| Poll::Ready(call.as_mut().poll(context))).await;
        if let Poll::Ready(answer) = state {
            return Some(answer);
        }
        let yielded = Instant::now();
        if yielded - began >= BUSY_POLL {
            return None;
        }
        tokio::task::yield_now().await;
        if has_one_thread && yielded.elapsed() > QUIET_YIELD {
            return None;
        }
    }
}

/// Questions in a call that may end with its runtime: then their askers are told.
struct Aboard(Vec<Arc<Asked>>);

impl Aboard {
    fn alight(mut self) -> Vec<Arc<Asked>> {
        std::mem::take(&mut self.0)
    }
}

impl Drop for Aboard {
    fn drop(&mut self) {
        self.0.drain(..).for_each(|asked| asked.fail(LinkError::shutting_down()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{future::pending, hint::spin_loop};

    #[test]
    fn a_runtime_of_one_thread_with_other_work_is_not_kept_busy() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        runtime.block_on(async {
            tokio::spawn(async {
                loop {
                    let begun = Instant::now();
                    while begun.elapsed() < 4 * QUIET_YIELD {
                        spin_loop();
                    }
                    tokio::task::yield_now().await;
                }
            });
            let mut polls = 0;
            let mut never = pin!(pending::<()>());
            let call = poll_fn(|context| {
                polls += 1;
                never.as_mut().poll(context)
            });
            assert_eq!(busy_poll(pin!(call)).await, None);
            assert_eq!(polls, 1, "the other task was ready");
        });
    }
}
