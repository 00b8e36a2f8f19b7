//! The same question in JSON: a `RateLimitRequest` as proto3 has it there, names in either spelling.

use super::{
    AskError, Rls, entry,
    messages::{Code, Duration, Kind, RateLimitRequest, Struct, Value as WireValue, WireUnit},
};
use bytes::Bytes;
use http::{HeaderMap, Response, StatusCode, header};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use tollgate::Store;
use tollgate_rules::json::{self, JsonError, Node, expected};

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
        Err(error) => return text(StatusCode::BAD_REQUEST, error.describe("the body")),
    };
    match door.decide(&request).await {
        Ok(response) => {
            let status = match response.overall_code() {
                Code::Ok => StatusCode::OK,
                Code::OverLimit => StatusCode::TOO_MANY_REQUESTS,
                Code::Unknown => StatusCode::INTERNAL_SERVER_ERROR,
            };
            whole(status, "application/json", serde_json::to_string(&response).unwrap_or_default())
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
pub(super) fn read(body: &[u8]) -> Result<RateLimitRequest, JsonError> {
    json::read(body)
}

/// A field as proto3 has it: null is as good as left out.
pub(super) fn optional<'de, T: Default + Deserialize<'de>, D: Deserializer<'de>>(
    from: D,
) -> Result<T, D::Error> {
    Option::deserialize(from).map(Option::unwrap_or_default)
}

/// A text of an entry, as gRPC has it: the same bytes are the same bucket.
pub(super) fn entry_text<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    optional(from).map(|text: String| entry::text(text.into_bytes()))
}

/// A whole number, or one in a string.
pub(super) fn number<'de, T: Default + TryFrom<u64>, D: Deserializer<'de>>(from: D) -> Result<T, D::Error> {
    let number = match Node::deserialize(from)? {
        Node::Null => return Ok(T::default()),
        Node::Text(digits) => digits.parse().ok(),
        Node::Whole(number) => Some(number),
        Node::Number(number) => {
            let whole = |it: f64| (it >= 0.0 && it.fract() == 0.0 && it < 9e15).then_some(it as u64);
            number.as_f64().and_then(whole)
        }
        _ => None,
    };
    let number = number.and_then(|number| T::try_from(number).ok());
    number.ok_or_else(|| expected("a whole number in range"))
}

/// A unit by its name or its number.
pub(super) fn unit<'de, D: Deserializer<'de>>(from: D) -> Result<i32, D::Error> {
    let unit = match Node::deserialize(from)? {
        Node::Null => Some(0),
        Node::Text(name) => WireUnit::named(&name).map(i32::from),
        Node::Whole(number) => i32::try_from(number).ok(),
        Node::Number(number) => number.as_i64().and_then(|number| i32::try_from(number).ok()),
        _ => None,
    };
    unit.ok_or_else(|| expected("a unit such as MINUTE"))
}

/// Whether a field of an answer says nothing, and is left out as proto3 does.
pub(super) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

pub(super) fn code<S: Serializer>(code: &i32, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(Code::try_from(*code).unwrap_or(Code::Unknown).name())
}

pub(super) fn unit_name<S: Serializer>(unit: &i32, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(WireUnit::try_from(*unit).unwrap_or(WireUnit::Unknown).name())
}

pub(super) fn seconds<S: Serializer>(time: &Option<Duration>, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(&format_args!("{}s", time.unwrap_or_default().seconds))
}

pub(super) fn metadata<S: Serializer>(metadata: &Option<Struct>, to: S) -> Result<S::Ok, S::Error> {
    metadata.as_ref().map(fields).serialize(to)
}

fn fields(told: &Struct) -> Value {
    Value::Object(told.fields.iter().map(|(name, value)| (name.clone(), any(value))).collect())
}

fn any(value: &WireValue) -> Value {
    match &value.kind {
        None | Some(Kind::NullValue(_)) => Value::Null,
        Some(Kind::BoolValue(it)) => (*it).into(),
        // As everybody writes them: 4, not 4.0.
        Some(Kind::NumberValue(it)) if it.fract() == 0.0 && it.abs() < 9e15 => (*it as i64).into(),
        Some(Kind::NumberValue(it)) => (*it).into(),
        Some(Kind::StringValue(it)) => it.as_str().into(),
        Some(Kind::StructValue(it)) => fields(it),
        Some(Kind::ListValue(it)) => it.values.iter().map(any).collect(),
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
            ("[]", "the body must be an object; read []"),
            (r#"{"domain":1}"#, "domain: must be text; read 1"),
            (r#"{"domain":"a","domain":"b"}"#, "domain: is given twice; leave one of them"),
            (r#"{"hitsAddend":1,"hits_addend":2}"#, "hitsAddend: is given twice; leave one of them"),
            (
                r#"{"descriptors":[{"entries":[{"key":"k","key":null}]}]}"#,
                "descriptors[0].entries[0].key: is given twice; leave one of them",
            ),
            (r#"{"domian":"d"}"#, "domian: is not a known field; did you mean \"domain\"?"),
            (
                r#"{"descriptors":[{"entries":[{"key":1}]}]}"#,
                "descriptors[0].entries[0].key: must be text; read 1",
            ),
            (r#"{"hitsAddend":-1}"#, "hitsAddend: must be a whole number in range; read -1"),
            (r#"{"hitsAddend":4294967296}"#, "hitsAddend: must be a whole number in range; read 4294967296"),
            (
                r#"{"descriptors":[{"limit":{"unit":"DECADE"}}]}"#,
                "descriptors[0].limit.unit: must be a unit such as MINUTE; read \"DECADE\"",
            ),
        ] {
            let error = read(body.as_bytes()).expect_err(body);
            assert_eq!(error.describe("the body"), told, "{body}");
        }
        assert!(
            read(b"{").is_err_and(|error| error.describe("the body").starts_with("the body is not JSON"))
        );
    }
}
