//! What goes back: a status, a body, and the few headers that some answers have.

use bytes::Bytes;
use http::{
    HeaderValue, Response, StatusCode,
    header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE},
};
use http_body_util::Full;
use serde_json::{Value, json};
use std::fmt::Write;

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

    pub(super) fn retry_after(self, seconds: Option<u64>) -> Self {
        Self { retry_after: seconds, ..self }
    }

    pub(super) fn into_response(self) -> Response<Full<Bytes>> {
        let empty = self.body.is_empty();
        let mut response = Response::new(Full::new(self.body));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        let kind = match self.kind {
            Kind::Json => "application/json",
            Kind::Problem => "application/problem+json",
        };
        if !empty {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
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

/// Why there is no answer (RFC 9457).
pub(super) struct Problem {
    status: StatusCode,
    members: Members,
    retry_after: Option<u64>,
    allow: Option<&'static str>,
}

impl Problem {
    pub(super) fn new(status: StatusCode, detail: &str) -> Self {
        let title = status.canonical_reason().unwrap_or_default();
        let mut members = Members::default();
        members.push("type", json!("about:blank"));
        members.push("title", json!(title));
        members.push("status", json!(status.as_u16()));
        members.push("detail", json!(detail));
        Self { status, members, retry_after: None, allow: None }
    }

    /// The service takes less than usual, whoever asks.
    pub(super) fn capacity(detail: &str) -> Self {
        let mut problem = Self::new(StatusCode::SERVICE_UNAVAILABLE, detail);
        let kind = "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity";
        problem.members.0[0].1 = json!(kind);
        Self { retry_after: Some(1), ..problem }
    }

    /// Which field of the question it is about; none where that is empty.
    pub(super) fn field(mut self, field: &str) -> Self {
        if !field.is_empty() {
            self.members.push("field", json!(field));
        }
        self
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
            status: self.status,
            body: self.members.to_json().into(),
            kind: Kind::Problem,
            retry_after: self.retry_after,
            allow: self.allow,
        }
    }
}

/// An object whose members stand in the order they are told in.
#[derive(Debug, Default)]
pub(super) struct Members(Vec<(&'static str, Value)>);

impl Members {
    pub(super) fn push(&mut self, name: &'static str, value: Value) {
        self.0.push((name, value));
    }

    pub(super) fn to_json(&self) -> String {
        let mut out = String::from("{");
        for (index, (name, value)) in self.0.iter().enumerate() {
            out.push_str(if index == 0 { "" } else { "," });
            // Writing to a string cannot fail.
            let _ = write!(out, r#""{name}":{value}"#);
        }
        out.push('}');
        out
    }
}
