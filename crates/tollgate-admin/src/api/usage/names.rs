//! Whose counts there are, and how much was added to them since the last look.

use super::{Counts, ring::Row};
use crate::{Meters, Outcome};
use std::collections::HashMap;

/// Rows that are known by name: more are counted in the total alone.
const MOST: usize = 10_000;

/// Whose counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Name {
    /// A rule's, on a route; `*` is every route.
    Rule { route: Box<str>, rule: Box<str> },
    /// A limit's, at a door that answers questions.
    Answer { door: Box<str>, limit: Box<str> },
}

/// All of them.
#[derive(Default)]
pub(super) struct Names {
    next: u32,
    names: HashMap<u32, Name>,
    rules: HashMap<Box<str>, HashMap<Box<str>, Known>>,
    answers: HashMap<Box<str>, HashMap<Box<str>, Known>>,
    total: Totals,
    /// Counts how often was looked.
    rounds: u64,
}

/// What was counted until the last look.
struct Known {
    name: u32,
    totals: Totals,
    /// The last round in which it was there.
    seen: u64,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Totals([u64; 4]);

impl Names {
    /// What was added to each since the last time, and to all; the first time since the start, which was a moment ago.
    pub(super) fn added(&mut self, meters: &Meters) -> (Vec<Row>, Counts) {
        self.rounds += 1;
        let mut rows = Vec::new();
        let mut whole = Counts::default();
        let mut gathered: Option<(Of, [Box<str>; 2], Totals)> = None;
        let mut all = Vec::new();
        meters.each_decision(|labels, outcome, total| {
            gather(&mut gathered, &mut all, (Of::Rules, labels), outcome, total);
        });
        all.extend(gathered.take());
        meters.each_answer(|labels, outcome, total| {
            gather(&mut gathered, &mut all, (Of::Answers, labels), outcome, total);
        });
        all.extend(gathered.take());
        for (of, [first, second], totals) in all {
            let counts = self.grown(of, &first, &second, totals, &mut rows);
            if of == Of::Answers {
                whole.add(counts);
            }
        }
        let mut ruled = Totals::default();
        meters.each_ruled(|outcome, total| ruled.count(outcome, total));
        whole.add(ruled.since(self.total));
        self.total = ruled;
        (rows, whole)
    }

    fn grown(&mut self, of: Of, first: &str, second: &str, totals: Totals, rows: &mut Vec<Row>) -> Counts {
        let known = match of {
            Of::Rules => &mut self.rules,
            Of::Answers => &mut self.answers,
        };
        if let Some(known) = known.get_mut(first).and_then(|inner| inner.get_mut(second)) {
            let counts = totals.since(known.totals);
            (known.totals, known.seen) = (totals, self.rounds);
            if counts != Counts::default() {
                rows.push(Row { name: known.name, counts });
            }
            return counts;
        }
        if self.names.len() >= MOST {
            // Nobody remembers its total, so all of it would seem new at every look.
            return Counts::default();
        }
        // One that is new since the last look has been counted since then.
        let counts = totals.since(Totals::default());
        let name = self.next;
        self.next = self.next.wrapping_add(1);
        let (first, second): (Box<str>, Box<str>) = (first.into(), second.into());
        let called = match of {
            Of::Rules => Name::Rule { route: first.clone(), rule: second.clone() },
            Of::Answers => Name::Answer { door: first.clone(), limit: second.clone() },
        };
        self.names.insert(name, called);
        let known_now = Known { name, totals, seen: self.rounds };
        known.entry(first).or_default().insert(second, known_now);
        if counts != Counts::default() {
            rows.push(Row { name, counts });
        }
        counts
    }

    pub(super) fn get(&self, name: u32) -> Option<&Name> {
        self.names.get(&name)
    }

    /// Forgets those who are counted no more and that nothing reminds of; looked for now and then.
    pub(super) fn forget(&mut self, is_kept: impl Fn(u32) -> bool) {
        if !self.rounds.is_multiple_of(300) {
            return;
        }
        let now = self.rounds;
        for all in [&mut self.rules, &mut self.answers] {
            for inner in all.values_mut() {
                inner.retain(|_, known| {
                    let stays = known.seen == now || is_kept(known.name);
                    if !stays {
                        self.names.remove(&known.name);
                    }
                    stays
                });
            }
            all.retain(|_, inner| !inner.is_empty());
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Of {
    Rules,
    Answers,
}

type Gathered = (Of, [Box<str>; 2], Totals);

/// Series come in the order of their labels, so that those of one rule stand together.
fn gather(
    gathered: &mut Option<Gathered>,
    done: &mut Vec<Gathered>,
    (of, [first, second]): (Of, [&str; 2]),
    outcome: Outcome,
    total: u64,
) {
    let is_same = gathered.as_ref().is_some_and(|(_, names, _)| &*names[0] == first && &*names[1] == second);
    if !is_same {
        done.extend(gathered.replace((of, [first.into(), second.into()], Totals::default())));
    }
    if let Some((.., totals)) = gathered {
        totals.count(outcome, total);
    }
}

impl Totals {
    fn count(&mut self, outcome: Outcome, total: u64) {
        let place = match outcome {
            Outcome::Allow | Outcome::Skip | Outcome::Shadow => 0,
            Outcome::Wait => 1,
            Outcome::Reject | Outcome::Divert | Outcome::Degrade | Outcome::Error => 2,
        };
        self.0[place] = self.0[place].wrapping_add(total);
        if outcome == Outcome::Shadow {
            self.0[3] = self.0[3].wrapping_add(total);
        }
    }

    fn since(self, before: Self) -> Counts {
        let added = |place: usize| {
            // A series that was forgotten and is there again begins anew.
            let added = self.0[place].checked_sub(before.0[place]).unwrap_or(self.0[place]);
            u32::try_from(added).unwrap_or(u32::MAX)
        };
        Counts { passed: added(0), delayed: added(1), refused: added(2), shadow: added(3) }
    }
}
