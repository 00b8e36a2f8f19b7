//! A gRPC server on tonic: what has no room gets `RESOURCE_EXHAUSTED`, and when to try again.
//!
//! `cargo run -p tollgate-examples --bin tonic_server`

use anyhow::{Context, Result, ensure};
use std::{net::SocketAddr, time::Duration};
use tollgate::{Rate, TokenBucket};
use tollgate_tower::{LimitLayer, Missing};
use tonic::{
    Code,
    transport::{Channel, Server, server::TcpIncoming},
};
use tonic_health::pb::{HealthCheckRequest, health_client::HealthClient};

async fn serve() -> Result<SocketAddr> {
    let per_client =
        LimitLayer::new(TokenBucket::new(Rate::per_minute(30)?, 1)?).by_ip().missing(Missing::Deny);
    let incoming = TcpIncoming::bind("127.0.0.1:0".parse()?)?;
    let address = incoming.local_addr()?;
    let (_, health) = tonic_health::server::health_reporter();
    tokio::spawn(Server::builder().layer(per_client).add_service(health).serve_with_incoming(incoming));
    Ok(address)
}

#[tokio::main]
async fn main() -> Result<()> {
    let address = serve().await?;
    let channel = Channel::from_shared(format!("http://{address}"))?.connect().await?;
    let mut client = HealthClient::new(channel);
    let mut check = async || client.check(HealthCheckRequest { service: String::new() }).await;

    let answer = check().await?;
    let told = answer.metadata().get("ratelimit").context("what is left is told")?;
    println!("first: {:?}, {}", answer.get_ref().status(), told.to_str()?);

    let refused = check().await.err().context("one at once, and not two")?;
    println!("second: {:?}: {}", refused.code(), refused.message());
    ensure!(refused.code() == Code::ResourceExhausted);
    let pushback = refused.metadata().get("grpc-retry-pushback-ms").context("when to try again is told")?;
    let millis: u64 = pushback.to_str()?.parse()?;
    ensure!((1..=2000).contains(&millis), "at thirty a minute that is two seconds at most, not {millis} ms");

    tokio::time::sleep(Duration::from_millis(millis)).await;
    check().await.context("whoever comes when told passes")?;
    println!("after {millis} ms: served");
    Ok(())
}
