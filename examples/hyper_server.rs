//! A server on hyper alone, behind a proxy that it trusts: the layer wraps the service, and is told the peer's address.
//!
//! `cargo run -p tollgate-examples --bin hyper_server`

use anyhow::{Result, ensure};
use http_body_util::{BodyExt, Empty, Full};
use hyper::{
    Request, Response, body::Bytes, body::Incoming, server::conn::http1, service::service_fn as hyper_service,
};
use hyper_util::{
    client::legacy::Client,
    rt::{TokioExecutor, TokioIo},
};
use std::{convert::Infallible, net::SocketAddr};
use tokio::net::TcpListener;
use tollgate::{Rate, TokenBucket};
use tollgate_tower::{HeaderStyle, LimitLayer, Missing, PeerAddr, RefusalStyle};
use tower::{Layer, ServiceExt, service_fn};

async fn hello(_: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    Ok(Response::new(Full::from("hello\n")))
}

async fn serve() -> Result<SocketAddr> {
    let service = LimitLayer::new(TokenBucket::new(Rate::per_hour(1)?, 2)?)
        .by_ip()
        .missing(Missing::Deny)
        .trusted_proxies(["127.0.0.0/8".parse()?])
        .headers(HeaderStyle::XRateLimit)
        .refusal(RefusalStyle::Plain)
        .layer(service_fn(hello));
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    tokio::spawn(async move {
        while let Ok((stream, peer)) = listener.accept().await {
            let service = service.clone();
            let service = hyper_service(move |mut request: Request<Incoming>| {
                request.extensions_mut().insert(PeerAddr(peer));
                service.clone().oneshot(request)
            });
            tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
        }
    });
    Ok(address)
}

#[tokio::main]
async fn main() -> Result<()> {
    let address = serve().await?;
    // What a proxy here would pass on: the right-most address is its own word, the rest is the client's.
    for (forwarded, expected) in [
        ("203.0.113.7", 200),
        ("1.1.1.1, 203.0.113.7", 200),
        ("2.2.2.2, 203.0.113.7", 429),
        ("203.0.113.8", 200),
    ] {
        let client = Client::builder(TokioExecutor::new()).build_http::<Empty<Bytes>>();
        let request = Request::get(format!("http://{address}/"))
            .header("x-forwarded-for", forwarded)
            .body(Empty::new())?;
        let response = client.request(request).await?;
        let (status, remaining) = (response.status(), response.headers()["x-ratelimit-remaining"].clone());
        let body = response.into_body().collect().await?.to_bytes();
        println!(
            "{forwarded}: {status}, {} left: {}",
            remaining.to_str()?,
            String::from_utf8_lossy(&body).trim_end()
        );
        ensure!(status.as_u16() == expected, "{forwarded} has spoofed its way in, or was held up by another");
    }
    Ok(())
}
