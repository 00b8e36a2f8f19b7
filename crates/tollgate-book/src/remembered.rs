//! What was done, where no table keeps it: in memory, bounded.

use crate::{Entry, NodeSeen, now_ms};
use std::collections::VecDeque;

/// How many entries are remembered.
const MOST_ENTRIES: usize = 1000;

/// The last entries, and this node.
#[derive(Default)]
pub(crate) struct Remembered {
    /// The newest first.
    entries: VecDeque<Entry>,
    written: i64,
    pub(crate) node: Option<NodeSeen>,
}

impl Remembered {
    /// Notes something; its number and time are seen to.
    pub(crate) fn note(&mut self, entry: Entry) {
        self.written += 1;
        self.entries.truncate(MOST_ENTRIES - 1);
        self.entries.push_front(Entry { number: self.written, at_ms: now_ms(), ..entry });
    }

    pub(crate) fn history(&self, before: Option<i64>, most: usize) -> Vec<Entry> {
        let older = |entry: &&Entry| before.is_none_or(|before| entry.number < before);
        self.entries.iter().filter(older).take(most).cloned().collect()
    }
}

/// Something that was done and is no change of text.
pub(crate) fn plain(by: &str, action: &str, about: &str) -> Entry {
    Entry {
        number: 0,
        at_ms: 0,
        by: by.to_owned(),
        action: action.to_owned(),
        about: about.to_owned(),
        before: None,
        after: None,
    }
}
