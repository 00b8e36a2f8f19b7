//! Behind a real server, with clients that are gone or slow. Sockets know no paused time: these take some seconds.

use crate::stage::Frames;
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Empty};
use hyper::{body::Incoming, client::conn::http1::SendRequest, service::service_fn as hyper_service};
use hyper_util::rt::TokioIo;
use std::{convert::Infallible, net::SocketAddr, sync::Arc, time::Duration};
use tokio::{
    net::{TcpListener, TcpStream},
    time::{Instant, sleep},
};
use tollgate::{Charge, Concurrency, LimitHandle, MemoryStore};
use tollgate_tower::{LayerLimit, LimitLayer};
use tower::{Layer, ServiceExt, service_fn};

/// One slot, held for a second without a renewal.
struct Served {
    store: Arc<MemoryStore>,
    slots: LimitHandle,
    address: SocketAddr,
}

impl Served {
    /// Serves bodies of so many frames.
    async fn new(frames: usize) -> Self {
        let store = Arc::new(MemoryStore::new());
        let limit = Concurrency::new(1, Duration::from_secs(1)).unwrap();
        let layer = LimitLayer::in_store(&store, [LayerLimit::new("slots", limit)]).unwrap();
        let slots = layer.handle(&store, "slots").unwrap().clone();
        let answer =
            move |_: Request<Incoming>| async move { Ok::<_, Infallible>(Response::new(Frames(frames))) };
        let service = layer.layer(service_fn(answer));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let service = service.clone();
                let service = hyper_service(move |request| service.clone().oneshot(request));
                let connection = hyper::server::conn::http1::Builder::new();
                tokio::spawn(connection.serve_connection(TokioIo::new(stream), service));
            }
        });
        Self { store, slots, address }
    }

    /// A connection of one client, which ends with the task.
    async fn connect(&self) -> (SendRequest<Empty<Bytes>>, tokio::task::JoinHandle<()>) {
        let stream = TcpStream::connect(self.address).await.unwrap();
        let (sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
        (sender, tokio::spawn(async move { drop(connection.await) }))
    }

    fn is_free(&self) -> bool {
        let peeked = self.store.peek(&[Charge::new(&self.slots, ()).cost(0)]).unwrap();
        peeked.statuses()[0].remaining() == 1
    }

    /// Waits until the slot is free; a server needs a moment to notice.
    async fn gets_free(&self) {
        testkit::eventually_async("the slot", || async { self.is_free().then_some(()) }).await;
    }
}

const ENDLESS: usize = usize::MAX;

#[tokio::test]
async fn the_slot_of_a_client_that_is_gone_comes_back() {
    let served = Served::new(ENDLESS).await;
    let (mut client, connection) = served.connect().await;
    let mut response = client.send_request(Request::new(Empty::new())).await.unwrap();
    response.frame().await.unwrap().unwrap();
    assert!(!served.is_free());
    drop((response, client));
    connection.abort();
    served.gets_free().await;
}

#[tokio::test]
async fn a_client_that_does_not_read_keeps_its_slot() {
    let served = Served::new(ENDLESS).await;
    let (mut client, connection) = served.connect().await;
    let response = client.send_request(Request::new(Empty::new())).await.unwrap();
    // The socket is full long before that, and nobody asks the body for more; it is held for more than twice as long as a permit
    // lasts by itself.
    let began = Instant::now();
    while began.elapsed() < Duration::from_millis(2500) {
        assert!(!served.is_free(), "after {:?}", began.elapsed());
        sleep(Duration::from_millis(20)).await;
    }
    drop((response, client));
    connection.abort();
    served.gets_free().await;
}

#[tokio::test]
async fn the_slot_of_a_response_that_was_read_comes_back_with_the_connection_open() {
    let served = Served::new(3).await;
    let (mut client, _connection) = served.connect().await;
    for _ in 0..3 {
        let response = client.send_request(Request::new(Empty::new())).await.unwrap();
        assert_eq!(response.status(), 200);
        response.into_body().collect().await.unwrap();
        served.gets_free().await;
    }
}
