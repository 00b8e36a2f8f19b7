//! The same question in JSON: a `RateLimitRequest` as proto3 has it there, names in either spelling.

use super::{
    AskError, Rls, entry,
    messages::{
        Code, DescriptorStatus, Entry, HeaderValue, Kind, RateLimit, RateLimitDescriptor, RateLimitOverride,
        RateLimitRequest, RateLimitResponse, Struct, Value as WireValue, WireUnit,
    },
};
use crate::json::Node;
use bytes::Bytes;
use http::{HeaderMap, Response, StatusCode, header};
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use tollgate::Store;

/// Whether a page in somebody's browser asks, which can send this to a service that only the browser reaches. That a body
/// is JSON need not be said here, as clients of the reference do not, so pages are known by what browsers say of them.
pub(super) fn is_of_a_page(headers: &HeaderMap) -> bool {
    let from = headers.get("sec-fetch-site").map(http::HeaderValue::as_bytes);
    headers.contains_key(header::ORIGIN) || matches!(from, Some(b"cross-site" | b"same-site"))
}

/// How long a body is, where its head says so; it is held to that.
pub(super) fn body_length(headers: &HeaderMap) -> Option<usize> {
    headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// What is answered to a body.
pub(super) async fn answer<S: Store>(door: &Rls<S>, body: &[u8]) -> Response<Bytes> {
    let request = match read(body) {
        Ok(request) => request,
        Err(why) => return text(StatusCode::BAD_REQUEST, why),
    };
    match door.decide(&request).await {
        Ok(response) => {
            let status = match response.overall_code() {
                Code::Ok => StatusCode::OK,
                Code::OverLimit => StatusCode::TOO_MANY_REQUESTS,
                Code::Unknown => StatusCode::INTERNAL_SERVER_ERROR,
            };
            whole(status, "application/json", write(&response).to_string())
        }
        Err(error @ AskError::Full { .. }) => text(StatusCode::SERVICE_UNAVAILABLE, error.to_string()),
        Err(error @ AskError::Store(_)) => text(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()),
        Err(error) => text(StatusCode::BAD_REQUEST, error.to_string()),
    }
}

/// An answer in words.
pub(super) fn text(status: StatusCode, words: impl Into<String>) -> Response<Bytes> {
    whole(status, "text/plain; charset=utf-8", words.into())
}

pub(super) fn too_long(longest: usize) -> Response<Bytes> {
    text(StatusCode::PAYLOAD_TOO_LARGE, format!("the body is too long: at most {longest} bytes are read"))
}

pub(super) fn timed_out() -> Response<Bytes> {
    text(StatusCode::REQUEST_TIMEOUT, "the body did not come in time")
}

pub(super) fn unauthorized() -> Response<Bytes> {
    let words = "the request needs the header `authorization: Bearer <token>`";
    with(text(StatusCode::UNAUTHORIZED, words), header::WWW_AUTHENTICATE, "Bearer")
}

pub(super) fn forbidden() -> Response<Bytes> {
    text(
        StatusCode::FORBIDDEN,
        "pages of other sites may not ask: the request has `origin` or `sec-fetch-site`",
    )
}

pub(super) fn method_not_allowed(instead: &'static str) -> Response<Bytes> {
    let words = format!("this is asked for with {instead}");
    with(text(StatusCode::METHOD_NOT_ALLOWED, words), header::ALLOW, instead)
}

fn with(mut answer: Response<Bytes>, name: header::HeaderName, value: &'static str) -> Response<Bytes> {
    answer.headers_mut().insert(name, http::HeaderValue::from_static(value));
    answer
}

fn whole(status: StatusCode, kind: &'static str, body: String) -> Response<Bytes> {
    let mut answer = Response::new(Bytes::from(body));
    *answer.status_mut() = status;
    let headers = answer.headers_mut();
    headers.insert(header::CONTENT_TYPE, http::HeaderValue::from_static(kind));
    answer
}

/// What a body asks, or what is wrong with it and where.
pub(super) fn read(body: &[u8]) -> Result<RateLimitRequest, String> {
    let value = Node::parse(body).map_err(|error| format!("the body is not JSON: {error}"))?;
    let mut fields = Fields::of(&value, String::new())?;
    let request = RateLimitRequest {
        domain: fields.take("domain", |it| it.text())?,
        descriptors: fields.take("descriptors", |it| it.list(descriptor))?,
        hits_addend: fields.take("hitsAddend", |it| it.number())?,
    };
    fields.finish()?;
    Ok(request)
}

fn descriptor(here: &Place<'_>) -> Result<RateLimitDescriptor, String> {
    let mut fields = Fields::of(here.value, here.path.clone())?;
    let descriptor = RateLimitDescriptor {
        entries: fields.take("entries", |it| it.list(entry))?,
        limit: fields.take("limit", |it| limit(it).map(Some))?,
        hits_addend: fields.take("hitsAddend", |it| it.number().map(Some))?,
        is_negative_hits: fields.take("isNegativeHits", |it| it.switch())?,
    };
    fields.finish()?;
    Ok(descriptor)
}

fn entry(here: &Place<'_>) -> Result<Entry, String> {
    let mut fields = Fields::of(here.value, here.path.clone())?;
    // As gRPC has it: the same bytes are the same bucket.
    let text = |it: &Place<'_>| it.text().map(|text| entry::text(text.into_bytes()));
    let entry = Entry { key: fields.take("key", text)?, value: fields.take("value", text)? };
    fields.finish()?;
    Ok(entry)
}

fn limit(here: &Place<'_>) -> Result<RateLimitOverride, String> {
    let mut fields = Fields::of(here.value, here.path.clone())?;
    let limit = RateLimitOverride {
        requests_per_unit: fields.take("requestsPerUnit", |it| it.number())?,
        unit: fields.take("unit", |it| it.unit())?,
    };
    fields.finish()?;
    Ok(limit)
}

/// A value, and the path to it.
struct Place<'v> {
    value: &'v Node<'v>,
    path: String,
}

impl Place<'_> {
    fn wrong<T>(&self, wanted: &str) -> Result<T, String> {
        Err(format!("{}: must be {wanted}", self.path))
    }

    fn text(&self) -> Result<String, String> {
        match self.value {
            Node::Text(text) => Ok(text.clone().into_owned()),
            _ => self.wrong("a string"),
        }
    }

    fn switch(&self) -> Result<bool, String> {
        match self.value {
            Node::Bool(value) => Ok(*value),
            _ => self.wrong("true or false"),
        }
    }

    /// A whole number, or one in a string.
    fn number<T: TryFrom<u64>>(&self) -> Result<T, String> {
        let number = match self.value {
            Node::Text(digits) => digits.parse().ok(),
            Node::Whole(number) => Some(*number),
            Node::Number(number) => {
                let whole = |it: f64| (it >= 0.0 && it.fract() == 0.0 && it < 9e15).then_some(it as u64);
                number.as_f64().and_then(whole)
            }
            _ => None,
        };
        let number = number.and_then(|number| T::try_from(number).ok());
        number.map_or_else(|| self.wrong("a whole number in range"), Ok)
    }

    fn unit(&self) -> Result<i32, String> {
        let unit = match self.value {
            Node::Text(name) => WireUnit::named(name).map(i32::from),
            Node::Whole(number) => i32::try_from(*number).ok(),
            Node::Number(number) => number.as_i64().and_then(|number| i32::try_from(number).ok()),
            _ => None,
        };
        unit.map_or_else(|| self.wrong("a unit such as MINUTE"), Ok)
    }

    fn list<T>(&self, read: impl Fn(&Place<'_>) -> Result<T, String>) -> Result<Vec<T>, String> {
        let Node::List(items) = self.value else { return self.wrong("a list") };
        let item = |(index, value)| read(&Place { value, path: format!("{}[{index}]", self.path) });
        items.iter().enumerate().map(item).collect()
    }
}

/// The fields of an object.
struct Fields<'v> {
    object: &'v [(Cow<'v, str>, Node<'v>)],
    path: String,
    known: Vec<&'static str>,
}

impl<'v> Fields<'v> {
    fn of(value: &'v Node<'v>, path: String) -> Result<Self, String> {
        match value {
            Node::Object(object) => Ok(Self { object, path, known: Vec::new() }),
            _ => Place { value, path: if path.is_empty() { "the body".to_owned() } else { path } }
                .wrong("an object"),
        }
    }

    /// A field by its name, which may be written `likeThis` or `like_this`; what it is without one where it is not there. In
    /// either spelling it may be there once.
    fn take<T: Default>(
        &mut self,
        name: &'static str,
        read: impl FnOnce(&Place<'_>) -> Result<T, String>,
    ) -> Result<T, String> {
        self.known.push(name);
        let other = snake(name);
        let mut found = self.object.iter().filter(|(field, _)| *field == name || *field == other);
        let (first, second) = (found.next(), found.next());
        let path = || format!("{}{}{name}", self.path, if self.path.is_empty() { "" } else { "." });
        match first {
            _ if second.is_some() => Err(format!("{}: is given twice; leave one of them", path())),
            None | Some((_, Node::Null)) => Ok(T::default()),
            Some((_, value)) => read(&Place { value, path: path() }),
        }
    }

    fn finish(&self) -> Result<(), String> {
        let is_known = |name: &str| self.known.iter().any(|known| *known == name || snake(known) == name);
        match self.object.iter().map(|(name, _)| name).find(|name| !is_known(name)) {
            Some(name) => {
                let place = if self.path.is_empty() { String::new() } else { format!("{}: ", self.path) };
                let known = self.known.join(", ");
                let name: String = name.chars().take(60).collect();
                Err(format!("{place}{name:?} is not a known field; known here are {known}"))
            }
            None => Ok(()),
        }
    }
}

fn snake(name: &str) -> String {
    let mut written = String::with_capacity(name.len() + 4);
    for letter in name.chars() {
        if letter.is_ascii_uppercase() {
            written.push('_');
        }
        written.push(letter.to_ascii_lowercase());
    }
    written
}

/// An answer. Fields that say nothing are left out, as proto3 does.
fn write(response: &RateLimitResponse) -> Value {
    let mut told = Map::new();
    put(&mut told, "overallCode", response.overall_code != 0, || response.overall_code().name().into());
    let statuses = || response.statuses.iter().map(status).collect();
    put(&mut told, "statuses", !response.statuses.is_empty(), statuses);
    let headers = || response.response_headers_to_add.iter().map(header_value).collect();
    put(&mut told, "responseHeadersToAdd", !response.response_headers_to_add.is_empty(), headers);
    if let Some(metadata) = &response.dynamic_metadata {
        told.insert("dynamicMetadata".to_owned(), fields(metadata));
    }
    Value::Object(told)
}

fn status(status: &DescriptorStatus) -> Value {
    let mut told = Map::new();
    put(&mut told, "code", status.code != 0, || status.code().name().into());
    if let Some(limit) = &status.current_limit {
        told.insert("currentLimit".to_owned(), current_limit(limit));
    }
    put(&mut told, "limitRemaining", status.limit_remaining != 0, || status.limit_remaining.into());
    if let Some(reset) = &status.duration_until_reset {
        told.insert("durationUntilReset".to_owned(), format!("{}s", reset.seconds).into());
    }
    Value::Object(told)
}

fn current_limit(limit: &RateLimit) -> Value {
    let mut told = Map::new();
    put(&mut told, "name", !limit.name.is_empty(), || limit.name.as_str().into());
    put(&mut told, "requestsPerUnit", limit.requests_per_unit != 0, || limit.requests_per_unit.into());
    put(&mut told, "unit", limit.unit != 0, || limit.unit().name().into());
    Value::Object(told)
}

fn header_value(header: &HeaderValue) -> Value {
    json!({ "key": header.key, "value": header.value })
}

fn fields(told: &Struct) -> Value {
    Value::Object(told.fields.iter().map(|(name, value)| (name.clone(), any(value))).collect())
}

fn any(value: &WireValue) -> Value {
    match &value.kind {
        None | Some(Kind::Null(_)) => Value::Null,
        Some(Kind::Bool(it)) => (*it).into(),
        // As everybody writes them: 4, not 4.0.
        Some(Kind::Number(it)) if it.fract() == 0.0 && it.abs() < 9e15 => (*it as i64).into(),
        Some(Kind::Number(it)) => (*it).into(),
        Some(Kind::Text(it)) => it.as_str().into(),
        Some(Kind::Struct(it)) => fields(it),
        Some(Kind::List(it)) => it.values.iter().map(any).collect(),
    }
}

fn put(told: &mut Map<String, Value>, name: &str, is_told: bool, value: impl FnOnce() -> Value) {
    if is_told {
        told.insert(name.to_owned(), value());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_may_be_spelled_in_either_way() {
        let camel = r#"{"domain":"d","descriptors":[{"entries":[{"key":"k","value":"v"}],"hitsAddend":"3",
            "limit":{"requestsPerUnit":5,"unit":"MINUTE"},"isNegativeHits":true}],"hitsAddend":2}"#;
        let snake = r#"{"domain":"d","descriptors":[{"entries":[{"key":"k","value":"v"}],"hits_addend":3,
            "limit":{"requests_per_unit":5,"unit":2},"is_negative_hits":true}],"hits_addend":"2"}"#;
        let read_camel = read(camel.as_bytes()).expect("good");
        assert_eq!(read_camel, read(snake.as_bytes()).expect("good"));
        assert_eq!(read_camel.descriptors[0].hits_addend, Some(3));
    }

    #[test]
    fn what_cannot_be_read_is_told_with_its_place() {
        for (body, told) in [
            ("[]", "the body: must be an object"),
            (r#"{"domain":1}"#, "domain: must be a string"),
            (r#"{"domain":"a","domain":"b"}"#, "domain: is given twice; leave one of them"),
            (r#"{"hitsAddend":1,"hits_addend":2}"#, "hitsAddend: is given twice; leave one of them"),
            (
                r#"{"descriptors":[{"entries":[{"key":"k","key":null}]}]}"#,
                "descriptors[0].entries[0].key: is given twice; leave one of them",
            ),
            (
                r#"{"domian":"d"}"#,
                "\"domian\" is not a known field; known here are domain, descriptors, hitsAddend",
            ),
            (
                r#"{"descriptors":[{"entries":[{"key":1}]}]}"#,
                "descriptors[0].entries[0].key: must be a string",
            ),
            (r#"{"hitsAddend":-1}"#, "hitsAddend: must be a whole number in range"),
            (r#"{"hitsAddend":4294967296}"#, "hitsAddend: must be a whole number in range"),
            (
                r#"{"descriptors":[{"limit":{"unit":"DECADE"}}]}"#,
                "descriptors[0].limit.unit: must be a unit such as MINUTE",
            ),
        ] {
            assert_eq!(read(body.as_bytes()), Err(told.to_owned()), "{body}");
        }
        assert!(read(b"{").is_err_and(|why| why.starts_with("the body is not JSON")));
    }
}
