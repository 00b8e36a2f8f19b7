//! `*` in a value stands for any characters, or none.

/// Whether `pattern` covers the whole of `text`. Takes at most as many steps as their lengths multiplied.
pub(super) fn covers(pattern: &str, text: &str) -> bool {
    let Some((beginning, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(mut text) = text.strip_prefix(beginning) else { return false };
    let Some((middle, end)) = rest.rsplit_once('*') else { return text.ends_with(rest) };
    // The first place that fits leaves the most for what comes after.
    for part in middle.split('*') {
        match text.find(part) {
            Some(at) => text = &text[at + part.len()..],
            None => return false,
        }
    }
    text.ends_with(end)
}

#[cfg(test)]
mod tests {
    use super::covers;
    use proptest::prelude::*;

    #[test]
    fn a_star_is_anything_or_nothing() {
        for (pattern, text) in [
            ("*", ""),
            ("*", "x"),
            ("a*", "a"),
            ("*b", "aab"),
            ("a*c", "abc"),
            ("a*b*c", "abbc"),
            ("**", "x"),
        ] {
            assert!(covers(pattern, text), "{pattern} {text}");
        }
        for (pattern, text) in [("a*a", "a"), ("a*", "b"), ("*b*b*", "b"), ("a*bc*c", "abc"), ("", "x")] {
            assert!(!covers(pattern, text), "{pattern} {text}");
        }
    }

    /// The definition, slow and plain.
    fn by_definition(pattern: &[u8], text: &[u8]) -> bool {
        match pattern.split_first() {
            None => text.is_empty(),
            Some((b'*', rest)) => (0..=text.len()).any(|skipped| by_definition(rest, &text[skipped..])),
            Some((letter, rest)) => text.first() == Some(letter) && by_definition(rest, &text[1..]),
        }
    }

    proptest! {
        #[test]
        fn it_is_what_it_is_defined_to_be(pattern in "[ab*]{0,8}", text in "[ab]{0,8}") {
            prop_assert_eq!(covers(&pattern, &text), by_definition(pattern.as_bytes(), text.as_bytes()));
        }
    }
}
