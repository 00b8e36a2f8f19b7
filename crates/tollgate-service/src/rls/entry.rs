//! One entry of a descriptor, whatever bytes it holds.
//!
//! The proto files say `string`, and Envoy fills it with what is in a header: any bytes. A message that cannot be read is an
//! error, which Envoy takes for a yes, so whoever sends one wrong byte would be free of every limit. So entries are read as
//! bytes. What is no text becomes text that nothing else becomes: two clients never share a bucket because of it, and nobody
//! has more than one.

use super::json;
use prost::{
    DecodeError, Message,
    bytes::{Buf, BufMut},
    encoding::{self, DecodeContext, WireType},
};
use serde::Deserialize;

/// One entry of a descriptor.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "an object")]
pub struct Entry {
    /// Its key.
    #[serde(deserialize_with = "json::entry_text")]
    pub key: String,
    /// Its value, which may be empty.
    #[serde(deserialize_with = "json::entry_text")]
    pub value: String,
}

impl Message for Entry {
    fn encode_raw(&self, buffer: &mut impl BufMut) {
        for (tag, text) in self.fields() {
            if !text.is_empty() {
                encoding::string::encode(tag, text, buffer);
            }
        }
    }

    fn merge_field(
        &mut self,
        tag: u32,
        kind: WireType,
        buffer: &mut impl Buf,
        context: DecodeContext,
    ) -> Result<(), DecodeError> {
        let field = match tag {
            1 => &mut self.key,
            2 => &mut self.value,
            _ => return encoding::skip_field(kind, tag, buffer, context),
        };
        let mut bytes = Vec::new();
        encoding::bytes::merge(kind, &mut bytes, buffer, context)?;
        *field = text(bytes);
        Ok(())
    }

    fn encoded_len(&self) -> usize {
        let length = |(tag, text): (u32, &String)| match text.is_empty() {
            true => 0,
            false => encoding::string::encoded_len(tag, text),
        };
        self.fields().map(length).iter().sum()
    }

    fn clear(&mut self) {
        *self = Self::default();
    }
}

impl Entry {
    const fn fields(&self) -> [(u32, &String); 2] {
        [(1, &self.key), (2, &self.value)]
    }
}

/// The first of the 128 characters that stand for the bytes 0x80 to 0xff: the last that Unicode has, of nobody's use.
const STAND_INS: u32 = 0x10_ff80;

/// Bytes as text. Those that are no UTF-8 get a character each, which stands for them. So do the bytes of such a character
/// itself, and nothing else turns into one: what went in can be told from what comes out.
pub(super) fn text(bytes: Vec<u8>) -> String {
    match String::from_utf8(bytes) {
        Ok(text) if !text.contains(is_stand_in) => text,
        Ok(text) => escaped(text.as_bytes()),
        Err(error) => escaped(error.as_bytes()),
    }
}

#[cold]
fn escaped(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for letter in chunk.valid().chars() {
            match is_stand_in(letter) {
                true => text.extend(letter.encode_utf8(&mut [0; 4]).bytes().map(stand_in)),
                false => text.push(letter),
            }
        }
        text.extend(chunk.invalid().iter().copied().map(stand_in));
    }
    text
}

const fn is_stand_in(letter: char) -> bool {
    letter as u32 >= STAND_INS
}

/// Every byte outside ASCII has one; the others are text.
fn stand_in(byte: u8) -> char {
    char::from_u32(STAND_INS + u32::from(byte & 0x7f)).unwrap_or(char::REPLACEMENT_CHARACTER)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What went in.
    fn back(text: &str) -> Vec<u8> {
        let bytes = |letter: char| match is_stand_in(letter) {
            true => vec![letter as u8],
            false => letter.to_string().into_bytes(),
        };
        text.chars().flat_map(bytes).collect()
    }

    #[test]
    fn text_stays_and_other_bytes_stay_apart() {
        for plain in ["", "alice", "Grüße, 世界 \u{fffd}", "\u{10ff7f}"] {
            assert_eq!(text(plain.into()), plain);
        }
        let of = |bytes: &[u8]| text(bytes.to_vec());
        assert_eq!(of(b"a\xffb"), "a\u{10ffff}b");
        assert_ne!(of(b"\xff"), of(b"\xfe"));
        assert_ne!(of(b"\xff"), of("\u{10ffff}".as_bytes()), "nor is it one who says what stands for it");
        assert_ne!(of(b"\xc3"), of(b"\xc3\xc3"), "nor are several one");
    }

    #[test]
    fn an_entry_is_read_whatever_its_bytes() {
        let entry = Entry::decode(&b"\x0a\x01\xff\x12\x02v\xfe\x18\x01"[..]);
        assert_eq!(entry, Ok(Entry { key: "\u{10ffff}".into(), value: "v\u{10fffe}".into() }));
        assert!(Entry::decode(&b"\x0a\x05a"[..]).is_err(), "it ends too early");
    }

    proptest! {
        #[test]
        fn no_two_become_one(pieces in prop::collection::vec(prop_oneof![
            any::<Vec<u8>>(),
            any::<String>().prop_map(String::into_bytes),
            (STAND_INS..0x11_0000).prop_map(|it| char::from_u32(it).map(String::from).unwrap_or_default().into()),
        ], 0..6)) {
            let bytes = pieces.concat();
            prop_assert_eq!(back(&text(bytes.clone())), bytes);
        }
    }
}
