//! Problem details (RFC 9457): a type, a title, a status, a sentence for a person, and whatever else a program should know.

use crate::escape;
use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header::CONTENT_TYPE};
use std::fmt::{Display, Write};

/// The body of an answer that says what is wrong. Members stand in the order they are added.
///
/// ```
/// use http::StatusCode;
/// use tollgate_http::Problem;
///
/// let response = Problem::new(StatusCode::NOT_FOUND, "no route takes this request").into_response();
/// assert_eq!(response.headers()["content-type"], "application/problem+json");
/// assert_eq!(
///     &response.body()[..],
///     br#"{"type":"about:blank","title":"Not Found","status":404,"detail":"no route takes this request"}"#
/// );
/// ```
#[derive(Clone, Debug)]
pub struct Problem {
    status: StatusCode,
    /// All but the closing brace.
    members: String,
}

impl Problem {
    /// Its content type.
    pub const CONTENT_TYPE: HeaderValue = HeaderValue::from_static("application/problem+json");

    /// A problem that its status says enough of.
    #[must_use]
    pub fn new(status: StatusCode, detail: &str) -> Self {
        Self::titled(status, status.canonical_reason().unwrap_or("Error"), detail)
    }

    /// A problem with a title of its own.
    #[must_use]
    pub fn titled(status: StatusCode, title: &str, detail: &str) -> Self {
        Self::typed(status, "about:blank", title, detail)
    }

    /// A problem of a registered type, which is a URI.
    #[must_use]
    pub fn typed(status: StatusCode, kind: &str, title: &str, detail: &str) -> Self {
        let mut members = String::from(r#"{"type":"#);
        escape::json(&mut members, kind);
        let problem = Self { status, members }.with_text("title", title).with("status", status.as_u16());
        problem.with_text("detail", detail)
    }

    /// With a member more, which is written as JSON.
    #[must_use]
    pub fn with(mut self, name: &str, json: impl Display) -> Self {
        self.members.push(',');
        escape::json(&mut self.members, name);
        // Writing to a string cannot fail.
        let _ = write!(self.members, ":{json}");
        self
    }

    /// With a member more, which is text.
    #[must_use]
    pub fn with_text(self, name: &str, text: &str) -> Self {
        let mut json = String::new();
        escape::json(&mut json, text);
        self.with(name, json)
    }

    /// The status of the answer.
    #[must_use]
    pub const fn status(&self) -> StatusCode {
        self.status
    }

    /// The body alone.
    #[must_use]
    pub fn into_body(mut self) -> String {
        self.members.push('}');
        self.members
    }

    /// The answer.
    #[must_use]
    pub fn into_response(self) -> Response<Bytes> {
        let mut response = Response::new(Bytes::new());
        *response.status_mut() = self.status;
        response.headers_mut().insert(CONTENT_TYPE, Self::CONTENT_TYPE);
        *response.body_mut() = self.into_body().into();
        response
    }
}
