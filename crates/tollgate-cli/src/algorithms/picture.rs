//! The picture: a line for each algorithm, a mark for each request, 80 columns wide.

use super::{
    contest::{Entrant, Fate},
    traffic::GROUPS,
};
use std::{fmt::Write as _, time::Duration};

/// Whether marks are coloured.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Colour {
    None,
    Ansi,
}

pub(super) struct Picture {
    entrants: Vec<Entrant>,
    colour: Colour,
}

/// The width of a name.
const NAME: usize = 18;

/// What is counted, each under its word.
const COUNTS: &str = " pass wait no peak";

const PASSED: char = '#';
const WAITED: char = '~';
const REFUSED: char = '.';

const GREEN: &str = "32";
const YELLOW: &str = "33";
const RED: &str = "31";
const BOLD: &str = "1";

impl Picture {
    pub(super) const fn new(entrants: Vec<Entrant>, colour: Colour) -> Self {
        Self { entrants, colour }
    }

    /// The whole picture, with the first `revealed` requests decided.
    pub(super) fn draw(&self, revealed: usize) -> String {
        let mut lines = vec![
            self.painted(BOLD, "Nine algorithms, the same requests. On average each allows 10 a second."),
            String::new(),
            format!("{:NAME$}{}", "", headings(|group| group.name)),
            format!("{:NAME$}{}{}", "", headings(|group| group.begins), COUNTS),
            format!("{:NAME$}{}{revealed:>5}", "requests", arrivals(revealed)),
        ];
        lines.extend(self.entrants.iter().map(|entrant| self.line(entrant, revealed)));
        lines.push(String::new());
        lines.push(format!(
            "{} allowed   {} delayed   {} denied   | the fixed window ends",
            self.painted(GREEN, &PASSED.to_string()),
            self.painted(YELLOW, &WAITED.to_string()),
            self.painted(RED, &REFUSED.to_string()),
        ));
        lines.push("peak: the most requests that start within one second; above 10 is a burst".to_owned());
        lines.push(
            "buckets hold 5 and delay up to 300 ms; windows last 1 s; 2 in flight for 200 ms".to_owned(),
        );
        lines.iter().fold(String::new(), |mut text, line| {
            // A frame is drawn over the last one: whatever that left on the line has to go.
            let clear = if self.colour == Colour::Ansi { "\x1b[K" } else { "" };
            let _ = writeln!(text, "{}{clear}", line.trim_end());
            text
        })
    }

    fn line(&self, entrant: &Entrant, revealed: usize) -> String {
        let fates = &entrant.fates[..revealed];
        let mut line = format!("{:NAME$}", entrant.name);
        let mut index = 0;
        for group in &GROUPS {
            if index > 0 {
                line.push(group.mark);
            }
            for _ in 0..group.count {
                line.push_str(&fates.get(index).map_or(" ".to_owned(), |fate| self.mark(*fate)));
                index += 1;
            }
        }
        let count = |wanted: fn(&Fate) -> bool| fates.iter().filter(|fate| wanted(fate)).count();
        let passed = count(|fate| matches!(fate, Fate::Passed(_)));
        let waited = count(|fate| matches!(fate, Fate::Waited(_)));
        let refused = count(|fate| matches!(fate, Fate::Refused));
        let _ = write!(line, "{passed:>5}{waited:>5}{refused:>3}{:>5}", peak(fates));
        line
    }

    fn mark(&self, fate: Fate) -> String {
        let (code, mark) = match fate {
            Fate::Passed(_) => (GREEN, PASSED),
            Fate::Waited(_) => (YELLOW, WAITED),
            Fate::Refused => (RED, REFUSED),
        };
        self.painted(code, &mark.to_string())
    }

    fn painted(&self, code: &str, text: &str) -> String {
        match self.colour {
            Colour::None => text.to_owned(),
            Colour::Ansi => format!("\x1b[{code}m{text}\x1b[0m"),
        }
    }
}

/// A word above each group.
fn headings(word: impl Fn(&super::traffic::Group) -> &'static str) -> String {
    let cells = GROUPS.iter().map(|group| format!("{:width$}", word(group), width = group.count));
    cells.collect::<Vec<_>>().join(" ")
}

/// The requests themselves.
fn arrivals(revealed: usize) -> String {
    let mut line = String::new();
    let mut index = 0;
    for group in &GROUPS {
        if index > 0 {
            line.push(group.mark);
        }
        for _ in 0..group.count {
            line.push(if index < revealed { 'v' } else { ' ' });
            index += 1;
        }
    }
    line
}

/// The most that start in any one second.
fn peak(fates: &[Fate]) -> usize {
    let starts: Vec<_> = fates.iter().filter_map(|fate| fate.started()).collect();
    let from = |first| {
        starts.iter().filter(|start| **start >= first && **start < first + Duration::from_secs(1)).count()
    };
    starts.iter().map(|start| from(*start)).max().unwrap_or(0)
}
