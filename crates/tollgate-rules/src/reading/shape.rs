//! Whether a path has a shape, and what it captures.
//!
//! `*` and `{name}` take one segment with at least one letter; `**` takes any number of segments, as few as it can where
//! there is a choice. Time is at most the product of both lengths, however many `**` there are: only the last one seen
//! is ever asked to take more.

use crate::model::{PathPattern, Segment};
use smallvec::{SmallVec, smallvec};

/// A path's shape, its texts spelled as decoded paths are.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Shape {
    pub(crate) segments: Box<[Segment]>,
}

impl Shape {
    pub(crate) fn new(pattern: &PathPattern) -> Self {
        let mut segments = pattern.segments.clone();
        segments.dedup_by(|next, before| *next == Segment::Rest && *before == Segment::Rest);
        if segments.is_empty() {
            // The root is a path with one empty segment.
            segments.push(Segment::Literal(String::new()));
        }
        Self { segments: segments.into() }
    }

    /// Whether the path with these segments has this shape.
    pub(crate) fn fits(&self, path: &[&str]) -> bool {
        self.places(path).is_some()
    }

    /// What the path with these segments has where the shape says `{name}`; `None` if the shape is another, or has none.
    pub(crate) fn capture<'a>(&self, path: &[&'a str], name: &str) -> Option<&'a str> {
        let part = self.segments.iter().position(|it| matches!(it, Segment::Capture(it) if it == name))?;
        path.get(self.places(path)?[part]).copied()
    }

    /// The names that it captures, in order.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.segments.iter().filter_map(|it| match it {
            Segment::Capture(name) => Some(name.as_str()),
            _ => None,
        })
    }

    /// At which of the path's segments each part of the shape begins.
    fn places(&self, path: &[&str]) -> Option<SmallVec<[usize; 16]>> {
        if path.is_empty() {
            return None;
        }
        let shape = &self.segments;
        let mut places: SmallVec<[usize; 16]> = smallvec![0; shape.len()];
        let (mut part, mut at) = (0, 0);
        // The last `**`, and where what follows it was tried.
        let mut rest: Option<(usize, usize)> = None;
        loop {
            match shape.get(part) {
                Some(Segment::Rest) => {
                    places[part] = at;
                    rest = Some((part, at));
                    part += 1;
                    continue;
                }
                Some(segment) if path.get(at).is_some_and(|text| takes(segment, text)) => {
                    places[part] = at;
                    part += 1;
                    at += 1;
                    continue;
                }
                None if at == path.len() => return Some(places),
                _ => {}
            }
            // It takes one segment more, and what follows is tried again.
            let (before, tried) = rest?;
            if tried == path.len() {
                return None;
            }
            rest = Some((before, tried + 1));
            part = before + 1;
            at = tried + 1;
        }
    }
}

/// Whether a part of a shape, other than `**`, takes this segment.
fn takes(part: &Segment, text: &str) -> bool {
    match part {
        Segment::Literal(literal) => literal == text,
        Segment::Wild(wild) => wild_fits(wild, text),
        Segment::Any | Segment::Capture(_) => !text.is_empty(),
        Segment::Rest => false,
    }
}

/// Whether a segment fits text with `*` (any text) and `?` (one letter) in it.
pub(crate) fn wild_fits(wild: &str, text: &str) -> bool {
    let (wild, text) = (wild.as_bytes(), text.as_bytes());
    let (mut part, mut at) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    loop {
        match wild.get(part) {
            Some(b'*') => {
                star = Some((part, at));
                part += 1;
                continue;
            }
            Some(b'?') if at < text.len() => {
                part += 1;
                at = after_letter(text, at);
                continue;
            }
            Some(letter) if text.get(at) == Some(letter) => {
                part += 1;
                at += 1;
                continue;
            }
            None if at == text.len() => return true,
            _ => {}
        }
        let Some((before, tried)) = star else { return false };
        if tried == text.len() {
            return false;
        }
        at = after_letter(text, tried);
        star = Some((before, at));
        part = before + 1;
    }
}

/// Where the letter that begins here ends; it may have several bytes.
fn after_letter(text: &[u8], at: usize) -> usize {
    at + 1 + text[at + 1..].iter().take_while(|byte| *byte & 0xC0 == 0x80).count()
}
