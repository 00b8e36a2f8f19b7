//! Names that a file gives: to limits, upstreams, routes and rules.

use crate::decode::{Cursor, did_you_mean, listed, shorten};
use std::collections::HashMap;

/// Names that others may speak of, each with its place in the file.
pub(super) struct Names {
    /// What they are names of, such as `limit`.
    what: &'static str,
    names: Vec<String>,
    places: HashMap<String, usize>,
}

impl Names {
    pub(super) fn new(what: &'static str) -> Self {
        Self { what, names: Vec::new(), places: HashMap::new() }
    }

    /// Gives the next place to a name, which must be sane and new. One that is neither has a place all the same.
    pub(super) fn add(&mut self, name: &Cursor<'_>) -> Option<String> {
        if name.is_taken() {
            name.mistake("cannot come from the environment, because names are shown in logs and on pages");
            self.names.push(String::new());
            return None;
        }
        let read = read_name(name).filter(|text| match self.places.get(text) {
            Some(_) => {
                let what = self.what;
                name.mistake_without_values(format!("is given twice: every {what} needs a name of its own"));
                false
            }
            None => true,
        });
        if let Some(text) = &read {
            self.places.insert(text.clone(), self.names.len());
        }
        self.names.push(read.clone().unwrap_or_default());
        read
    }

    /// The place of the name that is written here.
    pub(super) fn find(&self, name: &Cursor<'_>) -> Option<usize> {
        let what = self.what;
        let text = name.text(&format!("the name of one of the file's {what}s"))?;
        let found = self.places.get(text).copied();
        if found.is_none() {
            let known = || self.names.iter().map(String::as_str).filter(|name| !name.is_empty());
            let meant = match did_you_mean(text, known()) {
                meant if !meant.is_empty() => meant,
                _ if known().next().is_none() => format!("; the file has no `{what}s`"),
                // A few are worth listing.
                _ if known().count() <= 12 => format!("; known are {}", listed(known())),
                _ => String::new(),
            };
            name.mistake(format!("there is no {what} called {:?}{meant}", shorten(text)));
        }
        found
    }
}

/// A name: something to read, on one line, short enough for a label.
pub(super) fn read_name(name: &Cursor<'_>) -> Option<String> {
    const LONGEST: usize = 128;
    let text = name.text("a name")?;
    let message = match text {
        "" => "must not be empty",
        _ if text.len() > LONGEST => "must be at most 128 bytes long",
        _ if text.contains(char::is_control) => "must not contain control characters, such as line breaks",
        _ if text.trim() != text => "must not begin or end with a space",
        _ => return Some(text.to_owned()),
    };
    name.mistake(message);
    None
}
