//! What a file has taken from the environment: it may be secret, and is shown as it was written, `${NAME}`.

use std::fmt;

/// Shorter values are found everywhere, and are named only where they are all that is said.
const SHORTEST: usize = 4;

/// Values that came from the environment, each with what the file has in its place.
#[derive(Clone, Default)]
pub struct Taken(Vec<(String, String)>);

impl Taken {
    /// Of these values, each with how it was written.
    pub(crate) fn new(mut values: Vec<(String, String)>) -> Self {
        values.retain(|(value, _)| !value.is_empty());
        // Of two that fit, the longer hides more.
        values.sort_by(|(one, _), (other, _)| other.len().cmp(&one.len()).then_with(|| one.cmp(other)));
        values.dedup_by(|(one, _), (other, _)| one == other);
        Self(values)
    }

    /// The text with every such value as it was written. To be asked before a text is cut or escaped: what is left of a
    /// value then is not found any more.
    #[must_use]
    pub fn named(&self, text: &str) -> String {
        if let Some((_, written)) = self.0.iter().find(|(value, _)| value.eq_ignore_ascii_case(text)) {
            return written.clone();
        }
        let long = || self.0.iter().take_while(|(value, _)| value.len() >= SHORTEST);
        if long().next().is_none() {
            return text.to_owned();
        }
        let (mut told, mut rest) = (String::with_capacity(text.len()), text);
        while let Some(letter) = rest.chars().next() {
            match long().find(|(value, _)| begins_with(rest, value)) {
                Some((value, written)) => {
                    told.push_str(written);
                    rest = &rest[value.len()..];
                }
                None => {
                    told.push(letter);
                    rest = &rest[letter.len_utf8()..];
                }
            }
        }
        told
    }
}

/// In whatever case: hosts are kept in lower case.
fn begins_with(text: &str, value: &str) -> bool {
    text.get(..value.len()).is_some_and(|front| front.eq_ignore_ascii_case(value))
}

impl fmt::Debug for Taken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|(_, written)| written)).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_named_and_nothing_else_is() {
        let value = |value: &str, written: &str| (value.to_owned(), written.to_owned());
        let taken = Taken::new(vec![
            value("s3cret", "${KEY}"),
            value("x-s3cret-y", "x-${KEY}-y"),
            value("1", "${ONE}"),
            value("", "${NOTHING}"),
        ]);
        for (text, told) in [
            ("s3cret", "${KEY}"),
            ("S3CRET.example", "${KEY}.example"),
            ("é x-s3cret-y s3cret", "é x-${KEY}-y ${KEY}"),
            ("1", "${ONE}"),
            ("10", "10"),
            ("", ""),
        ] {
            assert_eq!(taken.named(text), told);
        }
        assert_eq!(Taken::default().named("s3cret"), "s3cret");
        assert!(!format!("{taken:?}").contains("s3cret"));
    }
}
