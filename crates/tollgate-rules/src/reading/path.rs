//! The normalised view of a path: what rules are matched against.
//!
//! One resource has many spellings, and a rule that holds for one must hold for all: `/a/%62`, `/a//b`, `/a/./b` and
//! `/a/x/../b` are `/a/b`. Percent-encoded unreserved letters are decoded, other encodings are written with capitals
//! (`%2f` is `%2F`, and stays encoded: it is no slash), letters beyond ASCII and stray percent signs are encoded,
//! repeated slashes are one, dot segments are resolved. The slash at the end is kept: it tells resources apart.
//!
//! A path that is not a path (`*` of `OPTIONS *`) stays as it is and has no shape.

use smallvec::SmallVec;
use std::borrow::Cow;

/// The path as rules see it; borrowed where it is normal already, which nearly all are.
///
/// ```
/// use tollgate_rules::normal_path;
///
/// assert_eq!(normal_path("/orders/1"), "/orders/1");
/// assert_eq!(normal_path("/a//b/./%63/x/../%2e%2e/d%2fe/"), "/a/b/d%2Fe/");
/// assert_eq!(normal_path("/../.."), "/");
/// ```
#[must_use]
pub fn normal_path(path: &str) -> Cow<'_, str> {
    if path.is_empty() {
        return Cow::Borrowed("/");
    }
    if !path.starts_with('/') || is_normal(path.as_bytes()) {
        return Cow::Borrowed(path);
    }
    let letters = letters(path);
    let mut normal = String::with_capacity(letters.len());
    let mut segments = letters.split('/').skip(1).peekable();
    while let Some(segment) = segments.next() {
        let kept = match segment {
            "" | "." => false,
            ".." => {
                normal.truncate(normal.rfind('/').unwrap_or(0));
                false
            }
            _ => true,
        };
        if kept || segments.peek().is_none() {
            normal.push('/');
        }
        if kept {
            normal.push_str(segment);
        }
    }
    Cow::Owned(normal)
}

/// Text with its letters as in a normal path: encodings of unreserved letters decoded, the others in capitals.
pub(crate) fn letters(text: &str) -> Cow<'_, str> {
    let bytes = text.as_bytes();
    if (0..bytes.len()).all(|at| letter_is_normal(bytes, at)) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    let mut at = 0;
    while at < bytes.len() {
        let byte = bytes[at];
        match encoded(bytes, at) {
            Some(letter) => {
                if unreserved(letter) {
                    out.push(char::from(letter));
                } else {
                    push_encoded(&mut out, letter);
                }
                at += 3;
                continue;
            }
            None if byte.is_ascii() && byte != b'%' => out.push(char::from(byte)),
            None => push_encoded(&mut out, byte),
        }
        at += 1;
    }
    Cow::Owned(out)
}

/// Whether the path, as sent, has dot segments, in whatever spelling.
pub(crate) fn dotted(path: &str) -> bool {
    letters(path).split('/').any(|segment| matches!(segment, "." | ".."))
}

/// What stands between the slashes of a path; none where it is no path.
pub(crate) fn segments(path: &str) -> SmallVec<[&str; 16]> {
    path.strip_prefix('/').map(|path| path.split('/').collect()).unwrap_or_default()
}

fn is_normal(path: &[u8]) -> bool {
    let mut before = 0;
    for (at, &byte) in path.iter().enumerate() {
        if byte == b'%' || !byte.is_ascii() {
            if !letter_is_normal(path, at) {
                return false;
            }
        } else if before == b'/' && (byte == b'/' || (byte == b'.' && dot_segment(&path[at..]))) {
            return false;
        }
        before = byte;
    }
    true
}

/// Whether the segment that begins here is `.` or `..`.
fn dot_segment(rest: &[u8]) -> bool {
    matches!(rest, [b'.'] | [b'.', b'.'] | [b'.', b'/', ..] | [b'.', b'.', b'/', ..])
}

fn letter_is_normal(text: &[u8], at: usize) -> bool {
    match encoded(text, at) {
        Some(letter) => !unreserved(letter) && !text[at + 1..at + 3].iter().any(u8::is_ascii_lowercase),
        // A percent sign that encodes nothing is encoded itself, or it could begin an encoding with what follows decoded.
        None => text[at].is_ascii() && text[at] != b'%',
    }
}

/// The byte that is percent-encoded here, if one is.
pub(super) fn encoded(text: &[u8], at: usize) -> Option<u8> {
    let &[b'%', high, low] = text.get(at..at + 3)? else { return None };
    let digit = |digit: u8| char::from(digit).to_digit(16);
    u8::try_from(digit(high)? * 16 + digit(low)?).ok()
}

fn unreserved(letter: u8) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, b'-' | b'.' | b'_' | b'~')
}

fn push_encoded(out: &mut String, byte: u8) {
    const DIGITS: [char; 16] =
        ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'A', 'B', 'C', 'D', 'E', 'F'];
    out.push('%');
    out.push(DIGITS[usize::from(byte >> 4)]);
    out.push(DIGITS[usize::from(byte & 15)]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn one_resource_has_one_spelling() {
        for (sent, normal) in [
            ("/", "/"),
            ("", "/"),
            ("*", "*"),
            ("/a", "/a"),
            ("/a/", "/a/"),
            ("//", "/"),
            ("//a", "/a"),
            ("/a//", "/a/"),
            ("/a/.", "/a/"),
            ("/a/./b", "/a/b"),
            ("/a/..", "/"),
            ("/a/b/..", "/a/"),
            ("/a/b/../", "/a/"),
            ("/a//../b", "/b"),
            ("/..", "/"),
            ("/../../a", "/a"),
            ("/.a/..b/...", "/.a/..b/..."),
            ("/%61%7E", "/a~"),
            ("/%2e%2E/a", "/a"),
            ("/a%2fb", "/a%2Fb"),
            ("/a%2Fb", "/a%2Fb"),
            ("/%", "/%25"),
            ("/%4", "/%254"),
            ("/%zz%41", "/%25zzA"),
            ("/%%34%31", "/%2541"),
            ("/caf\u{e9}", "/caf%C3%A9"),
            ("/caf%c3%a9", "/caf%C3%A9"),
            ("/%25%36%31", "/%2561"),
        ] {
            assert_eq!(normal_path(sent), normal, "{sent}");
        }
    }

    #[test]
    fn what_is_normal_is_borrowed() {
        for path in ["/", "/orders/1", "/a%2Fb/", "/.well-known/x..y", "/%25zz"] {
            assert!(matches!(normal_path(path), Cow::Borrowed(_)), "{path}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 4000, ..ProptestConfig::default() })]

        #[test]
        fn normalising_twice_changes_nothing(path in "(/|%2e|%2F|%41|%|4|1|a|\\.|\u{e9}){0,12}") {
            let once = normal_path(&path).into_owned();
            let again = normal_path(&once);
            prop_assert_eq!(&*again, &*once);
            prop_assert!(matches!(again, Cow::Borrowed(_)));
        }
    }
}
