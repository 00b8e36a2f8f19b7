//! The same program on two stores: limits of this process in memory, and limits of a whole fleet in Redis. One line differs.
//!
//! `cargo run -p tollgate-examples --bin any_store [redis://127.0.0.1:6379]`; without an address it starts a Redis of its own.

use anyhow::{Result, ensure};
use axum::{Router, body::Body, routing::get};
use hyper::Request;
use std::{env, sync::Arc, time::Duration};
use testkit::RedisServer;
use tollgate::{Concurrency, Enter, FixedWindow, MemoryStore, Rate, StoreLimiter, TokenBucket};
use tollgate_redis::RedisStore;
use tollgate_tower::{LayerLimit, LimitLayer};
use tower::ServiceExt;

#[tokio::main]
async fn main() -> Result<()> {
    println!("in memory:");
    program(&Arc::new(MemoryStore::new())).await?;

    let own = env::args().nth(1).is_none().then(RedisServer::start);
    let url = own.as_ref().map(RedisServer::url).or_else(|| env::args().nth(1)).unwrap_or_default();
    // Patient, so that the numbers below are Redis's own on a busy machine as well.
    let open = || RedisStore::builder(&url).prefix("any-store").timeout(Duration::from_secs(5)).open();
    println!("in Redis:");
    program(&Arc::new(open()?)).await?;

    // Another process sees what this one has used.
    let elsewhere = Arc::new(open()?).limiter("quota", FixedWindow::forever(3)?)?;
    ensure!(elsewhere.check("alice").await?.is_deny());
    println!("and alice's quota is used up for every process");
    Ok(())
}

/// What does not know where its limits live.
async fn program<S: Enter + 'static>(store: &Arc<S>) -> Result<()> {
    // A limiter: one limit, a bucket a key.
    let quota = StoreLimiter::new(store, "quota", FixedWindow::forever(3)?)?;
    for _ in 0..3 {
        ensure!(quota.check("alice").await?.is_allow());
    }
    let refused = quota.check("alice").await?;
    println!("    quota: {:?} after three of {}", refused.decision(), refused.limit());
    ensure!(refused.is_deny() && quota.check("bob").await?.is_allow());

    // Slots: held until the permit is dropped, and waited for.
    let connections = Concurrency::new(1, Duration::from_secs(30))?.with_queue(10);
    let connections = StoreLimiter::new(store, "connections", connections)?;
    let permit = connections.enter("db").await?;
    ensure!(connections.enter("db").up_to(Duration::from_millis(50)).await.is_err(), "it is taken");
    drop(permit);
    drop(connections.enter("db").up_to(Duration::from_secs(5)).await?);
    println!("    connections: one at a time");

    // A layer in front of an axum service.
    let limit = TokenBucket::new(Rate::per_minute(1)?, 2)?;
    let layer = LimitLayer::in_store(store, [LayerLimit::new("per-key", limit).by_header("x-api-key")])?;
    let app = Router::new().route("/", get(async || "hello")).layer(layer);
    let mut statuses = Vec::new();
    for _ in 0..3 {
        let request = Request::get("/").header("x-api-key", "alice").body(Body::empty())?;
        statuses.push(app.clone().oneshot(request).await?.status().as_u16());
    }
    println!("    axum: {statuses:?}");
    ensure!(statuses == [200, 200, 429]);
    Ok(())
}
