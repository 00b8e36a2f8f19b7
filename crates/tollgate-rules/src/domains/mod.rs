//! Domains: which limit holds for a descriptor, by the files of envoyproxy/ratelimit, read as they are.
//!
//! A file is one domain, a tree of keys and values; a descriptor is a list of entries that is looked up in it, a level an
//! entry. Beside what those files have, a descriptor may name an `algorithm` of ours. Mistakes are told in that server's
//! words, with file and place, and all at once. What a limit means (that refused hits count, that each descriptor is
//! by itself) is for the door to say: nothing is decided here.
//!
//! Identity is never a joined string: a key `a_b` and a key `a` with the value `b` are two things, in the files as in the
//! buckets. Only a real duplicate is a mistake.

mod metadata;
mod read;
mod scalar;
mod tree;
mod unit;
mod wildcard;

pub use metadata::Metadata;
pub use tree::{Domain, Found};
pub use unit::Unit;

use crate::{file::BadRules, mistake::Mistakes};
use smallvec::SmallVec;
use std::collections::HashMap;
use tollgate::Limit;

/// What the rule file says of domains.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DomainSettings {
    /// Patterns of the files, one domain each; relative to the rule file.
    pub files: Vec<String>,
    /// Whether all descriptors of a request are charged, or none is.
    pub atomic: bool,
    /// Whether no request is refused, whatever its descriptors say.
    pub shadow_mode: bool,
    /// Whether every descriptor is one of which all must be over for a refusal.
    pub quota_mode: bool,
    /// Whether answers carry headers for the response.
    pub headers: bool,
    /// Whether answers carry the request and the metadata of the descriptors that are within their limits.
    pub dynamic_metadata: bool,
    /// Whether files may continue a domain that another has begun.
    pub merge: bool,
    /// Whether a descriptor counts the hits that it refuses.
    pub count_refused: bool,
}

impl Default for DomainSettings {
    fn default() -> Self {
        crate::file::default_domains(Vec::new())
    }
}

/// All domains of some files, ready to be asked.
#[derive(Clone, Debug, Default)]
pub struct Domains {
    pub(crate) settings: DomainSettings,
    by_name: HashMap<Box<str>, Domain>,
    rules: Vec<DescriptorRule>,
}

/// What holds for the descriptors that end at one place of a tree.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct DescriptorRule {
    /// Whose it is.
    pub domain: Box<str>,
    /// The keys and values on the way to it, as the file has them.
    pub path: Vec<(Box<str>, Option<Box<str>>)>,
    /// How much is let through.
    pub measure: Measure,
    /// What it is called, for those asked and for other rules to replace it; empty where it has no name.
    pub name: Box<str>,
    /// The names of those that do not hold beside it.
    pub replaces: Vec<Box<str>>,
    /// Whether it is counted and never refuses.
    pub shadow_mode: bool,
    /// Whether it refuses only together with all others of its sort.
    pub quota_mode: bool,
    /// What is told about it.
    pub metadata: Option<Metadata>,
}

/// How much is let through.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Measure {
    /// So many a unit of time; none where it is zero.
    PerUnit {
        /// How many.
        requests: u32,
        /// The unit.
        unit: Unit,
    },
    /// What a limit of ours gives.
    Limit(Limit),
    /// Anything, uncounted.
    Unlimited,
}

/// The values that make a bucket: a domain, then the keys and values of the entries.
pub type BucketValues<'a> = SmallVec<[Option<&'a str>; 12]>;

impl DescriptorRule {
    /// Where it stands, as envoyproxy/ratelimit writes it: `domain.key_value.key`. Made of the file alone.
    #[must_use]
    pub fn full_key(&self) -> String {
        full_key(&self.domain, self.path.iter().map(|(key, value)| (&**key, value.as_deref())))
    }
}

fn full_key<'p>(domain: &str, path: impl Iterator<Item = (&'p str, Option<&'p str>)>) -> String {
    let mut text = domain.to_owned();
    for (key, value) in path {
        text.push('.');
        text.push_str(key);
        if let Some(value) = value {
            text.push('_');
            text.push_str(value);
        }
    }
    text
}

impl Domains {
    /// Those that a rule file names, before their files are read.
    pub(crate) fn named(settings: DomainSettings) -> Self {
        Self { settings, ..Self::default() }
    }

    /// What the rule file says of them.
    #[must_use]
    pub const fn settings(&self) -> &DomainSettings {
        &self.settings
    }

    /// The domain of that name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Domain> {
        self.by_name.get(name)
    }

    /// Every rule, in the order of the files.
    #[must_use]
    pub fn rules(&self) -> &[DescriptorRule] {
        &self.rules
    }

    /// How many domains there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.by_name.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    /// Reads files, each with its name, as these settings say.
    ///
    /// ```
    /// use tollgate_rules::domains::Domains;
    ///
    /// let text = "domain: shop\ndescriptors:\n- { key: user, rate_limit: { unit: minutes, requests_per_unit: 5 } }";
    /// let bad = Domains::read(Default::default(), &[("shop.yaml", text)]).unwrap_err();
    /// assert_eq!(
    ///     bad[0].to_string(),
    ///     "shop.yaml:3:36: descriptors[0].rate_limit.unit: invalid rate limit unit 'minutes'; did you mean `minute`?"
    /// );
    /// ```
    ///
    /// # Errors
    /// Everything that is wrong with any of them, at once.
    pub fn read(settings: DomainSettings, files: &[(&str, &str)]) -> Result<Self, Vec<BadRules>> {
        let mut domains = Self::named(settings);
        let mut bad = Vec::new();
        for (name, text) in files {
            let (draft, mut mistakes) = read::draft(text);
            if let Some(draft) = draft {
                domains.add(draft, &mut mistakes);
            }
            let mut mistakes = mistakes.into_iter();
            if let Some(first) = mistakes.next() {
                bad.push(BadRules::new(name, Mistakes::new(first, mistakes)));
            }
        }
        if bad.is_empty() { Ok(domains) } else { Err(bad) }
    }

    fn add(&mut self, draft: read::Draft, mistakes: &mut Vec<crate::Mistake>) {
        let Some((name, at)) = draft.domain else { return };
        if self.by_name.contains_key(&*name) && !self.settings.merge {
            mistakes.push(at.mistake(format!("duplicate domain '{name}' in config file")));
            return;
        }
        let domain = self.by_name.entry(name.clone()).or_default();
        let mut path = Vec::new();
        for node in draft.descriptors {
            domain.root.add(&name, &mut path, node, &mut self.rules, mistakes);
        }
    }
}
