//! Everything that rules ask about paths, answered for all rules at once.
//!
//! A **fact** is one question: is the path this text, does it begin with this text, does it have this shape. Facts are
//! numbered, the same question has the same number, and one walk finds all that hold: exact texts by hash, beginnings
//! by binary search, shapes by a trie over segments.

use super::{Map, scratch::Scratch, trie::Trie};
use crate::{model::PathPattern, reading::Shape};

/// Which question about the path.
pub(super) type Fact = u32;

/// A shape with the names of its captures. Shapes that differ by names alone are one fact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ShapeId(u32);

#[derive(Default)]
pub(super) struct Paths {
    facts: Fact,
    exact: Map<Box<str>, Fact>,
    beginnings: Beginnings,
    by_shape: Map<Shape, ShapeId>,
    shapes: Vec<(Fact, Shape)>,
    trie: Trie,
}

impl Paths {
    pub(super) fn exactly(&mut self, text: &str) -> Fact {
        let facts = &mut self.facts;
        *self.exact.entry(text.into()).or_insert_with(|| next(facts))
    }

    pub(super) fn beginning(&mut self, text: &str) -> Fact {
        let facts = &mut self.facts;
        *self.beginnings.by_text.entry(text.into()).or_insert_with(|| next(facts))
    }

    pub(super) fn shaped(&mut self, pattern: &PathPattern) -> ShapeId {
        let shape = Shape::new(pattern);
        if let Some(&id) = self.by_shape.get(&shape) {
            return id;
        }
        let fact = self.trie.insert(&shape, self.facts);
        self.facts = self.facts.max(fact + 1);
        let id = ShapeId(self.shapes.len() as u32);
        self.shapes.push((fact, shape.clone()));
        self.by_shape.insert(shape, id);
        id
    }

    /// Called once, when every question is known.
    pub(super) fn finish(&mut self) {
        self.beginnings.finish();
        self.by_shape = Map::default();
    }

    pub(super) fn count(&self) -> usize {
        self.facts as usize
    }

    /// How many places of the walk are remembered.
    pub(super) fn places(&self) -> usize {
        self.trie.revisited()
    }

    pub(super) fn fact(&self, id: ShapeId) -> Fact {
        self.shapes[id.0 as usize].0
    }

    pub(super) fn shape(&self, id: ShapeId) -> &Shape {
        &self.shapes[id.0 as usize].1
    }

    /// Marks every fact that holds for the path, a decoded one.
    pub(super) fn mark(&self, path: &str, scratch: &mut Scratch) {
        if !self.exact.is_empty()
            && let Some(&fact) = self.exact.get(path)
        {
            scratch.hold(fact);
        }
        self.beginnings.mark(path, scratch);
        if !self.shapes.is_empty()
            && let Some(inside) = path.strip_prefix('/')
        {
            self.trie.mark(inside, scratch);
        }
    }
}

fn next(facts: &mut Fact) -> Fact {
    *facts += 1;
    *facts - 1
}

/// Texts that paths may begin with.
#[derive(Default)]
struct Beginnings {
    by_text: Map<Box<str>, Fact>,
    /// In order; each with the longest other that it begins with itself.
    sorted: Vec<(Box<str>, Fact, Option<u32>)>,
}

impl Beginnings {
    fn finish(&mut self) {
        let mut texts: Vec<_> = std::mem::take(&mut self.by_text).into_iter().collect();
        texts.sort_unstable();
        // Those that the text before begins with, itself included.
        let mut open: Vec<u32> = Vec::new();
        for (place, (text, fact)) in texts.into_iter().enumerate() {
            while open.last().is_some_and(|&above| !text.starts_with(&*self.sorted[above as usize].0)) {
                open.pop();
            }
            self.sorted.push((text, fact, open.last().copied()));
            open.push(place as u32);
        }
    }

    /// All beginnings of a path lie on one chain: that of the text that stands right before the path in order.
    fn mark(&self, path: &str, scratch: &mut Scratch) {
        let after = self.sorted.partition_point(|(text, ..)| **text <= *path);
        let mut place = after.checked_sub(1);
        while let Some(at) = place {
            let (text, fact, above) = &self.sorted[at];
            if path.starts_with(&**text) {
                scratch.hold(*fact);
            }
            place = above.map(|above| above as usize);
        }
    }
}
