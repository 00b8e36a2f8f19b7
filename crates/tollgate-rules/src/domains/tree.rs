//! The tree of a domain, and how a descriptor finds its rule in it.
//!
//! At each level an exact value goes before wildcards, those in the order of the file, and they before a key without a
//! value. There is no way back: a value that leads nowhere further on does not fall back to the key alone. A rule holds only
//! for descriptors that end where it stands.

use super::{BucketValues, DescriptorRule, full_key, read, wildcard};
use crate::Mistake;
use std::collections::HashMap;

/// One domain.
#[derive(Clone, Debug, Default)]
pub struct Domain {
    pub(super) root: Node,
}

/// The rule that a descriptor found.
#[derive(Clone, Debug)]
pub struct Found<'a> {
    /// Its place among [all rules](super::Domains::rules).
    pub rule: usize,
    /// Whose bucket.
    pub values: BucketValues<'a>,
}

/// What may follow a place in the tree.
#[derive(Clone, Debug, Default)]
pub(super) struct Node {
    rule: Option<usize>,
    keys: HashMap<Box<str>, Values>,
}

/// The nodes of one key.
#[derive(Clone, Debug, Default)]
struct Values {
    exact: HashMap<Box<str>, Node>,
    /// In the order of the file. A request may also name a pattern letter by letter; it is covered by itself.
    wild: Vec<Wild>,
    any: Option<Box<Node>>,
}

#[derive(Clone, Debug)]
struct Wild {
    pattern: Box<str>,
    /// Whether all values that it covers share a bucket.
    shared: bool,
    node: Node,
}

impl Domain {
    /// Looks a descriptor up by its entries. The values of its bucket are the domain's name and those of the entries; where
    /// values share a bucket, nothing and the pattern stand in their place, which no value can look like.
    #[must_use]
    pub fn find<'a>(
        &'a self,
        domain: &'a str,
        entries: impl ExactSizeIterator<Item = (&'a str, &'a str)>,
    ) -> Option<Found<'a>> {
        let mut values = BucketValues::new();
        values.push(Some(domain));
        let mut node = &self.root;
        for (key, value) in entries {
            let of_key = node.keys.get(key)?;
            values.push(Some(key));
            let (next, shared) = of_key.next(value)?;
            match shared {
                Some(pattern) => values.extend([None, Some(pattern)]),
                None => values.push(Some(value)),
            }
            node = next;
        }
        Some(Found { rule: node.rule?, values })
    }
}

impl Values {
    /// Where a value leads, and the pattern whose bucket it shares.
    fn next(&self, value: &str) -> Option<(&Node, Option<&str>)> {
        if let Some(node) = self.exact.get(value) {
            return Some((node, None));
        }
        // A value that is a pattern, letter by letter, is that one, whichever covers it first.
        let is_it = |wild: &&Wild| &*wild.pattern == value;
        let wild = match value.contains('*') {
            true => self.wild.iter().find(is_it),
            false => None,
        };
        let wild = wild.or_else(|| self.wild.iter().find(|wild| wildcard::covers(&wild.pattern, value)));
        match wild {
            Some(wild) => Some((&wild.node, wild.shared.then_some(&*wild.pattern))),
            None => self.any.as_deref().map(|node| (node, None)),
        }
    }

    /// The node of a key with this value; made where there is none.
    fn node(&mut self, value: Option<&str>, shared: bool) -> &mut Node {
        match value {
            None => self.any.get_or_insert_default(),
            Some(value) if value.contains('*') => {
                let place = self.wild.iter().position(|wild| &*wild.pattern == value);
                let place = place.unwrap_or_else(|| {
                    self.wild.push(Wild { pattern: value.into(), shared, node: Node::default() });
                    self.wild.len() - 1
                });
                &mut self.wild[place].node
            }
            Some(value) => self.exact.entry(value.into()).or_default(),
        }
    }

    fn has(&self, value: Option<&str>) -> bool {
        match value {
            None => self.any.is_some(),
            Some(value) => {
                self.exact.contains_key(value) || self.wild.iter().any(|wild| &*wild.pattern == value)
            }
        }
    }
}

impl Node {
    /// Adds a descriptor of a file, and all below it.
    pub(super) fn add(
        &mut self,
        domain: &str,
        path: &mut Vec<(Box<str>, Option<Box<str>>)>,
        draft: read::Descriptor,
        rules: &mut Vec<DescriptorRule>,
        mistakes: &mut Vec<Mistake>,
    ) {
        let values = self.keys.entry(draft.key.clone()).or_default();
        let is_known = values.has(draft.value.as_deref());
        path.push((draft.key, draft.value));
        if is_known {
            let key = full_key(domain, path.iter().map(|(key, value)| (&**key, value.as_deref())));
            mistakes.push(draft.at.mistake(format!("duplicate descriptor composite key '{key}'")));
        }
        let value = path.last().and_then(|(_, value)| value.as_deref());
        let node = values.node(value, draft.share_threshold);
        if let Some(measure) = draft.measure {
            node.rule = Some(rules.len());
            rules.push(DescriptorRule {
                domain: domain.into(),
                path: path.clone(),
                measure,
                name: draft.name,
                replaces: draft.replaces,
                shadow_mode: draft.shadow_mode,
                quota_mode: draft.quota_mode,
                metadata: draft.metadata,
            });
        }
        for below in draft.descriptors {
            node.add(domain, path, below, rules, mistakes);
        }
        path.pop();
    }
}
