//! Many short texts, so that those of thousands of routes lie close together: what is short lies with whose it is, so that who has come
//! there has it already, and the rest one after the other.

/// The texts that are too long to lie elsewhere.
#[derive(Default)]
pub(super) struct Texts {
    all: String,
}

/// Most segments of paths and names of routes are no longer. With it, a place of the trie is half a cache line.
const SHORT: usize = 14;

/// One of the texts.
#[derive(Clone, Copy, Default)]
pub(super) struct Text {
    /// More than is short: the bytes tell where it begins and ends among the long ones.
    length: u8,
    bytes: [u8; SHORT],
}

impl Texts {
    pub(super) fn add(&mut self, text: &str) -> Text {
        let mut bytes = [0; SHORT];
        if let Some(short) = bytes.get_mut(..text.len()) {
            short.copy_from_slice(text.as_bytes());
            return Text { length: text.len() as u8, bytes };
        }
        let begin = self.all.len() as u32;
        self.all.push_str(text);
        bytes[..4].copy_from_slice(&begin.to_le_bytes());
        bytes[4..8].copy_from_slice(&(self.all.len() as u32).to_le_bytes());
        Text { length: u8::MAX, bytes }
    }

    pub(super) fn bytes<'a>(&'a self, text: &'a Text) -> &'a [u8] {
        match text.bytes.get(..usize::from(text.length)) {
            Some(short) => short,
            None => self.long(text).as_bytes(),
        }
    }

    pub(super) fn get<'a>(&'a self, text: &'a Text) -> &'a str {
        match text.bytes.get(..usize::from(text.length)) {
            // It was a text when it was put there.
            Some(short) => str::from_utf8(short).unwrap_or_default(),
            None => self.long(text),
        }
    }

    fn long(&self, text: &Text) -> &str {
        let [a, b, c, d, e, f, g, h, ..] = text.bytes;
        let [begin, end] = [[a, b, c, d], [e, f, g, h]].map(|at| u32::from_le_bytes(at) as usize);
        &self.all[begin..end]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_had_as_it_was_added_however_long() {
        let mut texts = Texts::default();
        let long = "0123456789".repeat(30);
        let all: Vec<_> = (0..long.len()).map(|length| &long[..length]).chain(["caf\u{e9}"]).collect();
        let added: Vec<_> = all.iter().map(|text| texts.add(text)).collect();
        for (text, added) in all.iter().zip(&added) {
            assert_eq!(texts.get(added), *text);
            assert_eq!(texts.bytes(added), text.as_bytes());
        }
    }
}
