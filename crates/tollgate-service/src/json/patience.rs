//! How long a client is put up with that does not say anything.
//!
//! One timer a connection, whatever it asks: a connection that rests may do so for a while, and a head that was begun has to
//! be finished sooner. While a request is answered there is no hurry, and reading its body has a time of its own.

use std::{
    cell::Cell,
    io,
    pin::Pin,
    rc::Rc,
    task::{Context, Poll},
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Instant, sleep_until},
};
use tollgate_net::Stream;

/// What a connection is doing. Clones are the same.
#[derive(Clone)]
pub(super) struct Patience(Rc<State>);

struct State {
    head: Duration,
    idle: Duration,
    /// Requests that are being answered.
    busy: Cell<u32>,
    /// Whether a head was begun.
    begun: Cell<bool>,
    since: Cell<Instant>,
    http: Cell<Http>,
}

/// Which HTTP, by the first bytes of the connection.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Http {
    /// So many letters of an HTTP/2 preface so far.
    Unknown(usize),
    One,
    /// Frames come at any time: a head cannot be told from the rest.
    Two,
}

/// What an HTTP/2 connection begins with, and no request does.
const PREFACE: &[u8] = b"PRI * HTTP/2";

/// A request that is being answered.
pub(super) struct Busy(Patience);

impl Patience {
    /// So long for a head, and so long for silence.
    pub(super) fn new(head: Duration, idle: Duration) -> Self {
        Self(Rc::new(State {
            head,
            idle,
            busy: Cell::new(0),
            begun: Cell::new(false),
            since: Cell::new(Instant::now()),
            http: Cell::new(Http::Unknown(0)),
        }))
    }

    /// A request is being answered, until that is dropped.
    pub(super) fn busy(&self) -> Busy {
        self.0.busy.set(self.0.busy.get() + 1);
        self.0.begun.set(false);
        Busy(self.clone())
    }

    /// Ready when it is over.
    pub(super) async fn over(&self) {
        loop {
            let now = Instant::now();
            let until = self.until(now);
            if until <= now {
                return;
            }
            // It may have to be earlier by then: what is begun meanwhile has `head` from that time on.
            sleep_until(until.min(now + self.0.head)).await;
        }
    }

    fn until(&self, now: Instant) -> Instant {
        let state = &*self.0;
        match (state.busy.get(), state.begun.get()) {
            (0, true) => state.since.get() + state.head,
            (0, false) => state.since.get() + state.idle,
            _ => now + state.idle,
        }
    }

    fn heard(&self, bytes: &[u8]) {
        let state = &*self.0;
        if let Http::Unknown(so_far) = state.http.get() {
            let expected = &PREFACE[so_far..];
            let shared = bytes.len().min(expected.len());
            state.http.set(match bytes[..shared] == expected[..shared] {
                false => Http::One,
                true if so_far + shared == PREFACE.len() => Http::Two,
                true => Http::Unknown(so_far + shared),
            });
        }
        if state.busy.get() > 0 {
            return;
        }
        if state.http.get() == Http::Two {
            state.begun.set(false);
            state.since.set(Instant::now());
        } else if !state.begun.replace(true) {
            state.since.set(Instant::now());
        }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let state = &*self.0.0;
        state.busy.set(state.busy.get() - 1);
        if state.busy.get() == 0 {
            state.since.set(Instant::now());
        }
    }
}

/// A connection that tells when something comes.
pub(super) struct Heard {
    stream: Stream,
    patience: Patience,
}

impl Heard {
    pub(super) fn new(stream: Stream, patience: Patience) -> Self {
        Self { stream, patience }
    }
}

impl AsyncRead for Heard {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buffer.filled().len();
        let polled = Pin::new(&mut this.stream).poll_read(context, buffer);
        let bytes = &buffer.filled()[before..];
        if !bytes.is_empty() {
            this.patience.heard(bytes);
        }
        polled
    }
}

impl AsyncWrite for Heard {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write(context, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: Duration = Duration::from_secs(10);
    const IDLE: Duration = Duration::from_secs(75);

    async fn lasts(patience: &Patience) -> Duration {
        let begun = Instant::now();
        patience.over().await;
        begun.elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn silence_lasts_longer_than_a_head_and_an_answer_as_long_as_it_takes() {
        let patience = Patience::new(HEAD, IDLE);
        assert!(lasts(&patience).await >= IDLE);

        let patience = Patience::new(HEAD, IDLE);
        patience.heard(b"P");
        let took = lasts(&patience).await;
        assert!((HEAD..IDLE).contains(&took), "{took:?}");

        let patience = Patience::new(HEAD, IDLE);
        patience.heard(b"POST /v1/check HTTP/1.1\r\n");
        let busy = patience.busy();
        assert!(tokio::time::timeout(10 * IDLE, patience.over()).await.is_err());
        drop(busy);
        assert!(lasts(&patience).await >= IDLE);
    }

    /// A letter every few seconds does not make a head.
    #[tokio::test(start_paused = true)]
    async fn who_drips_a_head_is_not_waited_for() {
        let patience = Patience::new(HEAD, IDLE);
        let begun = Instant::now();
        let dripping = async {
            loop {
                patience.heard(b"x");
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        };
        tokio::select! {
            () = patience.over() => {}
            () = dripping => {}
        }
        assert!(begun.elapsed() < HEAD + Duration::from_secs(2));
    }

    #[tokio::test(start_paused = true)]
    async fn frames_of_http2_are_no_heads() {
        let patience = Patience::new(HEAD, IDLE);
        patience.heard(b"PRI * HT");
        patience.heard(b"TP/2.0\r\n\r\nSM\r\n\r\n");
        assert!(lasts(&patience).await >= IDLE);
    }
}
