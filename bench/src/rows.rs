//! Several subjects in turn, several figures each: the rows that hold two of them side by side.

use crate::{
    measure::Pair,
    report::{Report, Target},
};
use std::collections::BTreeMap;

/// One figure of two subjects.
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) unit: &'static str,
    pub(crate) ours: String,
    pub(crate) peer: String,
    /// Which of a subject's figures.
    pub(crate) figure: usize,
    pub(crate) target: Option<Target>,
}

/// Runs the subjects of all wanted rows once a round, beginning with another one every time.
pub(crate) fn measure(
    report: &mut Report,
    rounds: usize,
    mut rows: Vec<Row>,
    mut run: impl FnMut(&str) -> Vec<f64>,
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
        report.compare(&row.name, row.unit, Pair::of(&figures.collect::<Vec<_>>()), row.target);
    }
}
