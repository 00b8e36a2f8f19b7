//! Paced streams, on a manual clock and on tokio's own.

use super::{
    Record, flown,
    lazy::{Lazy, once},
};
use std::{
    collections::VecDeque,
    io::{Error, ErrorKind, IoSlice, Result},
    marker::PhantomPinned,
    pin::{Pin, pin},
    task::{Context, Poll},
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf},
    time::Instant,
};
use tollgate::{Bandwidth, Clock, Paced, Rate, Time, TokioClock};

/// A peer in memory that is always ready, and notes what goes when.
#[derive(Debug)]
struct Peer {
    clock: Lazy,
    record: Record,
    /// What it has to read; after that it ends, or breaks.
    source: VecDeque<u8>,
    breaks: bool,
    written: Vec<u8>,
    calls: Vec<Vec<usize>>,
    flushed: usize,
    shut: bool,
}

impl Peer {
    fn new(clock: &Lazy) -> Self {
        let (clock, record) = (clock.clone(), Record::default());
        let (source, written, calls) = (VecDeque::new(), Vec::new(), Vec::new());
        Self { clock, record, source, breaks: false, written, calls, flushed: 0, shut: false }
    }

    fn with_source(clock: &Lazy, bytes: &[u8]) -> Self {
        Self { source: bytes.iter().copied().collect(), ..Self::new(clock) }
    }
}

impl AsyncRead for Peer {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<Result<()>> {
        if self.breaks && self.source.is_empty() {
            return Poll::Ready(Err(Error::from(ErrorKind::ConnectionReset)));
        }
        let bytes = buffer.remaining().min(self.source.len());
        let bytes: Vec<u8> = self.source.drain(..bytes).collect();
        buffer.put_slice(&bytes);
        self.record.note(self.clock.now(), bytes.len());
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Peer {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &[u8]) -> Poll<Result<usize>> {
        self.poll_write_vectored(context, &[IoSlice::new(buffer)])
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buffers: &[IoSlice<'_>],
    ) -> Poll<Result<usize>> {
        if self.breaks {
            return Poll::Ready(Err(Error::from(ErrorKind::BrokenPipe)));
        }
        let bytes = buffers.iter().map(|buffer| buffer.len()).sum();
        self.calls.push(buffers.iter().map(|buffer| buffer.len()).collect());
        buffers.iter().for_each(|buffer| self.written.extend_from_slice(buffer));
        self.record.note(self.clock.now(), bytes);
        Poll::Ready(Ok(bytes))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<()>> {
        self.flushed += 1;
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<()>> {
        self.shut = true;
        Poll::Ready(Ok(()))
    }
}

/// 32,000 bytes a second: a chunk is 1,000 and takes 31.25 ms.
fn slow() -> Bandwidth {
    Bandwidth::new(rate())
}

fn rate() -> Rate {
    Rate::per_second(32_000).unwrap()
}

fn bytes(count: usize) -> Vec<u8> {
    (0..count).map(|place| (place % 251) as u8).collect()
}

fn read(paced: &mut Paced<Peer, Lazy>, most: usize) -> impl FnMut(&mut Context<'_>) -> Poll<Result<Vec<u8>>> {
    let mut room = vec![0; most];
    move |context| {
        let mut buffer = ReadBuf::new(&mut room);
        Pin::new(&mut *paced).poll_read(context, &mut buffer).map_ok(|()| buffer.filled().to_vec())
    }
}

fn write<'a>(
    paced: &'a mut Paced<Peer, Lazy>,
    bytes: &'a [u8],
) -> impl FnMut(&mut Context<'_>) -> Poll<Result<usize>> + 'a {
    |context| Pin::new(&mut *paced).poll_write(context, bytes)
}

#[test]
fn writes_keep_the_pace_in_every_window_with_one_timer_a_chunk() {
    for after in [0, 5_500] {
        let (clock, all) = (Lazy::default(), bytes(105_500));
        let mut paced = Paced::with_clock(Peer::new(&clock), slow().with_after(after), clock.clone());
        let mut sent = 0;
        while sent < all.len() {
            let end = all.len().min(sent + 300);
            sent += clock.drive(write(&mut paced, &all[sent..end])).unwrap();
            let due = u128::from(after).min(sent as u128) + flown(rate(), clock.now() - Time::ZERO);
            let lag = due.saturating_sub(sent as u128);
            assert!(lag <= 1_000 + 128, "{lag} bytes behind: more than a chunk and a late timer");
        }
        let peer = paced.into_inner();
        assert_eq!(peer.written, all);
        peer.record.check(rate(), after);
        let paced = 105_500 - after;
        assert!(
            clock.timers() <= paced / 1_000 && clock.timers() >= paced / 1_128,
            "{} timers",
            clock.timers()
        );
        let took = clock.now() - Time::ZERO;
        let full_speed = Duration::from_secs_f64((paced - 1_000) as f64 / 32_000.0);
        let chunk_later = full_speed + Duration::from_micros(31_250 + 4_000);
        assert!(took >= full_speed && took <= chunk_later, "{took:?} for {full_speed:?}");
    }
}

#[test]
fn reads_keep_the_pace_and_lose_nothing() {
    let (clock, all) = (Lazy::default(), bytes(50_000));
    let peer = Peer::with_source(&clock, &all);
    let mut paced = Paced::with_clock(peer, slow().with_after(7), clock.clone());
    let mut got = Vec::new();
    loop {
        match clock.drive(read(&mut paced, 4_096)).unwrap() {
            end if end.is_empty() => break,
            some => got.extend(some),
        }
    }
    assert_eq!(got, all);
    paced.get_ref().record.check(rate(), 7);
    assert!(clock.timers() <= 50, "{} timers for 50 chunks", clock.timers());
    assert!(clock.drive(read(&mut paced, 8)).unwrap().is_empty(), "the end stays the end");
}

#[test]
fn a_buffer_that_was_never_written_to_can_be_read_into() {
    let (clock, all) = (Lazy::default(), bytes(3_000));
    let peer = Peer::with_source(&clock, &all);
    let mut paced = Paced::with_clock(peer, slow(), clock.clone());
    let mut got = Vec::with_capacity(10_000);
    for so_far in [1_000, 2_000, 3_000] {
        let mut reading = pin!(paced.read_buf(&mut got));
        clock.drive(|context| reading.as_mut().poll(context)).unwrap();
        assert!(got.len() >= so_far);
    }
    assert_eq!(got, all);
}

#[test]
fn a_peer_that_stalled_gets_no_more_than_the_largest_burst() {
    let (clock, all) = (Lazy::default(), bytes(100_000));
    let peer = Peer::with_source(&clock, &all);
    let mut paced = Paced::with_clock(peer, slow(), clock.clone());
    assert_eq!(once(write(&mut paced, &all)).map(Result::unwrap), Poll::Ready(1_000));
    clock.clock.advance(Duration::from_secs(60));
    assert_eq!(once(write(&mut paced, &all)).map(Result::unwrap), Poll::Ready(2_000));
    assert!(once(write(&mut paced, &all)).is_pending());
    assert_eq!(once(read(&mut paced, 5_000)).map(|read| read.unwrap().len()), Poll::Ready(2_000));
    assert!(once(read(&mut paced, 5_000)).is_pending(), "each direction has a pace of its own");
}

#[test]
fn a_timer_is_set_once_however_often_one_asks() {
    let (clock, all) = (Lazy::default(), bytes(1_500));
    let mut paced = Paced::with_clock(Peer::new(&clock), slow(), clock.clone());
    assert!(once(write(&mut paced, &all)).is_ready());
    for _ in 0..100 {
        // Every round drops the future half-way, as `select!` would.
        let mut writing = pin!(paced.write_all(&all[1_000..]));
        assert!(once(|context| writing.as_mut().poll(context)).is_pending());
    }
    assert_eq!(clock.timers(), 1);
    assert_eq!(clock.clock.next_sleeper(), Some(Time::from_micros(31_250)));
    assert_eq!(clock.drive(write(&mut paced, &all[1_000..])).unwrap(), 500);
    assert_eq!(paced.get_ref().written, all);

    assert_eq!(clock.drive(write(&mut paced, &all)).unwrap(), 596, "the timer was 3 ms late");
    assert!(once(write(&mut paced, &all)).is_pending());
    drop(paced);
    assert_eq!(clock.clock.next_sleeper(), None, "dropped with its timer");
}

#[test]
fn no_room_is_not_the_end_and_no_bytes_need_no_pace() {
    let (clock, all) = (Lazy::default(), bytes(2_000));
    let mut paced = Paced::with_clock(Peer::with_source(&clock, &all), slow(), clock.clone());
    assert_eq!(once(read(&mut paced, 5_000)).map(|read| read.unwrap().len()), Poll::Ready(1_000));
    assert!(once(read(&mut paced, 5_000)).is_pending());
    assert_eq!(once(read(&mut paced, 0)).map(Result::unwrap), Poll::Ready(vec![]));
    assert_eq!(once(write(&mut paced, &all)).map(Result::unwrap), Poll::Ready(1_000));
    assert!(once(write(&mut paced, &all)).is_pending());
    assert_eq!(once(write(&mut paced, &[])).map(Result::unwrap), Poll::Ready(0));
    assert_eq!(clock.drive(read(&mut paced, 5_000)).unwrap(), all[1_000..2_000]);
}

#[test]
fn errors_pass_through() {
    let clock = Lazy::default();
    let mut paced = Paced::with_clock(Peer::with_source(&clock, &bytes(1_500)), slow(), clock.clone());
    paced.get_mut().breaks = true;
    assert_eq!(clock.drive(read(&mut paced, 5_000)).unwrap().len(), 1_000);
    assert_eq!(clock.drive(read(&mut paced, 5_000)).unwrap().len(), 500);
    assert_eq!(clock.drive(read(&mut paced, 5_000)).unwrap_err().kind(), ErrorKind::ConnectionReset);
    assert_eq!(clock.drive(write(&mut paced, b"x")).unwrap_err().kind(), ErrorKind::BrokenPipe);
    paced.get_mut().breaks = false;
    let all = bytes(5_000);
    assert_eq!(clock.drive(write(&mut paced, &all)).unwrap(), 2_000, "what failed was not counted");
}

#[test]
fn flush_and_shutdown_do_not_wait() {
    let (clock, all) = (Lazy::default(), bytes(5_000));
    let mut paced = Paced::with_clock(Peer::new(&clock), slow(), clock.clone());
    assert!(once(write(&mut paced, &all)).is_ready());
    assert!(once(write(&mut paced, &all)).is_pending());
    assert!(once(|context| Pin::new(&mut paced).poll_flush(context)).is_ready());
    assert!(once(|context| Pin::new(&mut paced).poll_shutdown(context)).is_ready());
    assert!(paced.get_ref().flushed == 1 && paced.get_ref().shut);
}

#[test]
fn several_buffers_go_together_while_they_may() {
    let (clock, all) = (Lazy::default(), bytes(3_000));
    let mut paced = Paced::with_clock(Peer::new(&clock), slow(), clock.clone());
    assert!(paced.is_write_vectored());
    let mut sent = 0;
    for (sizes, written) in [
        (&[0, 0][..], 0),        // nothing to pace
        (&[100, 0, 200], 300),   // all of it
        (&[100, 200, 500], 300), // of 700 that may go, the buffers that fit
        (&[0, 600, 100], 400),   // of 400 that may go, a part of the first
        (&[50, 60, 5_000], 110), // after a sleep
    ] {
        let mut start = sent;
        let buffers: Vec<_> = sizes
            .iter()
            .map(|size| {
                let end = (start + size).min(all.len());
                IoSlice::new(&all[std::mem::replace(&mut start, end)..end])
            })
            .collect();
        let mut writing =
            |context: &mut Context<'_>| Pin::new(&mut paced).poll_write_vectored(context, &buffers);
        assert_eq!(clock.drive(&mut writing).unwrap(), written, "{sizes:?}");
        sent += written;
    }
    let peer = paced.into_inner();
    assert_eq!(peer.calls, [vec![0, 0], vec![100, 0, 200], vec![100, 200], vec![400], vec![50, 60]]);
    assert_eq!(peer.written, all[..sent]);
    peer.record.check(rate(), 0);
}

#[test]
fn a_byte_an_hour() {
    let (clock, hour) = (Lazy::default(), Rate::per_hour(1).unwrap());
    let mut paced = Paced::with_clock(Peer::new(&clock), Bandwidth::new(hour), clock.clone());
    for _ in 0..5 {
        assert_eq!(clock.drive(write(&mut paced, b"hello")).unwrap(), 1);
    }
    assert_eq!((clock.now() - Time::ZERO).as_secs(), 4 * 3_600);
    assert_eq!(clock.timers(), 4);
    paced.get_ref().record.check(hour, 0);
}

#[tokio::test(start_paused = true)]
async fn on_tokios_clock_the_rate_is_reached_at_any_speed() {
    for per_second in [1_000_u64, 64_000, 5_000_000, 100_000_000, 10_000_000_000] {
        let rate = Rate::new(per_second, Duration::from_secs(1)).unwrap();
        let numbers = Bandwidth::new(rate);
        let begun = Instant::now();
        let mut paced = Paced::with_clock(tokio::io::sink(), numbers, TokioClock::new());
        let (piece, mut sent) = (vec![0; 1 << 20], 0);
        while begun.elapsed() < Duration::from_secs(2) {
            sent += paced.write(&piece).await.unwrap() as u128;
        }
        // One write after the last wake: at most a chunk behind, and what came while tokio's timer was late.
        let (due, chunk) = (flown(rate, begun.elapsed()), u128::from(numbers.chunk()));
        let late = flown(rate, Duration::from_millis(1)) + 1;
        assert!(sent + chunk + late >= due && sent <= due + chunk, "{sent} of {due} at {per_second} B/s");
    }
}

#[tokio::test(start_paused = true)]
async fn a_copy_between_halves_ends_and_is_whole() {
    let begun = Instant::now();
    let all = bytes(65_000);
    let (near, mut far) = tokio::io::duplex(4_096);
    let (mut reads, mut writes) = tokio::io::split(Paced::with_clock(near, slow(), TokioClock::new()));
    let echo = tokio::spawn(async move {
        tokio::io::copy(&mut reads, &mut writes).await.unwrap();
        writes.shutdown().await.unwrap();
    });
    let (mut from_far, mut to_far) = tokio::io::split(&mut far);
    let mut got = Vec::new();
    let (sent, received) = tokio::join!(
        async {
            to_far.write_all(&all).await?;
            to_far.shutdown().await
        },
        from_far.read_to_end(&mut got)
    );
    sent.unwrap();
    received.unwrap();
    echo.await.unwrap();
    assert_eq!(got, all);
    let took = begun.elapsed();
    assert!(took >= Duration::from_secs(2) && took < Duration::from_millis(2_200), "{took:?}");
}

#[test]
fn it_moves_between_threads_and_paces_what_cannot_be_moved() {
    fn can<T: Send + Sync>(_: &T) {}
    struct Fixed(PhantomPinned);
    impl AsyncRead for Fixed {
        fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, _: &mut ReadBuf<'_>) -> Poll<Result<()>> {
            Poll::Ready(Ok(()))
        }
    }
    let paced = Paced::new(Fixed(PhantomPinned), slow());
    can(&paced);
    let (mut paced, mut room) = (pin!(paced), [0; 8]);
    assert!(once(|context| paced.as_mut().poll_read(context, &mut ReadBuf::new(&mut room))).is_ready());
}
