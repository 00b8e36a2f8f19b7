//! What is wrong with a question: where, and what to do about it.

use super::{
    node::Node,
    reply::{Problem, Reply},
};
use http::StatusCode;
use std::fmt::{self, Write};
use tollgate_rules::nearest;

/// Where in the document.
#[derive(Clone, Copy)]
pub(super) enum Path<'p> {
    Root,
    Field(&'p Path<'p>, &'p str),
    Item(&'p Path<'p>, usize),
}

/// What is wrong with a question.
#[derive(Debug)]
pub(super) struct Mistake {
    field: String,
    message: String,
}

impl Path<'_> {
    pub(super) fn mistake(&self, message: impl Into<String>) -> Mistake {
        Mistake { field: self.to_string(), message: message.into() }
    }

    /// It should be something else than it is.
    pub(super) fn must(&self, what: &str, read: &Node<'_>) -> Mistake {
        self.mistake(format!("must be {what}; read {}", read.shown()))
    }

    /// There is no field of this name.
    pub(super) fn unknown(&self, name: &str, known: &[&str]) -> Mistake {
        let meant = match nearest(name, known.iter().copied()) {
            Some(known) => format!("did you mean {known:?}?"),
            None => {
                let known: Vec<_> = known.iter().map(|name| format!("{name:?}")).collect();
                format!("known are {}", known.join(", "))
            }
        };
        Path::Field(self, name).mistake(format!("is not a known field; {meant}"))
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => Ok(()),
            Self::Field(Path::Root, name) => write!(f, "{}", Cut(name)),
            Self::Field(above, name) => write!(f, "{above}.{}", Cut(name)),
            Self::Item(above, index) => write!(f, "{above}[{index}]"),
        }
    }
}

/// A name that somebody sent, which may be long.
struct Cut<'a>(&'a str);

impl fmt::Display for Cut<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const LONGEST: usize = 60;
        match self.0.char_indices().nth(LONGEST) {
            Some((end, _)) => write!(f, "{}...", &self.0[..end]),
            None => f.write_str(self.0),
        }
    }
}

impl Mistake {
    /// Text that is not JSON.
    pub(super) fn not_json(error: &serde_json::Error) -> Self {
        let said = error.to_string();
        let said = said.rsplit_once(" at line ").map_or(said.as_str(), |(said, _)| said);
        let (line, column) = (error.line(), error.column());
        let message = format!("line {line}, column {column}: the body is not JSON: {said}");
        Self { field: String::new(), message }
    }

    /// As an answer.
    pub(super) fn reply(&self, status: StatusCode) -> Reply {
        let mut detail = String::new();
        if !self.field.is_empty() {
            // Writing to a string cannot fail.
            let _ = write!(detail, "{}: ", self.field);
        }
        detail.push_str(&self.message);
        Problem::new(status, &detail).field(&self.field).reply()
    }
}
