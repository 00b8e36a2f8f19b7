//! What was done, where no table keeps it: in memory, bounded.

use crate::{Entry, NodeSeen, now_ms};
use std::collections::VecDeque;

/// How many entries are remembered, and how many bytes of text: an edit of a large file has it twice.
const MOST_ENTRIES: usize = 1000;
const MOST_BYTES: usize = 16 << 20;

/// The last entries, and this node.
#[derive(Default)]
pub(crate) struct Remembered {
    /// The newest first.
    entries: VecDeque<Entry>,
    bytes: usize,
    written: i64,
    pub(crate) node: Option<NodeSeen>,
}

impl Remembered {
    /// Notes something; its number and time are seen to.
    pub(crate) fn note(&mut self, entry: Entry) {
        self.written += 1;
        self.bytes += bytes_of(&entry);
        self.entries.push_front(Entry { number: self.written, at_ms: now_ms(), ..entry });
        while self.entries.len() > 1 && (self.entries.len() > MOST_ENTRIES || self.bytes > MOST_BYTES) {
            self.bytes -= self.entries.pop_back().as_ref().map_or(0, bytes_of);
        }
    }

    pub(crate) fn history(&self, before: Option<i64>, most: usize) -> Vec<Entry> {
        let older = |entry: &&Entry| before.is_none_or(|before| entry.number < before);
        self.entries.iter().filter(older).take(most).cloned().collect()
    }
}

fn bytes_of(entry: &Entry) -> usize {
    let text = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    entry.by.len() + entry.about.len() + text(&entry.before) + text(&entry.after)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_is_remembered_and_the_whole_is_bounded() {
        let mut remembered = Remembered::default();
        for nth in 0..3_000 {
            remembered.note(plain("ann", "reset", &format!("key {nth}")));
        }
        assert_eq!(remembered.history(None, 5_000).len(), MOST_ENTRIES);
        for _ in 0..40 {
            let text = Some("x".repeat(1 << 20));
            remembered.note(Entry { before: text.clone(), after: text, ..plain("ann", "edit", "file") });
        }
        let kept = remembered.history(None, 5_000);
        assert_eq!(
            (kept.len(), kept[0].number),
            (7, 3_040),
            "seven of two megabytes and a little fit into sixteen"
        );
        let huge = Some("x".repeat(MOST_BYTES + 1));
        remembered.note(Entry { before: huge, ..plain("ann", "edit", "file") });
        assert_eq!(remembered.history(None, 5_000).len(), 1, "the newest one is, whatever its size");
    }
}
