//! What an operator sees and does of single keys, whatever the global switch says.

use super::RuleSnapshot;
use crate::{ChargeId, Found, Keyed};
use std::time::Duration;
use tollgate::{Charge, Key, Status, Store, StoreError};

/// One key of a limit, in an operator's hands.
pub struct KeyControl<'r, S: Store> {
    store: &'r S,
    limit: &'r S::Limit,
    key: Key<'r>,
}

impl<S: Store> RuleSnapshot<S> {
    /// A key of the limit of this name: a named limit, with the key's own numbers where it has some, or the limit of a rule.
    /// `None` where there is none.
    pub fn key_control<'r>(&'r self, limit: &str, key: Key<'r>) -> Option<KeyControl<'r, S>> {
        let limit = match self.place_of(limit) {
            Some(place) => self.at(place, key),
            None => {
                let program = self.program();
                let inline = program.inline_limits().iter().find(|inline| inline.name == limit)?;
                self.limit_of(&program.charges()[inline.charge.0], key)
            }
        };
        Some(KeyControl { store: &self.store, limit, key })
    }

    /// How every charge that a request would make stands, charging nothing: those of all rules that apply, shadow rules
    /// included, each asked for its cost.
    ///
    /// # Errors
    /// Where the store does not answer.
    pub async fn peek(&self, found: &Found<'_, '_>) -> Result<Vec<(ChargeId, Status)>, StoreError> {
        let mut stands = Vec::new();
        for charge in found.entries().flat_map(|entry| entry.charges) {
            let Keyed::Key(values) = found.key(charge) else { continue };
            let texts = values.texts();
            let (limit, key) = (self.limit_of(charge, texts.key()), texts.key());
            let control = KeyControl { store: &*self.store, limit, key };
            stands.push((charge.id(), control.status(found.units(charge).known_or(1)).await?));
        }
        Ok(stands)
    }
}

impl<S: Store> KeyControl<'_, S> {
    /// What a charge of this cost would be told now, charging nothing.
    ///
    /// # Errors
    /// Where the store does not answer.
    pub async fn status(&self, cost: u32) -> Result<Status, StoreError> {
        let set = self.store.peek(&[Charge::new(self.limit, self.key).cost(cost)]).await?;
        set.statuses().first().copied().ok_or(StoreError::UnknownLimit)
    }

    /// Forgets what the key has used.
    ///
    /// # Errors
    /// Where the store does not answer.
    pub async fn reset(&self) -> Result<(), StoreError> {
        self.store.reset(self.limit, self.key).await
    }

    /// Gives the key `units` above its limit, until used.
    ///
    /// # Errors
    /// Where the store does not answer.
    pub async fn grant(&self, units: u32) -> Result<(), StoreError> {
        self.store.grant(self.limit, self.key, units).await
    }

    /// Refuses the key for this long from now. Zero lifts the ban.
    ///
    /// # Errors
    /// Where the store does not answer.
    pub async fn ban(&self, lasting: Duration) -> Result<(), StoreError> {
        self.store.ban(self.limit, self.key, lasting).await
    }
}

impl<S: Store> std::fmt::Debug for KeyControl<'_, S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KeyControl").field("limit", &self.limit).field("key", &self.key).finish()
    }
}
