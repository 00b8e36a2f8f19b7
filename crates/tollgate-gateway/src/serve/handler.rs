//! Who answers requests, and who hears of them.

use crate::{body::Body, client::ClientInfo, request::RequestBody};
use http::{Method, Request, Response, StatusCode, Uri, Version};
use std::{net::IpAddr, sync::Arc, time::Duration};
use tokio::time::Instant;
use tollgate_net::ConnectionActivity;

/// Answers requests: decides, and [forwards](crate::forward) or refuses. Cloned for every connection.
pub trait Handler: Clone + Send + Sync + 'static {
    /// The answer. The future is dropped when the client goes away.
    fn handle(
        &self,
        request: Request<RequestBody>,
        client: ClientInfo,
    ) -> impl Future<Output = Response<Body>> + Send;
}

impl<F, A> Handler for F
where
    F: Fn(Request<RequestBody>, ClientInfo) -> A + Clone + Send + Sync + 'static,
    A: Future<Output = Response<Body>> + Send,
{
    fn handle(
        &self,
        request: Request<RequestBody>,
        client: ClientInfo,
    ) -> impl Future<Output = Response<Body>> + Send {
        self(request, client)
    }
}

/// Hears of requests that are done.
pub trait Observer: Send + Sync + 'static {
    /// Whether [`access`](Self::access) is to be called; asked for every request, before it is handled.
    fn wants_access(&self) -> bool {
        false
    }

    /// The last byte of an answer was handed on, or the client went away.
    fn access(&self, access: &Access) {
        let _ = access;
    }
}

/// A request that is done.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Access {
    /// The other end of the connection. Whom it speaks for is the handler's to say.
    pub peer: IpAddr,
    /// As it was asked.
    pub method: Method,
    /// As it was asked.
    pub uri: Uri,
    /// As it was asked.
    pub version: Version,
    /// What was answered; none if the client went away before.
    pub status: Option<StatusCode>,
    /// Bytes of the answer's body that were handed on.
    pub sent: u64,
    /// From the request's head to here.
    pub took: Duration,
}

/// A request under way: counted until its answer's last byte.
pub(crate) struct Flight {
    activity: Arc<ConnectionActivity>,
    access: Option<Box<Watched>>,
    /// The client aborted the request, unless it is known that it did not.
    is_aborted: bool,
}

struct Watched {
    access: Access,
    start: Instant,
    observer: Arc<dyn Observer>,
}

impl Flight {
    pub(super) fn start(
        activity: Arc<ConnectionActivity>,
        observer: Option<&Arc<dyn Observer>>,
        request: &Request<RequestBody>,
        peer: IpAddr,
    ) -> Self {
        activity.begin_request();
        let access = observer.filter(|observer| observer.wants_access()).map(|observer| {
            let access = Access {
                peer,
                method: request.method().clone(),
                uri: request.uri().clone(),
                version: request.version(),
                status: None,
                sent: 0,
                took: Duration::ZERO,
            };
            Box::new(Watched { access, start: Instant::now(), observer: observer.clone() })
        });
        Self { activity, access, is_aborted: true }
    }

    pub(super) fn answered(&mut self, status: StatusCode) {
        if let Some(watched) = &mut self.access {
            watched.access.status = Some(status);
        }
    }

    /// The answer has ended after so many bytes, or the client aborted it then.
    pub(crate) fn landed(&mut self, sent: u64, is_aborted: bool) {
        self.is_aborted = is_aborted;
        if let Some(watched) = &mut self.access {
            watched.access.sent = sent;
        }
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        // Last, and also where the observer panics.
        let _ended = Ended(&self.activity, self.is_aborted);
        if let Some(mut watched) = self.access.take() {
            watched.access.took = watched.start.elapsed();
            watched.observer.access(&watched.access);
        }
    }
}

struct Ended<'a>(&'a ConnectionActivity, bool);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        match self.1 {
            true => self.0.abort_request(),
            false => self.0.end_request(),
        }
    }
}
