//! Everything that rules ask about paths, answered for all rules at once.
//!
//! A **fact** is one question: is the path this text, does it begin with this text, does it have this shape. Facts are
//! numbered, the same question has the same number, and one walk finds all that hold: exact texts by hash, beginnings
//! by binary search, shapes by a trie over segments. The trie is walked by segments with a set of places, never by
//! backtracking, so that a file full of `**` costs no more than its size for each segment.

use super::{Map, scratch::Scratch};
use crate::{
    model::{PathPattern, Segment},
    reading::{Shape, letters, normal_path, wild_fits},
};

/// Which question about the path.
pub(super) type Fact = u32;

#[derive(Default)]
pub(super) struct Paths {
    facts: Fact,
    exact: Map<Box<str>, Fact>,
    beginnings: Beginnings,
    by_shape: Map<Shape, Fact>,
    shapes: Map<Fact, Shape>,
    trie: Trie,
}

impl Paths {
    pub(super) fn exactly(&mut self, text: &str) -> Fact {
        let text = normal_path(text).into_owned().into_boxed_str();
        let facts = &mut self.facts;
        *self.exact.entry(text).or_insert_with(|| next(facts))
    }

    pub(super) fn beginning(&mut self, text: &str) -> Fact {
        let text = letters(text).into_owned().into_boxed_str();
        let facts = &mut self.facts;
        *self.beginnings.by_text.entry(text).or_insert_with(|| next(facts))
    }

    pub(super) fn shaped(&mut self, pattern: &PathPattern) -> Fact {
        let shape = Shape::new(pattern);
        if let Some(&fact) = self.by_shape.get(&shape) {
            return fact;
        }
        let fact = next(&mut self.facts);
        self.trie.insert(&shape, fact);
        self.shapes.insert(fact, shape.clone());
        self.by_shape.insert(shape, fact);
        fact
    }

    /// Called once, when every question is known.
    pub(super) fn finish(&mut self) {
        self.beginnings.finish();
        self.by_shape = Map::default();
    }

    pub(super) fn count(&self) -> usize {
        self.facts as usize
    }

    pub(super) fn places(&self) -> usize {
        self.trie.nodes.len()
    }

    pub(super) fn shape(&self, fact: Fact) -> Option<&Shape> {
        self.shapes.get(&fact)
    }

    /// Marks every fact that holds for the path, a normal one.
    pub(super) fn mark(&self, path: &str, scratch: &mut Scratch) {
        if !self.exact.is_empty()
            && let Some(&fact) = self.exact.get(path)
        {
            scratch.hold(fact);
        }
        self.beginnings.mark(path, scratch);
        if let Some(inside) = path.strip_prefix('/') {
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

/// Shapes, segment by segment. Places are numbers; the first is the root.
struct Trie {
    nodes: Vec<Node>,
}

#[derive(Default)]
struct Node {
    literals: Map<Box<str>, u32>,
    wild: Map<Box<str>, u32>,
    /// After any one segment with something in it.
    any: Option<u32>,
    /// After any number of segments, none included.
    rest: Option<u32>,
    /// It stays where it is on every segment: it stands behind a `**`.
    stays: bool,
    /// Shapes that end here.
    ends: Vec<Fact>,
    /// Shapes that end here with a `**`: whatever follows, they hold.
    open: Vec<Fact>,
}

impl Default for Trie {
    fn default() -> Self {
        Self { nodes: vec![Node::default()] }
    }
}

impl Trie {
    fn insert(&mut self, shape: &Shape, fact: Fact) {
        let mut at = 0;
        for (place, segment) in shape.segments.iter().enumerate() {
            if *segment == Segment::Rest && place + 1 == shape.segments.len() {
                self.nodes[at].open.push(fact);
                return;
            }
            at = self.child(at, segment);
        }
        self.nodes[at].ends.push(fact);
    }

    fn child(&mut self, at: usize, segment: &Segment) -> usize {
        let fresh = self.nodes.len() as u32;
        let node = &mut self.nodes[at];
        let child = match segment {
            Segment::Literal(text) => *node.literals.entry(text.as_str().into()).or_insert(fresh),
            Segment::Wild(text) => *node.wild.entry(text.as_str().into()).or_insert(fresh),
            Segment::Any | Segment::Capture(_) => *node.any.get_or_insert(fresh),
            Segment::Rest => *node.rest.get_or_insert(fresh),
        };
        if child == fresh {
            self.nodes.push(Node { stays: *segment == Segment::Rest, ..Node::default() });
        }
        child as usize
    }

    /// Marks the shapes of a path, which is given without its first slash.
    fn mark(&self, inside: &str, scratch: &mut Scratch) {
        let mut here = std::mem::take(&mut scratch.here);
        let mut next = std::mem::take(&mut scratch.next);
        here.clear();
        scratch.step();
        self.enter(0, &mut here, scratch);
        for segment in inside.split('/') {
            scratch.step();
            next.clear();
            for &place in &here {
                let node = &self.nodes[place as usize];
                if node.stays {
                    self.enter(place, &mut next, scratch);
                }
                if !node.literals.is_empty()
                    && let Some(&child) = node.literals.get(segment)
                {
                    self.enter(child, &mut next, scratch);
                }
                for (wild, child) in &node.wild {
                    if wild_fits(wild, segment) {
                        self.enter(*child, &mut next, scratch);
                    }
                }
                if let Some(child) = node.any
                    && !segment.is_empty()
                {
                    self.enter(child, &mut next, scratch);
                }
            }
            std::mem::swap(&mut here, &mut next);
            if here.is_empty() {
                break;
            }
        }
        for &place in &here {
            for &fact in &self.nodes[place as usize].ends {
                scratch.hold(fact);
            }
        }
        scratch.here = here;
        scratch.next = next;
    }

    /// Adds a place, once, and the one behind its `**`.
    fn enter(&self, place: u32, to: &mut Vec<u32>, scratch: &mut Scratch) {
        let mut place = Some(place);
        while let Some(at) = place {
            if !scratch.visit(at) {
                return;
            }
            to.push(at);
            let node = &self.nodes[at as usize];
            for &fact in &node.open {
                scratch.hold(fact);
            }
            place = node.rest;
        }
    }
}
