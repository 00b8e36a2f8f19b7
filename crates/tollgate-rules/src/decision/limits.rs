//! The limits of a rule file in a store: added, changed and removed as files come and go.
//!
//! A limit is known by its name. One that is in the old file and the new keeps what was consumed; one with other numbers is
//! changed, as each kind of limit promises; one with other room for keys is a new one where room is the store's to give; one
//! that is gone leaves the store once no request may charge it any more, when the service frees the rules that had it. Nothing is changed before everything
//! that is new was added, and a change that fails takes back those before it: a file is in force whole or not at all.

use super::BindError;
use crate::{
    RuleFile,
    domains::{DescriptorRule, DomainSettings, Measure, Unit},
    model::{LimitSource, NamedLimit, Rule},
};
use std::{borrow::Cow, collections::HashMap, sync::Arc};
use tollgate::{FixedWindow, Limit, NewLimit, Store};

/// All limits of a file, by name. Those that no other file in force has leave the store with it.
pub(super) struct Limits<S: Store> {
    store: Arc<S>,
    by_name: HashMap<String, Entry<S>>,
}

struct Entry<S: Store> {
    /// Shared by the files that have the limit.
    handle: Arc<S::Limit>,
    limit: Limit,
    max_keys: Option<u32>,
}

impl<S: Store> Drop for Limits<S> {
    fn drop(&mut self) {
        let gone = self.by_name.drain().filter_map(|(_, entry)| Arc::into_inner(entry.handle));
        let gone: Vec<S::Limit> = gone.collect();
        if !gone.is_empty() {
            self.store.remove_all(&gone);
        }
    }
}

impl<S: Store> Limits<S> {
    /// Those of `file`, taking over what `old` has of them.
    pub(super) fn bind(store: &Arc<S>, file: &RuleFile, old: Option<&Self>) -> Result<Self, BindError> {
        let mut limits = Self { store: Arc::clone(store), by_name: HashMap::new() };
        let (mut changes, mut new) = (Vec::new(), Vec::new());
        for wanted in wanted(file) {
            let known = old
                .and_then(|old| old.by_name.get(&*wanted.name))
                .filter(|entry| entry.max_keys == wanted.max_keys || !store.gives_room());
            let Some(entry) = known else {
                new.push(wanted);
                continue;
            };
            if entry.limit != *wanted.limit {
                changes.push(Change {
                    handle: S::Limit::clone(&entry.handle),
                    from: entry.limit.clone(),
                    to: Limit::clone(&wanted.limit),
                    name: wanted.name.clone(),
                });
            }
            limits.insert(wanted, Arc::clone(&entry.handle));
        }
        let added = store.add_all(&new).map_err(|(place, error)| BindError::new(&new[place].name, error))?;
        for (new, handle) in new.into_iter().zip(added) {
            limits.insert(new, Arc::new(handle));
        }
        change_all(store, &changes)?;
        Ok(limits)
    }

    fn insert(&mut self, wanted: NewLimit<'_>, handle: Arc<S::Limit>) {
        let NewLimit { name, limit, max_keys } = wanted;
        let entry = Entry { handle, limit: limit.into_owned(), max_keys };
        self.by_name.insert(name.into_owned(), entry);
    }

    /// The limit of that name.
    pub(super) fn get(&self, name: &str) -> Option<&S::Limit> {
        self.by_name.get(name).map(|entry| &*entry.handle)
    }
}

/// Other numbers for a limit that there was before.
struct Change<'f, S: Store> {
    name: Cow<'f, str>,
    handle: S::Limit,
    from: Limit,
    to: Limit,
}

fn change_all<S: Store>(store: &Arc<S>, changes: &[Change<'_, S>]) -> Result<(), BindError> {
    let to: Vec<_> = changes.iter().map(|it| (it.handle.clone(), it.to.clone())).collect();
    store.change_all(&to).map_err(|(failed, error)| {
        let back: Vec<_> = changes[..failed].iter().map(|it| (it.handle.clone(), it.from.clone())).collect();
        // They were these a moment ago, so the store can keep them.
        let _ = store.change_all(&back);
        BindError::new(&changes[failed].name, error)
    })
}

/// All limits of a file, under the names that stores know them by.
pub(super) fn wanted(file: &RuleFile) -> impl Iterator<Item = NewLimit<'_>> {
    let named = file.limits.iter().flat_map(|named| {
        let base = NewLimit { max_keys: named.max_keys, ..wanted_limit(of_named(named), &named.limit) };
        let overrides = named.overrides.iter().map(|other| {
            // It is one bucket: with room of its own where the limit has some, so that no flood evicts it.
            let max_keys = named.max_keys.map(|_| 1);
            NewLimit { max_keys, ..wanted_limit(of_override(named, &other.key), &other.limit) }
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

fn wanted_limit(name: String, limit: &Limit) -> NewLimit<'_> {
    NewLimit { name: name.into(), limit: Cow::Borrowed(limit), max_keys: None }
}

fn inline<'f>(route: Option<&'f str>, rule: &'f Rule) -> impl Iterator<Item = NewLimit<'f>> {
    rule.limits.iter().enumerate().filter_map(move |(place, charge)| match &charge.limit {
        LimitSource::Named(_) => None,
        LimitSource::Inline(limit) => Some(wanted_limit(of_inline(route, &rule.name, place), limit)),
    })
}

/// What the descriptors of domains are counted by: a window for each unit, and the limits that are ours.
fn descriptors(file: &RuleFile) -> impl Iterator<Item = NewLimit<'_>> {
    let domains = &file.domains;
    let units = Unit::ALL.into_iter().filter(|_| !domains.is_empty()).filter_map(|unit| {
        let limit = Cow::Owned(counter(unit)?);
        Some(NewLimit { name: of_unit(unit).into(), limit, max_keys: None })
    });
    let rules = domains.rules().iter().filter_map(|rule| {
        let limit = of_rule(rule, domains.settings())?;
        Some(NewLimit { name: of_descriptor(rule).into(), limit, max_keys: None })
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
