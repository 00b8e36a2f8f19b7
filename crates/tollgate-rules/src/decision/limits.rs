//! The limits of a rule file in a store: added, changed and removed as files come and go.
//!
//! A limit is known by its name. One that is in the old file and the new keeps what was consumed; one with other numbers is
//! changed, as each kind of limit promises; one with other room for keys is a new one where room is the store's to give; one
//! that is gone leaves the store when the last request that may still charge it is done. Nothing is changed before everything
//! that is new was added, and a change that fails takes back those before it: a file is in force whole or not at all.

use super::BindError;
use crate::{
    RuleFile,
    domains::{DescriptorRule, DomainSettings, Measure, Unit},
    model::{LimitSource, NamedLimit, Rule},
};
use std::{borrow::Cow, collections::HashMap, sync::Arc};
use tollgate::{FixedWindow, Limit, Store, StoreError};

/// A limit in a store, until nobody holds it any more.
pub(super) struct Bound<S: Store> {
    store: Arc<S>,
    pub(super) handle: S::Limit,
}

impl<S: Store> Drop for Bound<S> {
    fn drop(&mut self) {
        self.store.remove_limit(&self.handle);
    }
}

/// All limits of a file, by name.
pub(super) struct Limits<S: Store>(HashMap<String, Entry<S>>);

struct Entry<S: Store> {
    bound: Arc<Bound<S>>,
    limit: Limit,
    max_keys: Option<u32>,
}

/// A limit that a file asks for.
struct Wanted<'f> {
    name: String,
    limit: Cow<'f, Limit>,
    max_keys: Option<u32>,
}

impl<S: Store> Limits<S> {
    /// Those of `file`, taking over what `old` has of them.
    pub(super) fn bind(store: &Arc<S>, file: &RuleFile, old: Option<&Self>) -> Result<Self, BindError> {
        let (mut limits, mut changes) = (HashMap::new(), Vec::new());
        for Wanted { name, limit, max_keys } in wanted(file) {
            let known = old
                .and_then(|old| old.0.get(&name))
                .filter(|entry| entry.max_keys == max_keys || !store.gives_room());
            let bound = match known {
                Some(entry) => {
                    if entry.limit != *limit {
                        changes.push((
                            name.clone(),
                            Arc::clone(&entry.bound),
                            entry.limit.clone(),
                            limit.clone().into_owned(),
                        ));
                    }
                    Arc::clone(&entry.bound)
                }
                None => {
                    let added = match max_keys {
                        Some(max_keys) => store.add_with_room(&name, limit.clone().into_owned(), max_keys),
                        None => store.add_named(&name, limit.clone().into_owned()),
                    };
                    let handle = added.map_err(|error| BindError::new(&name, error))?;
                    Arc::new(Bound { store: Arc::clone(store), handle })
                }
            };
            limits.insert(name, Entry { bound, limit: limit.into_owned(), max_keys });
        }
        change_all(store, &changes)?;
        Ok(Self(limits))
    }

    /// The limit of that name.
    pub(super) fn get(&self, name: &str) -> Option<&Arc<Bound<S>>> {
        self.0.get(name).map(|entry| &entry.bound)
    }
}

type Change<S> = (String, Arc<Bound<S>>, Limit, Limit);

fn change_all<S: Store>(store: &Arc<S>, changes: &[Change<S>]) -> Result<(), BindError> {
    for (done, (name, bound, _, to)) in changes.iter().enumerate() {
        let Err(error) = store.change_limit(&bound.handle, to.clone()) else { continue };
        for (_, bound, from, _) in &changes[..done] {
            // They were these a moment ago, so the store can keep them.
            let _: Result<(), StoreError> = store.change_limit(&bound.handle, from.clone());
        }
        return Err(BindError::new(name, error));
    }
    Ok(())
}

fn wanted(file: &RuleFile) -> impl Iterator<Item = Wanted<'_>> {
    let named = file.limits.iter().flat_map(|named| {
        let base =
            Wanted { name: of_named(named), limit: Cow::Borrowed(&named.limit), max_keys: named.max_keys };
        let overrides = named.overrides.iter().map(|other| {
            let name = of_override(named, &other.key);
            Wanted { name, limit: Cow::Borrowed(&other.limit), max_keys: named.max_keys }
        });
        std::iter::once(base).chain(overrides)
    });
    let everywhere = file.everywhere.iter().flat_map(|rule| inline(None, rule));
    let routes = file
        .routes
        .iter()
        .flat_map(|route| route.rules.iter().flat_map(|rule| inline(Some(&route.name), rule)));
    named.chain(everywhere).chain(routes).chain(descriptors(file))
}

fn inline<'f>(route: Option<&'f str>, rule: &'f Rule) -> impl Iterator<Item = Wanted<'f>> {
    rule.limits.iter().enumerate().filter_map(move |(place, charge)| match &charge.limit {
        LimitSource::Named(_) => None,
        LimitSource::Inline(limit) => {
            let limit = Cow::Borrowed(limit);
            Some(Wanted { name: of_inline(route, &rule.name, place), limit, max_keys: None })
        }
    })
}

/// What the descriptors of domains are counted by: a window for each unit, and the limits that are ours.
fn descriptors(file: &RuleFile) -> impl Iterator<Item = Wanted<'_>> {
    let domains = &file.domains;
    let units = Unit::ALL.into_iter().filter(|_| !domains.is_empty()).filter_map(|unit| {
        let limit = Cow::Owned(counter(unit)?);
        Some(Wanted { name: of_unit(unit), limit, max_keys: None })
    });
    let rules = domains.rules().iter().filter_map(|rule| {
        let limit = of_rule(rule, domains.settings())?;
        Some(Wanted { name: of_descriptor(rule), limit, max_keys: None })
    });
    units.chain(rules)
}

/// A window that counts and never refuses, but for what no number holds.
fn counter(unit: Unit) -> Option<Limit> {
    FixedWindow::new(u32::MAX, unit.length()).ok().map(Limit::from)
}

/// The limit that a descriptor's rule is in a store; `None` where it is only counted, or decided without a store.
pub(super) fn of_rule<'f>(rule: &'f DescriptorRule, settings: &DomainSettings) -> Option<Cow<'f, Limit>> {
    match &rule.measure {
        Measure::Limit(limit) => Some(Cow::Borrowed(limit)),
        Measure::PerUnit { requests, unit } if settings.atomic || !settings.count_refused => {
            FixedWindow::new(*requests, unit.length()).ok().map(|limit| Cow::Owned(limit.into()))
        }
        Measure::PerUnit { .. } | Measure::Unlimited => None,
    }
}

/// What the counting window of a unit is called.
pub(super) fn of_unit(unit: Unit) -> String {
    format!("rls-count/{}", unit.name())
}

/// What the limit of a descriptor is called: its domain, then each key with its value, or with nothing.
pub(super) fn of_descriptor(rule: &DescriptorRule) -> String {
    let mut name = format!("rls/{}", segment(&rule.domain));
    for (key, value) in &rule.path {
        let value = value.as_deref().map(|value| format!("={}", segment(value)));
        name.push_str(&format!("/{}/{}", segment(key), value.unwrap_or_default()));
    }
    name
}

/// What a named limit is called in a store: its name, as one segment.
pub(super) fn of_named(named: &NamedLimit) -> String {
    segment(&named.name)
}

/// What a key's own numbers are called.
pub(super) fn of_override(named: &NamedLimit, key: &[String]) -> String {
    let mut name = format!("override/{}", segment(&named.name));
    key.iter().for_each(|value| {
        name.push('/');
        name.push_str(&segment(value));
    });
    name
}

/// What a rule's own limit is called; those of rules for every route are the route `*`'s.
pub(super) fn of_inline(route: Option<&str>, rule: &str, place: usize) -> String {
    format!("rule/{}/{}/{place}", route.map_or_else(|| "*".to_owned(), segment), segment(rule))
}

/// One segment of a name, told apart from its neighbours whatever is in it.
fn segment(text: &str) -> String {
    text.replace('%', "%25").replace('/', "%2F").replace('*', "%2A")
}
