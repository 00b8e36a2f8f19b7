//! The in-flight limit of a server: two requests are served at a time, four may wait, the rest are told 503.
//!
//! The permit travels in the response's body, so that a slow reader counts as in flight and a reader who leaves does not.
//!
//! `cargo run -p tollgate-examples --bin in_flight`

use anyhow::{Result, ensure};
use http_body_util::{BodyExt, Full};
use hyper::{
    Request, Response, StatusCode,
    body::{Body, Bytes, Frame, Incoming, SizeHint},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::{
    client::legacy::Client,
    rt::{TokioExecutor, TokioIo},
};
use std::{
    net::SocketAddr,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering::SeqCst},
    },
    task::{Context, Poll},
    time::Duration,
};
use tokio::net::TcpListener;
use tollgate::{Concurrency, Limiter, Permit};

const REQUESTS: u32 = 10;

/// A body that holds a permit until it has been sent, or given up.
struct Held {
    body: Full<Bytes>,
    _permit: Option<Permit<'static>>,
}

impl Body for Held {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// How many were refused, are being served, and were at most.
#[derive(Default)]
struct Seen {
    refused: AtomicU32,
    now: AtomicU32,
    most: AtomicU32,
}

async fn answer(slots: Arc<Limiter>, seen: Arc<Seen>) -> Result<Response<Held>> {
    let Ok(permit) = slots.enter_owned().up_to(Duration::from_secs(10)).await else {
        seen.refused.fetch_add(1, SeqCst);
        let mut refused = Response::new(Held { body: Full::from("busy, come again"), _permit: None });
        *refused.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
        return Ok(refused);
    };
    seen.most.fetch_max(seen.now.fetch_add(1, SeqCst) + 1, SeqCst);
    // However busy the machine is: nobody is done before those who find no room have come.
    let others_came = async {
        while seen.refused.load(SeqCst) < REQUESTS - 6 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(5), others_came).await.ok();
    seen.now.fetch_sub(1, SeqCst);
    Ok(Response::new(Held { body: Full::from("done"), _permit: Some(permit) }))
}

#[tokio::main]
async fn main() -> Result<()> {
    let slots = Arc::new(Limiter::new(Concurrency::new(2, Duration::from_secs(30))?.with_queue(4)));
    let seen = Arc::new(Seen::default());
    let address = serve(Arc::clone(&slots), Arc::clone(&seen)).await?;

    let client = Client::builder(TokioExecutor::new()).build_http::<Full<Bytes>>();
    let requests: Vec<_> = (0..REQUESTS)
        .map(|_| {
            let request = client.get(format!("http://{address}/").parse()?);
            Ok(tokio::spawn(async move {
                let response = request.await?;
                let status = response.status();
                let body = response.into_body().collect().await?.to_bytes();
                anyhow::Ok((status, body))
            }))
        })
        .collect::<Result<_>>()?;
    let mut served = 0;
    for request in requests {
        let (status, body) = request.await??;
        println!("{status}: {}", String::from_utf8_lossy(&body));
        served += u32::from(status == StatusCode::OK);
    }
    let most = seen.most.load(SeqCst);
    println!("{served} of 10 were served, {most} at a time");
    ensure!(most == 2 && served == 6, "two at a time and four in the queue are six");
    Ok(())
}

async fn serve(slots: Arc<Limiter>, seen: Arc<Seen>) -> Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (slots, seen) = (Arc::clone(&slots), Arc::clone(&seen));
            let service =
                service_fn(move |_: Request<Incoming>| answer(Arc::clone(&slots), Arc::clone(&seen)));
            tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
        }
    });
    Ok(address)
}
