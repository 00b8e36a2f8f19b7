//! A refusal, as a closure sees it that answers in its own words.

use bytes::Bytes;
use http::{Response, request::Parts};
use std::time::Duration;
use tollgate::StoreError;
use tollgate_http::RefusalStyle;

/// A request that is refused, for [`on_refusal`](crate::LimitLayer::on_refusal).
#[derive(Debug)]
pub struct Refusal<'r> {
    pub(crate) request: &'r Parts,
    pub(crate) cause: Cause<'r>,
    pub(crate) violated: &'r [&'r str],
    pub(crate) retry_after: Option<Duration>,
    pub(crate) style: RefusalStyle,
}

/// Why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cause<'r> {
    /// A limit has no room.
    Limit,
    /// It lacks what a limit counts by, which is told to [deny](crate::Missing::Deny) it.
    MissingKey,
    /// The store could not decide: a limit was removed from it by hand.
    Undecided(&'r StoreError),
}

impl Refusal<'_> {
    /// The request, without its body.
    #[must_use]
    pub const fn request(&self) -> &Parts {
        self.request
    }

    /// Why.
    #[must_use]
    pub const fn cause(&self) -> Cause<'_> {
        self.cause
    }

    /// The names of the limits that refuse.
    #[must_use]
    pub const fn violated(&self) -> &[&str] {
        self.violated
    }

    /// When the same request would pass, if nothing else came; `None` where that is never, or nobody knows.
    #[must_use]
    pub const fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }

    /// The answer in the layer's own [style](crate::LimitLayer::refusal), which is what it gives without a closure: 429, or a
    /// gRPC status where the request is gRPC; 503 where nobody could decide.
    #[must_use]
    pub fn response(&self) -> Response<Bytes> {
        match self.cause {
            Cause::Undecided(_) => self.style.reduced_capacity(&self.request.headers, None),
            _ => self.style.quota_exceeded(&self.request.headers, self.violated, self.retry_after),
        }
    }
}
