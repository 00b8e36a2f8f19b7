//! What goes back: a status, a body, and the few headers that some answers have.

use bytes::Bytes;
use http::{
    HeaderValue, Response, StatusCode,
    header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE},
};
use http_body_util::Full;
use tollgate_rules::json::JsonError;

/// An answer on its way.
#[derive(Clone, Debug)]
pub(super) struct Reply {
    pub(super) status: StatusCode,
    pub(super) body: Bytes,
    kind: Kind,
    /// In seconds.
    pub(super) retry_after: Option<u64>,
    allow: Option<&'static str>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Json,
    Problem,
}

impl Reply {
    pub(super) fn json(status: StatusCode, body: impl Into<Bytes>) -> Self {
        Self { status, body: body.into(), kind: Kind::Json, retry_after: None, allow: None }
    }

    /// What is wrong with a question.
    pub(super) fn mistake(status: StatusCode, error: &JsonError) -> Self {
        Problem::new(status, &error.describe("the body")).field(error.path()).reply()
    }

    pub(super) fn retry_after(self, seconds: Option<u64>) -> Self {
        Self { retry_after: seconds, ..self }
    }

    pub(super) fn into_response(self) -> Response<Full<Bytes>> {
        let empty = self.body.is_empty();
        let mut response = Response::new(Full::new(self.body));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        let kind = match self.kind {
            Kind::Json => HeaderValue::from_static("application/json"),
            Kind::Problem => tollgate_http::Problem::CONTENT_TYPE,
        };
        if !empty {
            headers.insert(CONTENT_TYPE, kind);
        }
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if let Some(seconds) = self.retry_after {
            headers.insert(RETRY_AFTER, seconds.into());
        }
        if let Some(methods) = self.allow {
            headers.insert(ALLOW, HeaderValue::from_static(methods));
        }
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"tollgate\""));
        }
        response
    }
}

/// Why there is no answer.
pub(super) struct Problem {
    problem: tollgate_http::Problem,
    retry_after: Option<u64>,
    allow: Option<&'static str>,
}

impl Problem {
    pub(super) fn new(status: StatusCode, detail: &str) -> Self {
        tollgate_http::Problem::new(status, detail).into()
    }

    /// The service takes less than usual, whoever asks.
    pub(super) fn capacity(detail: &str) -> Self {
        const KIND: &str = "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity";
        let status = StatusCode::SERVICE_UNAVAILABLE;
        let problem = tollgate_http::Problem::typed(status, KIND, "Service Unavailable", detail);
        Self::from(problem).retry_after(1)
    }

    /// Which field of the question it is about; none where that is empty.
    pub(super) fn field(self, field: &str) -> Self {
        match field.is_empty() {
            true => self,
            false => Self { problem: self.problem.with_text("field", field), ..self },
        }
    }

    pub(super) fn retry_after(self, seconds: u64) -> Self {
        Self { retry_after: Some(seconds), ..self }
    }

    /// What may be asked instead.
    pub(super) fn allow(self, methods: &'static str) -> Self {
        Self { allow: Some(methods), ..self }
    }

    pub(super) fn reply(self) -> Reply {
        Reply {
            status: self.problem.status(),
            body: self.problem.into_body().into(),
            kind: Kind::Problem,
            retry_after: self.retry_after,
            allow: self.allow,
        }
    }
}

impl From<tollgate_http::Problem> for Problem {
    fn from(problem: tollgate_http::Problem) -> Self {
        Self { problem, retry_after: None, allow: None }
    }
}
