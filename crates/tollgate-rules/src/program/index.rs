//! Which of many conditions may hold, without asking each.
//!
//! From every condition follow things it cannot hold without: a host, a fact about the path, a value of some other
//! subject. Conditions are filed under up to three of them, one of each sort, the rarest of its sort; a request looks
//! under what it has. So a file of thousands of routes costs a few lookups, whether its routes differ by path, by host
//! or by a header, and only what is found there is asked in full, in file order. A condition that says no more than the
//! fact it is filed under holds wherever it is found.
//!
//! A request has one host, so there are two lookups for each fact that holds of its path. Under each there may be
//! several subjects; where they are many, the request's own headers, parameters and cookies are gone through instead.
//! All of it together is at most as much work as asking every condition.

use super::{
    Map,
    asking::Asking,
    conditions::{ALWAYS, Condition},
    expr::Expr,
    needs::{Cabinet, Uses},
    paths::Fact,
    subjects::{SubjectId, ValueId},
};
use std::{
    cmp::Reverse,
    collections::{BTreeMap, BinaryHeap, binary_heap::PeekMut},
    ops::ControlFlow,
};

/// So many subjects in one place are looked up one by one.
const FEW_SUBJECTS: usize = 8;
/// So few lists are merged by looking at each.
const FEW_LISTS: usize = 8;
/// In a table by number, at least one of so many is used.
const SPARSEST: usize = 8;
/// What stands for "any host" and "any path".
pub(super) const ANY: u32 = u32::MAX;

/// The conditions of one list, filed.
pub(super) struct Filed {
    host: Option<SubjectId>,
    /// Under a fact and nothing else.
    by_fact: ByFact,
    /// All others, by host and fact.
    drawers: Map<(ValueId, Fact), Drawer>,
    /// The table by fact, if there is one; then list after list, each in order.
    postings: Vec<Condition>,
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

impl Filed {
    pub(super) fn new(exprs: &[Expr], conditions: &[Condition], host: Option<SubjectId>) -> Self {
        let mut uses = Uses::default();
        for condition in conditions {
            uses.count(&exprs[condition.expr as usize]);
        }
        let mut filed: BTreeMap<Under, Vec<Condition>> = BTreeMap::new();
        for condition in conditions {
            let expr = &exprs[condition.expr as usize];
            let cabinet = Cabinet::new(uses.needs(expr), host);
            for fact in &cabinet.facts {
                let left = if follows(expr, *fact) { ALWAYS } else { condition.expr };
                let posting = Condition { expr: left, ..*condition };
                for host in &cabinet.hosts {
                    for value in &cabinet.values {
                        filed.entry((*host, *fact, *value)).or_default().push(posting);
                    }
                }
            }
        }
        let (by_fact, filed): (Vec<_>, Vec<_>) = filed
            .into_iter()
            .partition(|((host, fact, value), _)| *host == ANY && *fact != ANY && value.is_none());
        let mut postings = Vec::new();
        let by_fact = ByFact::new(by_fact, &mut postings);
        let mut it = Self { host, by_fact, drawers: Map::default(), postings };
        for ((host, fact, value), list) in filed {
            let list = listed(list, &mut it.postings);
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

    /// Visits what may hold for the request, in order, until told to stop.
    pub(super) fn visit(
        &self,
        asking: &mut Asking<'_, '_>,
        mut ask: impl FnMut(&mut Asking<'_, '_>, Condition) -> ControlFlow<()>,
    ) {
        let mut lists = std::mem::take(&mut asking.scratch.lists);
        lists.clear();
        self.collect(asking, &mut lists);
        self.merge(&mut lists, |condition| ask(asking, condition));
        asking.scratch.lists = lists;
    }

    /// The lists in which the request's conditions are.
    fn collect(&self, asking: &mut Asking<'_, '_>, lists: &mut Vec<List>) {
        let host = self.host.map_or(ANY, |host| asking.value(host));
        let hosts = if host == ANY { &[ANY][..] } else { &[host, ANY] };
        let held = std::mem::take(&mut asking.scratch.held);
        let mut present = None;
        for &host in hosts {
            for fact in held.iter().copied().chain([ANY]) {
                if host == ANY {
                    lists.extend(self.by_fact.get(fact, &self.postings));
                }
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
    fn merge(&self, lists: &mut Vec<List>, mut visit: impl FnMut(Condition) -> ControlFlow<()>) {
        let posting = |at: u32| self.postings[at as usize];
        let mut last = None;
        let mut once = |condition: Condition| {
            let number = condition.number;
            if last.replace(number) == Some(number) { ControlFlow::Continue(()) } else { visit(condition) }
        };
        if lists.len() <= FEW_LISTS {
            while let Some(least) = lists.iter_mut().min_by_key(|(at, _)| posting(*at).number) {
                let condition = posting(least.0);
                least.0 += 1;
                if once(condition).is_break() {
                    return;
                }
                lists.retain(|(at, end)| at < end);
            }
            return;
        }
        let heads = lists.iter().map(|&(at, end)| Reverse((posting(at).number, at, end)));
        let mut heap: BinaryHeap<_> = heads.collect();
        while let Some(mut head) = heap.peek_mut() {
            let Reverse((_, at, end)) = *head;
            if at + 1 < end {
                *head = Reverse((posting(at + 1).number, at + 1, end));
                drop(head);
            } else {
                PeekMut::pop(head);
            }
            if once(posting(at)).is_break() {
                return;
            }
        }
    }
}

/// Whether the condition holds wherever the fact does.
fn follows(expr: &Expr, fact: Fact) -> bool {
    match expr {
        Expr::Fact(it) => *it == fact,
        Expr::Any(list) => list.iter().any(|expr| follows(expr, fact)),
        _ => false,
    }
}

/// Lists by fact. Facts are numbered as they are met, so those of one list of conditions are mostly close together: then
/// the postings begin with a table by fact. What is found there is the posting itself, where it is the only one.
#[derive(Default)]
struct ByFact {
    /// The fact of the table's first, and how many there are.
    first: Fact,
    span: u32,
    /// What the table's places stand for where there are several.
    several: Vec<List>,
    /// All of them, where they are too far apart for a table.
    map: Map<Fact, List>,
}

/// At a place of the table: no condition.
const NONE: u32 = u32::MAX;
/// At a place of the table: the number is that of a list of several.
const SEVERAL: u32 = u32::MAX - 1;

impl ByFact {
    /// From postings in order of their facts, which are put before all others.
    fn new(found: Vec<(Under, Vec<Condition>)>, postings: &mut Vec<Condition>) -> Self {
        let (Some(&((_, first, _), _)), Some(&((_, last, _), _))) = (found.first(), found.last()) else {
            return Self::default();
        };
        let mut it = Self { first, ..Self::default() };
        let span = (last - first) as usize + 1;
        if span <= found.len() * SPARSEST {
            it.span = span as u32;
            postings.resize(span, Condition { number: 0, expr: NONE });
        }
        for ((_, fact, _), list) in found {
            let at = (fact - first) as usize;
            match (postings.get_mut(at).filter(|_| it.span > 0), &*list) {
                (Some(place), [only]) => *place = *only,
                (Some(place), _) => {
                    *place = Condition { number: it.several.len() as u32, expr: SEVERAL };
                    it.several.push(listed(list, postings));
                }
                (None, _) => drop(it.map.insert(fact, listed(list, postings))),
            }
        }
        it
    }

    fn get(&self, fact: Fact, postings: &[Condition]) -> Option<List> {
        // Before the first there are none: what wraps around is beyond any table.
        let at = fact.wrapping_sub(self.first);
        if at >= self.span {
            return self.map.get(&fact).copied();
        }
        match postings[at as usize] {
            Condition { expr: NONE, .. } => None,
            Condition { expr: SEVERAL, number } => Some(self.several[number as usize]),
            _ => Some((at, at + 1)),
        }
    }
}

/// Puts postings behind the others.
fn listed(list: Vec<Condition>, postings: &mut Vec<Condition>) -> List {
    let first = postings.len() as u32;
    postings.extend(list);
    (first, postings.len() as u32)
}
