//! One file in force: its program, for every charge the limits to be charged, and who records decisions.

use super::{
    BindError, Recorder,
    definitions::Definitions,
    limits::{self, Limits},
};
use crate::{ChargedLimit, Program, RuleCharge, RuleEntry, RuleFile, domains::Unit, model::Excess};
use std::{collections::HashMap, sync::Arc, time::Duration};
use tollgate::{Key, Limit, Numbers, Store, StoreError};

/// What every snapshot of a service is bound to.
pub(super) struct Binding<S: Store> {
    pub(super) store: Arc<S>,
    pub(super) definitions: Arc<Definitions<S>>,
    pub(super) recorder: Box<MakeRecorder>,
}

/// Makes the recorder of a file.
type MakeRecorder = dyn Fn(&Program) -> Arc<dyn Recorder> + Send + Sync;

/// A file in force on a store.
pub struct RuleSnapshot<S: Store> {
    pub(super) store: Arc<S>,
    pub(super) program: Program,
    pub(super) recorder: Arc<dyn Recorder>,
    /// Limits that come with requests. They outlive the file.
    pub(super) definitions: Arc<Definitions<S>>,
    /// By the place of a named limit in the file.
    named: Vec<Handles<S>>,
    /// Where in the file a limit of that name stands. By bytes: whoever asks with some that are no text has none of these names.
    places: HashMap<Box<[u8]>, usize, foldhash::fast::RandomState>,
    /// By the id of a charge.
    pub(super) plans: Vec<Plan<S>>,
    /// Whether any rule is a shadow: where none is, no rule is looked at for it.
    pub(super) has_shadows: bool,
    descriptors: Descriptors<S>,
    limits: Limits<S>,
}

/// What the descriptors of domains are charged on.
struct Descriptors<S: Store> {
    /// By the place of a unit; none where there is no domain.
    counters: Vec<S::Limit>,
    /// By the place of a rule among all of the domains.
    limits: Vec<Option<S::Limit>>,
}

/// How a charge is made.
pub(super) struct Plan<S: Store> {
    handles: Handles<S>,
    pub(super) up_to: Option<Duration>,
    /// Whether a turn may come later, or slots are held.
    pub(super) enters: bool,
    /// Whether the limit, or that of some keys, has a pace of its own: a turn may come later whatever the rule says.
    pub(super) paced: bool,
    /// Whether slots are held.
    pub(super) holds: bool,
}

/// A limit, and the same for keys with numbers of their own.
struct Handles<S: Store> {
    base: S::Limit,
    /// Shared by all charges on the limit.
    overrides: Arc<[S::Limit]>,
}

impl<S: Store> RuleSnapshot<S> {
    pub(super) fn bind(
        binding: &Binding<S>,
        program: Program,
        old: Option<&Self>,
    ) -> Result<Self, BindError> {
        let store = &binding.store;
        let limits = Limits::bind(store, program.file(), old.map(|old| &old.limits))?;
        let handle = |name: &str| -> Result<S::Limit, BindError> {
            limits.get(name).cloned().ok_or_else(|| BindError::new(name, StoreError::UnknownLimit))
        };
        let mut named = Vec::new();
        for limit in &program.file().limits {
            let of_key = |key: &Vec<String>| handle(&limits::of_override(limit, key));
            named.push(Handles {
                base: handle(&limits::of_named(limit))?,
                overrides: limit.overrides.iter().map(|it| of_key(&it.key)).collect::<Result<_, _>>()?,
            });
        }
        let mut plans = Vec::with_capacity(program.charges().len());
        for entry in program.rules() {
            for charge in entry.charges {
                plans.push(Plan::new(store, &program, entry, charge, &named, handle)?);
            }
        }
        let limits_of_file = program.file().limits.iter().enumerate();
        let places = limits_of_file.map(|(place, limit)| (limit.name.as_bytes().into(), place)).collect();
        let descriptors = Descriptors::bind(store, program.file(), handle)?;
        let has_shadows = program.rules().any(|entry| matches!(entry.rule().excess, Excess::Shadow));
        Ok(Self {
            store: Arc::clone(store),
            recorder: (binding.recorder)(&program),
            definitions: Arc::clone(&binding.definitions),
            program,
            named,
            places,
            plans,
            has_shadows,
            descriptors,
            limits,
        })
    }

    /// The rules.
    pub const fn program(&self) -> &Program {
        &self.program
    }

    /// The limit that holds for a key of a named limit: its own where it has one. By the limit's place in the file.
    ///
    /// # Panics
    /// Where the file has no limit in that place.
    pub fn at(&self, place: usize, key: Key<'_>) -> &S::Limit {
        self.named[place].of(self.program.override_of(place, key))
    }

    /// Where in the file the limit of this name stands.
    pub fn place_of(&self, name: impl AsRef<[u8]>) -> Option<usize> {
        self.places.get(name.as_ref()).copied()
    }

    /// The store to charge; `None` while the global switch is off. Nothing else tests the switch, and whatever charges asks here.
    #[inline]
    pub(super) fn deciding_store(&self) -> Option<&Arc<S>> {
        self.program.file().enabled.then_some(&self.store)
    }

    /// The window that counts hits over a unit: of all that a number holds, so that it refuses nobody, and what was counted
    /// is what is left less than that. A shared store keeps it exactly, without units taken ahead. `None` where there is no
    /// domain.
    pub(super) fn counter(&self, unit: Unit) -> Option<&S::Limit> {
        self.descriptors.counters.get(unit as usize)
    }

    /// The limit of a rule of the domains, by its place among them; `None` where its hits are only counted.
    pub(super) fn descriptor_limit(&self, rule: usize) -> Option<&S::Limit> {
        self.descriptors.limits.get(rule)?.as_ref()
    }

    /// The limit that a charge is on, for a key: the key's own where it has one.
    pub fn limit_of(&self, charge: &RuleCharge, key: Key<'_>) -> &S::Limit {
        let own = match charge.limit() {
            ChargedLimit::Named(place) => self.program.override_of(place, key),
            ChargedLimit::Inline(_) => None,
        };
        self.handle_of(charge, own)
    }

    /// The limit that a charge is on, where the key has these numbers of its own.
    pub(super) fn handle_of(&self, charge: &RuleCharge, own: Option<usize>) -> &S::Limit {
        self.plans[charge.id().0].handles.of(own)
    }
}

impl<S: Store> Descriptors<S> {
    fn bind(
        store: &Arc<S>,
        file: &RuleFile,
        handle: impl Fn(&str) -> Result<S::Limit, BindError>,
    ) -> Result<Self, BindError> {
        let domains = &file.domains;
        let units = Unit::ALL.into_iter().filter(|_| !domains.is_empty());
        let counter = |unit| Ok(store.exactly(&handle(&limits::of_unit(unit))?));
        let limit = |rule| match limits::of_rule(rule, domains.settings()) {
            Some(_) => handle(&limits::of_descriptor(rule)).map(Some),
            None => Ok(None),
        };
        Ok(Self {
            counters: units.map(counter).collect::<Result<_, _>>()?,
            limits: domains.rules().iter().map(limit).collect::<Result<_, _>>()?,
        })
    }
}

impl<S: Store> Plan<S> {
    fn new(
        store: &Arc<S>,
        program: &Program,
        entry: RuleEntry<'_>,
        charge: &RuleCharge,
        named: &[Handles<S>],
        handle: impl Fn(&str) -> Result<S::Limit, BindError>,
    ) -> Result<Self, BindError> {
        let rule = entry.rule();
        let (handles, limit, own) = match charge.limit() {
            ChargedLimit::Named(place) => {
                let limit = &program.file().limits[place];
                (named[place].clone(), &limit.limit, limit.overrides.as_slice())
            }
            ChargedLimit::Inline(place) => {
                let route = entry.route.map(|route| program.route(route).name.as_str());
                let base = handle(&limits::of_inline(route, &rule.name, charge.place()))?;
                (Handles { base, overrides: Arc::default() }, &program.inline_limits()[place].limit, &[][..])
            }
        };
        let handles = match rule.on_failure {
            Some(policy) => handles.map(|limit| store.when_failing(&limit, policy)),
            None => handles,
        };
        let up_to = match rule.excess {
            Excess::Wait(up_to) => Some(up_to),
            _ => None,
        };
        // A leaky bucket's delay waits by itself.
        let has_pace = |limit: &Limit| matches!(limit.numbers(), Numbers::Bucket(it) if !it.books);
        let paced = has_pace(limit) || own.iter().any(|own| has_pace(&own.limit));
        let holds = matches!(limit, Limit::Concurrency(_));
        Ok(Self { handles, up_to, enters: up_to.is_some() || paced || holds, paced, holds })
    }
}

impl<S: Store> Handles<S> {
    fn of(&self, other: Option<usize>) -> &S::Limit {
        other.and_then(|place| self.overrides.get(place)).unwrap_or(&self.base)
    }

    fn map(self, change: impl Fn(S::Limit) -> S::Limit) -> Self {
        let overrides = self.overrides.iter().cloned().map(&change).collect();
        Self { base: change(self.base), overrides }
    }
}

impl<S: Store> Clone for Handles<S> {
    fn clone(&self) -> Self {
        Self { base: self.base.clone(), overrides: Arc::clone(&self.overrides) }
    }
}

impl<S: Store> std::fmt::Debug for RuleSnapshot<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RuleSnapshot").field("charges", &self.plans.len()).finish_non_exhaustive()
    }
}
