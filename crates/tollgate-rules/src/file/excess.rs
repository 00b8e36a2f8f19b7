//! What becomes of requests that find no room.

use super::names::Names;
use crate::{
    decode::{Cursor, did_you_mean, shorten},
    limit::{defaulted, duration},
    model::{Excess, Reply},
    schema::{self, Shape},
};
use http::{HeaderValue, StatusCode};

/// Reads `excess`.
pub(super) fn excess(excess: &Cursor<'_>, upstreams: &Names) -> Option<Excess> {
    if !excess.is_mapping() {
        return word(excess);
    }
    let mut fields = excess.mapping(&schema::EXCESS)?;
    let given = fields.among(schema::EXCESS.exactly_one);
    let reject = fields
        .optional("reject")
        .map(|reply| self::reply(&reply, &schema::REJECT).map(Some).map(Excess::Reject));
    let wait = fields.optional("wait").map(|wait| duration(&wait).map(Excess::Wait));
    let divert = fields.optional("divert").map(|name| upstreams.find(&name).map(Excess::Divert));
    let degrade =
        fields.optional("degrade").map(|reply| self::reply(&reply, &schema::DEGRADE).map(Excess::Degrade));
    fields.finish();
    match given.as_slice() {
        [] if !fields.has_unknown() => {
            fields.mistake_here(
                "must say one of `reject`, `wait`, `divert` or `degrade`, such as `{ wait: 500ms }`",
            );
            None
        }
        [first, second, ..] => {
            fields.mistake(
                second,
                format!("cannot be combined with `{first}`: a rule has one action on denied requests"),
            );
            None
        }
        _ => reject.or(wait).or(divert).or(degrade)?,
    }
}

fn word(excess: &Cursor<'_>) -> Option<Excess> {
    const EXPECTED: &str = "`reject`, `shadow`, or a mapping such as `{ wait: 500ms }`";
    excess.parsed(EXPECTED, |word| match word {
        "reject" => Ok(Excess::Reject(None)),
        "shadow" => Ok(Excess::Shadow),
        "wait" => Err("needs a time: `{ wait: 500ms }`".to_owned()),
        "divert" => Err("needs an upstream: `{ divert: NAME }`".to_owned()),
        "degrade" => Err("needs a response: `{ degrade: { status: 200, body: ... } }`".to_owned()),
        _ => {
            let meant = did_you_mean(word, ["reject", "shadow", "wait", "divert", "degrade"]);
            Err(format!("must be {EXPECTED}; read {:?}{meant}", shorten(word)))
        }
    })
}

fn reply(reply: &Cursor<'_>, shape: &'static Shape) -> Option<Reply> {
    let mut fields = reply.mapping(shape)?;
    let status = fields.defaulted("status", status);
    let body =
        defaulted(fields.optional("body"), None, |body| body.text("text").map(|body| Some(body.to_owned())));
    let content_type = defaulted(fields.optional("content_type"), None, |kind| content_type(kind).map(Some));
    fields.finish();
    let (status, body, content_type) = (status?, body?, content_type?);
    if body.is_some()
        && matches!(status, StatusCode::NO_CONTENT | StatusCode::RESET_CONTENT | StatusCode::NOT_MODIFIED)
    {
        fields.mistake("body", "must be left out: a response with this status has no body");
        return None;
    }
    if content_type.is_some() && body.is_none() {
        fields.mistake("content_type", "has no effect without a `body`");
        return None;
    }
    Some(Reply { status, body, content_type })
}

fn status(status: &Cursor<'_>) -> Option<StatusCode> {
    let code = status.count()?;
    let read = u16::try_from(code).ok().filter(|code| (200..600).contains(code));
    let read = read.and_then(|code| StatusCode::from_u16(code).ok());
    if read.is_none() {
        status.mistake(format!("must be a status from 200 to 599; read {code}"));
    }
    read
}

fn content_type(kind: &Cursor<'_>) -> Option<String> {
    let text = kind.text("a media type such as text/plain")?;
    let is_type = text.split_once('/').is_some_and(|(kind, rest)| !kind.is_empty() && !rest.is_empty());
    if is_type && text.is_ascii() && HeaderValue::from_str(text).is_ok() {
        return Some(text.to_owned());
    }
    kind.mistake("must be a media type such as text/plain");
    None
}
