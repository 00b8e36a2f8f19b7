//! Where the switches of a text stand, to the byte.

use saphyr_parser::{Event, Parser};
use std::ops::Range;

/// A value, and where it stands.
#[derive(Debug)]
pub(super) struct Spanned {
    pub(super) span: Range<usize>,
    pub(super) value: Shape,
}

#[derive(Debug)]
pub(super) enum Shape {
    Scalar(String),
    List(Vec<Spanned>),
    Mapping(Vec<(Spanned, Spanned)>),
}

impl Spanned {
    /// The value that `text` holds, if it can be read.
    pub(super) fn read(text: &str) -> Option<Self> {
        let bytes: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
        let byte = |index: usize| bytes.get(index).copied().unwrap_or(text.len());
        let mut open: Vec<(bool, usize, Vec<Self>)> = Vec::new();
        let mut root = None;
        for event in Parser::new_from_str(text) {
            let (event, span) = event.ok()?;
            let (start, end) = (byte(span.start.index()), byte(span.end.index()));
            let closed = match event {
                Event::Scalar(text, ..) => Self { span: start..end, value: Shape::Scalar(text.into_owned()) },
                Event::SequenceStart(..) => {
                    open.push((false, start, Vec::new()));
                    continue;
                }
                Event::MappingStart(..) => {
                    open.push((true, start, Vec::new()));
                    continue;
                }
                Event::SequenceEnd | Event::MappingEnd => {
                    let (is_mapping, start, children) = open.pop()?;
                    let value =
                        if is_mapping { Shape::Mapping(pairs(children)) } else { Shape::List(children) };
                    Self { span: start..end, value }
                }
                Event::Alias(_) => return None,
                _ => continue,
            };
            match open.last_mut() {
                Some((_, _, children)) => children.push(closed),
                None => root = Some(closed),
            }
        }
        root
    }

    /// The value under a name of a mapping.
    pub(super) fn entry(&self, name: &str) -> Option<&Self> {
        self.entries().iter().find(|(key, _)| key.is(name)).map(|(_, value)| value)
    }

    pub(super) fn entries(&self) -> &[(Self, Self)] {
        match &self.value {
            Shape::Mapping(entries) => entries,
            _ => &[],
        }
    }

    pub(super) fn items(&self) -> &[Self] {
        match &self.value {
            Shape::List(items) => items,
            _ => &[],
        }
    }

    /// The item whose `name` this is.
    pub(super) fn named(&self, name: &str) -> Option<&Self> {
        self.items().iter().find(|item| item.entry("name").is_some_and(|found| found.is(name)))
    }

    pub(super) fn is(&self, text: &str) -> bool {
        matches!(&self.value, Shape::Scalar(found) if found == text)
    }
}

fn pairs(children: Vec<Spanned>) -> Vec<(Spanned, Spanned)> {
    let mut children = children.into_iter();
    std::iter::from_fn(|| Some((children.next()?, children.next()?))).collect()
}
