//! One connection to a server, blocking, for a test's own questions.
//!
//! It knows nothing that a client knows: no retries, no pool, no pipeline. What it says happened is what happened.

use crate::reply::Reply;
use std::{
    io::{self, BufReader, Read, Write},
    net::{Ipv4Addr, TcpStream},
    os::unix::net::UnixStream,
    path::Path,
    time::Duration,
};

/// A connection over which one command at a time is asked and answered.
#[derive(Debug)]
pub struct Connection<S = TcpStream>(BufReader<S>);

impl Connection {
    /// Connects to a port of 127.0.0.1. No answer within `patience` is an error of its own.
    pub fn open(port: u16, patience: Duration) -> io::Result<Self> {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(patience))?;
        stream.set_write_timeout(Some(patience))?;
        Ok(Self(BufReader::new(stream)))
    }
}

impl Connection<UnixStream> {
    /// Connects to a socket in the file system.
    pub(crate) fn at(path: &Path, patience: Duration) -> io::Result<Self> {
        let stream = UnixStream::connect(path)?;
        stream.set_read_timeout(Some(patience))?;
        stream.set_write_timeout(Some(patience))?;
        Ok(Self(BufReader::new(stream)))
    }
}

impl<S: Read + Write> Connection<S> {
    /// Sends a command and waits for its answer.
    pub fn command<A: AsRef<[u8]>>(&mut self, words: &[A]) -> io::Result<Reply> {
        self.send(words)?;
        self.receive()
    }

    /// Sends a command.
    pub fn send<A: AsRef<[u8]>>(&mut self, words: &[A]) -> io::Result<()> {
        let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
        for word in words.iter().map(AsRef::as_ref) {
            bytes.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
            bytes.extend_from_slice(word);
            bytes.extend_from_slice(b"\r\n");
        }
        self.0.get_mut().write_all(&bytes)
    }

    /// Waits for an answer.
    pub fn receive(&mut self) -> io::Result<Reply> {
        Reply::read(&mut self.0)
    }
}
