//! Who a heavy key is, in a place of fixed size.

use std::fmt;
use tollgate::Key;

/// A limit, as long as anybody knows it.
pub(super) type LimitId = u64;

/// So many bytes of a key are kept.
const MAX: usize = 256;

/// In a list: a value is missing, or its length and it follow.
const MISSING: u16 = u16::MAX;

/// A limit and a key, the key possibly cut.
pub(super) struct Name {
    limit: LimitId,
    shape: Shape,
    is_cut: bool,
    len: u16,
    bytes: [u8; MAX],
}

#[derive(Clone, Copy, Debug)]
enum Shape {
    /// One value.
    One,
    /// Several: the length of each in two bytes, and it.
    List,
}

/// A key as it is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeavyKey {
    /// Its values; one that is missing is none. Bytes that are no text are replaced.
    pub values: Vec<Option<String>>,
    /// Whether only the beginning was kept.
    pub is_cut: bool,
}

impl Default for Name {
    fn default() -> Self {
        Self { limit: 0, shape: Shape::List, is_cut: false, len: 0, bytes: [0; MAX] }
    }
}

impl Name {
    pub(super) fn set(&mut self, limit: LimitId, key: Key<'_>) {
        (self.limit, self.len, self.is_cut, self.shape) = (limit, 0, false, Shape::One);
        match key {
            Key::Text(text) | Key::List(&[Some(text)]) => self.push_text(text),
            Key::Bytes(bytes) => self.push(bytes),
            Key::Number(number) => self.push_shown(number),
            Key::Ip(address) => self.push_shown(address.to_canonical()),
            Key::List(values) => self.set_list(values),
            // All, and whatever will come.
            _ => self.set_list(&[]),
        }
    }

    fn set_list(&mut self, values: &[Option<&str>]) {
        self.shape = Shape::List;
        for value in values {
            let at = usize::from(self.len);
            // No length without room for it.
            if MAX - at < 2 {
                self.is_cut = true;
                return;
            }
            self.push(&MISSING.to_le_bytes());
            if let Some(value) = value {
                self.push_text(value);
                let len = self.len - 2 - at as u16;
                self.bytes[at..at + 2].copy_from_slice(&len.to_le_bytes());
            }
        }
    }

    fn push_text(&mut self, text: &str) {
        let mut end = text.len().min(MAX - usize::from(self.len));
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        self.push(&text.as_bytes()[..end]);
        self.is_cut |= end < text.len();
    }

    fn push_shown(&mut self, shown: impl fmt::Display) {
        // Numbers and addresses fit.
        let _ = fmt::write(self, format_args!("{shown}"));
    }

    fn push(&mut self, bytes: &[u8]) {
        let at = usize::from(self.len);
        let len = bytes.len().min(MAX - at);
        self.bytes[at..at + len].copy_from_slice(&bytes[..len]);
        self.len += len as u16;
        self.is_cut |= len < bytes.len();
    }

    pub(super) const fn limit(&self) -> LimitId {
        self.limit
    }

    pub(super) fn key(&self) -> HeavyKey {
        let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
        let mut rest = &self.bytes[..usize::from(self.len)];
        let mut values = Vec::new();
        match self.shape {
            Shape::One => values.push(Some(text(rest))),
            Shape::List => {
                while let Some((len, after)) = rest.split_first_chunk() {
                    let len = u16::from_le_bytes(*len);
                    let value = if len == MISSING { None } else { after.split_at_checked(len.into()) };
                    values.push(value.map(|(value, _)| text(value)));
                    rest = value.map_or(after, |(_, after)| after);
                }
            }
        }
        HeavyKey { values, is_cut: self.is_cut }
    }
}

impl fmt::Write for Name {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.push_text(text);
        Ok(())
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Name").field("limit", &self.limit).field("key", &self.key()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    fn told(key: Key<'_>) -> (Vec<Option<String>>, bool) {
        let mut name = Name::default();
        // What was there before must not shine through.
        name.set(1, Key::Text(&"before".repeat(100)));
        name.set(2, key);
        let HeavyKey { values, is_cut } = name.key();
        (values, is_cut)
    }

    fn whole(values: &[Option<&str>]) -> (Vec<Option<String>>, bool) {
        (values.iter().map(|value| value.map(str::to_owned)).collect(), false)
    }

    #[test]
    fn keys_are_told_as_they_came() {
        assert_eq!(told(Key::All), whole(&[]));
        assert_eq!(told(Key::Text("")), whole(&[Some("")]));
        assert_eq!(told(Key::Text("alice")), whole(&[Some("alice")]));
        assert_eq!(told(Key::Number(7)), whole(&[Some("7")]));
        assert_eq!(told(Key::from(Ipv4Addr::LOCALHOST)), whole(&[Some("127.0.0.1")]));
        assert_eq!(told(Key::Ip(Ipv4Addr::LOCALHOST.to_ipv6_mapped().into())), whole(&[Some("127.0.0.1")]));
        assert_eq!(told(Key::Bytes(b"a\xff")), whole(&[Some("a\u{fffd}")]));
        assert_eq!(told(Key::List(&[None])), whole(&[None]));
        let several = [Some("a"), None, Some(""), Some("b")];
        assert_eq!(told(Key::List(&several)), whole(&several));
    }

    #[test]
    fn long_keys_are_cut_between_characters_and_say_so() {
        let exact = "x".repeat(MAX);
        assert_eq!(told(Key::Text(&exact)), whole(&[Some(&exact)]));
        let (values, is_cut) = told(Key::Text(&format!("x{}", "ü".repeat(MAX))));
        assert_eq!((values, is_cut), (vec![Some(format!("x{}", "ü".repeat(127)))], true));

        let long = "y".repeat(MAX);
        let (values, is_cut) = told(Key::List(&[Some("a"), Some(&long), Some("lost")]));
        assert!(is_cut);
        assert_eq!(values, [Some("a".to_owned()), Some("y".repeat(MAX - 5))]);

        // Exactly no room for the next length.
        let (values, is_cut) = told(Key::List(&[Some(&long[..MAX - 3]), None]));
        assert_eq!((values.len(), is_cut), (1, true));
    }
}
