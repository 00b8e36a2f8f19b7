//! What conditions cannot hold without, and so where each is filed.

use super::{
    Map,
    expr::Expr,
    index::ANY,
    paths::Fact,
    subjects::{SubjectId, ValueId},
};
use std::collections::BTreeMap;

/// What a condition can be filed under: the path, or a subject.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Sort {
    Path,
    Subject(SubjectId),
}

/// For every sort, alternatives of which one must hold, and how common they are.
pub(super) type Needs = BTreeMap<Sort, (usize, Vec<u32>)>;

/// How often each is asked for, in all conditions together.
#[derive(Default)]
pub(super) struct Uses(Map<(Sort, u32), usize>);

impl Uses {
    pub(super) fn count(&mut self, expr: &Expr) {
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
    pub(super) fn needs(&self, expr: &Expr) -> Needs {
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
pub(super) struct Cabinet {
    pub(super) hosts: Vec<ValueId>,
    pub(super) facts: Vec<Fact>,
    pub(super) values: Vec<Option<(SubjectId, ValueId)>>,
}

impl Cabinet {
    pub(super) fn new(mut needs: Needs, host: Option<SubjectId>) -> Self {
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
