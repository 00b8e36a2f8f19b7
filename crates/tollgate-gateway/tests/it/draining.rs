//! The end: nothing that was begun is lost.

use crate::stage::{Origin, PATIENCE, connect, gateway, read_head, rest, status};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tollgate_net::Drained;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_drain_under_load_loses_nothing() {
    let origin = Origin::start("a").await;
    let gateway = gateway(&[origin.url()]);
    let address = gateway.local_addr();
    let (answered, stopped) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
    let mut clients = Vec::new();
    for _ in 0..16 {
        let (answered, stopped) = (answered.clone(), stopped.clone());
        clients.push(tokio::spawn(async move {
            let mut socket = connect(address).await;
            loop {
                let sent = socket.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
                sent.expect("a connection that was not said to be closed takes a request");
                let head = read_head(&mut socket).await;
                assert!(head.starts_with("HTTP/1.1 200"), "a request was lost: {head:?}");
                assert_eq!(socket.read_u8().await.expect("a body"), b'a');
                answered.fetch_add(1, SeqCst);
                if head.contains("connection: close") {
                    assert!(stopped.load(SeqCst), "closed before the drain");
                    return;
                }
            }
        }));
    }
    crate::stage::until("500 answers", || answered.load(SeqCst) >= 500).await;
    stopped.store(true, SeqCst);
    let drained = gateway.drain(PATIENCE).await;
    assert_eq!(drained, Drained::Empty);
    for client in clients {
        client.await.expect("no client lost a request");
    }
    assert!(tokio::net::TcpStream::connect(address).await.is_err(), "still accepts");
}

#[tokio::test]
async fn what_takes_too_long_is_cut() {
    let origin = Origin::start("a").await;
    let gateway = gateway(&[origin.url()]);
    let mut busy = connect(gateway.local_addr()).await;
    busy.write_all(b"GET /never HTTP/1.1\r\nHost: a\r\n\r\n").await.expect("sent");
    let mut idle = connect(gateway.local_addr()).await;
    idle.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").await.expect("sent");
    read_head(&mut idle).await;
    crate::stage::until("it is under way", || gateway.gauges().in_flight == 1).await;
    let drained = gateway.drain(Duration::from_millis(1500)).await;
    assert_eq!(drained, Drained::Left(1));
    assert_eq!(status(&rest(&mut busy).await), 0);
}
