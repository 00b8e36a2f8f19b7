//! Requests there and answers back.

use crate::stage::{
    Forwarding, Origin, Server, body, connect, gateway, get, raw, read_head, rest, scripted, serve, settings,
    status, until, upstream,
};
use bytes::Bytes;
use http::{Request, Response};
use std::sync::{Arc, Mutex, OnceLock, atomic::Ordering::SeqCst, mpsc};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tollgate_gateway::{Access, Body, ClientInfo, Observer, RequestBody, forward};

#[tokio::test]
async fn a_request_and_its_answer() {
    let origin = Origin::start("a").await;
    let gateway = gateway(&[origin.url()]);
    let answer = get(gateway.local_addr(), "/headers?q=1").await;
    assert_eq!(status(&answer), 200, "{answer}");
    let head = body(&answer);
    assert!(head.starts_with("GET /headers?q=1\n"), "{head}");
    for line in
        ["host: test", "x-forwarded-for: 127.0.0.1", "x-forwarded-proto: http", "x-forwarded-host: test"]
    {
        assert!(head.contains(line), "no {line} in {head}");
    }
    assert!(!head.contains("connection:"), "{head}");
}

#[tokio::test]
async fn connections_are_kept_on_both_sides() {
    let origin = Origin::start("a").await;
    let gateway = gateway(&[origin.url()]);
    let mut socket = connect(gateway.local_addr()).await;
    for i in 0..50 {
        socket.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").await.expect("sent");
        let head = read_head(&mut socket).await;
        assert!(head.contains("content-length: 1\r\n"), "request {i}: {head}");
        assert_eq!(socket.read_u8().await.expect("a body"), b'a');
    }
    assert_eq!(origin.requests.load(SeqCst), 50);
    assert_eq!(origin.connections.load(SeqCst), 1);
}

#[tokio::test]
async fn pipelined_requests_are_answered_in_order() {
    let origin = Origin::start("a").await;
    let gateway = gateway(&[origin.url()]);
    let one = "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\n";
    let last = "GET /status/404 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    let answer = raw(gateway.local_addr(), format!("{one}one{one}two{last}").as_bytes()).await;
    let (first, second) = (answer.find("one").expect("one"), answer.find("two").expect("two"));
    assert!(first < second && second < answer.find("404").expect("404"), "{answer}");
}

#[tokio::test]
async fn bodies_by_length_and_in_chunks() {
    let origin = Origin::start("a").await;
    let gateway = gateway(&[origin.url()]);
    let head = "POST /length HTTP/1.1\r\nHost: a\r\nConnection: close\r\n";
    let answer = raw(gateway.local_addr(), format!("{head}Content-Length: 5\r\n\r\nhello").as_bytes()).await;
    assert_eq!(body(&answer), "5", "{answer}");
    let chunks = "Transfer-Encoding: chunked\r\n\r\n5;x=y\r\nhello\r\n3\r\nyou\r\n0\r\nx-t: 1\r\n\r\n";
    let answer = raw(gateway.local_addr(), format!("{head}{chunks}").as_bytes()).await;
    assert_eq!(body(&answer), "8", "{answer}");
    let answer = get(gateway.local_addr(), "/bytes/200000").await;
    assert!(answer.contains("transfer-encoding: chunked"), "{}", &answer[..300]);
    assert_eq!(answer.matches('x').count(), 200_000);
}

#[tokio::test]
async fn head_and_old_clients() {
    let origin = Origin::start("abc").await;
    let gateway = gateway(&[origin.url()]);
    let answer = raw(gateway.local_addr(), b"HEAD / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").await;
    assert!(answer.contains("content-length: 3\r\n") && body(&answer).is_empty(), "{answer}");
    let answer = raw(gateway.local_addr(), b"GET / HTTP/1.0\r\n\r\n").await;
    assert_eq!((status(&answer), body(&answer)), (200, "abc"), "{answer}");
    let answer = raw(gateway.local_addr(), b"GET /bytes/10 HTTP/1.0\r\n\r\n").await;
    assert_eq!(body(&answer), "xxxxxxxxxx", "{answer}");
}

#[tokio::test]
async fn a_body_is_not_asked_for_before_the_server_wants_it() {
    let seen = Arc::new(Mutex::new(String::new()));
    let told = seen.clone();
    let address = scripted(move |mut socket, n| {
        let told = told.clone();
        async move {
            let head = read_head(&mut socket).await;
            told.lock().expect("not poisoned").push_str(&head);
            if n == 0 {
                let _ = socket.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").await;
                let mut bytes = [0; 5];
                let _ = socket.read_exact(&mut bytes).await;
                let _ = socket.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n").await;
                let _ = socket.write_all(&bytes).await;
            } else {
                let _ = socket.write_all(b"HTTP/1.1 401 No\r\nContent-Length: 0\r\n\r\n").await;
            }
            let _ = socket.read_u8().await;
        }
    })
    .await;
    let gateway = gateway(&[format!("http://{address}")]);
    let request = "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n";
    let mut socket = connect(gateway.local_addr()).await;
    socket.write_all(request.as_bytes()).await.expect("sent");
    assert!(read_head(&mut socket).await.starts_with("HTTP/1.1 100"));
    socket.write_all(b"hello").await.expect("sent");
    assert!(read_head(&mut socket).await.starts_with("HTTP/1.1 200"));
    // A server that wants no body: the client is told so, and never asked to go on.
    let mut socket = connect(gateway.local_addr()).await;
    socket.write_all(request.as_bytes()).await.expect("sent");
    let answer = rest(&mut socket).await;
    assert_eq!(status(&answer), 401, "{answer}");
    assert!(seen.lock().expect("not poisoned").contains("expect: 100-continue"));
}

#[derive(Default)]
struct Ears {
    accesses: Mutex<Vec<Access>>,
}

impl Observer for Ears {
    fn wants_access(&self) -> bool {
        true
    }

    fn access(&self, access: &Access) {
        self.accesses.lock().expect("not poisoned").push(access.clone());
    }
}

#[tokio::test]
async fn who_wants_to_know_is_told() {
    let origin = Origin::start("hello").await;
    let ears = Arc::new(Ears::default());
    let mut settings = settings();
    settings.observer = Some(ears.clone());
    let gateway = serve(settings, Forwarding(upstream(&[origin.url()])));
    get(gateway.local_addr(), "/x?y").await;
    until("one access", || ears.accesses.lock().expect("not poisoned").len() == 1).await;
    let access = ears.accesses.lock().expect("not poisoned")[0].clone();
    assert_eq!((access.uri.to_string().as_str(), access.sent), ("/x?y", 5));
    assert_eq!(access.status.map(|status| status.as_u16()), Some(200));
    until("nothing under way", || gateway.gauges().in_flight == 0).await;
}

#[tokio::test]
async fn what_an_answer_holds_is_let_go_at_its_end() {
    let origin = Origin::start("a").await;
    let upstream = upstream(&[origin.url()]);
    let held = Arc::new(());
    let holding = held.clone();
    let handler = move |request: Request<RequestBody>, client: ClientInfo| {
        let (upstream, guard) = (upstream.clone(), holding.clone());
        async move {
            let mut response = forward(request, &client, &upstream).await.expect("an answer");
            response.body_mut().hold(guard);
            response
        }
    };
    let gateway = serve(settings(), handler);
    let mut socket = connect(gateway.local_addr()).await;
    socket.write_all(b"GET /bytes/50000000 HTTP/1.1\r\nHost: a\r\n\r\n").await.expect("sent");
    read_head(&mut socket).await;
    // Held by the test, the handler, and the answer that is under way.
    until("it is held", || Arc::strong_count(&held) == 3).await;
    drop(socket);
    until("it is let go", || Arc::strong_count(&held) == 2).await;
    until("nothing under way", || gateway.gauges().in_flight == 0).await;
}

/// Tells how many requests are under way when it is let go.
struct Look {
    gateway: Arc<OnceLock<Server>>,
    told: mpsc::Sender<usize>,
}

impl Drop for Look {
    fn drop(&mut self) {
        let in_flight = self.gateway.get().map_or(0, |gateway| gateway.gauges().in_flight);
        let _ = self.told.send(in_flight);
    }
}

/// Else whoever reads both could see a gateway at rest that holds something still, and a drain could end as early. An
/// aborted request is different: it is over for the client, and held until the server is done.
#[tokio::test]
async fn what_an_answer_holds_is_let_go_before_it_is_over() {
    let gateway = Arc::new(OnceLock::new());
    let (told, looks) = mpsc::channel();
    let origin = Origin::start("a").await;
    let (upstream, of) = (upstream(&[origin.url()]), Arc::clone(&gateway));
    let handler = move |request: Request<RequestBody>, client: ClientInfo| {
        let (upstream, look) = (upstream.clone(), Look { gateway: Arc::clone(&of), told: told.clone() });
        async move {
            let mut response = forward(request, &client, &upstream).await.expect("an answer");
            response.body_mut().hold(look);
            response
        }
    };
    assert!(gateway.set(serve(settings(), handler)).is_ok());
    let address = gateway.get().expect("it was set").local_addr();
    let patience = std::time::Duration::from_secs(10);
    get(address, "/").await;
    assert_eq!(looks.recv_timeout(patience), Ok(1));
}

#[tokio::test]
async fn an_answer_is_paced() {
    let rate = tollgate::Bandwidth::new(tollgate::Rate::per_second(100_000).expect("a rate"));
    let handler = move |_: Request<RequestBody>, _: ClientInfo| {
        let paced = Body::full(Bytes::from(vec![b'x'; 30_000])).pace(rate);
        async move { Response::new(paced) }
    };
    let gateway = serve(settings(), handler);
    let start = tokio::time::Instant::now();
    let answer = get(gateway.local_addr(), "/").await;
    assert_eq!(body(&answer).len(), 30_000);
    assert!(start.elapsed() > std::time::Duration::from_millis(200), "{:?}", start.elapsed());
}
