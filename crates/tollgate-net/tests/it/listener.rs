//! Sockets.

use std::{
    net::{Ipv4Addr, SocketAddr},
    num::NonZeroU32,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};
use tollgate_net::Listener;

const BACKLOG: NonZeroU32 = NonZeroU32::new(16).expect("not zero");

#[tokio::test]
async fn connections_come_with_their_address() {
    let listener = Listener::bind((Ipv4Addr::LOCALHOST, 0).into(), BACKLOG).expect("a free port");
    assert_ne!(listener.address().port(), 0);
    let mut client = TcpStream::connect(listener.address()).await.expect("it listens");
    let (mut accepted, peer) = listener.accept().await;
    assert_eq!(peer, client.local_addr().expect("it has one"));
    assert!(accepted.nodelay().expect("it can be asked"));
    client.write_all(b"x").await.expect("it reads");
    assert_eq!(accepted.read_u8().await.expect("it was written"), b'x');
}

#[tokio::test]
async fn a_port_that_is_taken_is_named() {
    let first = Listener::bind((Ipv4Addr::LOCALHOST, 0).into(), BACKLOG).expect("a free port");
    let address: SocketAddr = first.address();
    let error = Listener::bind(address, BACKLOG).expect_err("it is taken");
    let told = error.to_string();
    assert!(told.starts_with(&format!("cannot listen on {address}: ")), "{told}");
    drop(first);
    Listener::bind(address, BACKLOG).expect("it is free again");
}
