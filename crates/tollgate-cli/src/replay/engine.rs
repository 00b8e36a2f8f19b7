//! The store that lines are run through, whichever it is, and the ids they gave to turns and held slots.

use super::{
    answer::Answer,
    line::{Line, Op, Usage},
    place,
};
use anyhow::{Result, bail};
use futures_util::{StreamExt, TryStreamExt, stream};
use std::{
    collections::{HashMap, HashSet, hash_map::Entry},
    time::Duration,
};
use tollgate::{Charge, Clock, Key, Limit, ManualClock, PermitId, SetStatus, Store, StoreError, Time};
use tollgate_rules::json::KeyText;

pub(super) struct Engine<S: Store> {
    store: S,
    /// The store's.
    clock: ManualClock,
    handles: Vec<S::Limit>,
    limits: Vec<Limit>,
    ids: HashMap<String, Named>,
    /// Whom lines charged, where that is to be forgotten in the end.
    charged: Option<HashSet<KeyText<'static>>>,
}

/// What an id names. It stays known for good: to give back what is gone already does no harm.
struct Named {
    by: NamedBy,
    /// `None` where it was refused, or given back.
    held: Option<Held>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum NamedBy {
    Reserve,
    Enter,
}

/// A booked turn, or slots that are held.
struct Held {
    usage: Usage,
    due: Time,
    permit: Option<PermitId>,
}

/// Whether a set is charged or only asked.
#[derive(Clone, Copy)]
enum Charging {
    Yes,
    No,
}

impl<S: Store> Engine<S> {
    /// Lines run through a store that tells the time by `clock`, which they set.
    pub(super) fn new(store: S, clock: ManualClock) -> Self {
        Self { store, clock, handles: Vec::new(), limits: Vec::new(), ids: HashMap::new(), charged: None }
    }

    /// Remembers whom lines charge, for [`forget`](Self::forget).
    pub(super) fn remembering(self) -> Self {
        Self { charged: Some(HashSet::new()), ..self }
    }

    /// Adds a limit that every line is charged against; it begins at time zero.
    pub(super) fn add(&mut self, limit: Limit) -> Result<(), StoreError> {
        let name = format!("limit-{}", self.handles.len());
        self.handles.push(self.store.add_named(&name, limit.clone())?);
        self.limits.push(limit);
        Ok(())
    }

    pub(super) const fn store(&self) -> &S {
        &self.store
    }

    /// Leaves nothing in the store of what lines charged.
    pub(super) async fn forget(&mut self) -> Result<(), StoreError> {
        let charged = self.charged.as_mut().map(std::mem::take).unwrap_or_default();
        let (store, handles) = (&self.store, &self.handles);
        let buckets = charged.iter().flat_map(|key| handles.iter().map(move |handle| (handle, key)));
        let resets = buckets.map(|(handle, key)| async move {
            let values = key.values();
            store.reset(handle, Key::List(&values)).await
        });
        stream::iter(resets).buffer_unordered(place::ABREAST).try_collect().await
    }

    /// Does what a line asks, at its time.
    pub(super) async fn obey(&mut self, line: Line) -> Result<Answer> {
        self.clock.set(line.at());
        let at_us = line.at_us;
        match line.op {
            Op::Check(usage) => Ok(Answer::decided(at_us, &self.decide(&usage, None, Charging::Yes).await?)),
            Op::Peek(usage) => Ok(Answer::decided(at_us, &self.decide(&usage, None, Charging::No).await?)),
            Op::Reserve { usage, up_to, id } => {
                self.refuse_used(id.as_deref())?;
                let set = self.decide(&usage, Some(up_to.unwrap_or(Duration::MAX)), Charging::Yes).await?;
                self.name(id, NamedBy::Reserve, usage, &set);
                Ok(Answer::decided(at_us, &set))
            }
            Op::Enter { usage, id } => {
                self.refuse_used(Some(&id))?;
                if !self.limits.iter().any(|limit| matches!(limit, Limit::Concurrency(_))) {
                    bail!(
                        "op \"enter\" needs a concurrency limit, such as --limit 'concurrency: {{ limit: 20 }}'"
                    );
                }
                let set = self.decide(&usage, None, Charging::Yes).await?;
                self.name(Some(id), NamedBy::Enter, usage, &set);
                Ok(Answer::decided(at_us, &set))
            }
            Op::Cancel { id } => {
                if let Some(turn) = self.give_up(&id, NamedBy::Reserve)?
                    && self.clock.now() < turn.due
                {
                    self.refund(&turn.usage).await?;
                    self.leave(&turn).await?;
                }
                Ok(Answer::ok(at_us))
            }
            Op::Leave { id } => {
                if let Some(slots) = self.give_up(&id, NamedBy::Enter)? {
                    self.leave(&slots).await?;
                }
                Ok(Answer::ok(at_us))
            }
            Op::Refund(usage) => {
                self.refund(&usage).await?;
                Ok(Answer::ok(at_us))
            }
            Op::Reset { key } => {
                let values = key.values();
                for handle in &self.handles {
                    self.store.reset(handle, Key::List(&values)).await?;
                }
                Ok(Answer::ok(at_us))
            }
            Op::SetLimit { limit, index } => {
                self.set_limit(limit, index)?;
                Ok(Answer::ok(at_us))
            }
        }
    }

    async fn decide(
        &mut self,
        usage: &Usage,
        up_to: Option<Duration>,
        charging: Charging,
    ) -> Result<SetStatus> {
        if let (Charging::Yes, Some(charged)) = (charging, &mut self.charged)
            && !charged.contains(&usage.key)
        {
            charged.insert(usage.key.clone());
        }
        let values = usage.key.values();
        let charges = self.charges(usage, &values).map(|charge| match up_to {
            Some(up_to) => charge.up_to(up_to),
            None => charge,
        });
        let charges: Vec<_> = charges.collect();
        Ok(match charging {
            Charging::Yes => self.store.check(&charges).await?,
            Charging::No => self.store.peek(&charges).await?,
        })
    }

    async fn refund(&self, usage: &Usage) -> Result<()> {
        let values = usage.key.values();
        for handle in &self.handles {
            self.store.refund(handle, Key::List(&values), usage.cost).await?;
        }
        Ok(())
    }

    async fn leave(&self, held: &Held) -> Result<()> {
        if let Some(permit) = held.permit {
            let values = held.usage.key.values();
            let charges: Vec<_> = self.charges(&held.usage, &values).collect();
            self.store.leave(&charges, permit).await?;
        }
        Ok(())
    }

    fn set_limit(&mut self, limit: Limit, index: Option<usize>) -> Result<()> {
        let index = match (index, self.limits.len()) {
            (None, 1) => 0,
            (None, several) => bail!("\"index\" is missing; there are {several} limits, counted from 0"),
            (Some(index), limits) if index >= limits => {
                bail!("\"index\" must be below {limits}, the number of limits; read {index}")
            }
            (Some(index), _) => index,
        };
        self.store.change_limit(&self.handles[index], limit.clone())?;
        self.limits[index] = limit;
        Ok(())
    }

    fn charges<'a>(
        &'a self,
        usage: &'a Usage,
        values: &'a [Option<&'a str>],
    ) -> impl Iterator<Item = Charge<'a, S::Limit>> {
        self.handles.iter().map(|handle| Charge::new(handle, Key::List(values)).cost(usage.cost))
    }

    fn refuse_used(&self, id: Option<&str>) -> Result<()> {
        match id.and_then(|id| self.ids.get(id)) {
            Some(named) if named.held.is_some() => {
                bail!(
                    "\"id\" {:?} is in use already; {} gives it back",
                    id.unwrap_or_default(),
                    named.by.undone_by()
                )
            }
            _ => Ok(()),
        }
    }

    fn name(&mut self, id: Option<String>, by: NamedBy, usage: Usage, set: &SetStatus) {
        let Some(id) = id else { return };
        let wait = match set.decision() {
            tollgate::Decision::Wait(wait) => wait,
            _ => Duration::ZERO,
        };
        let due = self.clock.now() + wait;
        let held = (!set.is_deny()).then(|| Held { usage, due, permit: set.permit() });
        self.ids.insert(id, Named { by, held });
    }

    /// What the id names, which it then holds no longer.
    fn give_up(&mut self, id: &str, by: NamedBy) -> Result<Option<Held>> {
        match self.ids.entry(id.to_owned()) {
            Entry::Vacant(_) => bail!("\"id\" {id:?} is unknown; no {} named it before", by.op()),
            Entry::Occupied(named) if named.get().by != by => {
                let was = named.get().by;
                bail!("\"id\" {id:?} comes from {}, which {} gives back", was.op(), was.undone_by())
            }
            Entry::Occupied(mut named) => Ok(named.get_mut().held.take()),
        }
    }
}

impl NamedBy {
    const fn op(self) -> &'static str {
        match self {
            Self::Reserve => "reserve",
            Self::Enter => "enter",
        }
    }

    const fn undone_by(self) -> &'static str {
        match self {
            Self::Reserve => "cancel",
            Self::Enter => "leave",
        }
    }
}
