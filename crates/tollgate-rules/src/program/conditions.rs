//! All conditions of a program, in lists: that of the routes, and those of their rules.
//!
//! Equal conditions are kept once, and so are equal lists: thousands of routes often have the same rules, and what is used
//! often is near.

use super::{Map, asking::Asking, expr::Expr, index::Filed, subjects::SubjectId};
use std::ops::{ControlFlow, Range};

/// So few conditions are asked one by one.
const FEW: usize = 4;

/// The number of the condition that always holds.
pub(super) const ALWAYS: u32 = 0;

pub(super) struct Conditions {
    exprs: Vec<Expr>,
    /// List after list.
    listed: Vec<Condition>,
    lists: Vec<List>,
    building: Building,
}

/// One list, by its number.
pub(super) type ListId = u32;

/// A condition in a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Condition {
    /// What whoever asks calls it.
    pub(super) number: u32,
    pub(super) expr: u32,
}

struct List {
    listed: Range<u32>,
    /// `None` where they are few.
    filed: Option<Box<Filed>>,
}

/// What is known while lists are added.
#[derive(Default)]
struct Building {
    exprs: Map<Expr, u32>,
    lists: Map<Box<[Condition]>, ListId>,
    list: Vec<Condition>,
}

impl Default for Conditions {
    fn default() -> Self {
        let building = Building { exprs: Map::from_iter([(Expr::Always, ALWAYS)]), ..Building::default() };
        Self { exprs: vec![Expr::Always], listed: Vec::new(), lists: Vec::new(), building }
    }
}

impl Conditions {
    /// Adds one to the list at hand, unless it can never hold. Numbers rise within a list.
    pub(super) fn add(&mut self, number: u32, expr: Expr) {
        if expr == Expr::Never {
            return;
        }
        let fresh = self.exprs.len() as u32;
        let id = *self.building.exprs.entry(expr.clone()).or_insert(fresh);
        if id == fresh {
            self.exprs.push(expr);
        }
        self.building.list.push(Condition { number, expr: id });
    }

    /// The list at hand is complete.
    pub(super) fn end_list(&mut self) -> ListId {
        let list = std::mem::take(&mut self.building.list);
        if let Some(&known) = self.building.lists.get(&*list) {
            return known;
        }
        let id = self.lists.len() as ListId;
        let begin = self.listed.len() as u32;
        self.listed.extend(&list);
        self.lists.push(List { listed: begin..self.listed.len() as u32, filed: None });
        self.building.lists.insert(list.into(), id);
        id
    }

    /// Called once, when all are known.
    pub(super) fn finish(&mut self, host: Option<SubjectId>) {
        self.building = Building::default();
        for list in &mut self.lists {
            let conditions = &self.listed[list.listed.start as usize..list.listed.end as usize];
            if conditions.len() > FEW {
                list.filed = Some(Box::new(Filed::new(&self.exprs, conditions, host)));
            }
        }
    }

    /// Visits those of a list that hold, in order, until told to stop.
    pub(super) fn visit(
        &self,
        list: ListId,
        asking: &mut Asking<'_, '_>,
        mut found: impl FnMut(u32) -> ControlFlow<()>,
    ) {
        let mut ask = |asking: &mut Asking<'_, '_>, condition: Condition| {
            if asking.holds(&self.exprs[condition.expr as usize]) {
                found(condition.number)
            } else {
                ControlFlow::Continue(())
            }
        };
        let List { listed, filed } = &self.lists[list as usize];
        match filed {
            Some(filed) => filed.visit(asking, ask),
            None => {
                let mut conditions = self.listed[listed.start as usize..listed.end as usize].iter();
                let _ = conditions.try_for_each(|condition| ask(asking, *condition));
            }
        }
    }
}
