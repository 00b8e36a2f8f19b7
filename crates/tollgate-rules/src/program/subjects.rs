//! What conditions look at, numbered, with the texts that they compare it with.
//!
//! A thousand rules that compare one header with a thousand texts are one subject with a thousand known values: the
//! request's own value is looked up once, and each rule compares two numbers.

use super::{Map, paths::ShapeId};
use crate::{model::Attribute, reading::normal_host};
use http::HeaderName;
use std::sync::Arc;

pub(super) type SubjectId = u32;

/// A text that a subject is compared with; or one of the two below.
pub(super) type ValueId = u32;
/// The request does not have it.
pub(super) const MISSING: ValueId = 0;
/// It has it, with a text that nobody asks for.
pub(super) const OTHER: ValueId = 1;
const FIRST: ValueId = 2;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Subject {
    Path,
    Method,
    Host,
    Header(HeaderName),
    Query(String),
    Cookie(String),
    /// The whole address.
    Address,
    /// The network of so many bits.
    Network(u8),
    /// What the first of these shapes that fits captured by that name: a condition's own, then its route's.
    Capture(Arc<[ShapeId]>, Arc<[ShapeId]>, String),
    /// What no request has.
    Nothing,
}

impl Subject {
    /// Of an attribute that a request has by itself.
    pub(crate) fn new(attribute: &Attribute) -> Self {
        match attribute {
            Attribute::Path => Self::Path,
            Attribute::Method => Self::Method,
            Attribute::Host => Self::Host,
            Attribute::Header(name) => Self::Header(name.clone()),
            Attribute::Query(name) => Self::Query(name.clone()),
            Attribute::Cookie(name) => Self::Cookie(name.clone()),
            Attribute::Ip => Self::Address,
            Attribute::IpPrefix(bits) => Self::Network(*bits),
            Attribute::Capture(_) | Attribute::Route | Attribute::Rule => Self::Nothing,
        }
    }

    /// A text as this subject's values are spelled.
    pub(super) fn spelled(&self, text: &str, whole: Whole) -> String {
        match (self, whole) {
            (Self::Host, Whole::Yes) => normal_host(text).into_owned(),
            (Self::Host, Whole::No) => text.to_ascii_lowercase(),
            _ => text.to_owned(),
        }
    }
}

/// Whether a text stands for a whole value, or a part of one.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Whole {
    Yes,
    No,
}

#[derive(Default)]
pub(super) struct Subjects {
    list: Vec<(Subject, Map<Box<str>, ValueId>)>,
    by_subject: Map<Subject, SubjectId>,
    headers: Map<HeaderName, SubjectId>,
    queries: Map<Box<str>, SubjectId>,
    cookies: Map<Box<str>, SubjectId>,
    /// Those that every request may have: all but headers, query and cookies.
    others: Vec<SubjectId>,
}

impl Subjects {
    pub(super) fn add(&mut self, subject: Subject) -> SubjectId {
        if let Some(&id) = self.by_subject.get(&subject) {
            return id;
        }
        let id = self.list.len() as SubjectId;
        match &subject {
            Subject::Header(name) => drop(self.headers.insert(name.clone(), id)),
            Subject::Query(name) => drop(self.queries.insert(name.as_str().into(), id)),
            Subject::Cookie(name) => drop(self.cookies.insert(name.as_str().into(), id)),
            _ => self.others.push(id),
        }
        self.by_subject.insert(subject.clone(), id);
        self.list.push((subject, Map::default()));
        id
    }

    pub(super) fn add_value(&mut self, subject: SubjectId, text: String) -> ValueId {
        let known = &mut self.list[subject as usize].1;
        let fresh = FIRST + known.len() as ValueId;
        *known.entry(text.into()).or_insert(fresh)
    }

    pub(super) fn count(&self) -> usize {
        self.list.len()
    }

    pub(super) fn subject(&self, id: SubjectId) -> &Subject {
        &self.list[id as usize].0
    }

    pub(super) fn id(&self, subject: &Subject) -> Option<SubjectId> {
        self.by_subject.get(subject).copied()
    }

    /// Which of the subject's known values this is.
    pub(super) fn value(&self, id: SubjectId, text: Option<&str>) -> ValueId {
        let known = &self.list[id as usize].1;
        match text {
            None => MISSING,
            Some(_) if known.is_empty() => OTHER,
            Some(text) => known.get(text).copied().unwrap_or(OTHER),
        }
    }

    pub(super) fn headers_asked(&self) -> bool {
        !self.headers.is_empty()
    }

    pub(super) fn queries_asked(&self) -> bool {
        !self.queries.is_empty()
    }

    pub(super) fn cookies_asked(&self) -> bool {
        !self.cookies.is_empty()
    }

    pub(super) fn header(&self, name: &HeaderName) -> Option<SubjectId> {
        self.headers.get(name).copied()
    }

    pub(super) fn query(&self, name: &str) -> Option<SubjectId> {
        self.queries.get(name).copied()
    }

    pub(super) fn cookie(&self, name: &str) -> Option<SubjectId> {
        self.cookies.get(name).copied()
    }

    pub(super) fn others(&self) -> &[SubjectId] {
        &self.others
    }
}
