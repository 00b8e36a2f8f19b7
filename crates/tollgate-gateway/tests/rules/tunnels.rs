//! What lasts: WebSockets, streams of events, many requests on one HTTP/2 connection.

use crate::slots::{client, read_until};
use crate::stage::{Stage, one_rule};
use bytes::Bytes;
use futures_util::{SinkExt as _, StreamExt as _};
use http::{Request, StatusCode};
use http_body_util::{BodyExt as _, Empty};
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::{
    io::{Read as _, Write as _},
    net::SocketAddr,
    time::{Duration, Instant},
};
use testkit::eventually;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};
use tokio_tungstenite::tungstenite::Message;
use tollgate::Key;

fn slots(count: u32) -> String {
    format!("limits: {{ slots: {{ concurrency: {{ limit: {count} }} }} }}\n")
        + &one_rule("limits: [ { use: slots, key: [] } ]")
}

/// A server that sends back what it is sent, by WebSocket.
async fn echoing() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            tokio::spawn(async move {
                let Ok(mut socket) = tokio_tungstenite::accept_async(socket).await else { return };
                while let Some(Ok(message)) = socket.next().await {
                    if message.is_text() && socket.send(message).await.is_err() {
                        return;
                    }
                }
            });
        }
    });
    address
}

async fn open(address: SocketAddr) -> Result<tokio_tungstenite::WebSocketStream<TcpStream>, StatusCode> {
    let socket = TcpStream::connect(address).await.expect("a connection");
    match tokio_tungstenite::client_async(format!("ws://{address}/chat"), socket).await {
        Ok((socket, _)) => Ok(socket),
        Err(tokio_tungstenite::tungstenite::Error::Http(response)) => Err(response.status()),
        Err(error) => panic!("{error}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_websocket_holds_its_slot_until_it_is_closed() {
    let rules =
        format!("upstreams: {{ up: {{ servers: [ \"http://{}\" ] }} }}\n{}", echoing().await, slots(2));
    let (stage, _) = Stage::still(&rules);
    let mut one = open(stage.address()).await.expect("a place");
    let mut two = open(stage.address()).await.expect("a place");
    for socket in [&mut one, &mut two] {
        socket.send(Message::text("hello")).await.expect("sent");
        assert_eq!(socket.next().await.expect("an answer").expect("a message"), Message::text("hello"));
    }
    assert_eq!(stage.left("slots", Key::All), 0);
    assert_eq!(stage.gateway.in_flight().inside(), 2);
    assert_eq!(open(stage.address()).await.err(), Some(StatusCode::TOO_MANY_REQUESTS));
    // One says goodbye, the other is cut off.
    one.close(None).await.expect("closed");
    while let Some(Ok(_)) = one.next().await {}
    drop(one);
    eventually("one slot to be back", || (stage.left("slots", Key::All) == 1).then_some(()));
    drop(two);
    stage.rests();
    eventually("both slots to be back", || (stage.left("slots", Key::All) == 2).then_some(()));
    let mut again = open(stage.address()).await.expect("a place");
    again.send(Message::text("again")).await.expect("sent");
    assert_eq!(again.next().await.expect("an answer").expect("a message"), Message::text("again"));
}

async fn http2(address: SocketAddr) -> http2::SendRequest<Empty<Bytes>> {
    let io = TokioIo::new(TcpStream::connect(address).await.expect("a connection"));
    let (sender, connection) = http2::handshake(TokioExecutor::new(), io).await.expect("HTTP/2");
    tokio::spawn(connection);
    sender
}

fn request(path: &str) -> Request<Empty<Bytes>> {
    Request::get(format!("http://example.org{path}")).body(Empty::new()).expect("a request")
}

/// Each stream is a request, however many share a connection.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_stream_of_http2_is_counted() {
    let rules = "limits: { most: { fixed_window: { limit: 30, window: 1h } } }\n".to_owned()
        + &one_rule("limits: [ { use: most, key: [host] } ]");
    let (stage, _) = Stage::still(&rules);
    let sender = http2(stage.address()).await;
    let mut asked = tokio::task::JoinSet::new();
    for _ in 0..100 {
        let mut sender = sender.clone();
        asked.spawn(async move {
            let answer = sender.send_request(request("/")).await.expect("an answer");
            let (status, headers) = (answer.status(), answer.headers().clone());
            let body = answer.into_body().collect().await.expect("a body").to_bytes();
            (status, headers, body)
        });
    }
    let (mut passed, mut refused) = (0, 0);
    while let Some(answer) = asked.join_next().await {
        let (status, headers, body) = answer.expect("a task");
        match status {
            StatusCode::OK => {
                passed += 1;
                assert_eq!(body, "ok\n");
            }
            StatusCode::TOO_MANY_REQUESTS => {
                refused += 1;
                assert!(headers.contains_key("retry-after") && headers.contains_key("ratelimit"));
            }
            other => panic!("{other}"),
        }
    }
    assert_eq!((passed, refused), (30, 70));
    assert_eq!(stage.left("most", Key::Text("example.org")), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_of_http2_hold_slots_and_give_them_back_when_reset() {
    let (stage, _) = Stage::still(&slots(5));
    let sender = http2(stage.address()).await;
    let endless = "/?size=10000000&piece=1000&pause=20";
    let mut open = Vec::new();
    for _ in 0..5 {
        let mut answer = sender.clone().send_request(request(endless)).await.expect("an answer");
        assert_eq!(answer.status(), StatusCode::OK);
        answer.body_mut().frame().await.expect("a frame").expect("a frame");
        open.push(answer);
    }
    let status = |mut sender: http2::SendRequest<Empty<Bytes>>| async move {
        sender.send_request(request("/")).await.expect("an answer").status()
    };
    assert_eq!(status(sender.clone()).await, StatusCode::TOO_MANY_REQUESTS);
    open.truncate(3);
    eventually("two slots to be back", || (stage.left("slots", Key::All) == 2).then_some(()));
    assert_eq!(status(sender.clone()).await, StatusCode::OK);
    // The whole connection goes away.
    drop((open, sender));
    stage.rests();
    eventually("all slots to be back", || (stage.left("slots", Key::All) == 5).then_some(()));
}

/// An event arrives when it was sent, not when the next one is, nor at the end.
#[test]
fn events_are_not_held_back() {
    let up = testkit::Upstream::start(|_| {
        testkit::Canned::text("data: 1\n\ndata: 2\n\ndata: 3\n\n")
            .header("content-type", "text/event-stream")
            .chunked()
            .every(9, Duration::from_millis(1_000))
    });
    let store = tollgate::MemoryStore::with_clock(tollgate::Bounds::default(), tollgate::ManualClock::new());
    let rules = slots(1) + "everywhere: [ { name: pace, limits: [ { bandwidth: { rate: 1MiB/s } } ] } ]\n";
    let stage = Stage::with(store.into(), &rules, std::num::NonZeroUsize::MAX, up);
    let begun = Instant::now();
    let mut socket = client(stage.address(), "GET / HTTP/1.1\r\nhost: a\r\n\r\n");
    for (event, at) in [("data: 1\n\n", 0), ("data: 2\n\n", 1_000), ("data: 3\n\n", 2_000)] {
        read_until(&mut socket, event);
        let took = begun.elapsed();
        assert!(
            took >= Duration::from_millis(at) && took < Duration::from_millis(at + 900),
            "{event}: {took:?}"
        );
    }
    stage.rests();
    assert_eq!(stage.left("slots", Key::All), 1, "the connection stays, the slot does not");
}

/// An upstream that switches protocols, and then does with the socket as `end` says.
async fn switching<F, A>(end: F) -> SocketAddr
where
    F: Fn(TcpStream) -> A + Send + 'static,
    A: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(socket.read_u8().await.expect("a head"));
            }
            let switched =
                b"HTTP/1.1 101 Switching Protocols\r\nupgrade: echo\r\nconnection: upgrade\r\n\r\n";
            socket.write_all(switched).await.expect("sent");
            tokio::spawn(end(socket));
        }
    });
    address
}

const UPGRADE: &str = "GET / HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: echo\r\n\r\n";

/// Clients that keep their sockets open after the upstream has closed hold nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tunnels_whose_upstream_closed_give_their_slots_back() {
    let upstream = switching(|mut socket| async move {
        socket.write_all(b"last words").await.expect("sent");
    });
    let rules =
        format!("upstreams: {{ up: {{ servers: [ \"http://{}\" ] }} }}\n{}", upstream.await, slots(3));
    let (stage, _) = Stage::still(&rules);
    let mut clients: Vec<_> = (0..3).map(|_| client(stage.address(), UPGRADE)).collect();
    for client in &mut clients {
        // What was sent before the end arrives, and then the end does.
        read_until(client, "last words");
        assert_eq!(client.read(&mut [0]).expect("an end"), 0);
    }
    stage.rests();
    assert_eq!(stage.left("slots", Key::All), 3);
    drop(clients);
}

/// The other way round: the client closes its side, the upstream finishes, and an upstream that does not is closed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tunnels_whose_client_closed_give_their_slots_back() {
    let (ended, mut ends) = tokio::sync::mpsc::unbounded_channel();
    let upstream = switching(move |mut socket| {
        let ended = ended.clone();
        async move {
            let mut said = Vec::new();
            socket.read_to_end(&mut said).await.expect("the client's end");
            socket.write_all(b"last words").await.expect("sent");
            ended.send((said, socket)).expect("somebody listens");
        }
    });
    let rules =
        format!("upstreams: {{ up: {{ servers: [ \"http://{}\" ] }} }}\n{}", upstream.await, slots(1));
    let (stage, _) = Stage::still(&rules);
    let mut client = client(stage.address(), UPGRADE);
    read_until(&mut client, "\r\n\r\n");
    client.write_all(b"goodbye").expect("sent");
    client.shutdown(std::net::Shutdown::Write).expect("shut down");
    read_until(&mut client, "last words");
    let (said, socket) = ends.recv().await.expect("an end");
    assert_eq!(said, b"goodbye");
    assert_eq!(stage.left("slots", Key::All), 0);
    stage.rests();
    assert_eq!(stage.left("slots", Key::All), 1);
    drop(socket);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tunnel_that_is_idle_ends() {
    let upstream = switching(|mut socket| async move {
        // Sends bytes back until the gateway closes.
        let (mut read, mut write) = socket.split();
        let _ = tokio::io::copy(&mut read, &mut write).await;
    });
    let rules = format!(
        "upstreams: {{ up: {{ servers: [ \"http://{}\" ], tunnel_timeout: 600ms }} }}\n{}",
        upstream.await,
        slots(1)
    );
    let (stage, _) = Stage::still(&rules);
    let mut client = client(stage.address(), UPGRADE);
    read_until(&mut client, "\r\n\r\n");
    // A byte now and then keeps it open for longer than the timeout.
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_millis(1_500) {
        client.write_all(b"x").expect("sent");
        read_until(&mut client, "x");
        std::thread::sleep(Duration::from_millis(50));
    }
    let quiet = Instant::now();
    assert_eq!(client.read(&mut [0]).expect("an end"), 0);
    assert!(quiet.elapsed() >= Duration::from_millis(500), "{:?}", quiet.elapsed());
    stage.rests();
    assert_eq!(stage.left("slots", Key::All), 1);
}
