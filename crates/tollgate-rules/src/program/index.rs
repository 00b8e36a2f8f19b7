//! Which of many conditions may hold, without asking each.
//!
//! From every condition follow things it cannot hold without: a host, a fact about the path, a value of some other
//! subject. Conditions are filed under up to three of them, one of each sort, the rarest of its sort; a request looks
//! under what it has. So a file of thousands of routes costs a few lookups, whether its routes differ by path, by host
//! or by a header, and only what is found there is asked in full, in file order.
//!
//! A request has one host, so there are two lookups for each fact that holds of its path. Under each there may be
//! several subjects; where they are many, the request's own headers, parameters and cookies are gone through instead.
//! All of it together is at most as much work as asking every condition.

use super::{
    Map,
    asking::Asking,
    expr::Expr,
    paths::Fact,
    subjects::{SubjectId, ValueId},
};
use std::{
    cmp::Reverse,
    collections::{BTreeMap, BinaryHeap, binary_heap::PeekMut},
    ops::{ControlFlow, Range},
};

/// So few conditions are asked one by one.
const FEW: usize = 4;
/// So many subjects in one place are looked up one by one.
const FEW_SUBJECTS: usize = 8;
/// So few lists are merged by looking at each.
const FEW_LISTS: usize = 8;
/// What stands for "any host" and "any path".
const ANY: u32 = u32::MAX;

/// All conditions of a program, list after list. Equal ones are kept once: thousands of routes often have the same rules,
/// and what is used often is near.
#[derive(Default)]
pub(super) struct Conditions {
    list: Vec<Condition>,
    exprs: Vec<Expr>,
    known: Map<Expr, u32>,
}

struct Condition {
    /// What whoever asks calls it.
    number: u32,
    expr: u32,
}

impl Conditions {
    /// Adds one, unless it can never hold. Numbers rise within a list.
    pub(super) fn add(&mut self, number: u32, expr: Expr) {
        if expr == Expr::Never {
            return;
        }
        let fresh = self.exprs.len() as u32;
        let id = *self.known.entry(expr.clone()).or_insert(fresh);
        if id == fresh {
            self.exprs.push(expr);
        }
        self.list.push(Condition { number, expr: id });
    }

    /// Where the next list begins.
    pub(super) fn end(&self) -> u32 {
        self.list.len() as u32
    }

    /// Called once, when all are known.
    pub(super) fn finish(&mut self) {
        self.known = Map::default();
    }

    fn expr(&self, place: u32) -> &Expr {
        &self.exprs[self.list[place as usize].expr as usize]
    }
}

/// One list of conditions.
pub(super) struct Index {
    places: Range<u32>,
    /// `None` where they are few.
    filed: Option<Box<Filed>>,
}

struct Filed {
    host: Option<SubjectId>,
    /// By host and fact.
    drawers: Map<(ValueId, Fact), Drawer>,
    /// Places of conditions, list after list, each in order.
    postings: Vec<u32>,
}

/// What a condition is filed under: host, fact, and perhaps one value more.
type Under = (ValueId, Fact, Option<(SubjectId, ValueId)>);

/// From where to where in the postings.
type List = (u32, u32);

#[derive(Default)]
struct Drawer {
    /// Filed under nothing else.
    plain: List,
    more: Option<Box<More>>,
}

#[derive(Default)]
struct More {
    by_value: Map<(SubjectId, ValueId), List>,
    subjects: Vec<SubjectId>,
}

impl Index {
    pub(super) fn new(conditions: &Conditions, places: Range<u32>, host: Option<SubjectId>) -> Self {
        let filed = (places.len() > FEW).then(|| Box::new(Filed::new(conditions, places.clone(), host)));
        Self { places, filed }
    }

    /// Visits those that hold, in order, until told to stop.
    pub(super) fn visit(
        &self,
        conditions: &Conditions,
        asking: &mut Asking<'_, '_>,
        mut found: impl FnMut(u32) -> ControlFlow<()>,
    ) {
        let mut ask = |asking: &mut Asking<'_, '_>, place: u32| {
            if asking.holds(conditions.expr(place)) {
                found(conditions.list[place as usize].number)
            } else {
                ControlFlow::Continue(())
            }
        };
        let Some(filed) = &self.filed else {
            let _ = self.places.clone().try_for_each(|place| ask(asking, place));
            return;
        };
        let mut lists = std::mem::take(&mut asking.scratch.lists);
        lists.clear();
        filed.collect(asking, &mut lists);
        filed.merge(&mut lists, |place| ask(asking, place));
        asking.scratch.lists = lists;
    }
}

impl Filed {
    fn new(conditions: &Conditions, places: Range<u32>, host: Option<SubjectId>) -> Self {
        let mut uses = Uses::default();
        for place in places.clone() {
            uses.count(conditions.expr(place));
        }
        let mut filed: BTreeMap<Under, Vec<u32>> = BTreeMap::new();
        for place in places {
            let cabinet = Cabinet::new(uses.needs(conditions.expr(place)), host);
            for host in &cabinet.hosts {
                for fact in &cabinet.facts {
                    for value in &cabinet.values {
                        filed.entry((*host, *fact, *value)).or_default().push(place);
                    }
                }
            }
        }
        let mut it = Self { host, drawers: Map::default(), postings: Vec::new() };
        for ((host, fact, value), places) in filed {
            let first = it.postings.len() as u32;
            it.postings.extend(places);
            let list = (first, it.postings.len() as u32);
            let drawer = it.drawers.entry((host, fact)).or_default();
            match value {
                None => drawer.plain = list,
                Some((subject, value)) => {
                    let more = drawer.more.get_or_insert_default();
                    more.by_value.insert((subject, value), list);
                    // They come in order of their subject.
                    if more.subjects.last() != Some(&subject) {
                        more.subjects.push(subject);
                    }
                }
            }
        }
        it
    }

    /// The lists in which the request's conditions are.
    fn collect(&self, asking: &mut Asking<'_, '_>, lists: &mut Vec<List>) {
        let host = self.host.map_or(ANY, |host| asking.value(host));
        let hosts = if host == ANY { &[ANY][..] } else { &[host, ANY] };
        let held = std::mem::take(&mut asking.scratch.held);
        let mut present = None;
        for &host in hosts {
            for fact in held.iter().copied().chain([ANY]) {
                let Some(drawer) = self.drawers.get(&(host, fact)) else { continue };
                if drawer.plain.0 < drawer.plain.1 {
                    lists.push(drawer.plain);
                }
                let Some(more) = &drawer.more else { continue };
                let subjects = if more.subjects.len() <= FEW_SUBJECTS {
                    more.subjects.as_slice()
                } else {
                    present.get_or_insert_with(|| asking.present()).as_slice()
                };
                for &subject in subjects {
                    let value = asking.value(subject);
                    lists.extend(more.by_value.get(&(subject, value)));
                }
            }
        }
        asking.scratch.held = held;
    }

    /// Visits what is in the lists, in order and each once, until told to stop.
    fn merge(&self, lists: &mut Vec<List>, mut visit: impl FnMut(u32) -> ControlFlow<()>) {
        let mut last = None;
        let mut once = |place: u32| {
            if last.replace(place) == Some(place) { ControlFlow::Continue(()) } else { visit(place) }
        };
        if lists.len() <= FEW_LISTS {
            while let Some(least) = lists.iter_mut().min_by_key(|(at, _)| self.postings[*at as usize]) {
                let place = self.postings[least.0 as usize];
                least.0 += 1;
                if once(place).is_break() {
                    return;
                }
                lists.retain(|(at, end)| at < end);
            }
            return;
        }
        let heads = lists.iter().map(|&(at, end)| Reverse((self.postings[at as usize], at, end)));
        let mut heap: BinaryHeap<_> = heads.collect();
        while let Some(mut head) = heap.peek_mut() {
            let Reverse((place, at, end)) = *head;
            if at + 1 < end {
                *head = Reverse((self.postings[at as usize + 1], at + 1, end));
                drop(head);
            } else {
                PeekMut::pop(head);
            }
            if once(place).is_break() {
                return;
            }
        }
    }
}

/// What a condition can be filed under: the path, or a subject.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Sort {
    Path,
    Subject(SubjectId),
}

/// For every sort, alternatives of which one must hold, and how common they are.
type Needs = BTreeMap<Sort, (usize, Vec<u32>)>;

/// How often each is asked for, in all conditions together.
#[derive(Default)]
struct Uses(Map<(Sort, u32), usize>);

impl Uses {
    fn count(&mut self, expr: &Expr) {
        match expr {
            Expr::All(list) | Expr::Any(list) => list.iter().for_each(|expr| self.count(expr)),
            Expr::Fact(fact) => self.one(Sort::Path, *fact),
            Expr::Equal(subject, value) => self.one(Sort::Subject(*subject), *value),
            Expr::OneOf(subject, values) => {
                values.iter().for_each(|value| self.one(Sort::Subject(*subject), *value));
            }
            Expr::Always | Expr::Never | Expr::Not(_) | Expr::Check(_) | Expr::Late(_) => {}
        }
    }

    fn one(&mut self, sort: Sort, value: u32) {
        *self.0.entry((sort, value)).or_default() += 1;
    }

    fn need(&self, sort: Sort, values: Vec<u32>) -> Needs {
        let common = values.iter().map(|value| self.0.get(&(sort, *value)).copied().unwrap_or(0)).sum();
        Needs::from([(sort, (common, values))])
    }

    /// What the condition cannot hold without.
    fn needs(&self, expr: &Expr) -> Needs {
        match expr {
            Expr::Fact(fact) => self.need(Sort::Path, vec![*fact]),
            Expr::Equal(subject, value) => self.need(Sort::Subject(*subject), vec![*value]),
            Expr::OneOf(subject, values) => self.need(Sort::Subject(*subject), values.to_vec()),
            Expr::All(list) => list.iter().map(|expr| self.needs(expr)).fold(Needs::new(), both),
            Expr::Any(list) => list.iter().map(|expr| self.needs(expr)).reduce(either).unwrap_or_default(),
            Expr::Always | Expr::Never | Expr::Not(_) | Expr::Check(_) | Expr::Late(_) => Needs::new(),
        }
    }
}

/// Any part's need is one of the whole; the rarest of each sort says most.
fn both(mut all: Needs, part: Needs) -> Needs {
    for (sort, need) in part {
        match all.get(&sort) {
            Some(known) if known.0 <= need.0 => {}
            _ => drop(all.insert(sort, need)),
        }
    }
    all
}

/// Only what all alternatives need is needed.
fn either(mut any: Needs, mut part: Needs) -> Needs {
    any.retain(|sort, (common, values)| match part.remove(sort) {
        Some((more, others)) => {
            *common += more;
            values.extend(others);
            true
        }
        None => false,
    });
    any
}

/// Where one condition is filed: under each host, each fact and each value.
struct Cabinet {
    hosts: Vec<ValueId>,
    facts: Vec<Fact>,
    values: Vec<Option<(SubjectId, ValueId)>>,
}

impl Cabinet {
    fn new(mut needs: Needs, host: Option<SubjectId>) -> Self {
        let mut take = |sort| {
            let mut values = needs.remove(&sort)?.1;
            values.sort_unstable();
            values.dedup();
            Some(values)
        };
        let hosts = host.and_then(|host| take(Sort::Subject(host))).unwrap_or_else(|| vec![ANY]);
        let facts = take(Sort::Path).unwrap_or_else(|| vec![ANY]);
        let rarest = needs.iter().min_by_key(|(_, (common, _))| *common);
        let values = match rarest {
            Some((Sort::Subject(subject), (_, values))) => {
                let mut values: Vec<_> = values.iter().map(|value| Some((*subject, *value))).collect();
                values.sort_unstable();
                values.dedup();
                values
            }
            _ => vec![None],
        };
        let mut it = Self { hosts, facts, values };
        it.narrow();
        it
    }

    /// Lists of alternatives multiply. Where that grows beyond what the file itself holds, lists are given up.
    fn narrow(&mut self) {
        let (hosts, facts, values) = (self.hosts.len(), self.facts.len(), self.values.len());
        let most = 64.max(2 * (hosts + facts + values));
        if hosts * facts * values > most {
            self.values = vec![None];
        }
        if hosts * facts > most {
            *(if hosts > facts { &mut self.hosts } else { &mut self.facts }) = vec![ANY];
        }
    }
}
