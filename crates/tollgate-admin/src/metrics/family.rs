//! All series of one name, told apart by their labels.

use super::text::{Series, Text};
use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// How many series that nobody holds any more a family keeps.
pub(super) const MAX_RETIRED: usize = 1000;

/// All series of one name. Clones are the same family.
pub struct Family<M: Metric>(Arc<Inner<M>>);

/// What a family can be made of. Not for others to implement.
pub trait Metric: Clone + Send + Sync + 'static {
    /// Where the next ones are put.
    type Room: Default + Send;
    /// What it is called in the text.
    const KIND: Kind;
    /// A new one, at nothing.
    fn make(room: &mut Self::Room) -> Self;
    /// Whether anybody but the family has it.
    fn is_held(&self) -> bool;
    /// Whether it would be missed.
    fn was_used(&self) -> bool;
    /// Whether it tells something.
    fn is_shown(&self) -> bool {
        true
    }
    /// Its samples.
    fn write(&self, series: &mut Series<'_>);
}

/// What a family is, in the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Only grows.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Counts in buckets.
    Histogram,
}

/// What a family is called.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head {
    pub(super) name: &'static str,
    pub(super) help: &'static str,
    pub(super) kind: Kind,
    pub(super) labels: &'static [&'static str],
}

/// A family of any kind, as the registry sees it.
pub(super) trait Member: Send + Sync {
    fn head(&self) -> &Head;
    fn write(&self, text: &mut Text);
    fn retire(&self);
}

struct Inner<M: Metric> {
    head: Head,
    all: Mutex<All<M>>,
}

struct All<M: Metric> {
    room: M::Room,
    series: BTreeMap<Labels, Entry<M>>,
    /// Counts how often was asked who is still held.
    rounds: u64,
}

type Labels = Box<[Box<str>]>;

struct Entry<M> {
    metric: M,
    /// The round in which nobody held it any more.
    retired: Option<u64>,
}

impl<M: Metric> Family<M> {
    pub(super) fn new(head: Head) -> Self {
        let all = All { room: M::Room::default(), series: BTreeMap::new(), rounds: 0 };
        Self(Arc::new(Inner { head, all: Mutex::new(all) }))
    }

    /// The series with these label values, in the order of the family's labels: the one there is, or a new one.
    ///
    /// Looks it up: for when rules are compiled, not for requests. Values come from the rule file, never from a request.
    ///
    /// # Panics
    ///
    /// If there are not as many values as labels.
    #[must_use]
    pub fn with(&self, values: &[&str]) -> M {
        let Head { name, labels, .. } = self.0.head;
        assert_eq!(values.len(), labels.len(), "{name} has the labels {labels:?}, and was given {values:?}");
        let labels: Labels = values.iter().copied().map(Box::from).collect();
        let All { room, series, .. } = &mut *self.hold();
        let entry = series.entry(labels).or_insert_with(|| Entry { metric: M::make(room), retired: None });
        entry.retired = None;
        entry.metric.clone()
    }

    /// Every series, in the order of their labels. Whoever wants a new handle waits meanwhile, and nobody who counts.
    pub(super) fn each(&self, mut tell: impl FnMut(&[Box<str>], &M)) {
        self.hold().series.iter().for_each(|(labels, entry)| tell(labels, &entry.metric));
    }

    fn hold(&self) -> MutexGuard<'_, All<M>> {
        self.0.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<M: Metric> Member for Family<M> {
    fn head(&self) -> &Head {
        &self.0.head
    }

    fn write(&self, text: &mut Text) {
        // Copied, so that nobody waits for the text: there may be thousands.
        let all: Vec<_> = (self.hold().series.iter())
            .filter(|(_, entry)| entry.metric.is_shown())
            .map(|(labels, entry)| (labels.clone(), entry.metric.clone()))
            .collect();
        if all.is_empty() {
            return;
        }
        text.head(&self.0.head);
        for (labels, metric) in all {
            metric.write(&mut text.series(&self.0.head, &labels));
        }
    }

    fn retire(&self) {
        let mut all = self.hold();
        all.rounds += 1;
        let now = all.rounds;
        all.series.retain(|_, entry| entry.metric.is_held() || entry.metric.was_used());
        for entry in all.series.values_mut() {
            entry.retired = if entry.metric.is_held() { None } else { entry.retired.or(Some(now)) };
        }
        let mut retired: Vec<_> = all.series.values().filter_map(|entry| entry.retired).collect();
        if retired.len() > MAX_RETIRED {
            // Those of one round go together: none of them is older.
            retired.sort_unstable();
            let youngest_to_go = retired[retired.len() - MAX_RETIRED - 1];
            all.series.retain(|_, entry| entry.retired.is_none_or(|round| round > youngest_to_go));
        }
    }
}

impl<M: Metric> Clone for Family<M> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<M: Metric> fmt::Debug for Family<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Family").field("name", &self.0.head.name).finish_non_exhaustive()
    }
}
