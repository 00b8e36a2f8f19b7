//! A question that was asked, and where its answer is put and awaited: shared by its asker and whoever carries it.

use crate::{
    link::LinkError,
    question::{Question, Told},
};
use std::{
    mem,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    task::{Context, Poll, Waker},
};

pub(crate) struct Asked {
    pub(crate) question: Question,
    state: Mutex<State>,
    /// Whether what is charged stays charged, heard of or not.
    is_kept: AtomicBool,
}

/// An answer on its way to whoever asked.
pub(crate) struct Heard {
    pub(crate) told: Told,
    /// When the server decided.
    pub(crate) decided: u64,
}

pub(crate) type Answer = Result<Heard, LinkError>;

enum State {
    Asked,
    Awaited(Waker),
    Answered(Answer),
    /// The asker has its answer, or is gone.
    Over,
}

impl Asked {
    pub(crate) const fn new(question: Question) -> Self {
        Self { question, state: Mutex::new(State::Asked), is_kept: AtomicBool::new(false) }
    }

    /// Puts the answer there. Comes back to be undone where nobody is there for it any more, nor said that it may stay.
    pub(crate) fn put(&self, answer: Answer) -> Option<Answer> {
        let mut state = self.state();
        if matches!(*state, State::Over) {
            return (!self.is_kept.load(Relaxed)).then_some(answer);
        }
        let was = mem::replace(&mut *state, State::Answered(answer));
        drop(state);
        if let State::Awaited(waker) = was {
            waker.wake();
        }
        None
    }

    /// Tells its asker that there will be no answer.
    pub(crate) fn fail(&self, error: LinkError) {
        let _ = self.put(Err(error));
    }

    pub(crate) fn poll(&self, context: &Context<'_>) -> Poll<Answer> {
        let mut state = self.state();
        match &mut *state {
            State::Answered(_) => {
                let State::Answered(answer) = mem::replace(&mut *state, State::Over) else {
                    return Poll::Pending;
                };
                Poll::Ready(answer)
            }
            State::Awaited(waker) => {
                waker.clone_from(context.waker());
                Poll::Pending
            }
            other => {
                *other = State::Awaited(context.waker().clone());
                Poll::Pending
            }
        }
    }

    /// The asker goes. What was answered and not heard comes back to be undone.
    pub(crate) fn leave(&self) -> Option<Answer> {
        match mem::replace(&mut *self.state(), State::Over) {
            State::Answered(answer) if !self.is_kept.load(Relaxed) => Some(answer),
            _ => None,
        }
    }

    /// Says that what is charged stays charged.
    pub(crate) fn keep(&self) {
        self.is_kept.store(true, Relaxed);
    }

    /// Whether nobody wants it asked any more.
    pub(crate) fn is_forgone(&self) -> bool {
        !self.is_kept.load(Relaxed) && matches!(*self.state(), State::Over)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
