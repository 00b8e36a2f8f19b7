//! Headers, query parameters and cookies as text.
//!
//! Applications differ in which of several equal names they read, and in how they unquote a value. So a name that is given
//! twice is an error, unless the file says which value counts ([`OnRepeat`]); and values that applications take for the
//! same are the same text here: blanks around a header's value are removed, cookies are unquoted and percent-decoded,
//! [`credentials`] have one spelling.
//! Bytes that are not UTF-8 are read as Latin-1: every value is some text, and the same bytes are the same text.

use super::{
    credentials::{credentials, is_credentials},
    path::encoded,
};
use crate::model::OnRepeat;
use http::{
    HeaderMap, HeaderName,
    header::{self, COOKIE},
};
use std::borrow::Cow;

/// A value was given more than once, and the file rejects that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Repeated;

/// A header's value. Several lines of a header that is a list by definition are one value, with commas between them.
pub(crate) fn header<'a>(
    headers: &'a HeaderMap,
    name: &HeaderName,
    on_repeat: OnRepeat,
) -> Result<Option<Cow<'a, str>>, Repeated> {
    let mut lines = headers.get_all(name).iter();
    let Some(first) = lines.next() else { return Ok(None) };
    let mut value = text(first.as_bytes());
    if let Some(second) = lines.next() {
        let rest = std::iter::once(second).chain(lines);
        match on_repeat {
            _ if is_list(name) => {
                let joined = value.to_mut();
                for line in rest {
                    joined.push_str(", ");
                    joined.push_str(&text(line.as_bytes()));
                }
            }
            OnRepeat::Reject => return Err(Repeated),
            OnRepeat::First => {}
            OnRepeat::Last => value = rest.last().map_or(value, |last| text(last.as_bytes())),
        }
    }
    Ok(Some(if is_credentials(name) { credentials(value) } else { value }))
}

/// Headers that may have several lines (RFC 9110, 5.3): each is a list.
fn is_list(name: &HeaderName) -> bool {
    matches!(
        *name,
        header::ACCEPT
            | header::ACCEPT_CHARSET
            | header::ACCEPT_ENCODING
            | header::ACCEPT_LANGUAGE
            | header::ACCESS_CONTROL_REQUEST_HEADERS
            | header::ALLOW
            | header::CACHE_CONTROL
            | header::CONNECTION
            | header::CONTENT_ENCODING
            | header::CONTENT_LANGUAGE
            | header::EXPECT
            | header::FORWARDED
            | header::IF_MATCH
            | header::IF_NONE_MATCH
            | header::LINK
            | header::PRAGMA
            | header::SEC_WEBSOCKET_EXTENSIONS
            | header::SEC_WEBSOCKET_PROTOCOL
            | header::TE
            | header::TRAILER
            | header::TRANSFER_ENCODING
            | header::UPGRADE
            | header::VARY
            | header::VIA
            | header::WARNING
    ) || matches!(name.as_str(), "x-forwarded-for" | "baggage" | "tracestate" | "prefer")
}

/// The number that a header tells a request costs, as text: of several lines, each by itself.
pub(crate) fn header_lines<'a>(
    headers: &'a HeaderMap,
    name: &HeaderName,
) -> impl Iterator<Item = Cow<'a, str>> {
    headers.get_all(name).iter().map(|line| text(line.as_bytes()))
}

/// The value of a parameter of the query, decoded.
pub(crate) fn query<'a>(
    query: Option<&'a str>,
    name: &str,
    on_repeat: OnRepeat,
) -> Result<Option<Cow<'a, str>>, Repeated> {
    let values = query_pairs(query).filter(|(its, _)| its == name);
    only(values, on_repeat).map(|value| value.map(|(_, value)| pair_value(value)))
}

/// The one of several values that counts.
fn only<T>(mut values: impl Iterator<Item = T>, on_repeat: OnRepeat) -> Result<Option<T>, Repeated> {
    let Some(first) = values.next() else { return Ok(None) };
    match (on_repeat, values.next()) {
        (_, None) | (OnRepeat::First, _) => Ok(Some(first)),
        (OnRepeat::Reject, Some(_)) => Err(Repeated),
        (OnRepeat::Last, Some(second)) => Ok(Some(values.last().unwrap_or(second))),
    }
}

/// The parameters of a query: the name decoded, the value as sent.
pub(crate) fn query_pairs(query: Option<&str>) -> impl Iterator<Item = (Cow<'_, str>, &str)> {
    query.unwrap_or_default().split('&').filter(|pair| !pair.is_empty()).map(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        (pair_value(name), value)
    })
}

/// A name or a value of a query, decoded; `+` is a blank.
pub(crate) fn pair_value(sent: &str) -> Cow<'_, str> {
    let bytes = sent.as_bytes();
    if !bytes.iter().any(|byte| matches!(byte, b'%' | b'+')) {
        return Cow::Borrowed(sent);
    }
    Cow::Owned(percent_decoded(bytes, Plus::IsBlank))
}

/// The value of a cookie.
pub(crate) fn cookie<'a>(
    headers: &'a HeaderMap,
    name: &str,
    on_repeat: OnRepeat,
) -> Result<Option<Cow<'a, str>>, Repeated> {
    let values = cookies(headers).filter(|(its, _)| its == name);
    only(values, on_repeat).map(|cookie| cookie.map(|(_, value)| value))
}

/// Every cookie, in the order sent, its value unquoted and decoded.
pub(crate) fn cookies(headers: &HeaderMap) -> impl Iterator<Item = (Cow<'_, str>, Cow<'_, str>)> {
    headers.get_all(COOKIE).iter().flat_map(|line| line.as_bytes().split(|&byte| byte == b';')).filter_map(
        |pair| {
            let at = pair.iter().position(|&byte| byte == b'=')?;
            Some((text(trimmed(&pair[..at])), cookie_value(trimmed(&pair[at + 1..]))))
        },
    )
}

/// A part of a cookie without the blanks around it. Django and Starlette strip every blank of Unicode there,
/// so `abc\u{a0}` is `abc` to them.
fn trimmed(sent: &[u8]) -> &[u8] {
    let sent = sent.trim_ascii();
    if sent.first().is_none_or(u8::is_ascii) && sent.last().is_none_or(u8::is_ascii) {
        return sent;
    }
    let is_blank = |letter: char| letter.is_whitespace() || letter == '\u{feff}';
    if let Ok(text) = std::str::from_utf8(sent) {
        return text.trim_matches(is_blank).as_bytes();
    }
    // Latin-1.
    let is_blank = |byte: &u8| is_blank(char::from(*byte));
    let begin = sent.iter().position(|byte| !is_blank(byte)).unwrap_or(sent.len());
    let end = sent.iter().rposition(|byte| !is_blank(byte)).map_or(begin, |last| last + 1);
    &sent[begin..end]
}

/// A cookie's value as applications read it: without its quotes, then without escapes (`\"`, `\141`), then
/// percent-decoded where all of it can be.
fn cookie_value(sent: &[u8]) -> Cow<'_, str> {
    let inside = sent.strip_prefix(b"\"").and_then(|rest| rest.strip_suffix(b"\""));
    let value = match inside {
        Some(inside) if inside.contains(&b'\\') => Cow::Owned(unescaped(inside)),
        Some(inside) => Cow::Borrowed(inside),
        None => Cow::Borrowed(sent),
    };
    let value = match value {
        Cow::Borrowed(bytes) => text(bytes),
        Cow::Owned(bytes) => Cow::Owned(text(&bytes).into_owned()),
    };
    if value.contains('%') {
        return Cow::Owned(percent_decoded(value.as_bytes(), Plus::IsItself));
    }
    value
}

fn unescaped(quoted: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(quoted.len());
    let mut at = 0;
    while at < quoted.len() {
        match &quoted[at..] {
            [b'\\', a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', ..] => {
                out.push((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'));
                at += 4;
            }
            [b'\\', byte, ..] => {
                out.push(*byte);
                at += 2;
            }
            _ => {
                out.push(quoted[at]);
                at += 1;
            }
        }
    }
    out
}

/// What `+` means.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Plus {
    IsBlank,
    IsItself,
}

fn percent_decoded(bytes: &[u8], plus: Plus) -> String {
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        match (encoded(bytes, at), bytes[at]) {
            (Some(byte), _) => {
                decoded.push(byte);
                at += 3;
                continue;
            }
            (None, b'+') if plus == Plus::IsBlank => decoded.push(b' '),
            (None, byte) => decoded.push(byte),
        }
        at += 1;
    }
    String::from_utf8(decoded).unwrap_or_else(|error| latin1(error.as_bytes()))
}

/// A header's value, without blanks around it: HTTP/1.1 does not send any, HTTP/2 clients may, and many applications remove those
/// of Unicode as well.
fn text(bytes: &[u8]) -> Cow<'_, str> {
    let is_plain = |byte: Option<&u8>| byte.is_none_or(u8::is_ascii_graphic);
    match std::str::from_utf8(bytes) {
        Ok(text) if is_plain(bytes.first()) && is_plain(bytes.last()) => Cow::Borrowed(text),
        Ok(text) => Cow::Borrowed(text.trim()),
        Err(_) => Cow::Owned(latin1(bytes).trim().to_owned()),
    }
}

fn latin1(bytes: &[u8]) -> String {
    bytes.iter().map(|&byte| char::from(byte)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn headers(name: &'static str, lines: &[&'static str]) -> HeaderMap {
        let name = HeaderName::from_static(name);
        lines.iter().map(|line| (name.clone(), HeaderValue::from_static(line))).collect()
    }

    fn cookie_of(line: &'static str) -> Option<String> {
        cookie(&headers("cookie", &[line]), "session", OnRepeat::Reject).unwrap().map(Cow::into_owned)
    }

    #[test]
    fn spellings_of_one_cookie_are_one_value() {
        for line in [
            "session=abc",
            "a=b; session=abc",
            "session=\"abc\"",
            "session=\"\\141bc\"",
            "session=\"a\\bc\"",
            "session=%61bc",
            "session=\"%61\\142c\"",
            "session = abc ",
        ] {
            assert_eq!(cookie_of(line).as_deref(), Some("abc"), "{line}");
        }
        assert_eq!(cookie_of("session=a+b%").as_deref(), Some("a+b%"));
        assert_eq!(cookie_of("sessions=abc"), None);
    }

    #[test]
    fn blanks_around_a_cookie_are_none_of_it_whatever_their_spelling() {
        let read = |line: &[u8]| {
            let headers: HeaderMap =
                [(COOKIE, HeaderValue::from_bytes(line).expect("a value"))].into_iter().collect();
            cookie(&headers, "session", OnRepeat::Reject).unwrap().map(Cow::into_owned)
        };
        for line in [
            b"session=abc\xc2\xa0".as_slice(),
            b"session=\xe3\x80\x80abc",
            b"\xc2\xa0session\xe2\x80\x83= \xc2\x85\"abc\" \xc2\xa0; a=b",
            b"session=abc\xa0",
            b"\xa0session=\x85abc\xa0",
        ] {
            assert_eq!(read(line).as_deref(), Some("abc"), "{line:?}");
        }
        assert_eq!(read(b"session=\xa0").as_deref(), Some(""));
        assert_eq!(read(b"session=a\xc2\xa0c").as_deref(), Some("a\u{a0}c"));
        assert_eq!(read(b"session=\xc3\xa9").as_deref(), Some("\u{e9}"));
    }

    #[test]
    fn what_is_given_twice_is_rejected_or_one_of_them_counts() {
        let twice = headers("x-api-key", &["1", "2", "3"]);
        let name = HeaderName::from_static("x-api-key");
        let read = |on_repeat| header(&twice, &name, on_repeat).map(|value| value.unwrap().into_owned());
        assert_eq!(read(OnRepeat::Reject), Err(Repeated));
        assert_eq!(read(OnRepeat::First).as_deref(), Ok("1"));
        assert_eq!(read(OnRepeat::Last).as_deref(), Ok("3"));
        let list = headers("x-forwarded-for", &["1", "2"]);
        let name = HeaderName::from_static("x-forwarded-for");
        assert_eq!(header(&list, &name, OnRepeat::Reject).unwrap().as_deref(), Some("1, 2"));

        let of = |on_repeat| query(Some("k=1&%6b=2&k=3"), "k", on_repeat).map(Option::unwrap);
        assert_eq!(of(OnRepeat::Reject), Err(Repeated));
        assert_eq!(of(OnRepeat::First).as_deref(), Ok("1"));
        assert_eq!(of(OnRepeat::Last).as_deref(), Ok("3"));
        assert_eq!(query(Some("a=1&k=2"), "k", OnRepeat::Reject).unwrap().as_deref(), Some("2"));

        let cookies = headers("cookie", &["session=1", "a=b; session=2"]);
        let of = |on_repeat| cookie(&cookies, "session", on_repeat).map(Option::unwrap);
        assert_eq!(of(OnRepeat::Reject), Err(Repeated));
        assert_eq!(of(OnRepeat::Last).as_deref(), Ok("2"));
    }
}
