//! A call: questions put together, and their answers taken apart.
//!
//! Limits and keys are listed once, and each question names them by their places. Equal checks, which is what a hot key
//! brings, are one item. Where a call has nothing but checks of plain buckets that pass or are refused at once, the script only
//! tells how each bucket stood, and what every charge is told is worked out in [`level`](crate::level).

use crate::{
    hash::Quick,
    level::{Level, decided},
    limit::Edition,
    packing::List,
    question::{Garbled, Part, Question, Told, integer, number, read_one},
};
use redis::Value;
use smallvec::SmallVec;
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

/// Questions, by their places: one, or several that are equal.
#[derive(Debug)]
struct Item {
    first: usize,
    others: Vec<usize>,
    /// The places of its keys.
    keys: SmallVec<[usize; 3]>,
}

/// What the script is told of the argument: anything; that all of it are checks of plain buckets; that they pass or are refused
/// at once besides; that there are several buckets, and each has one item of its own.
const ANYTHING: u64 = 1;
const PLAIN: u64 = 2;
const RUNS: u64 = 3;
const EACH: u64 = 4;

/// A question that stands for several.
const RUN: u64 = 16;

impl Call {
    /// Puts questions together. `now` is passed in by tests; `bounds` tells where a calendar's windows are.
    pub(crate) fn new(
        questions: &[&Question],
        now: Option<u64>,
        bounds: impl Fn(&Edition) -> Option<[u64; 3]>,
    ) -> Self {
        let places = Places::of(questions);
        let (items, format) = places.items(questions);
        let mut editions: Vec<&Arc<Edition>> = Vec::new();
        let edition_of: Vec<u64> = places
            .chosen
            .iter()
            .map(|edition| {
                let known = editions.iter().rposition(|known| Arc::ptr_eq(known, edition));
                let place = known.unwrap_or_else(|| {
                    editions.push(edition);
                    editions.len() - 1
                });
                place as u64 + 1
            })
            .collect();

        let mut list = List::with_capacity(96 * editions.len() + 16 * places.of_parts.len());
        list.number(format);
        list.number_or_none(now);
        list.number(editions.len() as u64);
        for edition in editions {
            put_limit(&mut list, edition, bounds(edition));
        }
        edition_of.into_iter().for_each(|place| list.number(place));
        if format != EACH {
            list.number(items.len() as u64);
        }
        for Item { first, others, keys } in &items {
            let (question, count) = (questions[*first], 1 + others.len());
            match format {
                EACH => put_each(&mut list, count, question),
                RUNS => put_run(&mut list, count, question, keys),
                _ if others.is_empty() => question.put(&mut list, keys),
                _ => put_run(&mut list, count, question, keys),
            }
        }
        Self { keys: places.keys, argument: list.finish(), items }
    }

    /// Reads the answers to the questions that the call was made of, in their order; and the server's time.
    pub(crate) fn read(&self, value: Value, questions: &[&Question]) -> Result<(u64, Vec<Told>), Garbled> {
        match value {
            Value::BulkString(bytes) => self.read_levels(&bytes, questions),
            Value::Array(values) => self.read_each(values, questions),
            _ => Err(Garbled),
        }
    }

    /// How every key stood: the questions are answered here, one after the other as the script did.
    fn read_levels(&self, bytes: &[u8], questions: &[&Question]) -> Result<(u64, Vec<Told>), Garbled> {
        let mut numbers = bytes.chunks(8).map(|number| number.try_into().map(u64::from_be_bytes));
        let mut next = || numbers.next().and_then(Result::ok).ok_or(Garbled);
        let now = next()?;
        let mut levels = Vec::with_capacity(self.keys.len());
        for _ in &self.keys {
            levels.push(Level { units: next()?, rest: next()? });
        }
        if numbers.next().is_some() {
            return Err(Garbled);
        }
        let mut answers: Vec<Option<Told>> = questions.iter().map(|_| None).collect();
        for item in &self.items {
            for place in item.each() {
                let standings = decided(questions[place], &item.keys, &mut levels).ok_or(Garbled)?;
                answers[place] = Some(Told::Statuses(standings));
            }
        }
        Ok((now, answers.into_iter().collect::<Option<_>>().ok_or(Garbled)?))
    }

    fn read_each(&self, values: Vec<Value>, questions: &[&Question]) -> Result<(u64, Vec<Told>), Garbled> {
        let mut values = values.into_iter();
        let now = number(values.next())?;
        let mut answers: Vec<Option<Told>> = questions.iter().map(|_| None).collect();
        for place in self.items.iter().flat_map(Item::each) {
            let first = integer(values.next())?;
            answers[place] = Some(read_one(&mut values, &self.keys, questions[place], first)?);
        }
        match values.next() {
            None => Ok((now, answers.into_iter().collect::<Option<_>>().ok_or(Garbled)?)),
            Some(_) => Err(Garbled),
        }
    }
}

impl Item {
    fn each(&self) -> impl Iterator<Item = usize> {
        std::iter::once(self.first).chain(self.others.iter().copied())
    }
}

/// Where the keys of all parts stand in a call.
struct Places<'a> {
    keys: Vec<Arc<[u8]>>,
    /// The limit that holds for each key.
    chosen: Vec<&'a Arc<Edition>>,
    /// By part, question after question; and where each question's parts begin.
    of_parts: Vec<usize>,
    begin: Vec<usize>,
}

impl<'a> Places<'a> {
    fn of(questions: &[&'a Question]) -> Self {
        let (mut keys, mut chosen): (Vec<Arc<[u8]>>, Vec<&Arc<Edition>>) = (Vec::new(), Vec::new());
        let mut known: HashMap<&[u8], usize, Quick> = HashMap::default();
        let (mut of_parts, mut begin) =
            (Vec::with_capacity(questions.len()), Vec::with_capacity(questions.len()));
        let mut last: Option<(&[u8], usize)> = None;
        for question in questions {
            begin.push(of_parts.len());
            for part in &question.parts {
                let place = match last.filter(|(key, _)| **key == *part.key) {
                    Some((_, place)) => place,
                    None => match known.entry(&part.key) {
                        Entry::Vacant(new) => {
                            keys.push(Arc::clone(&part.key));
                            chosen.push(&part.edition);
                            *new.insert(keys.len() - 1)
                        }
                        Entry::Occupied(place) => *place.get(),
                    },
                };
                // Of two editions of one limit the later holds.
                if chosen[place].generation < part.edition.generation {
                    chosen[place] = &part.edition;
                }
                last = Some((&part.key, place));
                of_parts.push(place);
            }
        }
        Self { keys, chosen, of_parts, begin }
    }

    fn of_question(&self, question: usize) -> &[usize] {
        let end = self.begin.get(question + 1).copied().unwrap_or(self.of_parts.len());
        &self.of_parts[self.begin[question]..end]
    }

    /// Questions as they go into the call, equal ones together where the first of them stands; and what the script is told of
    /// them. Checks that come at the same time come in any order, but none passes by anything else.
    fn items(&self, questions: &[&Question]) -> (Vec<Item>, u64) {
        // By its first key, the last item that others may be equal to.
        let mut latest: Vec<Option<usize>> = vec![None; self.keys.len()];
        let mut items: Vec<Item> = Vec::with_capacity(questions.len().min(self.of_parts.len()));
        let mut all_at_once = true;
        for (place, question) in questions.iter().enumerate() {
            let keys = self.of_question(place);
            let is_at_once = self.is_at_once(keys, question);
            if let (true, Some(first)) = (is_at_once, keys.first()) {
                let equal = latest[*first].filter(|item| {
                    *items[*item].keys == *keys && question.charges_as(questions[items[*item].first])
                });
                if let Some(item) = equal {
                    items[item].others.push(place);
                    continue;
                }
                latest[*first] = Some(items.len());
            } else {
                all_at_once = false;
                latest.fill(None);
            }
            items.push(Item { first: place, others: Vec::new(), keys: keys.into() });
        }
        let is_plain = || {
            questions.iter().all(|question| question.is_plain())
                && self.chosen.iter().all(|edition| edition.plain.is_some())
        };
        // Keys stand in the order in which questions first name them, and so do the items of those that have one each.
        let has_one_each = || {
            self.keys.len() > 1 && items.len() == self.keys.len() && self.of_parts.len() == questions.len()
        };
        let format = match all_at_once {
            true if has_one_each() => EACH,
            true => RUNS,
            false if is_plain() => PLAIN,
            false => ANYTHING,
        };
        (items, format)
    }

    /// Whether its charges pass or are refused at once, under the very numbers that hold for their keys.
    fn is_at_once(&self, keys: &[usize], question: &Question) -> bool {
        let hold = |(key, part): (&usize, &Part)| Arc::ptr_eq(self.chosen[*key], &part.edition);
        question.is_at_once() && keys.iter().zip(&question.parts).all(hold)
    }
}

/// A limit: what `script/one.lua` tells.
fn put_limit(list: &mut List, edition: &Edition, bounds: Option<[u64; 3]>) {
    list.bytes(&edition.head);
    list.bytes(edition.level_at.as_bytes());
    match bounds {
        Some(bounds) => list.triple(bounds),
        None => list.number_or_none(edition.birth.micros()),
    }
    list.number_or_none(edition.since);
    let plain = edition.plain.as_ref().map_or([0; 5], |plain| {
        [plain.earn, plain.price, plain.capacity.into(), plain.free.into(), plain.passes_or_not.into()]
    });
    plain.into_iter().for_each(|number| list.number(number));
}

/// So many charges like this one, on the key in its place.
fn put_each(list: &mut List, count: usize, question: &Question) {
    list.number(count as u64);
    for part in &question.parts {
        list.number(part.cost);
        list.number_or_none(part.up_to);
    }
}

/// So many questions like this one: their number, and then what stands for each.
fn put_run(list: &mut List, count: usize, question: &Question, places: &[usize]) {
    list.number(RUN);
    list.number(count as u64);
    // The permit, which nobody needs.
    list.number(0);
    list.number(question.parts.len() as u64);
    for (part, place) in question.parts.iter().zip(places) {
        list.number(*place as u64 + 1);
        list.number(part.cost);
        list.number_or_none(part.up_to);
    }
}
