//! A child process that does not outlive us.
//!
//! Dropping it ends it: kills it, or where it has children of its own asks it to end, so that it can see to them. For a
//! test process that is itself killed, `setpriv --pdeathsig` has the system send the child the same signal; where there
//! is no such tool the child is started without. The system counts the death of the *thread* that started
//! the child as the parent's, and test threads end with their test; so one thread that never ends starts all of them.

use rustix::process::{Pid, Signal, kill_process};
use std::{
    env, fs, io,
    process::{Child, Command},
    sync::{
        OnceLock,
        mpsc::{Sender, channel},
    },
    thread,
    time::{Duration, Instant},
};

type Order = (Command, Sender<io::Result<Child>>);

/// How long one that was asked to end may take over it, before it is killed.
const END_WITHIN: Duration = Duration::from_secs(5);

/// Between two looks whether a child is ready.
const PAUSE: Duration = Duration::from_millis(5);

/// How a child is ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Ending {
    /// Killed.
    Kill,
    /// Asked, since it has children that it would leave behind if it were killed.
    Ask,
    /// Interrupted: asked likewise, by the signal after which PostgreSQL does not wait for its clients.
    Interrupt,
}

impl Ending {
    /// The signal, and what `setpriv` calls it.
    const fn signal(self) -> (Signal, &'static str) {
        match self {
            Self::Kill => (Signal::KILL, "KILL"),
            Self::Ask => (Signal::TERM, "TERM"),
            Self::Interrupt => (Signal::INT, "INT"),
        }
    }
}

#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    paused: bool,
    ending: Ending,
}

impl Process {
    /// Starts a program; `prepare` adds arguments and streams.
    pub(crate) fn start(program: &str, prepare: impl FnOnce(&mut Command)) -> Self {
        Self::start_to_end_by(Ending::Kill, program, prepare)
    }

    /// Starts a program that is ended in this way.
    pub(crate) fn start_to_end_by(ending: Ending, program: &str, prepare: impl FnOnce(&mut Command)) -> Self {
        Self::start_as(None, ending, program, prepare)
    }

    /// Starts a program as another user: some servers refuse to run as root.
    pub(crate) fn start_as(
        user: Option<&str>,
        ending: Ending,
        program: &str,
        prepare: impl FnOnce(&mut Command),
    ) -> Self {
        let mut command = if has_setpriv() {
            let mut command = Command::new("setpriv");
            command.args(user.map(as_user).unwrap_or_default());
            command.args(["--pdeathsig", ending.signal().1, program]);
            command
        } else {
            Command::new(program)
        };
        prepare(&mut command);
        let (answer, started) = channel();
        starter().send((command, answer)).expect("the starting thread never ends");
        let child = started.recv().expect("the starting thread answers");
        Self {
            child: child.unwrap_or_else(|e| panic!("could not start {program}: {e}")),
            paused: false,
            ending,
        }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Whether it is neither dead nor frozen.
    pub(crate) fn is_awake(&mut self) -> bool {
        !self.paused && !self.has_ended()
    }

    pub(crate) fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// Waits until it is ready. Says whether it is: not where it has ended, or takes longer than this.
    pub(crate) fn becomes_ready(&mut self, within: Duration, is_ready: impl Fn() -> bool) -> bool {
        let begun = Instant::now();
        loop {
            if is_ready() {
                return true;
            }
            if self.has_ended() || begun.elapsed() > within {
                return false;
            }
            thread::sleep(PAUSE);
        }
    }

    /// Freezes it, and returns when it is frozen.
    pub(crate) fn pause(&mut self) {
        self.signal(Signal::STOP);
        self.paused = true;
        let pid = self.pid();
        crate::eventually("a process to freeze", || (state_of(pid)? == 'T').then_some(()));
    }

    pub(crate) fn resume(&mut self) {
        self.signal(Signal::CONT);
        self.paused = false;
    }

    /// Only a child that was not waited for yet is signalled, so its number cannot be another's by now.
    pub(crate) fn signal(&mut self, signal: Signal) {
        assert!(!self.has_ended(), "process {} has ended", self.pid());
        kill_process(Pid::from_child(&self.child), signal)
            .unwrap_or_else(|e| panic!("could not signal {}: {e}", self.child.id()));
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.ending != Ending::Kill && !self.has_ended() {
            self.signal(self.ending.signal().0);
            let asked = Instant::now();
            while !self.has_ended() && asked.elapsed() < END_WITHIN {
                thread::sleep(Duration::from_millis(1));
            }
        }
        // A frozen one dies of this as well.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The thread that starts every child.
fn starter() -> &'static Sender<Order> {
    static STARTER: OnceLock<Sender<Order>> = OnceLock::new();
    STARTER.get_or_init(|| {
        let (orders, received) = channel::<Order>();
        let run = move || {
            for (mut command, answer) in received {
                let _ = answer.send(command.spawn());
            }
        };
        thread::Builder::new().name("testkit-starter".into()).spawn(run).expect("a thread can be started");
        orders
    })
}

/// The words that make `setpriv` somebody else.
pub(crate) fn as_user(user: &str) -> Vec<String> {
    vec![format!("--reuid={user}"), format!("--regid={user}"), "--clear-groups".to_owned()]
}

fn has_setpriv() -> bool {
    env::var_os("PATH").is_some_and(|path| env::split_paths(&path).any(|dir| dir.join("setpriv").is_file()))
}

/// The letter the system has for what the process does: `T` is frozen.
fn state_of(pid: u32) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name before it is in brackets and may hold anything, brackets too.
    stat.rsplit_once(") ")?.1.chars().next()
}
