//! Interim responses of an HTTP/1.1 server: who gets them, when, and how many.

use crate::stage::{Server, body, connect, gateway, raw, read_head, rest, scripted, status};
use std::net::SocketAddr;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    sync::mpsc,
};

const HINT: &str = "HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n";
const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
const LAST: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";

/// A gateway before a server that answers every request with `answer`, and closes if that is not a whole response.
async fn answering(answer: impl Into<String>) -> Server {
    let answer = answer.into();
    let address = scripted(move |mut socket, _| {
        let answer = answer.clone();
        async move {
            while !read_head(&mut socket).await.is_empty() {
                let _ = socket.write_all(answer.as_bytes()).await;
                if !answer.ends_with("ok") {
                    return;
                }
            }
        }
    })
    .await;
    gateway(&[format!("http://{address}")])
}

/// A server that writes what it is sent here, once it has read the head of a request.
async fn dictated() -> (SocketAddr, mpsc::UnboundedSender<String>) {
    let (sender, receiver) = mpsc::unbounded_channel::<String>();
    let receiver = std::sync::Arc::new(tokio::sync::Mutex::new(receiver));
    let address = scripted(move |mut socket, _| {
        let receiver = receiver.clone();
        async move {
            read_head(&mut socket).await;
            while let Some(text) = receiver.lock().await.recv().await {
                let _ = socket.write_all(text.as_bytes()).await;
            }
        }
    })
    .await;
    (address, sender)
}

async fn body_of(socket: &mut TcpStream) -> String {
    let mut body = [0; 2];
    socket.read_exact(&mut body).await.expect("a body");
    String::from_utf8_lossy(&body).into_owned()
}

#[tokio::test]
async fn interim_responses_reach_the_client_while_the_server_works() {
    let (address, server) = dictated().await;
    let gateway = gateway(&[format!("http://{address}")]);
    let mut client = connect(gateway.local_addr()).await;
    client.write_all(GET).await.expect("sent");
    for link in ["</a.css>", "</b.css>"] {
        // The next is not written before this one has arrived.
        server.send(format!("HTTP/1.1 103 Early Hints\r\nLink: {link}\r\n\r\n")).expect("sent");
        let expected = format!("HTTP/1.1 103 Early Hints\r\nLink: {link}\r\n\r\n");
        assert_eq!(read_head(&mut client).await, expected);
    }
    server.send("HTTP/1.1 102 Processing\r\n\r\n".to_owned()).expect("sent");
    assert_eq!(read_head(&mut client).await, "HTTP/1.1 102 Processing\r\n\r\n");
    server.send(OK.to_owned()).expect("sent");
    assert_eq!(status(&read_head(&mut client).await), 200);
    assert_eq!(body_of(&mut client).await, "ok");
}

#[tokio::test]
async fn interim_responses_that_come_with_the_final_one_go_before_it_in_order() {
    let gateway = answering(format!("{HINT}{}{OK}", HINT.replace("a.css", "b.css"))).await;
    let mut client = connect(gateway.local_addr()).await;
    // The second request goes on the same connections and is answered alike.
    for _ in 0..2 {
        client.write_all(GET).await.expect("sent");
        assert_eq!(read_head(&mut client).await, HINT);
        assert_eq!(read_head(&mut client).await, HINT.replace("a.css", "b.css"));
        assert_eq!(status(&read_head(&mut client).await), 200);
        assert_eq!(body_of(&mut client).await, "ok");
    }
}

#[tokio::test]
async fn clients_of_http_1_0_get_none() {
    let gateway = answering(format!("{HINT}{OK}")).await;
    let answer = raw(gateway.local_addr(), b"GET / HTTP/1.0\r\nHost: a\r\n\r\n").await;
    assert_eq!((status(&answer), body(&answer)), (200, "ok"), "{answer}");
}

#[tokio::test]
async fn only_end_to_end_headers_are_passed_on() {
    let interim = "HTTP/1.1 103 Early Hints\r\nConnection: x-hop, keep-alive\r\nX-Hop: 1\r\nKeep-Alive: timeout=5\r\n\
                   Content-Length: 7\r\nUpgrade: h2c\r\nProxy-Connection: a\r\nTE: trailers\r\nTrailer: x\r\n\
                   Link: </a.css>\r\n\r\n";
    let chunked = "HTTP/1.1 103 Early Hints\r\nTransfer-Encoding: chunked\r\n\r\n";
    let gateway = answering(format!("{interim}{chunked}{OK}")).await;
    let mut client = connect(gateway.local_addr()).await;
    client.write_all(LAST).await.expect("sent");
    assert_eq!(read_head(&mut client).await.to_lowercase(), HINT.to_lowercase());
    assert_eq!(read_head(&mut client).await, "HTTP/1.1 103 Early Hints\r\n\r\n");
    assert_eq!(status(&rest(&mut client).await), 200);
}

#[tokio::test]
async fn a_server_that_closes_after_an_interim_response_is_answered_502_behind_it() {
    let gateway = answering(HINT).await;
    let answer = raw(gateway.local_addr(), LAST).await;
    let last = answer.strip_prefix(HINT).expect("the interim response first");
    assert_eq!(status(last), 502, "{answer}");
}

#[tokio::test]
async fn sixteen_interim_responses_are_passed_on_and_more_are_answered_502() {
    for (count, expected) in [(16, 200), (17, 502)] {
        let gateway = answering(format!("{}{OK}", HINT.repeat(count))).await;
        let answer = raw(gateway.local_addr(), LAST).await;
        assert_eq!(answer.matches("103 Early Hints").count(), 16);
        assert_eq!(status(&answer[16 * HINT.len()..]), expected, "{answer}");
    }
}

#[tokio::test]
async fn a_100_of_the_server_is_not_passed_on() {
    let gateway = answering(format!("HTTP/1.1 100 Continue\r\n\r\n{HINT}{OK}")).await;
    let answer = raw(gateway.local_addr(), LAST).await;
    assert!(answer.starts_with(HINT) && !answer.contains("100 Continue"), "{answer}");
}

#[tokio::test]
async fn an_interim_response_and_the_gateways_own_100_do_not_mix() {
    let (address, server) = dictated().await;
    let gateway = gateway(&[format!("http://{address}")]);
    let mut client = connect(gateway.local_addr()).await;
    let head = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n";
    client.write_all(head).await.expect("sent");
    server.send(HINT.to_owned()).expect("sent");
    assert_eq!(read_head(&mut client).await, HINT);
    server.send("HTTP/1.1 100 Continue\r\n\r\n".to_owned()).expect("sent");
    assert_eq!(read_head(&mut client).await, "HTTP/1.1 100 Continue\r\n\r\n");
    server.send(HINT.to_owned()).expect("sent");
    assert_eq!(read_head(&mut client).await, HINT);
    client.write_all(b"hi").await.expect("sent");
    server.send(OK.to_owned()).expect("sent");
    assert_eq!(status(&read_head(&mut client).await), 200);
}
