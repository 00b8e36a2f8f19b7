//! Shapes of paths, segment by segment: which of them a path has.
//!
//! The trie is walked by segments with a set of places, never by backtracking, so that a file full of `**` costs no more
//! than its size for each segment.
//!
//! Ten thousand routes are as many places, and a request comes to one that no cache has near. So a place is half a cache
//! line, what few of them have is kept apart, and the literals after all places are one table of mere numbers.

use super::{
    Map,
    paths::Fact,
    scratch::Scratch,
    texts::{Text, Texts},
};
use crate::{
    model::Segment,
    reading::{Shape, wild_fits},
};
use hashbrown::{HashTable, hash_table::Entry};
use std::hash::BuildHasher;

/// A place in the trie; the first is the root.
pub(super) type Place = u32;

/// No fact has this number.
const NONE: Fact = Fact::MAX;

pub(super) struct Trie {
    nodes: Vec<Node>,
    /// The first is that of all places that have none.
    branches: Vec<Branches>,
    /// Places that are reached by a literal, found by the place before and the text.
    literals: HashTable<Place>,
    texts: Texts,
    hashing: foldhash::fast::RandomState,
}

/// Two make a cache line, and none lies on two.
#[repr(align(32))]
struct Node {
    /// The place before, and the literal that leads here from there, if one does.
    before: Place,
    text: Text,
    /// The shape that ends here.
    end: Fact,
    /// The shape that ends here with a `**`: whatever follows, it holds.
    open: Fact,
    branches: u32,
    literals_follow: bool,
}

// A byte more, and each would take a whole line.
const _: () = assert!(size_of::<Node>() == 32);

/// What follows a place, but for literals.
#[derive(Default)]
struct Branches {
    wild: Map<Box<str>, Place>,
    /// After any one segment with something in it.
    any: Option<Place>,
    /// After any number of segments, none included.
    rest: Option<Place>,
    /// It stays where it is on every segment: it stands behind a `**`.
    stays: bool,
}

impl Default for Trie {
    fn default() -> Self {
        Self {
            nodes: vec![Node::new(0, Text::default())],
            branches: vec![Branches::default()],
            literals: HashTable::new(),
            texts: Texts::default(),
            hashing: foldhash::fast::RandomState::default(),
        }
    }
}

impl Node {
    fn new(before: Place, text: Text) -> Self {
        Self { before, text, end: NONE, open: NONE, branches: 0, literals_follow: false }
    }
}

impl Trie {
    /// The fact that a path has this shape: `fresh`, unless a shape that differs by the names of its captures alone is
    /// known.
    pub(super) fn insert(&mut self, shape: &Shape, fresh: Fact) -> Fact {
        let (segments, open) = match &*shape.segments {
            [segments @ .., Segment::Rest] => (segments, true),
            segments => (segments, false),
        };
        let at = segments.iter().fold(0, |at, segment| self.child(at, segment));
        let node = &mut self.nodes[at as usize];
        let fact = if open { &mut node.open } else { &mut node.end };
        if *fact == NONE {
            *fact = fresh;
        }
        *fact
    }

    /// How many places a walk may come to twice at one segment.
    pub(super) fn revisited(&self) -> usize {
        self.branches.len()
    }

    fn child(&mut self, at: Place, segment: &Segment) -> Place {
        if let Segment::Literal(text) = segment {
            return self.literal_child(at, text);
        }
        let fresh = self.nodes.len() as Place;
        let branches = self.branches_mut(at);
        let child = match segment {
            Segment::Wild(text) => *branches.wild.entry(text.as_str().into()).or_insert(fresh),
            Segment::Rest => *branches.rest.get_or_insert(fresh),
            _ => *branches.any.get_or_insert(fresh),
        };
        if child == fresh {
            self.nodes.push(Node::new(at, Text::default()));
            if *segment == Segment::Rest {
                self.branches_mut(child).stays = true;
            }
        }
        child
    }

    fn literal_child(&mut self, at: Place, text: &str) -> Place {
        let Self { nodes, literals, texts, hashing, .. } = self;
        let leads = |place: &Place| {
            let node = &nodes[*place as usize];
            (node.before, texts.bytes(&node.text))
        };
        let led = (at, text.as_bytes());
        let hash = hashing.hash_one(led);
        let entry = literals.entry(hash, |place| leads(place) == led, |place| hashing.hash_one(leads(place)));
        match entry {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(vacant) => {
                let child = nodes.len() as Place;
                vacant.insert(child);
                nodes[at as usize].literals_follow = true;
                nodes.push(Node::new(at, texts.add(text)));
                child
            }
        }
    }

    fn branches_mut(&mut self, at: Place) -> &mut Branches {
        let own = &mut self.nodes[at as usize].branches;
        if *own == 0 {
            *own = self.branches.len() as u32;
            self.branches.push(Branches::default());
        }
        &mut self.branches[*own as usize]
    }

    /// Marks the shapes of a path, which is given without its first slash.
    pub(super) fn mark(&self, inside: &str, scratch: &mut Scratch) {
        let mut here = std::mem::take(&mut scratch.here);
        let mut next = std::mem::take(&mut scratch.next);
        here.clear();
        scratch.step();
        self.enter(0, &mut here, scratch);
        for segment in inside.split('/') {
            scratch.step();
            next.clear();
            for &place in &here {
                self.follow(place, segment, &mut next, scratch);
            }
            std::mem::swap(&mut here, &mut next);
            if here.is_empty() {
                break;
            }
        }
        for &place in &here {
            hold(self.nodes[place as usize].end, scratch);
        }
        scratch.here = here;
        scratch.next = next;
    }

    /// Adds the places that a segment leads to.
    fn follow(&self, place: Place, segment: &str, to: &mut Vec<Place>, scratch: &mut Scratch) {
        let node = &self.nodes[place as usize];
        if node.literals_follow
            && let Some(child) = self.literal(place, segment)
        {
            self.enter(child, to, scratch);
        }
        if node.branches == 0 {
            return;
        }
        let branches = &self.branches[node.branches as usize];
        if branches.stays {
            self.enter(place, to, scratch);
        }
        for (wild, child) in &branches.wild {
            if wild_fits(wild, segment) {
                self.enter(*child, to, scratch);
            }
        }
        if let Some(child) = branches.any
            && !segment.is_empty()
        {
            self.enter(child, to, scratch);
        }
    }

    fn literal(&self, before: Place, text: &str) -> Option<Place> {
        let leads = |place: &Place| {
            let node = &self.nodes[*place as usize];
            node.before == before && self.texts.bytes(&node.text) == text.as_bytes()
        };
        self.literals.find(self.hashing.hash_one((before, text.as_bytes())), leads).copied()
    }

    /// Adds a place, once, and the one behind its `**`.
    fn enter(&self, place: Place, to: &mut Vec<Place>, scratch: &mut Scratch) {
        let mut place = Some(place);
        while let Some(at) = place {
            let node = &self.nodes[at as usize];
            let branches = &self.branches[node.branches as usize];
            // Other places are reached from the one before them alone, which is here once.
            if branches.stays && !scratch.visit(node.branches) {
                return;
            }
            to.push(at);
            hold(node.open, scratch);
            place = branches.rest;
        }
    }
}

fn hold(fact: Fact, scratch: &mut Scratch) {
    if fact != NONE {
        scratch.hold(fact);
    }
}
