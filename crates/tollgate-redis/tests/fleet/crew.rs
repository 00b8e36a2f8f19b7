//! The processes of a fleet: started, released together, heard out, killed.
//!
//! Where the system has libfaketime, every node's wall clock is really off, by seconds in both directions. Where it has not,
//! that is said, and the run shows only that nodes need not agree with one another's clocks.

use crate::{clock, history::Ask, order::Order};
use std::{
    env,
    io::{BufRead, BufReader, Read, Write},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    sync::OnceLock,
    time::{SystemTime, UNIX_EPOCH},
};

/// By how many seconds the wall clocks of nodes are off, one after the other.
const SKEWS: [f64; 4] = [3.2, -2.7, 0.9, -5.4];

/// A node that is ready, or further. Dropped, it is killed.
pub(crate) struct Node {
    child: Child,
    release: Option<ChildStdin>,
    lines: BufReader<ChildStdout>,
    /// By how many seconds its wall clock should be ahead of ours, and is.
    skew: f64,
    ahead: f64,
}

/// Starts nodes, and waits until all are ready.
pub(crate) fn muster(orders: &[Order]) -> Result<Vec<Node>, String> {
    let started: Vec<Node> = orders
        .iter()
        .enumerate()
        .map(|(place, order)| Node::start(place, order))
        .collect::<Result<_, _>>()?;
    started.into_iter().map(Node::ready).collect()
}

/// Lets all of them begin, at once.
pub(crate) fn release(nodes: &mut [Node]) -> Result<(), String> {
    nodes.iter_mut().try_for_each(|node| {
        let stdin = node.release.as_mut().ok_or("a node without a way to release it")?;
        stdin.write_all(b"go\n").map_err(|problem| format!("a node is gone: {problem}"))
    })
}

/// Releases them, and hears all that they wrote down.
pub(crate) fn hear_out(mut nodes: Vec<Node>) -> Result<Vec<Ask>, String> {
    release(&mut nodes)?;
    let mut asks = Vec::new();
    for node in nodes {
        for line in node.finish()?.lines().filter(|line| !line.is_empty()) {
            asks.push(Ask::read(line).ok_or_else(|| format!("a node wrote something unreadable: {line}"))?);
        }
    }
    asks.sort_by_key(|ask| ask.asked);
    Ok(asks)
}

impl Node {
    fn start(place: usize, order: &Order) -> Result<Self, String> {
        let program = env::current_exe().map_err(|problem| problem.to_string())?;
        let mut command = Command::new(program);
        let skew = order.ahead.unwrap_or(SKEWS[place % SKEWS.len()]);
        command.arg("node").args(order.words()).stdin(Stdio::piped()).stdout(Stdio::piped());
        if let Some(library) = faketime() {
            command.env("LD_PRELOAD", library).env("FAKETIME", format!("{skew:+}"));
            // Only the wall clock is off: that one runs at all is what a monotonic clock is for.
            command.env("FAKETIME_DONT_FAKE_MONOTONIC", "1").env("DONT_FAKE_MONOTONIC", "1");
        }
        let mut child =
            command.spawn().map_err(|problem| format!("a node could not be started: {problem}"))?;
        let (release, out) = (child.stdin.take(), child.stdout.take());
        let lines = BufReader::new(out.ok_or("a node without an output")?);
        Ok(Self { child, release, lines, skew, ahead: 0.0 })
    }

    fn ready(mut self) -> Result<Self, String> {
        let [at, wall] = self.hear("ready")?;
        let (here, now) = (SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default(), clock::now());
        let (passed, moved) = ((now - at) as f64, here.as_nanos() as f64 - wall as f64);
        self.ahead = (passed - moved) / 1e9;
        if can_skew() && (self.ahead - self.skew).abs() > 0.5 {
            return Err(format!("a node is {:.1} s ahead, and should be {}", self.ahead, self.skew));
        }
        Ok(self)
    }

    /// The two numbers of the next line, which begins with this word; zero where it has none.
    pub(crate) fn hear(&mut self, word: &str) -> Result<[u64; 2], String> {
        let mut line = String::new();
        self.lines.read_line(&mut line).map_err(|problem| problem.to_string())?;
        let mut words = line.split_whitespace();
        if words.next() != Some(word) {
            return Err(format!("a node should have said {word:?}, and said {:?}", line.trim()));
        }
        let mut numbers = [0; 2];
        for (number, word) in numbers.iter_mut().zip(words) {
            *number = word.parse().map_err(|_| format!("a node said {line:?}"))?;
        }
        Ok(numbers)
    }

    /// All that it has still to say. It has to end well.
    pub(crate) fn finish(mut self) -> Result<String, String> {
        let mut rest = String::new();
        self.lines.read_to_string(&mut rest).map_err(|problem| problem.to_string())?;
        let status = self.child.wait().map_err(|problem| problem.to_string())?;
        if status.success() { Ok(rest) } else { Err(format!("a node ended with {status}")) }
    }

    /// Kills it, as a crash would.
    pub(crate) fn kill(mut self) -> Result<(), String> {
        self.child.kill().and_then(|()| self.child.wait()).map(drop).map_err(|problem| problem.to_string())
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What this run can claim about clocks.
pub(crate) fn how_clocks_are_skewed() -> String {
    match faketime() {
        Some(_) => format!("wall clocks of nodes are off by seconds: {SKEWS:?}"),
        None => "wall clocks of nodes are NOT off: there is no libfaketime here".to_owned(),
    }
}

/// Whether clocks can be made to be off here.
pub(crate) fn can_skew() -> bool {
    faketime().is_some()
}

fn faketime() -> Option<&'static Path> {
    static FOUND: OnceLock<Option<PathBuf>> = OnceLock::new();
    let find = || {
        let directories = ["x86_64-linux-gnu", "aarch64-linux-gnu", "", "../lib64"];
        let paths = directories
            .map(|directory| Path::new("/usr/lib").join(directory).join("faketime/libfaketime.so.1"));
        paths.into_iter().find(|path| path.is_file())
    };
    FOUND.get_or_init(find).as_deref()
}
