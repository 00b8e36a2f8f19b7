//! Which HTTP a client speaks.

use super::Stream;
use bytes::BytesMut;
use std::{
    future::poll_fn,
    io,
    mem::MaybeUninit,
    pin::Pin,
    task::{Poll, ready},
};
use tokio::io::{AsyncRead, ReadBuf};

/// The first bytes of an HTTP/2 client (RFC 9113, section 3.4). No request of HTTP/1.1 begins like this.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Bytes read at once, on the stack: a client that has sent nothing yet occupies no buffer.
const READ: usize = 8 << 10;

/// A version of HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HttpVersion {
    /// HTTP/1.1, or HTTP/1.0.
    Http1,
    /// HTTP/2.
    Http2,
}

impl Stream {
    /// Finds out which HTTP the client speaks. What was read for it is read again from the stream.
    ///
    /// # Errors
    /// If the stream ends or fails before its first bytes are clear.
    pub(super) async fn detect_http(&mut self) -> io::Result<HttpVersion> {
        // A client that agreed on HTTP/2 has to begin with the preface all the same: until then it has done nothing.
        let agreed_on_two = match self.alpn() {
            Some(b"h2") => true,
            Some(_) => return Ok(HttpVersion::Http1),
            None => false,
        };
        let mut first = BytesMut::new();
        let version = loop {
            let read = poll_fn(|context| {
                let mut space = [MaybeUninit::uninit(); READ];
                let mut buffer = ReadBuf::uninit(&mut space);
                ready!(Pin::new(&mut *self).poll_read(context, &mut buffer))?;
                first.extend_from_slice(buffer.filled());
                Poll::Ready(Ok::<_, io::Error>(buffer.filled().len()))
            });
            if read.await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let shared = first.len().min(PREFACE.len());
            if first[..shared] != PREFACE[..shared] {
                if agreed_on_two {
                    return Err(io::ErrorKind::InvalidData.into());
                }
                break HttpVersion::Http1;
            }
            if shared == PREFACE.len() {
                break HttpVersion::Http2;
            }
        };
        self.unread(first.freeze());
        Ok(version)
    }
}
