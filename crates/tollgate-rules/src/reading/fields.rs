//! Headers, query and cookies as text.
//!
//! Bytes that are not UTF-8 are read as Latin-1: every value is some text, and the same bytes are the same text.

use super::path::encoded;
use http::{HeaderMap, HeaderName, header::COOKIE};
use std::borrow::Cow;

/// A header's value; several lines are one, with commas between them.
pub(crate) fn header<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<Cow<'a, str>> {
    let mut lines = headers.get_all(name).iter();
    let first = text(lines.next()?.as_bytes());
    let Some(second) = lines.next() else { return Some(first) };
    let mut all = first.into_owned();
    for line in std::iter::once(second).chain(lines) {
        all.push_str(", ");
        all.push_str(&text(line.as_bytes()));
    }
    Some(Cow::Owned(all))
}

/// The first line of a header.
pub(crate) fn first_header<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<Cow<'a, str>> {
    headers.get(name).map(|line| text(line.as_bytes()))
}

/// The first value of a parameter of the query, decoded.
pub(crate) fn query<'a>(query: Option<&'a str>, name: &str) -> Option<Cow<'a, str>> {
    query_pairs(query).find(|(its, _)| its == name).map(|(_, value)| pair_value(value))
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
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        match (encoded(bytes, at), bytes[at]) {
            (Some(byte), _) => {
                decoded.push(byte);
                at += 3;
                continue;
            }
            (None, b'+') => decoded.push(b' '),
            (None, byte) => decoded.push(byte),
        }
        at += 1;
    }
    Cow::Owned(String::from_utf8(decoded).unwrap_or_else(|error| latin1(error.as_bytes())))
}

/// The first cookie of that name.
pub(crate) fn cookie<'a>(headers: &'a HeaderMap, name: &str) -> Option<Cow<'a, str>> {
    cookies(headers).find(|(its, _)| its == name).map(|(_, value)| value)
}

/// Every cookie, in the order sent.
pub(crate) fn cookies(headers: &HeaderMap) -> impl Iterator<Item = (Cow<'_, str>, Cow<'_, str>)> {
    headers.get_all(COOKIE).iter().flat_map(|line| line.as_bytes().split(|&byte| byte == b';')).filter_map(
        |pair| {
            let at = pair.iter().position(|&byte| byte == b'=')?;
            Some((text(pair[..at].trim_ascii()), text(pair[at + 1..].trim_ascii())))
        },
    )
}

fn text(bytes: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => Cow::Owned(latin1(bytes)),
    }
}

fn latin1(bytes: &[u8]) -> String {
    bytes.iter().map(|&byte| char::from(byte)).collect()
}
