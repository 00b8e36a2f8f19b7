//! The headers that rules depend on: those that keys, conditions and costs name.
//!
//! A receiver must not let a request bring such a header in by another way: as a trailer, or under a name that servers take
//! for the same (`X_User` for `X-User`, since CGI and WSGI turn both into `HTTP_X_USER`). Nor may it take one out again that
//! rules have seen, by naming it in `Connection`.

use crate::model::{Attribute, Cost, RuleFile, When};
use http::{HeaderMap, HeaderName, header};
use std::collections::BTreeSet;

/// The headers that keys, conditions and costs name.
#[derive(Clone, Debug, Default)]
pub struct NamedHeaders(BTreeSet<String>);

impl NamedHeaders {
    pub(super) fn of(file: &RuleFile) -> Self {
        let mut named = Self::default();
        for rule in file.everywhere.iter().chain(file.routes.iter().flat_map(|route| &route.rules)) {
            named.add_when(&rule.when);
            for limit in &rule.limits {
                limit.key.iter().for_each(|attribute| named.add(attribute));
                if let Cost::Header(cost) = &limit.cost {
                    named.0.insert(cost.header.as_str().to_owned());
                }
            }
        }
        file.routes.iter().for_each(|route| named.add_when(&route.when));
        named
    }

    /// Whether no rule depends on any header.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a rule depends on this header.
    #[must_use]
    pub fn contains(&self, name: &HeaderName) -> bool {
        self.0.contains(name.as_str())
    }

    /// A header that rules depend on and that `Connection` says is for this hop only, so that the next one does not get it.
    #[must_use]
    pub fn in_connection<'h>(&self, headers: &'h HeaderMap) -> Option<&'h str> {
        let lines = headers.get_all(header::CONNECTION).iter().filter_map(|line| line.to_str().ok());
        let mut names = lines.flat_map(|line| line.split(',')).map(str::trim);
        names.find(|name| self.0.iter().any(|named| named.eq_ignore_ascii_case(name)))
    }

    /// Whether servers may take this name, which has an underscore, for that of a header that a rule depends on.
    #[must_use]
    pub fn resembles(&self, name: &HeaderName) -> bool {
        !self.contains(name) && self.0.iter().any(|named| is_alike(named, name.as_str()))
    }

    fn add_when(&mut self, when: &When) {
        match when {
            When::All(list) | When::Any(list) => list.iter().for_each(|when| self.add_when(when)),
            When::Not(inner) => self.add_when(inner),
            When::Is(attribute, _) => self.add(attribute),
            When::Always | When::Time(_) => {}
        }
    }

    fn add(&mut self, attribute: &Attribute) {
        match attribute {
            Attribute::Header(name) => drop(self.0.insert(name.as_str().to_owned())),
            Attribute::Cookie(_) => drop(self.0.insert(header::COOKIE.as_str().to_owned())),
            _ => {}
        }
    }
}

/// Whether two names are one where underscores are dashes.
fn is_alike(one: &str, other: &str) -> bool {
    let dashed = |byte: u8| if byte == b'_' { b'-' } else { byte };
    one.len() == other.len() && one.bytes().map(dashed).eq(other.bytes().map(dashed))
}
