//! A call: questions put together, and their answers taken apart.
//!
//! Limits and keys are listed once, and each question names them by their places. Equal checks on one bucket, which is what a
//! hot key brings, are one item: the script says how many of them pass, and what each is told is worked out here, with the
//! formulas of the step.

use crate::{
    limit::Edition,
    numbers::Plain,
    packing::List,
    question::{Garbled, Part, Question, Standing, Taken, Told, integer, number, read_one},
};
use redis::Value;
use std::{
    collections::{HashMap, hash_map::Entry},
    sync::Arc,
};

/// A call: its keys, and its one argument.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) keys: Vec<Arc<[u8]>>,
    pub(crate) argument: Vec<u8>,
    items: Vec<Item>,
}

/// Questions, by their places.
#[derive(Debug)]
enum Item {
    One(usize),
    /// Equal ones.
    Run(Vec<usize>),
}

/// What the script is told of the argument: anything, or that all of it may go the short way.
const ANYTHING: u64 = 1;
const PLAIN: u64 = 2;

const RUN: u64 = 16;
const FOLDED: i64 = -4;

impl Call {
    /// Puts questions together. `now` is passed in by tests; `bounds` tells where a calendar's windows are.
    pub(crate) fn new(
        questions: &[&Question],
        now: Option<u64>,
        bounds: impl Fn(&Edition) -> Option<[u64; 3]>,
    ) -> Self {
        let mut keys: Vec<Arc<[u8]>> = Vec::new();
        let mut chosen: Vec<&Arc<Edition>> = Vec::new();
        let mut places: HashMap<&[u8], usize> = HashMap::with_capacity(questions.len());
        for part in questions.iter().flat_map(|question| &question.parts) {
            match places.entry(&part.key) {
                Entry::Vacant(place) => {
                    place.insert(keys.len());
                    keys.push(Arc::clone(&part.key));
                    chosen.push(&part.edition);
                }
                // Of two editions of one limit the later holds.
                Entry::Occupied(place) if chosen[*place.get()].generation < part.edition.generation => {
                    chosen[*place.get()] = &part.edition;
                }
                Entry::Occupied(_) => {}
            }
        }
        let mut editions: Vec<&Arc<Edition>> = Vec::new();
        let edition_of: Vec<u64> = chosen
            .iter()
            .map(|edition| {
                let known = editions.iter().position(|known| Arc::ptr_eq(known, edition));
                let place = known.unwrap_or_else(|| {
                    editions.push(edition);
                    editions.len() - 1
                });
                place as u64 + 1
            })
            .collect();
        let place = |part: &Part| places.get(&*part.key).map_or(0, |place| *place as u64 + 1);
        let is_chosen = |part: &Part| {
            places.get(&*part.key).is_some_and(|place| Arc::ptr_eq(chosen[*place], &part.edition))
        };
        let items = items(questions, keys.len(), is_chosen);
        let is_plain = questions.iter().all(|question| question.is_plain())
            && chosen.iter().all(|edition| edition.plain.is_some());

        let mut list = List::default();
        list.number(if is_plain { PLAIN } else { ANYTHING });
        list.number_or_none(now);
        list.number(editions.len() as u64);
        for edition in editions {
            list.bytes(&edition.blob);
            list.number(edition.generation);
            match bounds(edition) {
                Some(bounds) => list.triple(bounds),
                None => list.number_or_none(edition.birth.micros()),
            }
            list.number_or_none(edition.since);
        }
        edition_of.into_iter().for_each(|place| list.number(place));
        list.number(items.len() as u64);
        for item in &items {
            match item {
                Item::One(question) => questions[*question].put(&mut list, place),
                Item::Run(equal) => put_run(&mut list, equal.len(), questions[equal[0]], place),
            }
        }
        Self { keys, argument: list.finish(), items }
    }

    /// Reads the answers to the questions that the call was made of, in their order; and the server's time.
    pub(crate) fn read(&self, value: Value, questions: &[&Question]) -> Result<(u64, Vec<Told>), Garbled> {
        let Value::Array(values) = value else { return Err(Garbled) };
        let mut values = values.into_iter();
        let now = number(values.next())?;
        let mut answers: Vec<Option<Told>> = questions.iter().map(|_| None).collect();
        for item in &self.items {
            match item {
                Item::One(place) => {
                    let first = integer(values.next())?;
                    answers[*place] = Some(read_one(&mut values, &self.keys, questions[*place], first)?);
                }
                Item::Run(equal) => {
                    let first = integer(values.next())?;
                    if first == FOLDED {
                        let question = questions[equal[0]];
                        let folded = Folded::read(&mut values)?;
                        let (part, plain) = question.run().ok_or(Garbled)?;
                        for (nth, place) in equal.iter().enumerate() {
                            answers[*place] =
                                Some(Told::Statuses(vec![folded.standing(nth as u64, part, plain)]));
                        }
                        continue;
                    }
                    let mut next = Some(first);
                    for place in equal {
                        let first = match next.take() {
                            Some(first) => first,
                            None => integer(values.next())?,
                        };
                        answers[*place] = Some(read_one(&mut values, &self.keys, questions[*place], first)?);
                    }
                }
            }
        }
        match values.next() {
            None => Ok((now, answers.into_iter().collect::<Option<_>>().ok_or(Garbled)?)),
            Some(_) => Err(Garbled),
        }
    }
}

/// The questions in their order, equal ones together where the first of them stands. With as many keys as questions there are
/// none.
fn items(questions: &[&Question], keys: usize, is_chosen: impl Fn(&Part) -> bool) -> Vec<Item> {
    if keys >= questions.len() {
        return (0..questions.len()).map(Item::One).collect();
    }
    let mut runs: HashMap<(&[u8], u64, Option<u64>), usize> = HashMap::new();
    let mut items = Vec::new();
    for (place, question) in questions.iter().enumerate() {
        let Some((part, _)) = question.run().filter(|(part, _)| is_chosen(part)) else {
            items.push(Item::One(place));
            continue;
        };
        match runs.entry((&part.key, part.cost, part.up_to)) {
            Entry::Vacant(run) => {
                run.insert(items.len());
                items.push(Item::One(place));
            }
            Entry::Occupied(run) => match &mut items[*run.get()] {
                Item::Run(equal) => equal.push(place),
                first @ Item::One(_) => {
                    let Item::One(earlier) = *first else { continue };
                    *first = Item::Run(vec![earlier, place]);
                }
            },
        }
    }
    items
}

/// So many questions like this one: their number, and then what stands for each.
fn put_run(list: &mut List, count: usize, question: &Question, place: impl Fn(&Part) -> u64) {
    list.number(RUN);
    list.number(count as u64);
    // The permit, which nobody needs; one part.
    list.number(0);
    list.number(1);
    for part in &question.parts {
        list.number(place(part));
        list.number(part.cost);
        list.number_or_none(part.up_to);
    }
}

/// How a run of equal checks went: so many passed, on a bucket that stood so before; and what all the others are told.
struct Folded {
    passed: u64,
    units: u64,
    rest: u64,
    limit: u64,
    left: u64,
    retry: u64,
    reset: u64,
}

impl Folded {
    fn read(values: &mut impl Iterator<Item = Value>) -> Result<Self, Garbled> {
        let mut next = || number(values.next());
        Ok(Self {
            passed: next()?,
            units: next()?,
            rest: next()?,
            limit: next()?,
            left: next()?,
            retry: next()?,
            reset: next()?,
        })
    }

    /// What the `nth` of them is told.
    fn standing(&self, nth: u64, part: &Part, plain: &Plain) -> Standing {
        let is_refused = nth >= self.passed;
        let used = u128::from(self.units) + u128::from(nth + 1) * u128::from(part.cost);
        let credits = used * u128::from(plain.price) + u128::from(self.rest);
        let after = || u64::try_from(credits.div_ceil(u128::from(plain.earn))).unwrap_or(u64::MAX);
        let left = || {
            let used = used + u128::from(self.rest > 0);
            u64::try_from(u128::from(plain.capacity).saturating_sub(used)).unwrap_or(0)
        };
        Standing {
            verdict: if is_refused { 2 } else { 0 },
            banned: false,
            slots: false,
            time: if is_refused { self.retry } else { 0 },
            limit: self.limit,
            remaining: if is_refused { self.left } else { left() },
            reset: Some(if is_refused { self.reset } else { after() }),
            taken: Taken::new(),
            lent: (0, 0),
        }
    }
}
