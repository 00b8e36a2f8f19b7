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

/// So long a call that many wait for is watched before it is slept for: with a server nearby, waking up takes as long as the call.
const WATCHED: Duration = Duration::from_micros(50);

/// How a call is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Manner {
    /// By the one who asked, and nobody else.
    Alone,
    /// Where it takes long, whoever waits for it sets out beside it.
    Slept,
    /// As that, and with open eyes at first.
    Watched,
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
            let is_watched = gatherer.is_worth_watching(asked.len());
            let manner = if is_watched { Manner::Watched } else { Manner::Slept };
            answer(&gatherer, group, asked, manner).await;
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
        answer(&self.gatherer, self.group, vec![asked], Manner::Alone).await;
        self.gatherer.took(began.elapsed());
    }
}

impl Drop for Carrying {
    fn drop(&mut self) {
        self.gatherer.carried(self.group);
    }
}

/// Makes a call of these, and hands out the answers.
async fn answer(gatherer: &Arc<Gatherer>, group: Group, asked: Vec<Arc<Asked>>, manner: Manner) {
    gatherer.know_the_time(group, &asked).await;
    let asked = Aboard(asked);
    let questions: Vec<&Question> = asked.0.iter().map(|asked| &asked.question).collect();
    let call = Call::new(&questions, gatherer.passed_in(), |edition| gatherer.bounds(edition));
    let told = match make(gatherer, group, &call, manner).await {
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
    manner: Manner,
) -> Result<Value, LinkError> {
    let mut call = pin!(gatherer.link().call(group, &call.keys, &call.argument));
    if manner == Manner::Alone {
        return call.await;
    }
    if manner == Manner::Watched
        && let Some(answer) = watch(call.as_mut()).await
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

/// Looks for an answer again and again, for a short while. Whoever else has something to do goes first each time.
async fn watch<C: Future>(mut call: Pin<&mut C>) -> Option<C::Output> {
    let began = Instant::now();
    loop {
        let looked = poll_fn(|context| Poll::Ready(call.as_mut().poll(context))).await;
        if let Poll::Ready(answer) = looked {
            return Some(answer);
        }
        if began.elapsed() >= WATCHED {
            return None;
        }
        tokio::task::yield_now().await;
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
