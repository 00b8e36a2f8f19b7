//! Credentials (`Authorization`, `Proxy-Authorization`) in one spelling, since one caller must not have a bucket for each way
//! of writing them.
//!
//! The scheme ignores letter case and repeated blanks. The base64 of `Basic` is written as RFC 4648 encodes it: with its
//! padding, and zeros for the bits that are left over. Decoders skip characters that are not of the alphabet, or end there,
//! so all credentials with such characters are one text ([`MALFORMED`]), which callers who send them share.

use http::{HeaderName, header};
use std::borrow::Cow;

/// The schemes that are registered, as they are written there.
const SCHEMES: [&str; 12] = [
    "Bearer",
    "Basic",
    "Digest",
    "DPoP",
    "GNAP",
    "HOBA",
    "Mutual",
    "Negotiate",
    "OAuth",
    "SCRAM-SHA-1",
    "SCRAM-SHA-256",
    "vapid",
];

const BASIC: &str = "Basic";

/// `Basic` credentials that are no base64.
const MALFORMED: &str = "Basic (malformed)";

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Whether a header's value is a scheme and credentials.
pub(crate) fn is_credentials(name: &HeaderName) -> bool {
    matches!(*name, header::AUTHORIZATION | header::PROXY_AUTHORIZATION)
}

/// Credentials in one spelling: the scheme as it is registered, or in lower case where it is not, and one blank behind it.
pub(crate) fn credentials(sent: Cow<'_, str>) -> Cow<'_, str> {
    let Some((scheme, rest)) = sent.split_once([' ', '\t']) else { return sent };
    let known = SCHEMES.iter().find(|known| known.eq_ignore_ascii_case(scheme));
    let spelled =
        known.map_or_else(|| Cow::Owned(scheme.to_ascii_lowercase()), |known| Cow::Borrowed(*known));
    let is_separated = !rest.starts_with([' ', '\t']) && sent.as_bytes()[scheme.len()] == b' ';
    let rest = rest.trim_start_matches([' ', '\t']);
    if spelled == BASIC {
        return match canonical_base64(rest) {
            Some(Cow::Borrowed(_)) if spelled == scheme && is_separated => sent,
            Some(rest) => Cow::Owned(format!("{BASIC} {rest}")),
            None => Cow::Borrowed(MALFORMED),
        };
    }
    if spelled == scheme && is_separated {
        return sent;
    }
    Cow::Owned(format!("{spelled} {rest}"))
}

/// Base64 with its padding and without bits that say nothing; none where it is no base64.
fn canonical_base64(sent: &str) -> Option<Cow<'_, str>> {
    let letters = sent.trim_end_matches('=');
    let value = |letter: u8| ALPHABET.iter().position(|known| *known == letter);
    if !letters.bytes().all(|letter| value(letter).is_some()) {
        return None;
    }
    let (padding, unused_bits) = match letters.len() % 4 {
        0 => ("", 0),
        2 => ("==", 4),
        3 => ("=", 2),
        _ => return None,
    };
    let last = letters.bytes().last().and_then(value).unwrap_or_default();
    let cleared = last >> unused_bits << unused_bits;
    if cleared == last && sent.len() == letters.len() + padding.len() {
        return Some(Cow::Borrowed(sent));
    }
    let kept = &letters[..letters.len().saturating_sub(1)];
    let end = if letters.is_empty() { String::new() } else { char::from(ALPHABET[cleared]).to_string() };
    Some(Cow::Owned(format!("{kept}{end}{padding}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scheme_has_one_spelling() {
        for sent in ["Bearer K", "bearer K", "BEARER  K", "bEaReR \t K", "Bearer\tK"] {
            assert_eq!(credentials(sent.into()), "Bearer K", "{sent}");
        }
        assert_eq!(credentials("Custom x".into()), "custom x");
        assert_eq!(credentials("K".into()), "K");
        assert!(matches!(credentials("Bearer K!".into()), Cow::Borrowed("Bearer K!")));
    }

    #[test]
    fn basic_credentials_have_one_spelling() {
        // `a:b`, `a:bc`, `a:bcd`: each with one, two and no characters of padding.
        for (canonical, others) in [
            ("Basic YTpi", &["basic YTpi", "Basic  YTpi", "BASIC YTpi=", "Basic YTpi=="][..]),
            ("Basic YTpiYw==", &["Basic YTpiYw", "Basic YTpiYw=", "Basic YTpiYx==", "basic YTpiYz"]),
            ("Basic YTpiY2Q=", &["Basic YTpiY2Q", "Basic YTpiY2R=", "Basic YTpiY2T"]),
            ("Basic ", &["Basic =", "basic  "]),
        ] {
            assert!(matches!(credentials(canonical.into()), Cow::Borrowed(same) if same == canonical));
            for sent in others {
                assert_eq!(credentials((*sent).into()), canonical, "{sent}");
            }
        }
    }

    #[test]
    fn what_is_no_base64_is_one_text() {
        for sent in ["YT!pi", "YT pi", "YT-pi", "YT_pi", "YTpi=YTpi", "YTpiY", "\u{e9}", "YT\tpi"] {
            assert_eq!(credentials(format!("Basic {sent}").into()), MALFORMED, "{sent}");
        }
    }
}
