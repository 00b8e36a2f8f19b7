//! Keys and charges that own what a [`Key`] borrows: for a store that answers after the request's borrow has ended.

use crate::{charge::Charge, key::Key};
use std::{net::IpAddr, time::Duration};

/// A [`Key`] that owns its text.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OwnedKey {
    /// One bucket for all.
    All,
    /// One text.
    Text(String),
    /// One value of any bytes. Text is the same as its bytes.
    Bytes(Vec<u8>),
    /// A number, which is not the same as its digits.
    Number(u64),
    /// An address.
    Ip(IpAddr),
    /// Several values, of which some may be missing. Nothing is joined: `["a", "b c"]` is not `["a b", "c"]`.
    List(Vec<Option<String>>),
}

/// The values of an [`OwnedKey`] that is a list, borrowed as a [`Key`] wants them; empty for any other key.
pub type KeyValues<'k> = Vec<Option<&'k str>>;

impl OwnedKey {
    /// The values of a list, to be passed to [`key`](Self::key).
    #[must_use]
    pub fn values(&self) -> KeyValues<'_> {
        match self {
            Self::List(values) => values.iter().map(Option::as_deref).collect(),
            _ => Vec::new(),
        }
    }

    /// The same key, borrowed. `values` are its own [`values`](Self::values).
    #[must_use]
    pub fn key<'k>(&'k self, values: &'k [Option<&'k str>]) -> Key<'k> {
        match self {
            Self::All => Key::All,
            Self::Text(text) => Key::Text(text),
            Self::Bytes(bytes) => Key::Bytes(bytes),
            Self::Number(number) => Key::Number(*number),
            Self::Ip(address) => Key::Ip(*address),
            Self::List(_) => Key::List(values),
        }
    }
}

impl From<Key<'_>> for OwnedKey {
    fn from(key: Key<'_>) -> Self {
        match key {
            Key::All => Self::All,
            Key::Text(text) => Self::Text(text.to_owned()),
            Key::Bytes(bytes) => Self::Bytes(bytes.to_vec()),
            Key::Number(number) => Self::Number(number),
            Key::Ip(address) => Self::Ip(address),
            Key::List(values) => Self::List(values.iter().map(|value| value.map(str::to_owned)).collect()),
        }
    }
}

macro_rules! from {
    ($($kind:ty => $variant:ident)*) => {$(
        impl From<$kind> for OwnedKey {
            fn from(value: $kind) -> Self {
                Self::$variant(value.into())
            }
        }
    )*};
}

from! {
    String => Text  &str => Text  Vec<u8> => Bytes  u64 => Number  u32 => Number  IpAddr => Ip
    Vec<Option<String>> => List
}

impl From<()> for OwnedKey {
    fn from((): ()) -> Self {
        Self::All
    }
}

impl<const N: usize> From<[Option<String>; N]> for OwnedKey {
    fn from(values: [Option<String>; N]) -> Self {
        Self::List(values.into())
    }
}

/// A set of charges that owns its keys, and shares its limits.
#[derive(Clone, Debug)]
pub struct OwnedCharges<L>(Vec<OwnedCharge<L>>);

#[derive(Clone, Debug)]
struct OwnedCharge<L> {
    limit: L,
    key: OwnedKey,
    cost: u32,
    up_to: Option<Duration>,
}

impl<L: Clone> OwnedCharges<L> {
    /// Copies these charges.
    #[must_use]
    pub fn new(charges: &[Charge<'_, L>]) -> Self {
        let own = |charge: &Charge<'_, L>| OwnedCharge {
            limit: charge.limit.clone(),
            key: charge.key.into(),
            cost: charge.cost,
            up_to: charge.up_to,
        };
        Self(charges.iter().map(own).collect())
    }

    /// The same charges, to be borrowed.
    #[must_use]
    pub fn borrow(&self) -> BorrowedCharges<'_, L> {
        BorrowedCharges(self.0.iter().map(|charge| (charge, charge.key.values())).collect())
    }
}

/// [`OwnedCharges`] with what their keys need to be borrowed.
#[derive(Debug)]
pub struct BorrowedCharges<'c, L>(Vec<(&'c OwnedCharge<L>, KeyValues<'c>)>);

impl<L> BorrowedCharges<'_, L> {
    /// The charges, in the order they were given.
    #[must_use]
    pub fn charges(&self) -> Vec<Charge<'_, L>> {
        let charges = self.0.iter().map(|(charge, values)| Charge {
            limit: &charge.limit,
            key: charge.key.key(values),
            cost: charge.cost,
            up_to: charge.up_to,
        });
        charges.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owned_charges_are_the_charges_that_they_were_made_from() {
        let list = [Some("a"), None];
        let keys = [Key::List(&list), Key::All, Key::Text("alice")];
        let made: Vec<_> = (1..).zip(keys).map(|(cost, key)| Charge::new(&"limit", key).cost(cost)).collect();
        let owned = OwnedCharges::new(&made);
        let borrowed = owned.borrow();
        let charges = borrowed.charges();
        assert_eq!(charges.len(), made.len());
        for (charge, made) in charges.iter().zip(&made) {
            assert_eq!((charge.key.hash([1, 2], 3), charge.cost), (made.key.hash([1, 2], 3), made.cost));
        }
    }

    #[test]
    fn an_owned_key_is_the_key_that_it_was_made_from() {
        let list = [Some("a"), None, Some("b c")];
        let keys = [
            Key::All,
            Key::Text("alice"),
            Key::Bytes(b"\xff\x00"),
            Key::Number(7),
            Key::from(std::net::Ipv4Addr::LOCALHOST),
            Key::List(&list),
        ];
        for key in keys {
            let owned = OwnedKey::from(key);
            let values = owned.values();
            assert_eq!(owned.key(&values).hash([1, 2], 3), key.hash([1, 2], 3), "{key:?}");
        }
    }
}
