//! Bodies and tunnels: flat memory, bytes both ways.

use crate::stage::{Origin, connect, gateway, read_head, until};
use futures_util::{SinkExt as _, StreamExt as _};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};
use tokio_tungstenite::tungstenite::Message;

/// 256 MiB, or as many as the environment says: `TOLLGATE_SOAK_MIB=1024`.
fn size() -> u64 {
    let mib = std::env::var("TOLLGATE_SOAK_MIB").ok().and_then(|text| text.parse().ok()).unwrap_or(256_u64);
    mib << 20
}

/// The most memory this process has had, in bytes.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).expect("a peak");
    line.split_whitespace().nth(1).and_then(|kib| kib.parse::<u64>().ok()).expect("a number") << 10
}

const FLAT: u64 = 96 << 20;

#[tokio::test]
async fn a_large_download_takes_no_memory() {
    let origin = Origin::start("a").await;
    let gateway = gateway(&[origin.url()]);
    let before = peak();
    let mut socket = connect(gateway.local_addr()).await;
    let request = format!("GET /bytes/{} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", size());
    socket.write_all(request.as_bytes()).await.expect("sent");
    let (mut buffer, mut read) = (vec![0; 256 << 10], 0);
    loop {
        match socket.read(&mut buffer).await.expect("the download") {
            0 => break,
            count => read += count as u64,
        }
    }
    assert!(read > size(), "{read}");
    assert!(peak() - before < FLAT, "grew by {} MiB", (peak() - before) >> 20);
}

#[tokio::test]
async fn a_large_upload_takes_no_memory() {
    let origin = Origin::start("a").await;
    let gateway = gateway(&[origin.url()]);
    let before = peak();
    let mut socket = connect(gateway.local_addr()).await;
    let head = format!("POST /length HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n", size());
    socket.write_all(head.as_bytes()).await.expect("sent");
    let block = vec![b'x'; 1 << 20];
    for _ in 0..size() >> 20 {
        socket.write_all(&block).await.expect("the upload");
    }
    let head = read_head(&mut socket).await;
    let mut body = vec![0; size().to_string().len()];
    socket.read_exact(&mut body).await.expect("a body");
    assert_eq!(String::from_utf8_lossy(&body), size().to_string(), "{head}");
    assert!(peak() - before < FLAT, "grew by {} MiB", (peak() - before) >> 20);
}

#[tokio::test]
async fn web_sockets_pass() {
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
    let gateway = gateway(&[format!("http://{address}")]);
    let stream = connect(gateway.local_addr()).await;
    let url = format!("ws://{}/chat", gateway.local_addr());
    let (mut socket, answer) = tokio_tungstenite::client_async(url, stream).await.expect("a WebSocket");
    assert_eq!(answer.status().as_u16(), 101);
    for i in 0..100 {
        let text = format!("message {i} {}", "x".repeat(i * 100));
        socket.send(Message::text(text.clone())).await.expect("sent");
        let echo = socket.next().await.expect("an echo").expect("a message");
        assert_eq!(echo.into_text().expect("text").as_str(), text);
    }
    assert_eq!((gateway.gauges().connections, gateway.gauges().in_flight), (1, 1));
    socket.close(None).await.expect("closed");
    drop(socket);
    until("the tunnel ended", || gateway.gauges().connections == 0 && gateway.gauges().in_flight == 0).await;
}
