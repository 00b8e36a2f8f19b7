//! The path of a request as rules see it, and as the upstream gets it.
//!
//! One resource has many spellings, and a rule that holds for one must hold for all: `/a/%62`, `/a//b`, `/a/./b` and
//! `/a/x/../b` are `/a/b`. A path is percent-decoded once, segment by segment; repeated slashes are merged and dot segments
//! resolved. Rules are matched, and keys built, on that text. The upstream gets the same text, encoded in one canonical way
//! ([`encode_path`]), so that it cannot see another resource than the rules did. The slash at the end is kept, and
//! `;parameters` stay part of their segment.
//!
//! A path that cannot be decoded safely is an error: a `%` without two hexadecimal digits, encoded control characters, bytes
//! above 0x7F that are not encoded, text that is not UTF-8, and dot segments with parameters (`/..;/`), which servlet
//! containers resolve and others do not. What becomes of encoded slashes and of backslashes is a setting ([`EncodedSlash`]).
//!
//! A path that is in its canonical spelling already, as nearly all are, is recognised in one pass and borrowed.

use crate::model::EncodedSlash;
use smallvec::SmallVec;
use std::borrow::Cow;
use thiserror::Error;

/// Why a path cannot be decoded in one way only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PathError {
    /// A percent sign that begins no encoding.
    #[error(
        "the path has a `%` that is not followed by two hexadecimal digits; send a literal percent sign as %25"
    )]
    Percent,
    /// An encoded NUL.
    #[error("the path has an encoded NUL byte")]
    Nul,
    /// Another encoded control character. Regular expressions of applications that end in `$` match before a line feed.
    #[error("the path has an encoded control character")]
    Control,
    /// A byte above 0x7F that is not percent-encoded.
    #[error("the path has bytes above 0x7F that are not percent-encoded")]
    NotAscii,
    /// What was encoded is not UTF-8.
    #[error("the path is not UTF-8 after decoding")]
    NotUtf8,
    /// An encoded slash, or a backslash in any spelling, where these are rejected.
    #[error("the path has an encoded slash or a backslash, which servers read differently")]
    Slash,
    /// An encoded slash beside `.` or `..`, which is a dot segment to servers that decode the slash.
    #[error("the path has a dot segment behind an encoded slash")]
    HiddenDots,
    /// A dot segment with parameters, which is a dot segment to servers that cut parameters off.
    #[error("the path has a dot segment with `;parameters`, which servers read differently")]
    DotParameters,
}

/// The path as rules see it: decoded, slashes merged, dot segments resolved.
///
/// ```
/// use tollgate_rules::{decode_path, model::EncodedSlash};
///
/// let decoded = |path| decode_path(path, EncodedSlash::Reject);
/// assert_eq!(decoded("/orders/1").as_deref(), Ok("/orders/1"));
/// assert_eq!(decoded("/a//b/./%63/x/../%2e%2e/%40d/").as_deref(), Ok("/a/b/@d/"));
/// assert_eq!(decoded("/../..").as_deref(), Ok("/"));
/// assert!(decoded("/a%2Fb").is_err());
/// ```
///
/// # Errors
/// Where two servers could decode the path differently.
pub fn decode_path(sent: &str, slash: EncodedSlash) -> Result<Cow<'_, str>, PathError> {
    if sent.is_empty() {
        return Ok(Cow::Borrowed("/"));
    }
    // What is no path (`*`) stays as it is and has no shape.
    if !sent.starts_with('/') || is_canonical(sent.as_bytes()) {
        return Ok(Cow::Borrowed(sent));
    }
    let bytes = sent.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let (byte, length) = match bytes[at] {
            b'%' => (encoded(bytes, at).ok_or(PathError::Percent)?, 3),
            0x80.. => return Err(PathError::NotAscii),
            byte => (byte, 1),
        };
        let is_slash = byte == b'\\' || (byte == b'/' && length == 3);
        match slash {
            _ if byte == 0 => return Err(PathError::Nul),
            _ if byte.is_ascii_control() => return Err(PathError::Control),
            EncodedSlash::Reject if is_slash => return Err(PathError::Slash),
            EncodedSlash::Decode if is_slash => decoded.push(b'/'),
            EncodedSlash::Keep if is_slash || byte == b'%' => push_encoded(&mut decoded, byte),
            _ => decoded.push(byte),
        }
        at += length;
    }
    let decoded = String::from_utf8(decoded).map_err(|_| PathError::NotUtf8)?;
    if slash == EncodedSlash::Keep && decoded.split('/').any(hides_dots) {
        return Err(PathError::HiddenDots);
    }
    if decoded.split('/').any(has_dot_parameters) {
        return Err(PathError::DotParameters);
    }
    Ok(Cow::Owned(resolve_dots(&decoded)))
}

/// The path that the upstream gets for one that rules saw: what may stand in a path stays, everything else is
/// percent-encoded with capital digits.
#[must_use]
pub fn encode_path(decoded: &str, slash: EncodedSlash) -> Cow<'_, str> {
    // Where slashes are kept encoded, so are percent signs: each begins an encoding.
    let stays = |byte: u8| is_plain(byte) || (byte == b'%' && slash == EncodedSlash::Keep);
    if decoded.bytes().all(stays) {
        return Cow::Borrowed(decoded);
    }
    let mut out = Vec::with_capacity(decoded.len() + 16);
    for byte in decoded.bytes() {
        if stays(byte) {
            out.push(byte);
        } else {
            push_encoded(&mut out, byte);
        }
    }
    Cow::Owned(String::from_utf8(out).unwrap_or_default())
}

/// A rule's text about paths, or a part of one, as decoded paths spell it. Rules may be written either way: `/@me` and
/// `/%40me` are one. A `%` that encodes nothing means itself.
pub(crate) fn decode_rule_text(text: &str, slash: EncodedSlash) -> Cow<'_, str> {
    let bytes = text.as_bytes();
    if !bytes.contains(&b'%') {
        return Cow::Borrowed(text);
    }
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let letter = encoded(bytes, at);
        let byte = letter.unwrap_or(bytes[at]);
        let kept = matches!(byte, b'%' | b'\\') || (byte == b'/' && letter.is_some());
        if slash == EncodedSlash::Keep && kept {
            push_encoded(&mut decoded, byte);
        } else {
            decoded.push(byte);
        }
        at += if letter.is_some() { 3 } else { 1 };
    }
    // What is not UTF-8 matches no path: it stays as it was written.
    String::from_utf8(decoded).map_or(Cow::Borrowed(text), Cow::Owned)
}

/// What stands between the slashes of a path; none where it is no path.
pub(crate) fn segments(path: &str) -> SmallVec<[&str; 16]> {
    path.strip_prefix('/').map(|path| path.split('/').collect()).unwrap_or_default()
}

fn resolve_dots(path: &str) -> String {
    let mut resolved = String::with_capacity(path.len());
    let mut segments = path.split('/').skip(1).peekable();
    while let Some(segment) = segments.next() {
        let kept = match segment {
            "" | "." => false,
            ".." => {
                resolved.truncate(resolved.rfind('/').unwrap_or(0));
                false
            }
            _ => true,
        };
        if kept || segments.peek().is_none() {
            resolved.push('/');
        }
        if kept {
            resolved.push_str(segment);
        }
    }
    resolved
}

/// Whether a segment with slashes that are kept encoded has a dot segment between them.
fn hides_dots(segment: &str) -> bool {
    let has_slash = segment.contains("%2F") || segment.contains("%5C");
    let is_dots = |part: &str| matches!(part, "." | "..") || has_dot_parameters(part);
    has_slash && segment.replace("%5C", "%2F").split("%2F").any(is_dots)
}

/// Whether a segment is `.` or `..` where its parameters are cut off.
fn has_dot_parameters(segment: &str) -> bool {
    segment.starts_with(".;") || segment.starts_with("..;")
}

fn is_canonical(path: &[u8]) -> bool {
    let is_special = |at: usize| match path[at..] {
        [b'/', b'/', ..] => true,
        [b'/', ref rest @ ..] => dot_segment(rest),
        _ => false,
    };
    path.iter().enumerate().all(|(at, &byte)| is_plain(byte) && (byte != b'/' || !is_special(at)))
}

/// Whether the segment that begins here is `.` or `..`, perhaps with parameters.
fn dot_segment(rest: &[u8]) -> bool {
    matches!(rest, [b'.'] | [b'.', b'.'] | [b'.', b'/' | b';', ..] | [b'.', b'.', b'/' | b';', ..])
}

/// The byte that is percent-encoded here, if one is.
pub(super) fn encoded(text: &[u8], at: usize) -> Option<u8> {
    let &[b'%', high, low] = text.get(at..at + 3)? else { return None };
    let digit = |digit: u8| char::from(digit).to_digit(16);
    u8::try_from(digit(high)? * 16 + digit(low)?).ok()
}

/// Whether a byte stands for itself in a path: a slash, or one of RFC 3986's `pchar`.
fn is_plain(byte: u8) -> bool {
    const PLAIN: [bool; 256] = {
        let mut plain = [false; 256];
        let letters = b"/-._~!$&'()*+,;=:@0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
        let mut at = 0;
        while at < letters.len() {
            plain[letters[at] as usize] = true;
            at += 1;
        }
        plain
    };
    PLAIN[usize::from(byte)]
}

fn push_encoded(out: &mut Vec<u8>, byte: u8) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    out.extend([b'%', DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
}

#[cfg(test)]
mod tests {
    use super::{EncodedSlash::*, *};
    use proptest::prelude::*;

    #[test]
    fn one_resource_has_one_spelling() {
        for (sent, decoded, forwarded) in [
            ("/", "/", "/"),
            ("", "/", "/"),
            ("*", "*", "*"),
            ("/a", "/a", "/a"),
            ("/a/", "/a/", "/a/"),
            ("//", "/", "/"),
            ("//a", "/a", "/a"),
            ("/a//", "/a/", "/a/"),
            ("/a/.", "/a/", "/a/"),
            ("/a/./b", "/a/b", "/a/b"),
            ("/a/..", "/", "/"),
            ("/a/b/..", "/a/", "/a/"),
            ("/a//../b", "/b", "/b"),
            ("/../../a", "/a", "/a"),
            ("/.a/..b/...", "/.a/..b/...", "/.a/..b/..."),
            ("/%61%7E", "/a~", "/a~"),
            ("/%2e%2E/a", "/a", "/a"),
            ("/users/%40me", "/users/@me", "/users/@me"),
            ("/caf%c3%a9", "/caf\u{e9}", "/caf%C3%A9"),
            ("/a%20b", "/a b", "/a%20b"),
            ("/100%25", "/100%", "/100%25"),
            ("/%2561", "/%61", "/%2561"),
            ("/a;v=1/b", "/a;v=1/b", "/a;v=1/b"),
            ("/a%3Bv=1", "/a;v=1", "/a;v=1"),
            ("/..a;v/.b;/...;c", "/..a;v/.b;/...;c", "/..a;v/.b;/...;c"),
            ("/a|b", "/a|b", "/a%7Cb"),
        ] {
            let path = decode_path(sent, Reject);
            assert_eq!(path.as_deref(), Ok(decoded), "{sent}");
            assert_eq!(encode_path(decoded, Reject), forwarded, "{sent}");
        }
    }

    #[test]
    fn what_servers_read_differently_is_an_error() {
        for (sent, error) in [
            ("/%", PathError::Percent),
            ("/%4", PathError::Percent),
            ("/%zz", PathError::Percent),
            ("/a%00b", PathError::Nul),
            ("/a%0A", PathError::Control),
            ("/a%09b", PathError::Control),
            ("/a%7f", PathError::Control),
            ("/a/..;/b", PathError::DotParameters),
            ("/a/.;x=1/b", PathError::DotParameters),
            ("/a/%2e.%3bx", PathError::DotParameters),
            ("/caf\u{e9}", PathError::NotAscii),
            ("/%ff", PathError::NotUtf8),
            ("/%c0%af", PathError::NotUtf8),
            ("/a%2Fb", PathError::Slash),
            ("/a%5cb", PathError::Slash),
            ("/a\\b", PathError::Slash),
        ] {
            assert_eq!(decode_path(sent, Reject), Err(error), "{sent}");
        }
    }

    #[test]
    fn encoded_slashes_are_slashes_or_stay_encoded() {
        for (sent, as_slash, kept) in [
            ("/api%2Flogin", "/api/login", Ok("/api%2Flogin")),
            ("/api%2f%2e%2e/x", "/x", Err(PathError::HiddenDots)),
            ("/a%5C%5Cb", "/a/b", Ok("/a%5C%5Cb")),
            ("/a\\..\\b", "/b", Err(PathError::HiddenDots)),
            ("/a%2F.x;y", "/a/.x;y", Ok("/a%2F.x;y")),
            ("/100%25", "/100%", Ok("/100%25")),
            ("/a%252Fb", "/a%2Fb", Ok("/a%252Fb")),
            ("/%40%2f", "/@/", Ok("/@%2F")),
        ] {
            assert_eq!(decode_path(sent, Decode).as_deref(), Ok(as_slash), "{sent}");
            let path = decode_path(sent, Keep);
            assert_eq!(path.as_deref().map_err(|error| *error), kept, "{sent}");
            if let Ok(kept) = kept {
                assert_eq!(encode_path(kept, Keep), kept, "{sent}");
            }
        }
    }

    #[test]
    fn what_is_canonical_is_borrowed() {
        for path in ["/", "/orders/1", "/.well-known/x..y", "/a;b=c/@me:1"] {
            assert!(matches!(decode_path(path, Reject), Ok(Cow::Borrowed(_))), "{path}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 4000, ..ProptestConfig::default() })]

        /// What the upstream gets is the same path again, in a spelling that is already canonical.
        #[test]
        fn what_is_forwarded_decodes_to_what_was_matched(
            path in "/(/|%2e|%2F|%5c|%41|%25|%c3%a9|%7C|4|1|a|\\.|;|\\||@){0,12}",
            slash in prop::sample::select(vec![Reject, Decode, Keep]),
        ) {
            if let Ok(decoded) = decode_path(&path, slash) {
                let forwarded = encode_path(&decoded, slash).into_owned();
                let again = decode_path(&forwarded, slash);
                prop_assert_eq!(again.as_deref(), Ok(&*decoded));
                prop_assert_eq!(encode_path(&decoded, slash), forwarded);
            }
        }
    }

    #[test]
    fn dots_with_parameters_are_found_behind_slashes_of_any_spelling() {
        assert_eq!(decode_path("/a%2F..;/b", Decode), Err(PathError::DotParameters));
        assert_eq!(decode_path("/a%5C.;b", Keep), Err(PathError::HiddenDots));
    }
}
