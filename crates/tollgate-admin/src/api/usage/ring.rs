//! A ring of steps of one length.

use super::{Counts, ROWS};
use std::collections::{HashMap, VecDeque};

/// Steps of one length, the newest last; seconds in which nothing happened take no room.
pub(super) struct Ring {
    /// How long a step is, in seconds.
    pub(super) step: u64,
    /// How many are kept.
    kept: usize,
    steps: VecDeque<Step>,
    /// Rows of the newest step, while it grows.
    open: HashMap<u32, Counts>,
}

/// What happened in one step.
pub(super) struct Step {
    /// Which it is, counted from 1970.
    number: u64,
    pub(super) rows: Vec<Row>,
    pub(super) total: Counts,
}

/// What one row counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) name: u32,
    pub(super) counts: Counts,
}

impl Ring {
    pub(super) fn new(step: u64, kept: usize) -> Self {
        Self { step, kept, steps: VecDeque::new(), open: HashMap::new() }
    }

    /// Adds what happened in a second. A clock that steps back adds to the newest step there is.
    pub(super) fn add(&mut self, second: u64, rows: &[Row], total: Counts) {
        if total == Counts::default() && rows.is_empty() {
            return;
        }
        let number = second / self.step;
        if self.steps.back().is_none_or(|newest| newest.number < number) {
            self.steps.push_back(Step { number, rows: Vec::new(), total: Counts::default() });
            self.open.clear();
        }
        let oldest = number.saturating_sub(self.kept as u64 - 1);
        while self.steps.front().is_some_and(|step| step.number < oldest) {
            self.steps.pop_front();
        }
        let Some(newest) = self.steps.back_mut() else { return };
        newest.total.add(total);
        for row in rows {
            // One that is not there when the step is full of rows is told in the total alone.
            let room = self.open.len() < 4 * ROWS;
            match self.open.get_mut(&row.name) {
                Some(known) => known.add(row.counts),
                None if room => {
                    self.open.insert(row.name, row.counts);
                }
                None => {}
            }
        }
        let mut busiest: Vec<Row> =
            self.open.iter().map(|(name, counts)| Row { name: *name, counts: *counts }).collect();
        if busiest.len() > ROWS {
            busiest.select_nth_unstable_by_key(ROWS, |row| std::cmp::Reverse(row.counts.sum()));
            busiest.truncate(ROWS);
        }
        busiest.shrink_to_fit();
        newest.rows = busiest;
    }

    /// The steps that cover the last so many seconds: the first, and how many. The last is the one before `now`, or the one
    /// that `now` is in where that is longer than a second.
    pub(super) fn span(&self, last: u64, now: u64) -> (u64, usize) {
        let end = now.saturating_sub(1) / self.step + 1;
        let steps = last.div_ceil(self.step).clamp(1, self.kept as u64);
        (end.saturating_sub(steps), steps as usize)
    }

    /// Steps of a span, each with its place there.
    pub(super) fn between(&self, first: u64, steps: usize) -> impl Iterator<Item = (usize, &Step)> {
        let within = move |step: &&Step| (first..first + steps as u64).contains(&step.number);
        self.steps.iter().filter(within).map(move |step| ((step.number - first) as usize, step))
    }

    /// Whether a row of this name is kept.
    pub(super) fn has(&self, name: u32) -> bool {
        self.steps.iter().any(|step| step.rows.iter().any(|row| row.name == name))
    }

    #[cfg(test)]
    pub(super) fn rows(&self) -> usize {
        self.steps.iter().map(|step| step.rows.len()).sum()
    }

    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        let rows: usize = self.steps.iter().map(|step| step.rows.capacity()).sum();
        rows * size_of::<Row>() + self.steps.capacity() * size_of::<Step>()
    }
}
