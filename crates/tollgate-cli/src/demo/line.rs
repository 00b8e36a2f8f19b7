//! A line of the live view: pieces with a colour, cut to the width of the terminal.

use std::fmt::Write as _;

/// How a piece is painted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Paint {
    Plain,
    Bold,
    Dim,
    Green,
    Yellow,
    Red,
}

/// Whether paint is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Colour {
    None,
    Ansi,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Line(Vec<(Paint, String)>);

impl Line {
    pub(super) fn new() -> Self {
        Self::default()
    }

    pub(super) fn of(paint: Paint, text: impl Into<String>) -> Self {
        Self::new().and(paint, text)
    }

    /// Goes on with another piece. What could move the cursor is shown as a question mark.
    pub(super) fn and(mut self, paint: Paint, text: impl Into<String>) -> Self {
        let text: String = text.into();
        let text = text.chars().map(|mark| if mark.is_control() { '?' } else { mark }).collect();
        self.0.push((paint, text));
        self
    }

    /// Goes on with another line.
    pub(super) fn then(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        self
    }

    /// Fills up with blanks.
    pub(super) fn padded(self, width: usize) -> Self {
        let missing = width.saturating_sub(self.width());
        self.and(Paint::Plain, " ".repeat(missing))
    }

    fn width(&self) -> usize {
        self.0.iter().map(|(_, text)| text.chars().count()).sum()
    }

    /// As it is written: no wider than `width`.
    pub(super) fn written(&self, width: usize, colour: Colour) -> String {
        let mut written = String::new();
        let mut room = width;
        for (paint, text) in &self.0 {
            let cut: String = text.chars().take(room).collect();
            room -= cut.chars().count();
            match (colour, paint.code()) {
                (Colour::Ansi, Some(code)) if !cut.trim().is_empty() => {
                    let _ = write!(written, "\x1b[{code}m{cut}\x1b[0m");
                }
                _ => written.push_str(&cut),
            }
        }
        written.truncate(written.trim_end_matches(' ').len());
        written
    }
}

impl Paint {
    const fn code(self) -> Option<&'static str> {
        match self {
            Self::Plain => None,
            Self::Bold => Some("1"),
            Self::Dim => Some("2"),
            Self::Green => Some("32"),
            Self::Yellow => Some("33"),
            Self::Red => Some("31"),
        }
    }
}
