//! What a permit is called outside: everything that any node needs to renew it or to give it back.
//!
//! ```text
//! base64url( 1, permit number, [limit, key, cost]..., checksum )
//! ```
//!
//! Numbers are in groups of seven bits, text stands after its length. The checksum is eight bytes of a hash of all that comes
//! before, so that a name with a slip in it names nothing. It is no seal: whoever is let in at the door could make up a name,
//! as it could ask for anything else.

use super::asked::{ChargeText, LimitText};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use smallvec::SmallVec;
use std::{borrow::Cow, num::NonZeroU64};
use tollgate::{Key, PermitId};
use tollgate_rules::json::KeyText;

/// Names do not get longer: they are part of an address.
pub(super) const LONGEST: usize = 4096;

const VERSION: u8 = 1;

/// A permit in somebody's hands.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct PermitName<'a> {
    /// `None` where nothing is held: the switch is off, or the store is away and its policy says open.
    pub(super) permit: Option<PermitId>,
    /// What it holds.
    pub(super) charges: SmallVec<[ChargeText<'a>; 1]>,
}

/// As text; `None` where it would be too long.
pub(super) fn written<'a, 'c: 'a>(
    permit: Option<PermitId>,
    charges: impl IntoIterator<Item = &'a ChargeText<'c>>,
) -> Option<String> {
    let mut bytes = vec![VERSION];
    number(&mut bytes, permit.map_or(0, |permit| permit.number().get()));
    for charge in charges {
        put_charge(&mut bytes, charge);
    }
    let checksum = checksum(&bytes);
    bytes.extend(checksum);
    let text = URL_SAFE_NO_PAD.encode(bytes);
    (text.len() <= LONGEST).then_some(text)
}

/// What a question is about, in bytes: the same for the same charges, and for no others.
pub(super) fn put_charge(bytes: &mut Vec<u8>, charge: &ChargeText<'_>) {
    match &charge.limit {
        LimitText::Name(name) => text(bytes, 0, name),
        LimitText::Defined(definition) => text(bytes, 1, definition),
    }
    let KeyText(values) = &charge.key;
    number(bytes, values.len() as u64);
    for value in values {
        match value {
            Some(value) => text(bytes, 1, value),
            None => bytes.push(0),
        }
    }
    number(bytes, charge.cost.into());
}

fn text(bytes: &mut Vec<u8>, mark: u8, text: &str) {
    bytes.push(mark);
    number(bytes, text.len() as u64);
    bytes.extend(text.as_bytes());
}

fn number(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn checksum(bytes: &[u8]) -> [u8; 8] {
    // Known to everybody: it finds slips, not cheats.
    const KEY: [u64; 2] = [0x746f_6c6c_6761_7465, 0x7065_726d_6974_2031];
    Key::Bytes(bytes).hash(KEY, 0)[0].to_le_bytes()
}

impl PermitName<'static> {
    /// Reads a name; `None` where it is none.
    pub(super) fn read(text: &str) -> Option<Self> {
        if text.len() > LONGEST {
            return None;
        }
        let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
        let (said, sum) = bytes.split_last_chunk::<8>()?;
        if checksum(said) != *sum {
            return None;
        }
        let mut reader = Reader(said);
        if reader.byte()? != VERSION {
            return None;
        }
        let permit = NonZeroU64::new(reader.number()?).map(PermitId::new);
        let mut charges = SmallVec::new();
        while !reader.0.is_empty() {
            charges.push(reader.charge()?);
        }
        (!charges.is_empty()).then_some(Self { permit, charges })
    }
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    fn number(&mut self) -> Option<u64> {
        let mut number = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let part = u64::from(byte & 0x7f);
            if part << shift >> shift != part {
                return None;
            }
            number |= part << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    fn text(&mut self) -> Option<Cow<'static, str>> {
        let length = usize::try_from(self.number()?).ok()?;
        let (text, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(Cow::Owned(std::str::from_utf8(text).ok()?.to_owned()))
    }

    fn charge(&mut self) -> Option<ChargeText<'static>> {
        let limit = match self.byte()? {
            0 => LimitText::Name(self.text()?),
            1 => LimitText::Defined(self.text()?.into_owned()),
            _ => return None,
        };
        let values = self.number()?;
        // No more than there are bytes left: who claims more is wrong.
        if values > self.0.len() as u64 {
            return None;
        }
        let value = |_| match self.byte()? {
            0 => Some(None),
            1 => Some(Some(self.text()?)),
            _ => None,
        };
        let key = KeyText((0..values).map(value).collect::<Option<_>>()?);
        let cost = u32::try_from(self.number()?).ok()?;
        Some(ChargeText { limit, key, cost })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use smallvec::smallvec;

    fn charge(key: KeyText<'static>, cost: u32) -> ChargeText<'static> {
        ChargeText { limit: LimitText::Name("workers".into()), key, cost }
    }

    fn permit() -> PermitId {
        PermitId::new(NonZeroU64::new(u64::MAX - 7).expect("not zero"))
    }

    #[test]
    fn a_name_tells_all_that_is_needed() {
        let list = KeyText(smallvec![Some("a".into()), None, Some("".into())]);
        let defined = LimitText::Defined(r#"{"concurrency":{"limit":2}}"#.to_owned());
        let charges = [
            charge(KeyText::default(), 1),
            charge(list, u32::MAX),
            ChargeText { limit: defined, key: KeyText(smallvec![Some("x".into())]), cost: 0 },
        ];
        for permit in [Some(permit()), None] {
            let name = written(permit, &charges).expect("short");
            let read = PermitName::read(&name).expect("a name");
            assert_eq!(read.permit, permit);
            assert_eq!(read.charges[..], charges);
        }
        assert_eq!(written(None, &[charge(KeyText(smallvec![Some("x".repeat(4_000).into())]), 1)]), None);
    }

    /// Any one letter changed, dropped or added, and any two swapped.
    #[test]
    fn a_name_with_a_slip_in_it_names_nothing() {
        let name = written(Some(permit()), &[charge(KeyText::from("alice"), 1)]).expect("short");
        let letters: Vec<char> = name.chars().collect();
        let read = |letters: Vec<char>| PermitName::read(&letters.into_iter().collect::<String>());
        for place in 0..letters.len() {
            for other in ['A', 'B', 'z', '9', '-', '_', '.', 'é'] {
                let mut slip = letters.clone();
                slip[place] = other;
                assert!(slip == letters || read(slip).is_none());
                let mut slip = letters.clone();
                slip.insert(place, other);
                assert!(read(slip).is_none());
            }
            let mut slip = letters.clone();
            slip.remove(place);
            assert!(read(slip).is_none());
            if place > 0 {
                let mut slip = letters.clone();
                slip.swap(place - 1, place);
                assert!(slip == letters || read(slip).is_none());
            }
        }
        assert!(PermitName::read("").is_none() && PermitName::read(&"A".repeat(9_000)).is_none());
    }

    /// The checksum keeps out slips, not people: what is inside may be anything.
    #[test]
    fn a_name_that_somebody_made_up_is_read_or_not_and_no_more() {
        let text = KeyText(smallvec![Some("alice".into()), None]);
        let name = written(Some(permit()), &[charge(text, 300)]).expect("short");
        let bytes = URL_SAFE_NO_PAD.decode(name).expect("base64");
        let said = &bytes[..bytes.len() - 8];
        let read = |said: &[u8]| {
            let sum = checksum(said);
            PermitName::read(&URL_SAFE_NO_PAD.encode([said, &sum].concat()))
        };
        assert!(read(said).is_some());
        for place in 0..said.len() {
            assert!(read(&said[..place]).is_none(), "cut off");
            for other in [0, 1, 2, 0x7f, 0x80, 0xff] {
                let mut made_up = said.to_vec();
                made_up[place] = other;
                let _ = read(&made_up);
                made_up.splice(place..place, [0xff; 12]);
                let _ = read(&made_up);
            }
        }
    }
}
