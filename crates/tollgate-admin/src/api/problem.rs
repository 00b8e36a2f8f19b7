//! The one place where something that cannot be done becomes a response: `application/problem+json`, in words that somebody
//! can act on, and never with what somebody else must not see.

use axum::response::{IntoResponse, Response};
use http::{StatusCode, header};
use serde_json::{Map, Value, json};
use std::time::Duration;

/// Something that cannot be done.
#[derive(Debug)]
pub(crate) struct Problem {
    status: StatusCode,
    detail: String,
    more: Map<String, Value>,
    retry_after: Option<Duration>,
}

impl Problem {
    pub(crate) fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        Self { status, detail: detail.into(), more: Map::new(), retry_after: None }
    }

    /// The question makes no sense.
    pub(crate) fn asked_wrong(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, detail)
    }

    /// With a field of its own.
    pub(crate) fn with(mut self, name: &str, value: Value) -> Self {
        self.more.insert(name.to_owned(), value);
        self
    }

    /// It may be tried again then.
    pub(crate) fn retry_after(self, after: Duration) -> Self {
        Self { retry_after: Some(after), ..self }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let title = self.status.canonical_reason().unwrap_or_default();
        let mut body = json!({ "title": title, "status": self.status.as_u16(), "detail": self.detail });
        if let Value::Object(fields) = &mut body {
            fields.extend(self.more);
        }
        let kind = [(header::CONTENT_TYPE, "application/problem+json"), (header::CACHE_CONTROL, "no-store")];
        let mut response = (self.status, kind, body.to_string()).into_response();
        if let Some(after) = self.retry_after {
            let seconds = after.as_secs() + u64::from(after.subsec_nanos() > 0);
            response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
        }
        if self.status == StatusCode::UNAUTHORIZED {
            let scheme = http::HeaderValue::from_static("Bearer");
            response.headers_mut().insert(header::WWW_AUTHENTICATE, scheme);
        }
        response
    }
}
