//! An axum server with three limits: so many requests for each address, logins by name, and all that are in flight.
//!
//! `cargo run -p tollgate-examples --bin axum_server`

use anyhow::{Result, ensure};
use axum::{Router, extract::Path, routing::get};
use http_body_util::{BodyExt, Empty};
use hyper::{Response, StatusCode, body::Bytes, body::Incoming};
use hyper_util::{client::legacy::Client, rt::TokioExecutor};
use std::{net::SocketAddr, time::Duration};
use tokio::net::TcpListener;
use tollgate::{Align, Concurrency, FixedWindow, Rate, TokenBucket};
use tollgate_tower::{LayerLimit, LimitLayer, Missing};

fn routes() -> Result<Router> {
    // For every route: charged together, or not at all.
    let everywhere = LimitLayer::of([
        LayerLimit::new("per-ip", TokenBucket::new(Rate::per_minute(6)?, 8)?).by_ip().missing(Missing::Deny),
        LayerLimit::new("in-flight", Concurrency::new(100, Duration::from_secs(30))?),
    ]);
    // For one of them, besides: three tries a day for a name, wherever they come from.
    let tries = FixedWindow::new(3, Duration::from_secs(86_400))?.with_align(Align::FirstHit);
    let logins =
        LimitLayer::of([LayerLimit::new("login", tries).by(|request| Some(request.uri.path().to_owned()))]);
    Ok(Router::new()
        .route("/login/{name}", get(|Path(name): Path<String>| async move { format!("no, {name}") }))
        .route_layer(logins)
        .route("/", get(async || "hello"))
        .layer(everywhere))
}

#[tokio::main]
async fn main() -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let service = routes()?.into_make_service_with_connect_info::<SocketAddr>();
    tokio::spawn(async move { axum::serve(listener, service).await });

    let response = get_path(address, "/").await?;
    show(&response);
    ensure!(response.status() == StatusCode::OK);
    ensure!(
        response.headers()["ratelimit-policy"]
            == *r#""per-ip";q=8;w=80, "in-flight";q=100;qu="concurrent-requests""#
    );
    ensure!(response.headers()["ratelimit"] == *r#""per-ip";r=7;t=10, "in-flight";r=99"#);

    for _ in 0..3 {
        ensure!(get_path(address, "/login/alice").await?.status() == StatusCode::OK);
    }
    let refused = get_path(address, "/login/alice").await?;
    show(&refused);
    ensure!(refused.status() == StatusCode::TOO_MANY_REQUESTS);
    let after: u64 = refused.headers()["retry-after"].to_str()?.parse()?;
    ensure!((1..=86_400).contains(&after), "a day after the first try");
    let problem = String::from_utf8(refused.into_body().collect().await?.to_bytes().to_vec())?;
    println!("{problem}");
    ensure!(problem.contains(r#""violated-policies":["login"]"#));
    ensure!(get_path(address, "/login/bob").await?.status() == StatusCode::OK, "another name");

    // Eight at once, of which six are used, and one every ten seconds.
    let mut statuses = Vec::new();
    for _ in 0..5 {
        statuses.push(get_path(address, "/").await?.status().as_u16());
    }
    println!("five more: {statuses:?}");
    ensure!(statuses.contains(&429), "from one address there are eight");
    Ok(())
}

async fn get_path(address: SocketAddr, path: &str) -> Result<Response<Incoming>> {
    let client = Client::builder(TokioExecutor::new()).build_http::<Empty<Bytes>>();
    Ok(client.get(format!("http://{address}{path}").parse()?).await?)
}

fn show(response: &Response<Incoming>) {
    println!("{}", response.status());
    for (name, value) in response.headers() {
        println!("    {name}: {}", String::from_utf8_lossy(value.as_bytes()));
    }
}
