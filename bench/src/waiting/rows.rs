//! Several subjects in turn, several figures each: the rows that hold two of them side by side.

use crate::{measure::Pair, report::Report};
use std::collections::BTreeMap;

/// One figure of two subjects.
pub(super) struct Row {
    pub(super) name: String,
    pub(super) unit: &'static str,
    pub(super) ours: String,
    pub(super) peer: String,
    /// Which of a subject's figures.
    pub(super) figure: usize,
}

/// Runs the subjects of all wanted rows once a round, beginning with another one every time.
pub(super) fn measure(
    report: &mut Report,
    rounds: usize,
    mut rows: Vec<Row>,
    run: impl Fn(&str) -> Vec<f64>,
) {
    rows.retain(|row| report.wants(&row.name));
    let mut subjects: Vec<&str> = rows.iter().flat_map(|row| [&*row.ours, &*row.peer]).collect();
    subjects.sort_unstable();
    subjects.dedup();
    let mut seen: Vec<BTreeMap<&str, Vec<f64>>> = Vec::new();
    for round in 0..rounds {
        let turn = |index: usize| subjects[(round + index) % subjects.len()];
        seen.push((0..subjects.len()).map(turn).map(|subject| (subject, run(subject))).collect());
    }
    for row in &rows {
        let figures = seen.iter().map(|round| (round[&*row.ours][row.figure], round[&*row.peer][row.figure]));
        report.compare(&row.name, row.unit, Pair::of(&figures.collect::<Vec<_>>()), None);
    }
}
