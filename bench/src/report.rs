//! The table a person reads, and the file a program reads.

use crate::{
    effort::{Effort, short},
    measure::Pair,
};
use serde_json::{Value, json};
use std::{fs, path::Path, process::ExitCode};

/// Rows as they come, and which of them are wanted.
pub(crate) struct Report {
    only: Option<String>,
    /// Whether figures are good enough to hold against a target.
    judges: bool,
    rows: Vec<Row>,
}

struct Row {
    name: String,
    pair: Pair,
    unit: &'static str,
    target: Option<Target>,
}

/// What a row is to come to.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Target {
    /// Ours at most this many times the peer's.
    Ratio(f64),
    /// Ours at least this many times the peer's.
    Times(f64),
    /// Ours at most this.
    Ours(f64),
}

impl Report {
    pub(crate) fn new(only: Option<String>, effort: &Effort) -> Self {
        Self { only, judges: !effort.is_quick(), rows: Vec::new() }
    }

    /// Whether a row of this name is to be measured.
    pub(crate) fn wants(&self, name: &str) -> bool {
        self.only.as_ref().is_none_or(|only| name.contains(only.as_str()))
    }

    /// Whether any of these is.
    pub(crate) fn wants_any<'a>(&self, names: impl IntoIterator<Item = &'a String>) -> bool {
        names.into_iter().any(|name| self.wants(name))
    }

    pub(crate) fn header(&self, effort: &Effort) {
        println!("Tollgate next to its peers.");
        println!("Machine: {}.", machine());
        println!(
            "Figures are medians of {} short rounds, in which ours and the peer take turns; ratios are medians of the \
             rounds' ratios. Below 1 ours is cheaper; of shares served and of decisions a second, above 1 is better.",
            effort.rounds
        );
        println!(
            "Both sides' whole answers are kept from the optimiser, and both are held to the answers expected."
        );
        if effort.is_quick() {
            println!("A quick run: it shows that the harness works. Its figures mean nothing.");
        }
        println!();
        println!("{:<72} {:>10} {:>10} {:<12} {:>7}  target", "name", "ours", "peer", "unit", "ratio");
    }

    pub(crate) fn compare(&mut self, name: &str, unit: &'static str, pair: Pair, target: Option<Target>) {
        let target = target.filter(|_| self.judges);
        let row = Row { name: name.to_owned(), pair, unit, target };
        println!(
            "{:<72} {:>10} {:>10} {:<12} {:>7.3}  {}",
            row.name,
            figure(pair.ours),
            figure(pair.peer),
            row.unit,
            pair.ratio,
            row.verdict(),
        );
        self.rows.push(row);
    }

    /// Says why something is not in the table.
    pub(crate) fn left_out(&self, what: &str, why: &str) {
        println!("{what:<72} left out: {why}");
    }

    /// With another report's rows behind its own.
    pub(crate) fn and(mut self, other: Self) -> Self {
        self.rows.extend(other.rows);
        self
    }

    /// Writes the rows beside the package and says how many targets were missed.
    pub(crate) fn finish(self, file: &str) -> ExitCode {
        let missed: Vec<&Row> = self.rows.iter().filter(|row| row.reached() == Some(false)).collect();
        let aimed = self.rows.iter().filter(|row| row.target.is_some()).count();
        println!("\n{} rows; {} of {aimed} targets reached.", self.rows.len(), aimed - missed.len());
        for row in missed {
            println!("  missed: {} {}", row.name, row.verdict());
        }
        let results = Path::new(env!("CARGO_MANIFEST_DIR")).join("results");
        let rows: Vec<Value> = self.rows.iter().map(Row::json).collect();
        let text = serde_json::to_string_pretty(&rows).expect("rows are numbers and names") + "\n";
        match fs::create_dir_all(&results).and_then(|()| fs::write(results.join(file), text)) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("could not write {}: {error}", results.join(file).display());
                ExitCode::FAILURE
            }
        }
    }
}

impl Row {
    fn reached(&self) -> Option<bool> {
        Some(match self.target? {
            Target::Ratio(most) => self.pair.ratio <= most,
            Target::Times(least) => self.pair.ratio >= least,
            // As printed: resident memory comes in pages.
            Target::Ours(most) => (self.pair.ours * 100.0).round() / 100.0 <= most,
        })
    }

    fn verdict(&self) -> String {
        let word = if self.reached() == Some(true) { "reached" } else { "MISSED" };
        match self.target {
            None => String::new(),
            Some(Target::Ratio(most)) => format!("ratio <= {most} {word}"),
            Some(Target::Times(least)) => format!("ratio >= {least} {word}"),
            Some(Target::Ours(most)) => format!("ours <= {most} {word}"),
        }
    }

    fn json(&self) -> Value {
        json!({
            "name": self.name,
            "ours": rounded(self.pair.ours),
            "peer": rounded(self.pair.peer),
            "unit": self.unit,
            "ratio": rounded(self.pair.ratio),
        })
    }
}

fn figure(value: f64) -> String {
    if value < 1_000.0 { format!("{value:.2}") } else { format!("{value:.0}") }
}

/// To four decimals, so that the file's lines stay comparable.
fn rounded(value: f64) -> f64 {
    (value * 10_000.0).round() / 10_000.0
}

/// Processor, cores, memory and kernel, as far as the system tells.
fn machine() -> String {
    let field = |file: &str, name: &str| {
        let text = fs::read_to_string(file).unwrap_or_default();
        let line = text.lines().find(|line| line.starts_with(name)).unwrap_or_default();
        line.split_once(':').map_or_else(|| "unknown".to_owned(), |(_, value)| value.trim().to_owned())
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let processor = field("/proc/cpuinfo", "model name");
    let memory: usize =
        field("/proc/meminfo", "MemTotal").trim_end_matches(" kB").parse().unwrap_or_default();
    format!("{processor}, {} cores, {} GiB, Linux {}", short(cores), memory >> 20, kernel.trim())
}
