//! Conditions: what a request must have for a route or a rule to apply.

use super::{all, settings::network, time};
use crate::{
    decode::{Cursor, Fields, shorten},
    model::{Attribute, Matcher, When},
    schema,
};
use http::HeaderName;
use regex::Regex;

/// Reads `when`; without it everything matches.
pub(super) fn when(when: Option<Cursor<'_>>) -> Option<When> {
    let Some(when) = when else { return Some(When::Always) };
    condition(&when)
}

/// Reads a condition inside another, where nothing would mean everything and is surely not meant.
fn nested(when: &Cursor<'_>) -> Option<When> {
    let read = condition(when)?;
    if matches!(read, When::Always) {
        when.mistake("must not be empty: name an attribute, such as `method: POST`");
        return None;
    }
    Some(read)
}

fn condition(when: &Cursor<'_>) -> Option<When> {
    let mut fields = when.mapping(&schema::WHEN)?;
    let mut parts = Vec::new();
    for (name, attribute) in
        [("path", Attribute::Path), ("method", Attribute::Method), ("host", Attribute::Host)]
    {
        parts.extend(fields.optional(name).map(|value| is(&attribute, &value)));
    }
    for (name, value) in fields.family("header.NAME") {
        parts.push(header(name, &value).and_then(|header| is(&Attribute::Header(header), &value)));
    }
    for (name, value) in fields.family("query.NAME") {
        parts.push(is(&Attribute::Query(name.to_owned()), &value));
    }
    for (name, value) in fields.family("cookie.NAME") {
        parts.push(cookie(name, &value).and_then(|cookie| is(&Attribute::Cookie(cookie), &value)));
    }
    parts.extend(fields.optional("ip").map(|value| is(&Attribute::Ip, &value)));
    parts.extend(fields.optional("time").map(|value| any(&value, |span| time::span(span).map(When::Time))));
    parts.extend(fields.optional("any").map(|value| several(&value).map(When::Any)));
    parts.extend(fields.optional("all").map(|value| several(&value).map(When::All)));
    parts.extend(fields.optional("not").map(|value| nested(&value).map(|not| When::Not(Box::new(not)))));
    fields.finish();
    all(parts).map(together)
}

/// The conditions of `any:` and `all:`.
fn several(value: &Cursor<'_>) -> Option<Vec<When>> {
    let items = value.list("[ { method: GET }, { ip: 10.0.0.0/8 } ]")?;
    if items.is_empty() {
        value.mistake("must not be empty");
        return None;
    }
    all(items.iter().map(nested).collect::<Vec<_>>())
}

/// All of them, without a list around one alone.
fn together(mut parts: Vec<When>) -> When {
    match parts.len() {
        0 => When::Always,
        1 => parts.remove(0),
        _ => When::All(parts),
    }
}

/// One value, or any of a list.
fn any(value: &Cursor<'_>, read: impl Fn(&Cursor<'_>) -> Option<When>) -> Option<When> {
    let items = value.one_or_list();
    if items.is_empty() {
        value.mistake("must not be empty: a list matches if one of its values does");
        return None;
    }
    let mut each = all(items.iter().map(read).collect::<Vec<_>>())?;
    Some(if each.len() == 1 { each.remove(0) } else { When::Any(each) })
}

/// The attribute matches the value, or one of a list.
fn is(attribute: &Attribute, value: &Cursor<'_>) -> Option<When> {
    any(value, |item| {
        if item.is_mapping() {
            return matchers(attribute, item);
        }
        let matcher = match attribute {
            Attribute::Path => glob(item),
            Attribute::Ip => network(item).map(Matcher::Net),
            Attribute::Method => method(item),
            Attribute::Host => host(item),
            _ => item
                .text("text, or a mapping such as `{ prefix: a }`")
                .map(|text| Matcher::Exact(text.to_owned())),
        };
        matcher.map(|matcher| When::Is(attribute.clone(), matcher))
    })
}

/// A mapping of matchers, which must all hold.
fn matchers(attribute: &Attribute, value: &Cursor<'_>) -> Option<When> {
    let mut fields = value.mapping(&schema::MATCHER)?;
    // Hosts are compared in lower case.
    let text = |item: &Cursor<'_>| match attribute {
        Attribute::Host => item.text("text").map(str::to_ascii_lowercase),
        _ => item.text("text").map(str::to_owned),
    };
    let mut parts = Vec::new();
    let mut add = |fields: &mut Fields<'_>, name, read: &dyn Fn(&Cursor<'_>) -> Option<Matcher>| {
        let Some(value) = fields.optional(name) else { return };
        parts.push(any(&value, |item| read(item).map(|matcher| When::Is(attribute.clone(), matcher))));
    };
    add(&mut fields, "exact", &|item| text(item).map(Matcher::Exact));
    add(&mut fields, "prefix", &|item| text(item).map(Matcher::Prefix));
    add(&mut fields, "suffix", &|item| text(item).map(Matcher::Suffix));
    add(&mut fields, "contains", &|item| text(item).map(Matcher::Contains));
    add(&mut fields, "regex", &|item| item.parsed("a regular expression", regex).map(Matcher::Regex));
    add(&mut fields, "glob", &|item| match attribute {
        Attribute::Path => glob(item),
        _ => {
            item.mistake("is only for `path`; use `prefix`, `suffix` or `regex`");
            None
        }
    });
    add(&mut fields, "exists", &|item| item.switch().map(Matcher::Exists));
    add(&mut fields, "blank", &|item| item.switch().map(Matcher::Blank));
    fields.finish();
    if fields.is_empty() {
        value.mistake("must not be empty: name a comparison, such as `{ prefix: a }`");
        return None;
    }
    all(parts).map(together)
}

fn glob(item: &Cursor<'_>) -> Option<Matcher> {
    item.parsed("the shape of a path such as \"/orders/**\"", str::parse).map(Matcher::Glob)
}

fn method(item: &Cursor<'_>) -> Option<Matcher> {
    const KNOWN: [&str; 9] = ["GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"];
    item.parsed("a method such as POST", |text| {
        let known = KNOWN.iter().find(|known| known.eq_ignore_ascii_case(text));
        match (http::Method::from_bytes(text.as_bytes()), known) {
            (_, Some(known)) if *known != text => {
                Err(format!("must be in upper case, as methods are sent: `{known}`"))
            }
            (Ok(_), _) => Ok(Matcher::Exact(text.to_owned())),
            (Err(_), _) => Err(format!("must be a method such as POST; read {:?}", shorten(text))),
        }
    })
}

fn host(item: &Cursor<'_>) -> Option<Matcher> {
    item.parsed("a host such as api.example.com", |text| {
        let port = match text.rsplit_once(']') {
            Some((_, after)) => after.strip_prefix(':'),
            // Several colons are an IPv6 address that forgot its brackets; a host header has them.
            None => text.split_once(':').map(|(_, port)| port),
        };
        match text {
            "" => Err("must not be empty; `{ exists: false }` matches requests without a host"),
            _ if port.is_some() => Err("must be a host without a port, such as api.example.com"),
            _ if text.contains('*') => Err("must be one host; its subdomains are `{ suffix: .example.com }`"),
            _ if text.contains(['/', ' ']) => Err("must be a host alone, such as api.example.com"),
            _ => Ok(Matcher::Exact(text.to_ascii_lowercase())),
        }
    })
}

/// The name of a header, written behind `header.` or by itself.
pub(super) fn header(name: &str, place: &Cursor<'_>) -> Option<HeaderName> {
    let read = HeaderName::from_bytes(name.as_bytes()).ok();
    if read.is_none() {
        place.mistake(format!("{:?} is not a valid header name", shorten(name)));
    }
    read
}

/// The name of a cookie.
pub(super) fn cookie(name: &str, place: &Cursor<'_>) -> Option<String> {
    // Cookies and methods are both tokens of HTTP.
    let is_token = http::Method::from_bytes(name.as_bytes()).is_ok();
    if !is_token {
        place.mistake(format!("{:?} is not a valid cookie name", shorten(name)));
    }
    is_token.then(|| name.to_owned())
}

/// A regular expression that all of a text must match.
fn regex(text: &str) -> Result<Regex, String> {
    // By itself first: brackets that close what they did not open must not close ours.
    Regex::new(text).map_err(|error| explain(text, &error))?;
    Regex::new(&format!(r"\A(?:{text})\z")).map_err(|_| {
        "must end a comment of `(?x)` with a line break, so that all of a text can be matched".to_owned()
    })
}

/// The error on one line: what is wrong, and at which letter.
fn explain(text: &str, error: &regex::Error) -> String {
    if let regex::Error::CompiledTooBig(_) = error {
        return "is too large: repeat less, or name fewer classes of letters".to_owned();
    }
    let told = error.to_string();
    let what = told.lines().last().unwrap_or_default();
    let what = what.strip_prefix("error: ").unwrap_or(what);
    // A pattern of one line stands above its mark, both indented by four.
    let mark = told.lines().find(|line| line.trim_start().starts_with('^') && line.starts_with("    "));
    let letter = mark.and_then(|line| line.find('^')).filter(|_| !text.contains('\n'));
    match letter {
        Some(column) => format!(
            "is not a valid regular expression: {what}, at character {}; read {:?}",
            column.saturating_sub(3),
            shorten(text)
        ),
        None => format!("is not a valid regular expression: {what}; read {:?}", shorten(text)),
    }
}
