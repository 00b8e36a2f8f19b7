//! All families, and their text.

use super::{
    Counter, Format, Gauge, Histogram,
    family::{Family, Head, Kind, Member, Metric},
    text::{Series, Text},
};
use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// All families. Clones are the same registry.
#[derive(Clone, Default)]
pub struct Registry(Arc<Mutex<BTreeMap<&'static str, Arc<dyn Member>>>>);

impl Registry {
    /// An empty one.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A family of counters. Its name ends in `_total`.
    ///
    /// # Panics
    ///
    /// If the name is taken, or a name or label is none that Prometheus takes: both are written in the program.
    #[must_use]
    pub fn counters(
        &self,
        name: &'static str,
        help: &'static str,
        labels: &'static [&'static str],
    ) -> Family<Counter> {
        self.add(name, help, labels)
    }

    /// A family of gauges.
    ///
    /// # Panics
    ///
    /// As [`counters`](Self::counters).
    #[must_use]
    pub fn gauges(
        &self,
        name: &'static str,
        help: &'static str,
        labels: &'static [&'static str],
    ) -> Family<Gauge> {
        self.add(name, help, labels)
    }

    /// A family of histograms. Its name ends in `_seconds`.
    ///
    /// # Panics
    ///
    /// As [`counters`](Self::counters).
    #[must_use]
    pub fn histograms(
        &self,
        name: &'static str,
        help: &'static str,
        labels: &'static [&'static str],
    ) -> Family<Histogram> {
        self.add(name, help, labels)
    }

    /// A gauge whose values are asked for when somebody reads: `ask` gives label values and the number for each.
    ///
    /// # Panics
    ///
    /// As [`counters`](Self::counters).
    pub fn ask_gauge(
        &self,
        name: &'static str,
        help: &'static str,
        labels: &'static [&'static str],
        ask: impl Fn() -> Vec<(Vec<String>, u64)> + Send + Sync + 'static,
    ) {
        self.ask(Head { name, help, kind: Kind::Gauge, labels }, Box::new(ask));
    }

    /// A counter whose totals are asked for when somebody reads; whoever is asked sees to it that they do not fall.
    ///
    /// # Panics
    ///
    /// As [`counters`](Self::counters).
    pub fn ask_counter(
        &self,
        name: &'static str,
        help: &'static str,
        labels: &'static [&'static str],
        ask: impl Fn() -> Vec<(Vec<String>, u64)> + Send + Sync + 'static,
    ) {
        self.ask(Head { name, help, kind: Kind::Counter, labels }, Box::new(ask));
    }

    /// Lets go of series that nobody holds any more and that were never used: for when a reload is done and the old rules
    /// are dropped. Used ones stay, within bounds.
    pub fn retire(&self) {
        for family in self.families() {
            family.retire();
        }
    }

    /// Everything there is, as text.
    #[must_use]
    pub fn text(&self, format: Format) -> String {
        let mut text = Text::new(format);
        for family in self.families() {
            family.write(&mut text);
        }
        text.end()
    }

    fn add<M: Metric>(
        &self,
        name: &'static str,
        help: &'static str,
        labels: &'static [&'static str],
    ) -> Family<M> {
        let family = Family::new(Head { name, help, kind: M::KIND, labels });
        self.insert(Arc::new(family.clone()));
        family
    }

    fn ask(&self, head: Head, ask: Ask) {
        self.insert(Arc::new(Asked { head, ask }));
    }

    fn insert(&self, member: Arc<dyn Member>) {
        let Head { name, labels, kind, .. } = *member.head();
        assert!(is_name(name, true), "{name} is no name of a metric");
        assert_eq!(
            name.ends_with("_total"),
            kind == Kind::Counter,
            "{name}: counters, and only they, end in _total"
        );
        assert!(kind != Kind::Histogram || name.ends_with("_seconds"), "{name}: histograms end in _seconds");
        for label in labels {
            assert!(
                is_name(label, false) && !label.starts_with("__") && *label != "le",
                "{label} is no label"
            );
        }
        let taken = self.hold().insert(name, member).is_some();
        assert!(!taken, "there are two families called {name}");
    }

    fn families(&self) -> Vec<Arc<dyn Member>> {
        self.hold().values().cloned().collect()
    }

    fn hold(&self) -> MutexGuard<'_, BTreeMap<&'static str, Arc<dyn Member>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.hold().keys()).finish()
    }
}

type Ask = Box<dyn Fn() -> Vec<(Vec<String>, u64)> + Send + Sync>;

/// A family that somebody else knows.
struct Asked {
    head: Head,
    ask: Ask,
}

impl Member for Asked {
    fn head(&self) -> &Head {
        &self.head
    }

    fn write(&self, text: &mut Text) {
        // By labels, so that the order is always the same and no series is there twice.
        let answers: BTreeMap<Vec<String>, u64> =
            (self.ask)().into_iter().filter(|(values, _)| values.len() == self.head.labels.len()).collect();
        if answers.is_empty() {
            return;
        }
        text.head(&self.head);
        for (values, number) in answers {
            let values: Vec<Box<str>> = values.into_iter().map(Into::into).collect();
            let mut series: Series<'_> = text.series(&self.head, &values);
            series.sample("", None, number);
        }
    }

    fn retire(&self) {}
}

fn is_name(name: &str, colons: bool) -> bool {
    let letter = |byte: u8| byte.is_ascii_alphabetic() || byte == b'_' || colons && byte == b':';
    name.bytes().next().is_some_and(letter) && name.bytes().all(|byte| letter(byte) || byte.is_ascii_digit())
}
