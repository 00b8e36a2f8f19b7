//! The one place where something that cannot be done becomes a response: `application/problem+json`, in words that somebody
//! can act on, and never with what somebody else must not see.

use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use serde_json::Value;
use std::time::Duration;

/// Something that cannot be done.
#[derive(Debug)]
pub(crate) struct Problem {
    status: StatusCode,
    detail: String,
    more: Vec<(String, Value)>,
    retry_after: Option<Duration>,
}

impl Problem {
    pub(crate) fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        Self { status, detail: detail.into(), more: Vec::new(), retry_after: None }
    }

    /// The question makes no sense.
    pub(crate) fn asked_wrong(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, detail)
    }

    /// With a field of its own.
    pub(crate) fn with(mut self, name: &str, value: Value) -> Self {
        self.more.push((name.to_owned(), value));
        self
    }

    /// It may be tried again then.
    pub(crate) fn retry_after(self, after: Duration) -> Self {
        Self { retry_after: Some(after), ..self }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let add = |problem: tollgate_http::Problem, (name, json): (String, Value)| problem.with(&name, json);
        let problem = tollgate_http::Problem::new(self.status, &self.detail);
        let problem = self.more.into_iter().fold(problem, add);
        let mut response = problem.into_response().map(axum::body::Body::from);
        response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if let Some(after) = self.retry_after {
            let seconds = after.as_secs() + u64::from(after.subsec_nanos() > 0);
            response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
        }
        if self.status == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}
