//! A connection's bytes that mark what the client sends, for protocol libraries that do not tell.

use super::{ConnectionActivity, HttpVersion, Stream};
use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The bytes of an HTTP connection. It marks whether the client takes what is written. What the client sends while no request is
/// under way begins a head, in HTTP/1.1; in HTTP/2, where frames come at any time, it shows that the client is there.
#[derive(Debug)]
pub struct ActivityStream {
    stream: Stream,
    /// By which HTTP reads are marked, if they are.
    reads: Option<HttpVersion>,
    activity: Arc<ConnectionActivity>,
}

/// A request under way, until it is dropped.
#[derive(Debug)]
#[must_use = "the request ends when this is dropped"]
pub struct RequestGuard(Arc<ConnectionActivity>);

impl ActivityStream {
    /// Marks the activity of a connection.
    #[must_use]
    pub const fn new(stream: Stream, version: HttpVersion, activity: Arc<ConnectionActivity>) -> Self {
        Self { stream, reads: Some(version), activity }
    }

    /// Marks writes alone, for a handler that marks what it reads.
    #[must_use]
    pub const fn without_reads(stream: Stream, activity: Arc<ConnectionActivity>) -> Self {
        Self { stream, reads: None, activity }
    }

    /// What is marked.
    #[must_use]
    pub fn activity(&self) -> &ConnectionActivity {
        &self.activity
    }

    /// The bytes alone.
    pub const fn stream(&mut self) -> &mut Stream {
        &mut self.stream
    }

    fn mark_read(&self) {
        match self.reads {
            Some(HttpVersion::Http1) if !self.activity.is_busy() => self.activity.begin_head(),
            Some(HttpVersion::Http2) => self.activity.bytes_moved(),
            Some(HttpVersion::Http1) | None => {}
        }
    }
}

impl RequestGuard {
    /// A request whose head is complete.
    pub fn new(activity: Arc<ConnectionActivity>) -> Self {
        activity.end_head();
        activity.begin_request();
        Self(activity)
    }
}

impl Drop for RequestGuard {
    fn drop(&mut self) {
        self.0.end_request();
    }
}

impl AsyncRead for ActivityStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(context, buffer);
        if buffer.filled().len() > before {
            self.mark_read();
        }
        polled
    }
}

impl AsyncWrite for ActivityStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.activity.mark_write(&written);
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        // A socket holds nothing back: that it is flushed does not show that the client takes anything.
        if self.stream.is_tls() || flushed.is_pending() {
            self.activity.mark_write(&flushed);
        }
        flushed
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.activity.mark_write(&written);
        written
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
