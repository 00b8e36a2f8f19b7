//! An HTTP client that waits its turn: a partner allows us 20 calls a second, 5 at once, and bans who exceeds it.
//!
//! `cargo run -p tollgate-examples --bin outbound`

use anyhow::{Result, bail, ensure};
use http_body_util::{BodyExt, Full};
use hyper::{
    Request, Response, StatusCode, body::Bytes, body::Incoming, server::conn::http1, service::service_fn,
};
use hyper_util::{
    client::{
        self,
        legacy::{Client, connect::HttpConnector},
    },
    rt::{TokioExecutor, TokioIo},
};
use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};
use tokio::net::TcpListener;
use tollgate::{Limiter, Rate, TokenBucket};
use tollgate_tower::{CallError, CallLayer, CallService};
use tower::{Layer, ServiceExt};

type Http = Client<HttpConnector, Full<Bytes>>;

/// A client for the partner's service. Clones share its connections, and its turns.
#[derive(Clone)]
struct Partner {
    http: CallService<Http>,
    address: SocketAddr,
}

impl Partner {
    /// With calls that wait their turn for so long at most; clones of the layer share the turns.
    fn new(address: SocketAddr, turns: &CallLayer, patience: Duration) -> Self {
        let http = Client::builder(TokioExecutor::new()).build_http();
        Self { http: turns.clone().wait(patience).layer(http), address }
    }

    /// Calls when it is our turn, or says at once that this would take too long.
    async fn call(&self, path: &str) -> Result<StatusCode> {
        let request = Request::get(format!("http://{}{path}", self.address)).body(Full::default())?;
        let response = self.http.clone().oneshot(request).await?;
        let status = response.status();
        response.into_body().collect().await?;
        Ok(status)
    }
}

#[tokio::main]
async fn main() -> Result<()> {
    let (address, refused) = strict_partner().await?;
    let turns = CallLayer::new(TokenBucket::new(Rate::per_second(20)?, 5)?);
    let partner = Partner::new(address, &turns, Duration::from_secs(10));

    println!("30 calls at once; 20 a second are allowed, 5 of them in a row");
    let began = Instant::now();
    let calls: Vec<_> = (0..30)
        .map(|call| {
            let partner = partner.clone();
            tokio::spawn(async move {
                let status = partner.call("/orders").await?;
                anyhow::Ok((call, began.elapsed(), status))
            })
        })
        .collect();
    for call in calls {
        let (call, after, status) = call.await??;
        println!("  call {call:2} after {:4} ms: {status}", after.as_millis());
        ensure!(status == StatusCode::OK, "call {call} was made out of turn");
    }
    ensure!(refused.load(Relaxed) == 0, "the partner saw us too often");
    ensure!(
        began.elapsed() >= Duration::from_millis(1_250),
        "25 calls beyond the first five take 50 ms each"
    );

    println!("a call that may wait 10 ms, behind 20 others:");
    let others: Vec<_> = (0..20)
        .map(|_| {
            tokio::spawn({
                let partner = partner.clone();
                async move { partner.call("/orders").await }
            })
        })
        .collect();
    tokio::time::sleep(Duration::from_millis(20)).await; // until they have asked
    let asked = Instant::now();
    let hurried = Partner::new(address, &turns, Duration::from_millis(10));
    let error = hurried.call("/orders").await.expect_err("there is no turn so soon");
    let Some(CallError::Refused(refused)) = error.downcast_ref::<CallError<client::legacy::Error>>() else {
        bail!("refused by our own limiter, not by the partner: {error}");
    };
    println!("  {refused} (told after {} us, without sleeping)", asked.elapsed().as_micros());
    ensure!(refused.retry_after() > Some(Duration::from_millis(500)), "twenty at 20 a second take about one");
    for other in others {
        ensure!(other.await?? == StatusCode::OK);
    }
    Ok(())
}

/// The partner: its own limit, as its contract has it, with some slack for calls that were held up on the way.
async fn strict_partner() -> Result<(SocketAddr, Arc<AtomicU32>)> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let limit = Arc::new(Limiter::new(TokenBucket::new(Rate::per_second(20)?, 20)?));
    let refused = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&refused);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (limit, count) = (Arc::clone(&limit), Arc::clone(&count));
            tokio::spawn(http1::Builder::new().serve_connection(
                TokioIo::new(stream),
                service_fn(move |_: Request<Incoming>| {
                    let allowed = limit.check().is_allow();
                    count.fetch_add(u32::from(!allowed), Relaxed);
                    async move {
                        let mut response = Response::new(Full::<Bytes>::default());
                        if !allowed {
                            *response.status_mut() = StatusCode::TOO_MANY_REQUESTS;
                        }
                        anyhow::Ok(response)
                    }
                }),
            ));
        }
    });
    Ok((address, refused))
}
