//! How a server is: what requests found (passive), and what it says itself when asked (active).
//!
//! Passive: three connections in a row that could not be made set a server aside for ten seconds; then the next request
//! may try it. Active: as [`HealthCheck`] says. A server that is only set aside is still tried
//! when there is no other; one that says it is not well, or does not answer, is not.

use super::{
    Upstream,
    connect::Offer,
    h1::{Answer, Outbound, exchange},
    server::{Line, Server},
};
use crate::{guards::Guards, request::RequestBody};
use http::{HeaderMap, HeaderValue, Method, Request, Uri, header};
use std::{
    fmt,
    sync::{
        Arc, OnceLock, Weak,
        atomic::{AtomicU32, AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};
use tokio::time::Instant;
use tollgate_rules::model::HealthCheck;

const SET_ASIDE_AFTER: u32 = 3;
const SET_ASIDE_FOR: Duration = Duration::from_secs(10);

/// What requests found.
#[derive(Debug, Default)]
pub(crate) struct Health {
    failures: AtomicU32,
    /// Until when it is set aside, in milliseconds of this process; 0 if it is not.
    aside_until: AtomicU64,
}

impl Health {
    /// A connection was made to the server of this address.
    pub(crate) fn connected(&self, server: &str) {
        if self.failures.load(Relaxed) != 0 && self.failures.swap(0, Relaxed) != 0 {
            self.aside_until.store(0, Relaxed);
            tracing::info!(server, "is reached again");
        }
    }

    /// A connection could not be made. Told once, and again when it could.
    pub(crate) fn not_connected(&self, server: &str, why: &impl fmt::Display) {
        let failures = self.failures.fetch_add(1, Relaxed).saturating_add(1);
        if failures == 1 {
            tracing::warn!(server, "is not reached: {why}");
        }
        if failures >= SET_ASIDE_AFTER {
            self.aside_until.store(millis() + SET_ASIDE_FOR.as_millis() as u64, Relaxed);
        }
    }

    /// Whether the last connection was made, and it is not set aside.
    pub(crate) fn is_reached(&self) -> bool {
        self.failures.load(Relaxed) == 0 && !self.is_aside()
    }

    /// Whether it is to get requests only if nobody else can.
    pub(crate) fn is_aside(&self) -> bool {
        let until = self.aside_until.load(Relaxed);
        until != 0 && millis() < until
    }
}

/// Milliseconds since the first call, at least 1.
pub(super) fn millis() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    // Never 0, which means not set aside.
    START.get_or_init(Instant::now).elapsed().as_millis() as u64 + 1
}

/// Asks one server until the upstream is gone.
pub(super) async fn check(upstream: Weak<Upstream>, index: usize, settings: HealthCheck) {
    let (mut good, mut bad) = (0, 0);
    loop {
        let Some(asked) = upstream.upgrade() else { return };
        let (server, timeout) = (asked.servers[index].clone(), asked.settings.timeout.min(settings.every));
        drop(asked);
        let well = tokio::time::timeout(
            timeout.max(Duration::from_millis(100)),
            ask(&server, &settings.path, timeout),
        )
        .await
        .unwrap_or(false);
        if well {
            (good, bad) = (good + 1, 0);
        } else {
            (good, bad) = (0, bad + 1);
        }
        let Some(told) = upstream.upgrade() else { return };
        let unwell = told.unwell[index].load(Relaxed);
        if !unwell && bad >= settings.unhealthy_after {
            tracing::warn!(server = server.url.text, "is not well: gets no more requests");
            told.unwell[index].store(true, Relaxed);
        } else if unwell && good >= settings.healthy_after {
            tracing::info!(server = server.url.text, "is well again: gets requests");
            told.unwell[index].store(false, Relaxed);
            server.health.connected(&server.url.text);
        }
        drop(told);
        tokio::time::sleep(settings.every).await;
    }
}

/// Whether the server answers with a status below 400, on a connection of its own.
async fn ask(server: &Arc<Server>, path: &str, timeout: Duration) -> bool {
    match server.fresh(Offer::Both).await {
        Ok(Line::Http1(connection)) => {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, server.url.host_header.clone());
            headers.insert(header::USER_AGENT, HeaderValue::from_static("tollgate-health"));
            headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
            let (told, interim, mut guards) = (None, None, Guards::new());
            let request = Outbound { method: &Method::GET, target: path, headers: &headers, told, interim };
            match exchange(connection, request, RequestBody::empty(), server, timeout, &mut guards).await {
                Ok(Answer::Response(response)) => response.status().as_u16() < 400,
                _ => false,
            }
        }
        Ok(Line::Http2(mut sender)) => {
            let uri =
                Uri::builder().scheme("http").authority(server.url.authority.clone()).path_and_query(path);
            let Ok(uri) = uri.build() else { return false };
            let mut request = Request::new(RequestBody::empty());
            *request.uri_mut() = uri;
            sender.send_request(request).await.is_ok_and(|response| response.status().as_u16() < 400)
        }
        Err(_) => false,
    }
}
