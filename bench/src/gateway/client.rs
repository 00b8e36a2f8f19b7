//! A blocking client with one connection: sends a request, waits for its response, keeps the connection.

use super::servers::{SMALL, SMALL_BODY};
use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
};

pub(super) struct Client(TcpStream);

impl Client {
    pub(super) fn connect(address: SocketAddr) -> Self {
        Self(TcpStream::connect(address).expect("a connection"))
    }

    /// Asks for the small response.
    ///
    /// # Panics
    /// If the response is not the expected one.
    pub(super) fn get_small(&mut self) {
        // In one write: the kernel would hold back the second of two until the first is acknowledged.
        let request = format!("GET {SMALL} HTTP/1.1\r\nHost: bench\r\n\r\n");
        self.0.write_all(request.as_bytes()).expect("a request goes out");
        let (mut response, mut length) = ([0; 4096], 0);
        while !response[..length].ends_with(SMALL_BODY.as_bytes()) {
            let read = self.0.read(&mut response[length..]).expect("a response");
            assert!(read > 0, "not the expected response: {}", String::from_utf8_lossy(&response[..length]));
            length += read;
        }
        assert!(response.starts_with(b"HTTP/1.1 200 "), "{}", String::from_utf8_lossy(&response[..length]));
    }
}
