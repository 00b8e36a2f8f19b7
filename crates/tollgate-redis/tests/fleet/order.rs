//! What a node is told to do: words on its command line, since a node is a process.

use std::{str::FromStr, time::Duration};

/// What a node is told to do.
#[derive(Clone, Debug)]
pub(crate) struct Order {
    pub(crate) url: String,
    pub(crate) prefix: String,
    pub(crate) task: Task,
    /// The kinds of limits, by name; each has a key of its own.
    pub(crate) kinds: Vec<String>,
    pub(crate) generation: u64,
    pub(crate) lease: Option<Duration>,
    /// Charges a second once the storm has come, of this node.
    pub(crate) rate: f64,
    /// Charges nothing for this long after it was released.
    pub(crate) late: Duration,
    /// How long the calm lasts, with a fifth of the charges, and all of it.
    pub(crate) calm: Duration,
    pub(crate) lasting: Duration,
    pub(crate) cost: u32,
    pub(crate) seed: u64,
    /// By how many seconds its wall clock is to be ahead, if not as its place among the nodes says. It is not told.
    pub(crate) ahead: Option<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Task {
    /// Charge as often as the rate says, and write everything down.
    Hammer,
    /// Wait for one turn, half a second at most.
    Wait,
    /// Enter, and hold for good.
    Hold,
    /// Book a turn, and sleep until it comes.
    Book,
    /// Start waiters at the order's rate, each of which gives up after a random time.
    GiveUp,
}

impl Order {
    pub(crate) fn new(url: &str, prefix: &str, task: Task, kinds: &[&str]) -> Self {
        Self {
            url: url.to_owned(),
            prefix: prefix.to_owned(),
            task,
            kinds: kinds.iter().map(ToString::to_string).collect(),
            generation: 0,
            lease: None,
            rate: 0.0,
            late: Duration::ZERO,
            calm: Duration::ZERO,
            lasting: Duration::ZERO,
            cost: 1,
            seed: 1,
            ahead: None,
        }
    }

    pub(crate) fn words(&self) -> Vec<String> {
        let micros = |span: Duration| span.as_micros();
        vec![
            self.url.clone(),
            self.prefix.clone(),
            format!("{:?}", self.task),
            self.kinds.join(","),
            self.generation.to_string(),
            self.lease.map_or(0, micros).to_string(),
            self.rate.to_string(),
            micros(self.late).to_string(),
            micros(self.calm).to_string(),
            micros(self.lasting).to_string(),
            self.cost.to_string(),
            self.seed.to_string(),
        ]
    }

    pub(crate) fn read(words: &[String]) -> Option<Self> {
        let mut words = words.iter();
        let (url, prefix) = (words.next()?.clone(), words.next()?.clone());
        let task = match words.next()?.as_str() {
            "Hammer" => Task::Hammer,
            "Wait" => Task::Wait,
            "Hold" => Task::Hold,
            "Book" => Task::Book,
            "GiveUp" => Task::GiveUp,
            _ => return None,
        };
        let kinds = words.next()?.split(',').map(ToOwned::to_owned).collect();
        Some(Self {
            url,
            prefix,
            task,
            kinds,
            generation: number(words.next())?,
            lease: Some(span(words.next())?).filter(|lease| !lease.is_zero()),
            rate: number(words.next())?,
            late: span(words.next())?,
            calm: span(words.next())?,
            lasting: span(words.next())?,
            cost: number(words.next())?,
            seed: number(words.next())?,
            ahead: None,
        })
    }
}

fn number<T: FromStr>(word: Option<&String>) -> Option<T> {
    word?.parse().ok()
}

fn span(word: Option<&String>) -> Option<Duration> {
    number(word).map(Duration::from_micros)
}
