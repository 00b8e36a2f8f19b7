//! The collector: batches of spans, posted.
//!
//! Asked with the client that the gateway has for its upstreams: connections that are kept, TLS by the system's roots, time
//! limits. Which failures are worth another try is the protocol's to say.

use super::otlp;
use anyhow::{Context, Result};
use http::{
    HeaderName, HeaderValue, Method, Request, StatusCode,
    header::{CONTENT_TYPE, USER_AGENT},
};
use http_body_util::{BodyExt, Limited};
use prost::Message;
use std::{net::SocketAddr, sync::Arc, time::Duration};
use tokio::{sync::watch, time::timeout};
use tollgate_gateway::{ClientInfo, RequestBody, Scheme, Span, Upstream, forward};
use tollgate_rules::model::{self, Telemetry};

/// How long one try may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// The pauses between tries.
const PAUSES: [Duration; 3] = [Duration::from_secs(1), Duration::from_secs(2), Duration::ZERO];
/// An answer of a collector is a few bytes.
const LONGEST: usize = 64 * 1024;

pub(super) struct Collector {
    upstream: Arc<Upstream>,
    path: String,
    service: String,
    headers: Vec<(HeaderName, HeaderValue)>,
    us: ClientInfo,
    /// Whether the last batch was taken.
    is_well: std::sync::atomic::AtomicBool,
}

/// Why a batch was not taken.
enum Refused {
    /// It may be later.
    Now(String),
    /// It never will be.
    Never(String),
}

impl Collector {
    pub(super) fn new(settings: &Telemetry) -> Result<Self> {
        let (origin, path) = split(&settings.otlp);
        let mut upstream = model::Upstream::new("telemetry", [origin.to_owned()]);
        upstream.connect_timeout = PATIENCE;
        upstream.timeout = PATIENCE;
        let header = |(name, value): &(String, String)| {
            let mut value = HeaderValue::from_str(value).context("headers")?;
            value.set_sensitive(true);
            Ok((HeaderName::from_bytes(name.as_bytes()).context("headers")?, value))
        };
        Ok(Self {
            upstream: Upstream::new(upstream)?,
            path: format!("{path}/v1/traces"),
            service: settings.service.clone(),
            headers: settings.headers.iter().map(header).collect::<Result<_>>()?,
            us: ClientInfo::new(SocketAddr::from(([127, 0, 0, 1], 0)), Scheme::Http),
            is_well: true.into(),
        })
    }

    /// Sends a batch; tells how many of it were refused. An error where all of it was, after a few tries; there is one try when
    /// we are to stop.
    pub(super) async fn send(&self, batch: &[Span], stopped: &mut watch::Receiver<bool>) -> Result<u64, ()> {
        let body = bytes::Bytes::from(otlp::request(&self.service, batch).encode_to_vec());
        for pause in PAUSES {
            let why = match timeout(PATIENCE, self.post(body.clone())).await {
                Ok(Ok(refused)) => {
                    self.is_well_now(None);
                    return Ok(refused);
                }
                Ok(Err(Refused::Never(why))) => {
                    self.is_well_now(Some(&why));
                    return Err(());
                }
                Ok(Err(Refused::Now(why))) => why,
                Err(_) => format!("it did not answer within {PATIENCE:?}"),
            };
            self.is_well_now(Some(&why));
            if *stopped.borrow() {
                break;
            }
            // A stop ends the pause; the try after it is the last.
            let _ = timeout(pause, stopped.wait_for(|stopped| *stopped)).await;
        }
        Err(())
    }

    async fn post(&self, body: bytes::Bytes) -> Result<u64, Refused> {
        let mut request = Request::new(RequestBody::full(body.clone()));
        *request.method_mut() = Method::POST;
        *request.uri_mut() =
            self.path.parse().map_err(|_| Refused::Never("its path is malformed".to_owned()))?;
        let headers = request.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-protobuf"));
        headers.insert(http::header::CONTENT_LENGTH, HeaderValue::from(body.len()));
        headers.insert(USER_AGENT, HeaderValue::from_static(concat!("tollgate/", env!("CARGO_PKG_VERSION"))));
        for (name, value) in &self.headers {
            headers.insert(name, value.clone());
        }
        let answer = forward(request, &self.us, &self.upstream).await;
        let answer = answer.map_err(|error| Refused::Now(error.to_string()))?;
        let status = answer.status();
        let body = Limited::new(answer.into_body(), LONGEST).collect().await;
        match status {
            status if status.is_success() => {
                // An answer that breaks off is taken at its word so far.
                Ok(body.map_or(0, |body| otlp::refused(&body.to_bytes())))
            }
            StatusCode::TOO_MANY_REQUESTS
            | StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT => Err(Refused::Now(format!("it answered {status}"))),
            _ => Err(Refused::Never(format!("it answered {status}"))),
        }
    }

    /// Tells of a change, and of nothing else: a collector that is away would fill the log.
    fn is_well_now(&self, why_not: Option<&str>) {
        use std::sync::atomic::Ordering::Relaxed;
        let was = self.is_well.swap(why_not.is_none(), Relaxed);
        match why_not {
            Some(why) if was => tracing::warn!(why, "the collector takes no spans"),
            None if !was => tracing::info!("the collector takes spans again"),
            _ => {}
        }
    }
}

/// Scheme, host and port; and the path.
fn split(url: &str) -> (&str, &str) {
    let host = url.find("://").map_or(0, |at| at + 3);
    match url[host..].find('/') {
        Some(at) => url.split_at(host + at),
        None => (url, ""),
    }
}
