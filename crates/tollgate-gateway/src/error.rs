//! Why a request could not be forwarded, and what the client is told.
//!
//! The answer says which kind of failure it was and nothing about the inside: no address, no name, no text of the
//! system. What the log needs is in the error itself.

use crate::body::{Body, BodyError};
use http::{Response, StatusCode};
use tollgate_http::Problem;

/// A request could not be forwarded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ForwardError {
    /// No server of the upstream is healthy.
    #[error("no server of upstream {upstream} is healthy")]
    NoServer {
        /// The upstream's name.
        upstream: String,
    },
    /// No connection to a server of the upstream.
    #[error("no connection to {server}: {reason}")]
    Connect {
        /// Which server.
        server: String,
        /// What the system said.
        reason: String,
    },
    /// No connection in time.
    #[error("no connection to {server} in time")]
    ConnectTimeout {
        /// Which server.
        server: String,
    },
    /// The upstream answered against the protocol, or closed the connection before it had answered.
    #[error("{server} gave no proper answer: {reason}")]
    Protocol {
        /// Which server.
        server: String,
        /// What was wrong.
        reason: &'static str,
    },
    /// No answer in time.
    #[error("no answer from {server} in time")]
    Timeout {
        /// Which server.
        server: String,
    },
    /// The request itself is at fault, or broke off.
    #[error("the request could not be read: {0}")]
    Request(#[from] BodyError),
    /// The request asks for something a gateway does not do.
    #[error("the request cannot be forwarded: {reason}")]
    Refused {
        /// What the client is told, with which status.
        status: StatusCode,
        /// Why.
        reason: &'static str,
    },
}

impl ForwardError {
    /// What the client is told.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        match self {
            Self::NoServer { .. } => StatusCode::SERVICE_UNAVAILABLE,
            Self::Connect { .. } | Self::Protocol { .. } => StatusCode::BAD_GATEWAY,
            Self::ConnectTimeout { .. } | Self::Timeout { .. } => StatusCode::GATEWAY_TIMEOUT,
            Self::Request(BodyError::TooLarge { .. }) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Request(BodyError::ClientTimeout) => StatusCode::REQUEST_TIMEOUT,
            Self::Request(_) => StatusCode::BAD_REQUEST,
            Self::Refused { status, .. } => *status,
        }
    }

    const fn detail(&self) -> &'static str {
        match self {
            Self::NoServer { .. } => "no server for this request is healthy at the moment",
            Self::Connect { .. } => "the server for this request cannot be reached",
            Self::ConnectTimeout { .. } => "the server for this request could not be reached in time",
            Self::Protocol { .. } => "the server for this request gave no proper answer",
            Self::Timeout { .. } => "the server for this request did not answer in time",
            Self::Request(BodyError::TooLarge { .. }) => "the request's body is larger than allowed",
            Self::Request(BodyError::ClientTimeout) => "the request's body did not arrive in time",
            Self::Request(_) => "the request's body could not be read",
            Self::Refused { reason, .. } => reason,
        }
    }

    /// The answer: a small `application/problem+json`.
    #[must_use]
    pub fn into_response(self) -> Response<Body> {
        problem(self.status(), self.detail())
    }
}

/// A problem as an answer of the gateway.
pub(crate) fn problem(status: StatusCode, detail: &str) -> Response<Body> {
    Problem::new(status, detail).into_response().map(Body::full)
}
