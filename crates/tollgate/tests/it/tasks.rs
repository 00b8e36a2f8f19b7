//! Tasks on a clock that is moved by hand, polled only when woken, and every poll counted.

use std::{
    future::Future,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    task::{Context, Poll, Wake, Waker},
    time::Duration,
};
use tollgate::{Clock, ManualClock, Time};

/// A few tasks that give a `T` each.
pub(crate) struct Tasks<'a, T> {
    clock: ManualClock,
    tasks: Vec<Task<'a, T>>,
    /// Which task finished when, in the order they did.
    pub(crate) done: Vec<(usize, Time, T)>,
    pub(crate) polls: usize,
    /// Polls the newest task first.
    pub(crate) newest_first: bool,
}

struct Task<'a, T> {
    future: Option<Pin<Box<dyn Future<Output = T> + 'a>>>,
    woken: Arc<Woken>,
    is_stopped: bool,
}

struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, SeqCst);
    }
}

impl<'a, T> Tasks<'a, T> {
    pub(crate) fn on(clock: &ManualClock) -> Self {
        Self { clock: clock.clone(), tasks: Vec::new(), done: Vec::new(), polls: 0, newest_first: false }
    }

    /// Starts a task and runs it as far as it goes; its number.
    pub(crate) fn start(&mut self, future: impl Future<Output = T> + 'a) -> usize {
        let task = self.start_alone(future);
        self.run();
        task
    }

    /// Starts a task and polls it once, and no other task.
    pub(crate) fn start_alone(&mut self, future: impl Future<Output = T> + 'a) -> usize {
        let woken = Arc::new(Woken(AtomicBool::new(true)));
        self.tasks.push(Task { future: Some(Box::pin(future)), woken, is_stopped: false });
        let task = self.tasks.len() - 1;
        self.poll(task);
        task
    }

    /// Starts many, each as the one before it has got as far as it goes.
    pub(crate) fn start_all<F: Future<Output = T> + 'a>(&mut self, futures: impl Iterator<Item = F>) {
        for future in futures {
            let woken = Arc::new(Woken(AtomicBool::new(true)));
            self.tasks.push(Task { future: Some(Box::pin(future)), woken, is_stopped: false });
        }
        self.run();
    }

    /// Drops a task wherever it is.
    pub(crate) fn abort(&mut self, task: usize) {
        self.abort_alone(task);
        self.run();
    }

    /// The same without polling tasks that this wakes.
    pub(crate) fn abort_alone(&mut self, task: usize) {
        self.tasks[task].future = None;
    }

    /// Keeps a task without polling it again.
    pub(crate) fn stop_polling(&mut self, task: usize) {
        self.tasks[task].is_stopped = true;
    }

    pub(crate) fn is_running(&self, task: usize) -> bool {
        self.tasks[task].future.is_some()
    }

    pub(crate) fn running(&self) -> Vec<usize> {
        (0..self.tasks.len()).filter(|task| self.is_running(*task)).collect()
    }

    /// Polls whoever was woken, until nobody is.
    pub(crate) fn run(&mut self) {
        loop {
            let mut any = false;
            let last = self.tasks.len();
            for task in 0..last {
                any |= self.poll(if self.newest_first { last - 1 - task } else { task });
            }
            if !any {
                return;
            }
        }
    }

    /// Polls a task if it was woken; whether it was.
    fn poll(&mut self, number: usize) -> bool {
        let task = &mut self.tasks[number];
        let Some(future) = &mut task.future else { return false };
        if task.is_stopped || !task.woken.0.swap(false, SeqCst) {
            return false;
        }
        self.polls += 1;
        let waker = Waker::from(Arc::clone(&task.woken));
        if let Poll::Ready(value) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            task.future = None;
            self.done.push((number, self.clock.now(), value));
        }
        true
    }

    /// Moves the clock on, stopping wherever somebody wakes.
    pub(crate) fn pass(&mut self, time: Duration) {
        let end = self.clock.now() + time;
        while let Some(next) = self.clock.next_sleeper().filter(|next| *next <= end) {
            self.clock.set(next.max(self.clock.now()));
            self.run();
        }
        self.clock.set(end);
        self.run();
    }

    /// Moves the clock from sleeper to sleeper until nobody sleeps.
    pub(crate) fn finish(&mut self) {
        while let Some(next) = self.clock.next_sleeper() {
            self.clock.set(next.max(self.clock.now()));
            self.run();
        }
    }

    /// Which tasks finished, in the order they did.
    pub(crate) fn order(&self) -> Vec<usize> {
        self.done.iter().map(|(number, ..)| *number).collect()
    }

    /// When they did, in milliseconds since the clock's beginning.
    pub(crate) fn millis(&self) -> Vec<u64> {
        self.done.iter().map(|(_, time, _)| time.as_nanos() / 1_000_000).collect()
    }
}
