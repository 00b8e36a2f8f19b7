//! The response of a refusal: its status, content type and body. What the headers tell of limits is [`fields`](crate::fields)'
//! to say.
//!
//! A request for gRPC gets a gRPC status, whatever the style: its client reads no body. The response is then all headers
//! ("trailers-only"): `grpc-status`, `grpc-message`, and `grpc-retry-pushback-ms`, which clients that retry obey.

use crate::{
    escape,
    problem::Problem,
    retry::{delay, millis},
};
use bytes::Bytes;
use http::{
    HeaderMap, HeaderValue, Response, StatusCode,
    header::{CONTENT_TYPE, HeaderName, RETRY_AFTER},
};
use std::time::Duration;

/// What a refused request gets for an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum RefusalStyle {
    /// Problem details (`application/problem+json`, RFC 9457) of the registered types, with the names of the violated policies.
    #[default]
    Problem,
    /// Soul's and ShenYu's JSON: `{"code":429,"message":"...","data":null}`.
    Soul,
    /// A sentence.
    Plain,
}

#[derive(Clone, Copy)]
enum Cause<'a> {
    Quota(&'a [&'a str]),
    Capacity,
}

impl RefusalStyle {
    /// 429: a limit has no room for the request; it may come again after so long, or (`None`) never. `request` are the
    /// request's headers, which say whether it is gRPC (then the status is RESOURCE_EXHAUSTED).
    ///
    /// ```
    /// use http::HeaderMap;
    /// use std::time::Duration;
    /// use tollgate_http::RefusalStyle;
    ///
    /// let after = Some(Duration::from_millis(6_100));
    /// let response = RefusalStyle::Plain.quota_exceeded(&HeaderMap::new(), &["per-client"], after);
    /// assert_eq!(response.status(), 429);
    /// assert_eq!(response.headers()["retry-after"], "7");
    /// assert_eq!(response.body(), "Too many requests (per-client). Please try again in 7 seconds.\n");
    /// ```
    #[must_use]
    pub fn quota_exceeded(
        self,
        request: &HeaderMap,
        violated: &[&str],
        retry_after: Option<Duration>,
    ) -> Response<Bytes> {
        self.quota_exceeded_as(StatusCode::TOO_MANY_REQUESTS, request, violated, retry_after)
    }

    /// As [`quota_exceeded`](Self::quota_exceeded), under another status, which the body tells as well. gRPC has its own.
    #[must_use]
    pub fn quota_exceeded_as(
        self,
        status: StatusCode,
        request: &HeaderMap,
        violated: &[&str],
        retry_after: Option<Duration>,
    ) -> Response<Bytes> {
        self.answer(request, Cause::Quota(violated), status, retry_after)
    }

    /// 503: the service takes less than usual, whoever asks (for gRPC UNAVAILABLE).
    #[must_use]
    pub fn reduced_capacity(self, request: &HeaderMap, retry_after: Option<Duration>) -> Response<Bytes> {
        self.reduced_capacity_as(StatusCode::SERVICE_UNAVAILABLE, request, retry_after)
    }

    /// As [`reduced_capacity`](Self::reduced_capacity), under another status, which the body tells as well.
    #[must_use]
    pub fn reduced_capacity_as(
        self,
        status: StatusCode,
        request: &HeaderMap,
        retry_after: Option<Duration>,
    ) -> Response<Bytes> {
        self.answer(request, Cause::Capacity, status, retry_after)
    }

    fn answer(
        self,
        request: &HeaderMap,
        cause: Cause<'_>,
        status: StatusCode,
        after: Option<Duration>,
    ) -> Response<Bytes> {
        if let Some(content_type) = request.get(CONTENT_TYPE).filter(|it| speaks_grpc(it)) {
            return grpc(content_type, cause, after);
        }
        let seconds = after.map(delay);
        let (content_type, body) = match self {
            Self::Problem => ("application/problem+json", problem(cause, status, seconds)),
            Self::Soul => ("application/json", soul(cause, status)),
            Self::Plain => ("text/plain; charset=utf-8", cause.sentence(seconds) + "\n"),
        };
        let mut response = Response::new(Bytes::from(body));
        *response.status_mut() = status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
        if let Some(seconds) = seconds {
            headers.insert(RETRY_AFTER, seconds.into());
        }
        response
    }
}

/// Whether a request is gRPC, by its content type: then it wants its refusal as a gRPC status.
#[must_use]
pub fn is_grpc(request: &HeaderMap) -> bool {
    request.get(CONTENT_TYPE).is_some_and(speaks_grpc)
}

/// `application/grpc`, with a message format or a parameter or neither; gRPC-Web as well, whose clients read the same headers.
fn speaks_grpc(content_type: &HeaderValue) -> bool {
    const GRPC: &[u8] = b"application/grpc";
    let Some((kind, rest)) = content_type.as_bytes().split_at_checked(GRPC.len()) else { return false };
    kind.eq_ignore_ascii_case(GRPC)
        && (matches!(rest.first(), None | Some(b'+' | b';' | b' ')) || rest.starts_with(b"-web"))
}

fn grpc(content_type: &HeaderValue, cause: Cause<'_>, after: Option<Duration>) -> Response<Bytes> {
    const STATUS: HeaderName = HeaderName::from_static("grpc-status");
    const MESSAGE: HeaderName = HeaderName::from_static("grpc-message");
    const PUSHBACK: HeaderName = HeaderName::from_static("grpc-retry-pushback-ms");
    let mut response = Response::new(Bytes::new());
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, content_type.clone());
    headers.insert(STATUS, HeaderValue::from_static(cause.grpc_status()));
    let message = escape::grpc_message(&cause.sentence(after.map(delay)));
    headers.insert(MESSAGE, crate::policy::visible(message));
    match after {
        Some(after) => headers.insert(PUSHBACK, millis(after).into()),
        // Less than nothing tells a client not to try again.
        None => headers.insert(PUSHBACK, HeaderValue::from_static("-1")),
    };
    response
}

impl Cause<'_> {
    const fn grpc_status(self) -> &'static str {
        match self {
            Self::Quota(_) => "8",
            Self::Capacity => "14",
        }
    }

    fn sentence(self, seconds: Option<u64>) -> String {
        let mut sentence = match self {
            Self::Quota([]) => "Too many requests.".to_owned(),
            Self::Quota(violated) => format!("Too many requests ({}).", violated.join(", ")),
            Self::Capacity => "The service is at its capacity.".to_owned(),
        };
        sentence += &match (seconds, self) {
            (Some(1), _) => " Please try again in 1 second.".to_owned(),
            (Some(seconds), _) => format!(" Please try again in {seconds} seconds."),
            (None, Self::Quota(_)) => {
                " This request is never let through; trying again will not help.".to_owned()
            }
            (None, Self::Capacity) => String::new(),
        };
        sentence
    }
}

fn problem(cause: Cause<'_>, status: StatusCode, seconds: Option<u64>) -> String {
    const TYPES: &str = "https://iana.org/assignments/http-problem-types";
    let (kind, title) = match cause {
        Cause::Quota(_) => {
            ("quota-exceeded", "Request cannot be satisfied as assigned quota has been exceeded")
        }
        Cause::Capacity => (
            "temporary-reduced-capacity",
            "Request cannot be satisfied due to temporary server capacity constraints",
        ),
    };
    let mut problem = Problem::typed(status, &format!("{TYPES}#{kind}"), title, &cause.sentence(seconds));
    if let Cause::Quota(violated) = cause {
        let mut names = String::from("[");
        for (index, name) in violated.iter().enumerate() {
            names.push_str(if index > 0 { "," } else { "" });
            escape::json(&mut names, name);
        }
        problem = problem.with("violated-policies", names + "]");
    }
    match seconds {
        Some(seconds) => problem.with("retry_after", seconds),
        None => problem,
    }
    .into_body()
}

/// What Soul's clients look for is the code; its message is the same for everybody.
fn soul(cause: Cause<'_>, status: StatusCode) -> String {
    let message = match cause {
        Cause::Quota(_) => "You have been restricted, please try again later!",
        Cause::Capacity => "The service is at its capacity, please try again later!",
    };
    format!(r#"{{"code":{},"message":"{message}","data":null}}"#, status.as_u16())
}
