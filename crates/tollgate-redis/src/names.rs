//! What keys are called in Redis: `tg:{alice}:per-client`, readable and never the same for two buckets.
//!
//! The hash tag is the key's values, so that all of one caller's buckets share a slot of a cluster. Values are separated by
//! commas, and whatever could be taken for a separator, a brace or a shape is written as `%` and two digits; so the text can
//! be read back, and two keys are never one. A value too long to be worth reading is its beginning and its SHA-1.
//!
//! ```text
//! "alice" -> {alice}     ["a", "b,c"] -> {a,b%2Cc}     7 -> {#7}     127.0.0.1 -> {@127.0.0.1}
//! missing -> {%-}        empty text   -> {%_}          one bucket for all -> {*}
//! ```

use percent_encoding::{AsciiSet, CONTROLS, percent_encode};
use std::{cell::RefCell, net::IpAddr, sync::Arc};
use tollgate::Key;

/// Longer tags are cut short.
const LONGEST: usize = 160;
/// How much of a long tag is kept to be read.
const BEGINNING: usize = 64;

thread_local! {
    /// Where keys are written, so that each is made once, in its size.
    static DRAFT: RefCell<Vec<u8>> = RefCell::default();
}

/// The key of a bucket.
pub(crate) fn bucket(prefix: &str, key: &Key<'_>, limit: &str) -> Arc<[u8]> {
    DRAFT.with_borrow_mut(|name| {
        name.clear();
        put_bucket(name, prefix, key, limit);
        // Whoever has a key of megabytes must not leave them here.
        name.shrink_to(1_024);
        Arc::from(&name[..])
    })
}

fn put_bucket(name: &mut Vec<u8>, prefix: &str, key: &Key<'_>, limit: &str) {
    name.extend_from_slice(prefix.as_bytes());
    name.extend_from_slice(b":{");
    let start = name.len();
    put_key(name, key);
    if name.len() - start > LONGEST {
        shorten(name, start);
    }
    name.extend_from_slice(b"}:");
    name.extend_from_slice(limit.as_bytes());
}

/// The key that tells when a limit was first used.
pub(crate) fn birth(prefix: &str, limit: &str) -> Vec<u8> {
    format!("{prefix}:birth:{{{limit}}}").into_bytes()
}

/// A key in the slot of another: what a probe writes.
pub(crate) fn probe(prefix: &str, beside: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(beside);
    let tag = text.split_once('{').and_then(|(_, rest)| rest.split_once('}')).map_or("*", |(tag, _)| tag);
    format!("{prefix}:probe:{{{tag}}}").into_bytes()
}

/// A limit's name, with nothing in it that means something in a key.
pub(crate) fn limit(name: &str) -> String {
    let mut escaped = Vec::with_capacity(name.len());
    put_value(&mut escaped, name.as_bytes());
    String::from_utf8_lossy(&escaped).into_owned()
}

fn put_key(to: &mut Vec<u8>, key: &Key<'_>) {
    match *key {
        Key::Text(text) => put_value(to, text.as_bytes()),
        Key::Bytes(bytes) => put_value(to, bytes),
        Key::Number(number) => to.extend_from_slice(format!("#{number}").as_bytes()),
        Key::Ip(address) => {
            let address = match address {
                IpAddr::V6(six) => six.to_ipv4_mapped().map_or(address, IpAddr::V4),
                IpAddr::V4(_) => address,
            };
            to.push(b'@');
            to.extend_from_slice(address.to_string().as_bytes());
        }
        Key::List(&[]) => to.push(b'*'),
        Key::List(values) => {
            for (place, value) in values.iter().enumerate() {
                if place > 0 {
                    to.push(b',');
                }
                match value {
                    Some(text) => put_value(to, text.as_bytes()),
                    None => to.extend_from_slice(b"%-"),
                }
            }
        }
        // One bucket for all; and whatever keys there may be one day.
        _ => to.push(b'*'),
    }
}

fn put_value(to: &mut Vec<u8>, value: &[u8]) {
    if value.is_empty() {
        to.extend_from_slice(b"%_");
    }
    percent_encode(value, ESCAPED).for_each(|piece| to.extend_from_slice(piece.as_bytes()));
}

/// What could be taken for a separator, a brace or a shape, or cannot be read. Bytes beyond ASCII are escaped too.
const ESCAPED: &AsciiSet =
    &CONTROLS.add(b' ').add(b'%').add(b'{').add(b'}').add(b',').add(b'#').add(b'@').add(b'*').add(b'~');

/// The beginning of what was written, and what tells it from all others that begin so.
fn shorten(name: &mut Vec<u8>, start: usize) {
    let digest = sha1_smol::Sha1::from(&name[start..]).digest().to_string();
    name.truncate(start + BEGINNING);
    name.push(b'~');
    name.extend_from_slice(digest.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    fn name(key: Key<'_>) -> String {
        String::from_utf8(bucket("tg", &key, "l").to_vec()).expect("names are text")
    }

    #[test]
    fn readable() {
        assert_eq!(name(Key::Text("alice")), "tg:{alice}:l");
        assert_eq!(name(Key::List(&[Some("a"), Some("b,c")])), "tg:{a,b%2Cc}:l");
        assert_eq!(name(Key::Number(7)), "tg:{#7}:l");
        assert_eq!(name(Key::from(std::net::Ipv4Addr::LOCALHOST)), "tg:{@127.0.0.1}:l");
        assert_eq!(name(Key::List(&[None])), "tg:{%-}:l");
        assert_eq!(name(Key::Text("")), "tg:{%_}:l");
        assert_eq!(name(Key::All), "tg:{*}:l");
        assert_eq!(name(Key::List(&[])), "tg:{*}:l");
    }

    #[test]
    fn keys_that_would_collide_as_joined_strings_stay_apart() {
        let long = "x".repeat(100_000);
        let longer = "x".repeat(100_001);
        let keys = [
            Key::All,
            Key::Text(""),
            Key::Text("*"),
            Key::Text("%-"),
            Key::Text("%_"),
            Key::Text("a"),
            Key::Text("a,b"),
            Key::Text("7"),
            Key::Text("#7"),
            Key::Number(7),
            Key::Bytes(b"\xff\xfe"),
            Key::Text("%FF%FE"),
            Key::Text(&long),
            Key::Text(&longer),
            Key::List(&[None]),
            Key::List(&[Some("a"), Some("b_c")]),
            Key::List(&[Some("a_b"), Some("c")]),
            Key::List(&[Some("a"), None]),
            Key::List(&[Some("a"), Some("")]),
            Key::List(&[Some(""), Some("a")]),
            Key::List(&[Some("a"), Some("b")]),
            Key::List(&[Some("a"), None, None]),
        ];
        let mut seen = HashMap::new();
        for key in keys {
            assert!(seen.insert(name(key), format!("{key:?}")).is_none(), "{key:?} shares a name");
        }
        assert!(name(Key::Text(&longer)).len() < 200);
    }

    /// Reads a tag back, which shows that no two keys have the same.
    fn read(tag: &str) -> Vec<Option<Vec<u8>>> {
        let value = |text: &str| match text {
            "%-" => None,
            "%_" => Some(Vec::new()),
            text => {
                let (mut bytes, mut from) = (Vec::new(), text.as_bytes());
                while let [first, rest @ ..] = from {
                    if *first == b'%' {
                        let digits = std::str::from_utf8(&rest[..2]).expect("two digits");
                        bytes.push(u8::from_str_radix(digits, 16).expect("two digits"));
                        from = &rest[2..];
                    } else {
                        bytes.push(*first);
                        from = rest;
                    }
                }
                Some(bytes)
            }
        };
        tag.split(',').map(value).collect()
    }

    proptest! {
        #[test]
        fn what_was_written_can_be_read(values in prop::collection::vec(prop::option::of(".{0,12}"), 1..4)) {
            let borrowed: Vec<Option<&str>> = values.iter().map(Option::as_deref).collect();
            let name = name(Key::List(&borrowed));
            prop_assume!(!name.contains('~'));
            let tag = name.strip_prefix("tg:{").and_then(|rest| rest.strip_suffix("}:l")).expect("a tag");
            let braces = ['{', '}'];
            prop_assert!(!tag.contains(braces));
            let bytes: Vec<_> = values.iter().map(|it| it.as_ref().map(|it| it.as_bytes().to_vec())).collect();
            prop_assert_eq!(read(tag), bytes);
        }
    }
}
