//! The service behind the gateway: a little shop that takes its time.

use anyhow::Result;
use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, header::CONTENT_TYPE};
use http_body_util::Full;
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::{
    convert::Infallible,
    net::{Ipv4Addr, SocketAddr},
    num::NonZeroU32,
    sync::LazyLock,
    time::{Duration, Instant},
};
use tokio::{task::JoinSet, time};
use tollgate_net::Listener;

/// On every answer: when the request came, in microseconds since [`BEGUN`]. It tells what came through the gateway, and how
/// long the gateway kept it.
pub(super) const ARRIVED: &str = "x-demo-arrived";

/// What [`ARRIVED`] counts from.
pub(super) static BEGUN: LazyLock<Instant> = LazyLock::new(Instant::now);

/// A page of an export, several seconds long at the pace of the rule file.
const EXPORT: usize = 160 * 1024;

/// A free port of this machine, served until it is dropped.
pub(super) struct Upstream {
    address: SocketAddr,
    _serving: JoinSet<()>,
}

impl Upstream {
    pub(super) fn open() -> Result<Self> {
        LazyLock::force(&BEGUN);
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let listener = Listener::bind(any, NonZeroU32::new(128).unwrap_or(NonZeroU32::MIN))?;
        let address = listener.address();
        let mut serving = JoinSet::new();
        serving.spawn(serve(listener));
        Ok(Self { address, _serving: serving })
    }

    pub(super) const fn address(&self) -> SocketAddr {
        self.address
    }
}

/// Connections end with the task that accepts them.
async fn serve(listener: Listener) {
    let mut connections = JoinSet::new();
    loop {
        let (stream, _) = listener.accept().await;
        while connections.try_join_next().is_some() {}
        let served = http1::Builder::new()
            .timer(TokioTimer::new())
            .serve_connection(TokioIo::new(stream), service_fn(answer));
        connections.spawn(async {
            // A connection that breaks is the gateway's to notice.
            let _ = served.await;
        });
    }
}

async fn answer(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let arrived = BEGUN.elapsed().as_micros();
    let (takes, status, body) = page(request.method(), request.uri().path());
    time::sleep(takes).await;
    let mut response = Response::new(Full::new(body));
    *response.status_mut() = status;
    let plain = http::HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, plain);
    if let Ok(arrived) = arrived.to_string().try_into() {
        response.headers_mut().insert(ARRIVED, arrived);
    }
    Ok(response)
}

/// What is at a path, and how long it takes.
fn page(method: &Method, path: &str) -> (Duration, StatusCode, Bytes) {
    let (millis, status, body) = match (method, path.split('/').nth(1)) {
        (&Method::POST, Some("login")) => (15, StatusCode::UNAUTHORIZED, "a wrong password\n".into()),
        (&Method::POST, Some("checkout")) => (100, StatusCode::OK, "thank you\n".into()),
        (_, Some("export")) => (10, StatusCode::OK, Bytes::from(vec![b'.'; EXPORT])),
        (_, Some("orders")) => {
            let order = path.rsplit('/').next().unwrap_or_default();
            (3, StatusCode::OK, Bytes::from(format!("order {order}: on its way\n")))
        }
        _ => (1, StatusCode::NOT_FOUND, "there is nothing here\n".into()),
    };
    (Duration::from_millis(millis), status, body)
}
