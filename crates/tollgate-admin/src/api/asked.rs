//! What is asked, read strictly: a query with known names, or a JSON body that is short, comes in time and has the shape
//! that is expected.

use super::problem::Problem;
use axum::{
    body::{Body, Bytes, HttpBody},
    extract::{FromRequest, FromRequestParts, Request},
};
use http::{HeaderMap, StatusCode, header, request::Parts};
use percent_encoding::percent_decode;
use serde::de::DeserializeOwned;
use std::{future::poll_fn, pin::Pin, str::FromStr, time::Duration};
use tokio::time;
use tollgate_rules::json::{self, JsonError};

/// A whole rule file with thousands of rules, and some.
const LONGEST: usize = 4 * 1024 * 1024;

/// How long a body may take.
const SAID_WITHIN: Duration = Duration::from_secs(10);

/// A JSON body of at most `MOST` bytes.
pub(crate) struct Said<T, const MOST: usize = LONGEST>(pub(crate) T);

impl<T: DeserializeOwned, S: Sync, const MOST: usize> FromRequest<S> for Said<T, MOST> {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<Self, Problem> {
        if !is_json(request.headers()) {
            let detail = "the body must be JSON, and say so: content-type: application/json";
            return Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, detail));
        }
        let bytes = read(request.into_body(), MOST, SAID_WITHIN).await?;
        // A value that was read may be a token; where it stands is enough.
        let told = |error: JsonError| Problem::asked_wrong(error.without_value().describe("the body"));
        json::read(&bytes).map(Self).map_err(told)
    }
}

/// All of a body, if it is short and comes in time. Of one that is too long as much again is read and thrown away: some clients
/// do not hear an answer to a request that they are still sending.
pub(crate) async fn read(mut body: Body, longest: usize, within: Duration) -> Result<Bytes, Problem> {
    let reading = async {
        let (mut read, mut length) = (Vec::new(), 0_usize);
        while let Some(frame) = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
            let broken = |_| Problem::asked_wrong("the body ended before its end");
            let Ok(data) = frame.map_err(broken)?.into_data() else { continue };
            length = length.saturating_add(data.len());
            if length > 2 * longest {
                break;
            }
            match length > longest {
                true => read = Vec::new(),
                false => read.extend_from_slice(&data),
            }
        }
        if length > longest {
            let detail = format!("the body must be at most {} KiB", longest / 1024);
            return Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, detail));
        }
        Ok(read.into())
    };
    time::timeout(within, reading).await.unwrap_or_else(|_| {
        let detail = format!("the body must come within {} seconds", within.as_secs());
        Err(Problem::new(StatusCode::REQUEST_TIMEOUT, detail))
    })
}

pub(super) fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    kind.eq_ignore_ascii_case("application/json")
}

/// Refuses a query that has no one meaning: the decoder keeps what is no escape, and replaces what is no UTF-8.
fn check_escapes(query: &[u8]) -> Result<(), Problem> {
    let is_escape =
        |at: usize| query.get(at + 1..at + 3).is_some_and(|it| it.iter().all(u8::is_ascii_hexdigit));
    let mut escapes = query.iter().enumerate().filter(|(_, byte)| **byte == b'%');
    if !escapes.all(|(at, _)| is_escape(at)) {
        let detail = "the query has a `%` that is not followed by two hexadecimal digits; send a literal percent sign as %25";
        return Err(Problem::asked_wrong(detail));
    }
    let mut parts = query.split(|byte| matches!(byte, b'&' | b'='));
    match parts.all(|part| percent_decode(part).decode_utf8().is_ok()) {
        true => Ok(()),
        false => Err(Problem::asked_wrong("the query is not UTF-8 after decoding")),
    }
}

/// What stands behind the question mark.
pub(crate) struct Asked(Vec<(String, String)>);

impl<S: Sync> FromRequestParts<S> for Asked {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Self::Rejection> {
        let query = parts.uri.query().unwrap_or_default();
        check_escapes(query.as_bytes())?;
        Ok(Self(form_urlencoded::parse(query.as_bytes()).into_owned().collect()))
    }
}

impl Asked {
    /// Refuses names that mean nothing here.
    pub(crate) fn only(&self, known: &[&str]) -> Result<(), Problem> {
        match self.0.iter().find(|(name, _)| !known.contains(&name.as_str())) {
            None => Ok(()),
            Some(_) if known.is_empty() => Err(Problem::asked_wrong("nothing is asked of this page")),
            Some(_) => {
                Err(Problem::asked_wrong(format!("what can be asked of this page: {}", known.join(", "))))
            }
        }
    }

    /// All of this name, in order.
    pub(crate) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The only one of this name, if there is one.
    pub(crate) fn one<T: FromStr>(&self, name: &str, expected: &str) -> Result<Option<T>, Problem> {
        let mut all = self.all(name);
        let (first, second) = (all.next(), all.next());
        let Some(text) = first else { return Ok(None) };
        if second.is_some() {
            return Err(Problem::asked_wrong(format!(
                "{name} is given more than once; it must be {expected}"
            )));
        }
        match text.parse() {
            Ok(value) => Ok(Some(value)),
            Err(_) => Err(Problem::asked_wrong(format!("{name} must be {expected}"))),
        }
    }
}
