//! Requests that their clients abort count until the server behind is done with them, or `abort_grace` has passed.
//!
//! The server here works on after its client has closed the connection, as most do.

use crate::{
    http2::{PREFACE, frame},
    slots::{client, read_until, slots},
    stage::Stage,
};
use bytes::Bytes;
use http::Response;
use http_body_util::Empty;
use hyper::{server::conn::http2, service::service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::{
    convert::Infallible,
    io::{Read as _, Write as _},
    net::TcpListener,
    num::NonZeroUsize,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::{Duration, Instant},
};
use testkit::{Upstream, eventually};
use tokio::sync::Semaphore;
use tollgate::{Key, MemoryStore};

/// GET `path` from host `a` on a stream of its own, complete (END_HEADERS, END_STREAM).
fn http2_get(stream: u32, path: &str) -> Vec<u8> {
    let mut block = vec![0x82, 0x86, 0x41, 1, b'a', 0x44, path.len() as u8];
    block.extend(path.as_bytes());
    frame(1, 5, stream, &block)
}

fn http2_reset(stream: u32) -> Vec<u8> {
    frame(3, 0, stream, &[0, 0, 0, 8])
}

/// One request after the other that is aborted as soon as the server has it or it was refused.
fn abort(stage: &Stage<MemoryStore>, request: &str) {
    let before = stage.up.asked().len();
    let mut socket = client(stage.address(), request);
    socket.set_read_timeout(Some(Duration::from_millis(1))).expect("a timeout");
    eventually("the request to be at the server or refused", || {
        let refused = socket.read(&mut [0; 512]).is_ok();
        (stage.up.asked().len() > before || refused).then_some(())
    });
}

/// Waits until the gateway has seen that its clients are gone.
fn disconnected(stage: &Stage<MemoryStore>) {
    eventually("clients to be gone", || (stage.server.gauges().connections == 0).then_some(()));
}

#[test]
fn requests_whose_clients_disconnect_count_until_the_response_has_ended() {
    let stage = Stage::real(&slots(2));
    let begun = Instant::now();
    for _ in 0..10 {
        abort(&stage, "GET /?delay=1000 HTTP/1.1\r\nhost: a\r\n\r\n");
    }
    assert_eq!(stage.up.most_in_flight(), 2);
    assert_eq!(stage.get("/").status(), 429);
    eventually("slots to be back", || (stage.left("slots", Key::All) == 2).then_some(()));
    assert!(
        begun.elapsed() >= Duration::from_secs(1),
        "not before the server is done: {:?}",
        begun.elapsed()
    );
    assert_eq!(stage.get("/").status(), 200);
}

#[test]
fn streams_that_are_reset_count_until_the_response_has_ended() {
    let stage = Stage::real(&slots(5));
    let mut socket = client(stage.address(), "");
    socket.write_all(&[PREFACE, &frame(4, 0, 0, &[])].concat()).expect("sent");
    for i in 0..5 {
        let before = stage.up.asked().len();
        socket.write_all(&http2_get(2 * i + 1, "/?delay=1500")).expect("sent");
        eventually("the request to be at the server", || (stage.up.asked().len() > before).then_some(()));
        socket.write_all(&http2_reset(2 * i + 1)).expect("sent");
    }
    for i in 5..100 {
        // A gateway that is behind and finds many reset before it has accepted them ends the connection.
        let frames = [http2_get(2 * i + 1, "/?delay=1500"), http2_reset(2 * i + 1)];
        if frames.iter().any(|frame| socket.write_all(frame).is_err()) {
            break;
        }
    }
    assert_eq!(stage.get("/").status(), 429);
    assert_eq!(stage.up.most_in_flight(), 5);
    assert_eq!(stage.up.asked().len(), 5);
    eventually("slots to be back", || (stage.left("slots", Key::All) == 5).then_some(()));
}

/// An HTTP/2 server that answers a request for each permit that it is given; its address, and how many requests it has had.
async fn patient_http2_server(permits: Arc<Semaphore>) -> (String, Arc<AtomicUsize>) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("h2c://{}", listener.local_addr().expect("an address"));
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            let (permits, count) = (Arc::clone(&permits), Arc::clone(&count));
            let service = service_fn(move |_| {
                let (permits, count) = (Arc::clone(&permits), Arc::clone(&count));
                async move {
                    count.fetch_add(1, SeqCst);
                    permits.acquire().await.expect("an open semaphore").forget();
                    Ok::<_, Infallible>(Response::new(Empty::<Bytes>::new()))
                }
            });
            let builder = http2::Builder::new(TokioExecutor::new());
            tokio::spawn(builder.serve_connection(TokioIo::new(socket), service));
        }
    });
    (url, asked)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_to_an_http_2_server_count_until_it_has_answered() {
    let permits = Arc::new(Semaphore::new(0));
    let (url, asked) = patient_http2_server(Arc::clone(&permits)).await;
    let upstreams = format!("upstreams: {{ up: {{ servers: [ \"{url}\" ], abort_grace: 1h }} }}\n");
    let stage = Stage::real(&format!("{upstreams}{}", slots(2)));
    for sent in 1..=10 {
        let mut socket = client(stage.address(), "GET / HTTP/1.1\r\nhost: a\r\n\r\n");
        match sent {
            1 | 2 => {
                let is_there = || (asked.load(SeqCst) == sent).then_some(());
                eventually("the request to be at the server", is_there);
            }
            _ => drop(read_until(&mut socket, "429")),
        }
    }
    disconnected(&stage);
    assert_eq!((asked.load(SeqCst), stage.left("slots", Key::All)), (2, 0));
    permits.add_permits(1);
    eventually("one slot to be back", || (stage.left("slots", Key::All) == 1).then_some(()));
    permits.add_permits(1);
    eventually("both slots to be back", || (stage.left("slots", Key::All) == 2).then_some(()));
}

#[test]
fn aborted_requests_keep_their_place_among_those_in_flight() {
    let three = NonZeroUsize::new(3).expect("not zero");
    let stage = Stage::with(Arc::new(MemoryStore::new()), &slots(100), three, Upstream::by_query());
    for _ in 0..10 {
        abort(&stage, "GET /?delay=1000 HTTP/1.1\r\nhost: a\r\n\r\n");
    }
    assert_eq!(stage.up.most_in_flight(), 3);
    assert_eq!(stage.get("/").status(), 503);
    eventually("places to be free", || (stage.get("/").status() == 200).then_some(()));
}

#[test]
fn a_response_that_is_aborted_half_way_counts_until_its_end() {
    let stage = Stage::real(&slots(1));
    let begun = Instant::now();
    let mut socket = client(stage.address(), "GET /?size=40&piece=10&pause=400 HTTP/1.1\r\nhost: a\r\n\r\n");
    read_until(&mut socket, "abcdefghij");
    drop(socket);
    disconnected(&stage);
    assert_eq!(stage.get("/").status(), 429);
    eventually("the slot to be back", || (stage.left("slots", Key::All) == 1).then_some(()));
    // The last piece follows three pauses. Its count of requests goes down a moment after the upstream has written it.
    assert!(begun.elapsed() >= Duration::from_millis(1_200), "{:?}", begun.elapsed());
    eventually("the upstream to be done", || (stage.up.in_flight() == 0).then_some(()));
}

#[test]
fn a_server_that_never_ends_frees_the_slot_after_the_grace() {
    let stage = Stage::real(&slots(1));
    let begun = Instant::now();
    abort(&stage, "GET /?delay=60000 HTTP/1.1\r\nhost: a\r\n\r\n");
    eventually("the slot to be back", || (stage.left("slots", Key::All) == 1).then_some(()));
    assert!(begun.elapsed() >= Duration::from_secs(2), "{:?}", begun.elapsed());
}

/// A server that reads heads and never answers; its own address.
fn silent_server() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("its address"));
    (listener, url)
}

fn with_upstream(url: &str, grace: &str) -> String {
    format!("upstreams: {{ up: {{ servers: [ \"{url}\" ], abort_grace: {grace} }} }}\n{}", slots(1))
}

#[test]
fn a_server_that_closes_frees_the_slot_at_once() {
    let (listener, url) = silent_server();
    let stage = Stage::real(&with_upstream(&url, "1h"));
    let socket = client(stage.address(), "GET / HTTP/1.1\r\nhost: a\r\n\r\n");
    let (mut server, _) = listener.accept().expect("a connection");
    read_until(&mut server, "\r\n\r\n");
    drop(socket);
    disconnected(&stage);
    assert_eq!(stage.left("slots", Key::All), 0);
    drop(server);
    eventually("the slot to be back", || (stage.left("slots", Key::All) == 1).then_some(()));
}

/// That the server closes its side proves nothing once it has been told that the rest of the request will not come.
#[test]
fn an_upload_that_is_aborted_counts_for_the_grace() {
    let (listener, url) = silent_server();
    let stage = Stage::real(&with_upstream(&url, "1s"));
    let socket = client(stage.address(), "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 9\r\n\r\nhalf");
    let (mut server, _) = listener.accept().expect("a connection");
    read_until(&mut server, "half");
    let begun = Instant::now();
    drop(socket);
    assert_eq!(server.read(&mut [0; 1]).expect("the end"), 0, "the server is told");
    drop(server);
    eventually("the slot to be back", || (stage.left("slots", Key::All) == 1).then_some(()));
    assert!(begun.elapsed() >= Duration::from_secs(1), "{:?}", begun.elapsed());
}

#[test]
fn after_the_grace_the_connection_to_the_server_is_closed() {
    let (listener, url) = silent_server();
    let stage = Stage::real(&with_upstream(&url, "1ms"));
    let socket = client(stage.address(), "GET / HTTP/1.1\r\nhost: a\r\n\r\n");
    let (mut server, _) = listener.accept().expect("a connection");
    read_until(&mut server, "\r\n\r\n");
    drop(socket);
    assert_eq!(server.read(&mut [0; 1]).expect("the end"), 0);
    eventually("the slot to be back", || (stage.left("slots", Key::All) == 1).then_some(()));
}

/// Streams that are reset before they are handled are counted by the HTTP/2 library; these were handled.
#[test]
fn a_connection_that_resets_nearly_all_its_streams_is_ended() {
    let stage = Stage::real(&slots(1_000));
    let mut socket = client(stage.address(), "");
    socket.write_all(&[PREFACE, &frame(4, 0, 0, &[])].concat()).expect("sent");
    for i in 0..129 {
        socket.write_all(&http2_get(2 * i + 1, "/?delay=1000")).expect("sent");
        eventually("the request to be at the server", || (stage.up.asked().len() > i as usize).then_some(()));
        socket.write_all(&http2_reset(2 * i + 1)).expect("sent");
    }
    disconnected(&stage);
}
