//! One of the processes: it says when it is ready, begins when it is released, and ends with its parent.

use crate::limits::{self, answer, now, request};
use std::{
    env,
    io::{self, BufRead, BufReader, Read, Write},
    process::{self, Child, ChildStdin, ChildStdout, Command, Stdio},
    thread,
    time::Duration,
};
use tokio::{runtime::Builder, sync::oneshot, time::Instant};
use tower::{Layer, ServiceExt, service_fn};

/// What a process does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Task {
    /// Many requests at a rate, as fast as they are answered, for so long.
    Rate,
    /// Many requests that hold slots.
    Slots,
    /// Takes all slots and keeps them.
    Hold,
}

const TASKS: [(&str, Task); 3] = [("rate", Task::Rate), ("slots", Task::Slots), ("hold", Task::Hold)];
const CALLERS: usize = 8;
const LASTING: Duration = Duration::from_millis(1_500);

/// A request that passed: when it was sent, when it was let through, and when it was done.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pass {
    pub(crate) asked: u64,
    pub(crate) began: u64,
    pub(crate) ended: u64,
}

/// A process as its parent sees it. Dropped, it is killed.
pub(crate) struct Node {
    child: Child,
    release: ChildStdin,
    lines: BufReader<ChildStdout>,
}

impl Node {
    /// Starts a process, and waits until it is ready.
    pub(crate) fn start(task: Task, url: &str, prefix: &str) -> Self {
        let word = TASKS.iter().find(|(_, other)| *other == task).unwrap().0;
        let mut command = Command::new(env::current_exe().unwrap());
        command.args(["node", word, url, prefix]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (release, out) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let mut node = Self { child, release, lines: BufReader::new(out) };
        node.hear("ready");
        node
    }

    pub(crate) fn release(&mut self) {
        self.release.write_all(b"go\n").unwrap();
    }

    /// Waits until it says this.
    pub(crate) fn hear(&mut self, word: &str) {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        assert_eq!(line.trim(), word);
    }

    /// All that passed there, once it has ended.
    pub(crate) fn finish(mut self) -> Vec<Pass> {
        let mut lines = String::new();
        self.lines.read_to_string(&mut lines).unwrap();
        assert!(self.child.wait().unwrap().success());
        let pass = |line: &str| {
            let times: Vec<u64> = line.split(' ').map(|time| time.parse().unwrap()).collect();
            Pass { asked: times[0], began: times[1], ended: times[2] }
        };
        lines.lines().map(pass).collect()
    }

    /// Ends it by SIGKILL.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // One that has ended needs neither.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Is such a process.
pub(crate) fn run(arguments: &[String]) {
    let [word, url, prefix] = arguments else { panic!("node TASK URL PREFIX, not {arguments:?}") };
    let task = TASKS.iter().find(|(other, _)| other == word).unwrap().1;
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    runtime.block_on(async {
        let store = limits::store(url, prefix);
        store.ping().await.unwrap();
        let released = watch_parent();
        say("ready");
        released.await.unwrap();
        match task {
            Task::Rate => send(limits::rate(&store).layer(service_fn(answer)), Duration::ZERO).await,
            Task::Slots => {
                let held = Duration::from_millis(10);
                send(limits::slots(&store).layer(service_fn(answer)), held).await;
            }
            Task::Hold => {
                let service = limits::slots(&store).layer(service_fn(answer));
                let mut responses = Vec::new();
                for _ in 0..limits::SLOTS {
                    responses.push(service.clone().oneshot(request()).await.unwrap());
                }
                assert!(responses.iter().all(|response| response.status() == 200));
                say("held");
                std::future::pending::<()>().await;
            }
        }
    });
}

/// Sends requests for a while, and holds each response for so long.
async fn send<S, B>(service: S, held: Duration)
where
    S: tower::Service<http::Request<()>, Response = http::Response<B>> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: std::fmt::Debug,
    B: Send + 'static,
{
    let until = Instant::now() + LASTING;
    let callers: Vec<_> = (0..CALLERS)
        .map(|_| {
            let service = service.clone();
            tokio::spawn(async move {
                let mut passes = Vec::new();
                while Instant::now() < until {
                    let asked = now();
                    let response = service.clone().oneshot(request()).await.unwrap();
                    let began = now();
                    if response.status() != 200 {
                        tokio::time::sleep(Duration::from_millis(2)).await;
                        continue;
                    }
                    tokio::time::sleep(held).await;
                    let ended = now();
                    drop(response);
                    passes.push(format!("{asked} {began} {ended}"));
                }
                passes
            })
        })
        .collect();
    for caller in callers {
        caller.await.unwrap().iter().for_each(|pass| say(pass));
    }
}

/// Learns of the release. Without a parent there is nothing to do.
fn watch_parent() -> oneshot::Receiver<()> {
    let (release, released) = oneshot::channel();
    thread::spawn(move || {
        let mut lines = io::stdin().lock().lines();
        if let Some(Ok(_)) = lines.next() {
            let _ = release.send(());
        }
        if lines.next().is_none() {
            process::exit(3);
        }
    });
    released
}

fn say(line: &str) {
    let mut out = io::stdout().lock();
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}
