//! What is looked at, and how: the last that a server told, and what keys were pressed.

use super::told::{Pace, Series, Told};
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

/// By what rules are sorted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Order {
    #[default]
    Refused,
    Delayed,
    Passed,
    Name,
}

/// What is shown.
#[derive(Default)]
pub(super) struct View {
    pub(super) told: Told,
    /// Why the last question had no answer.
    pub(super) failure: Option<String>,
    pub(super) order: Order,
    pub(super) filter: String,
    /// Whether keys go into the filter.
    pub(super) is_typing: bool,
    pub(super) is_paused: bool,
    pub(super) is_helping: bool,
    /// Rules that are scrolled away.
    pub(super) above: usize,
}

/// Whether to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    GoOn,
    Quit,
}

/// A rule, as it is shown.
pub(super) struct Row<'a> {
    pub(super) name: String,
    pub(super) pace: Pace,
    pub(super) series: &'a Series,
}

impl Order {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Refused => "denied",
            Self::Delayed => "delayed",
            Self::Passed => "allowed",
            Self::Name => "name",
        }
    }

    const fn next(self) -> Self {
        match self {
            Self::Refused => Self::Delayed,
            Self::Delayed => Self::Passed,
            Self::Passed => Self::Name,
            Self::Name => Self::Refused,
        }
    }
}

impl View {
    /// The server has answered, or has not. While it is paused nothing changes.
    pub(super) fn hear(&mut self, told: Result<Told, String>) {
        if self.is_paused {
            return;
        }
        match told {
            Ok(told) => {
                self.told = told;
                self.failure = None;
            }
            Err(why) => self.failure = Some(why),
        }
    }

    /// A key was pressed.
    pub(super) fn press(&mut self, key: KeyEvent) -> Next {
        if key.kind == KeyEventKind::Release {
            return Next::GoOn;
        }
        if key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL) {
            return Next::Quit;
        }
        // Other letters with Ctrl or Alt mean nothing here; Ctrl-@ would be a blank.
        if key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT) {
            return Next::GoOn;
        }
        if self.is_typing {
            self.type_in(key.code);
            return Next::GoOn;
        }
        if self.is_helping {
            self.is_helping = false;
            return Next::GoOn;
        }
        match key.code {
            KeyCode::Char('q') => return Next::Quit,
            // Out of the filter first.
            KeyCode::Esc if self.filter.is_empty() => return Next::Quit,
            KeyCode::Esc => self.filter.clear(),
            KeyCode::Char('p' | ' ') => self.is_paused = !self.is_paused,
            KeyCode::Char('s') => self.order = self.order.next(),
            KeyCode::Char('/') => self.is_typing = true,
            KeyCode::Char('?' | 'h') => self.is_helping = true,
            KeyCode::Down | KeyCode::Char('j') => self.above += 1,
            KeyCode::Up | KeyCode::Char('k') => self.above = self.above.saturating_sub(1),
            KeyCode::Home | KeyCode::Char('g') => self.above = 0,
            _ => {}
        }
        self.above = self.above.min(self.rows().len().saturating_sub(1));
        Next::GoOn
    }

    fn type_in(&mut self, key: KeyCode) {
        match key {
            KeyCode::Enter => self.is_typing = false,
            KeyCode::Esc => {
                self.is_typing = false;
                self.filter.clear();
            }
            KeyCode::Backspace => drop(self.filter.pop()),
            KeyCode::Char(letter) if self.filter.chars().count() < 60 => self.filter.push(letter),
            _ => {}
        }
        self.above = 0;
    }

    /// Whether the filter lets something of this name through.
    pub(super) fn shows(&self, name: &str) -> bool {
        self.filter.is_empty() || name.to_lowercase().contains(&self.filter.to_lowercase())
    }

    /// The rules that the filter lets through, in order.
    pub(super) fn rows(&self) -> Vec<Row<'_>> {
        let row = |series| Row { name: Series::name(series), pace: series.pace(), series };
        let rules = self.told.usage.rules.iter().map(row);
        let mut rows: Vec<_> = rules.filter(|row| self.shows(&row.name)).collect();
        let by = |row: &Row<'_>| match self.order {
            Order::Refused => row.pace.refused,
            Order::Delayed => row.pace.delayed,
            Order::Passed => row.pace.passed,
            Order::Name => 0.0,
        };
        rows.sort_by(|one, other| by(other).total_cmp(&by(one)).then_with(|| one.name.cmp(&other.name)));
        rows
    }
}
