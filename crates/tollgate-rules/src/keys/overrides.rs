//! Which keys of a limit have numbers of their own: one lookup, and none at all where no key has.

use crate::model::Override;
use std::{collections::HashMap, hash::BuildHasher};
use tollgate::Key;

type Hashed = HashMap<u64, Vec<u32>, foldhash::fast::RandomState>;

/// The overrides of one limit, by key.
#[derive(Debug, Default)]
pub(crate) struct Overrides {
    keys: Vec<Vec<String>>,
    /// Places in `keys` by hash, so that a key is looked up without being copied.
    hashed: Hashed,
}

impl Overrides {
    pub(crate) fn new(overrides: &[Override]) -> Self {
        let mut it =
            Self { keys: overrides.iter().map(|it| it.key.clone()).collect(), hashed: Hashed::default() };
        for (place, key) in it.keys.iter().enumerate() {
            let hash = hash(it.hashed.hasher(), key.iter().map(|value| Some(value.as_bytes())));
            it.hashed.entry(hash).or_default().push(place as u32);
        }
        it
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// The first override for this key.
    pub(crate) fn find(&self, key: Key<'_>) -> Option<usize> {
        if self.is_empty() {
            return None;
        }
        match key {
            Key::All => self.find_list(&[]),
            Key::Text(text) => self.find_list(&[Some(text.as_bytes())]),
            Key::Bytes(bytes) => self.find_list(&[Some(bytes)]),
            Key::List(texts) => {
                let values: smallvec::SmallVec<[_; 4]> =
                    texts.iter().map(|text| text.map(str::as_bytes)).collect();
                self.find_list(&values)
            }
            // Numbers and addresses are not the texts that a file can name.
            _ => None,
        }
    }

    fn find_list(&self, values: &[Option<&[u8]>]) -> Option<usize> {
        let places = self.hashed.get(&hash(self.hashed.hasher(), values.iter().copied()))?;
        places.iter().map(|place| *place as usize).find(|place| {
            let key = &self.keys[*place];
            key.len() == values.len()
                && key.iter().zip(values).all(|(text, value)| Some(text.as_bytes()) == *value)
        })
    }
}

fn hash<'a>(hasher: &impl BuildHasher, values: impl Iterator<Item = Option<&'a [u8]>>) -> u64 {
    // Unlike a slice's own hash this needs no list of the same type on both sides.
    let mut state = hasher.build_hasher();
    for value in values {
        std::hash::Hash::hash(&value, &mut state);
    }
    std::hash::Hasher::finish(&state)
}
