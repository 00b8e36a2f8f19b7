//! One connection: read, answer every whole request, write once.
//!
//! A round is one read and one write, however many requests came. No timer is set for a request: one look every
//! `idle_timeout` sees whether anything happened since the last.

use super::{Resp, parse::Parser, reply::Reply, session::Session};
use std::{
    future::{Future, poll_fn},
    io,
    pin::{Pin, pin},
    task::{Context, Poll, Waker},
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf},
    task::unconstrained,
    time::{Instant, Sleep, sleep},
};
use tollgate::{Cells, Enter};
use tollgate_net::{Guard, Stream};
use tollgate_rules::decision::Session as Decisions;

/// What a connection has room for at first, and again once a larger request is done with.
const ROOM: usize = 4 * 1024;
/// Room is doubled up to here while reads fill it, whatever the request.
const ROOM_FOR_MANY: usize = 64 * 1024;
/// Answers are written when so many bytes wait, however many requests are left.
const MOST_OUT: usize = 64 * 1024;
/// Rounds after which one who never pauses is asked to stop, where everything closes.
const LOOK_EVERY: u32 = 64;

/// Why a connection ends.
enum End {
    /// The peer is gone, or said nothing for too long, or everything closes.
    Over,
}

impl From<io::Error> for End {
    fn from(_: io::Error) -> Self {
        Self::Over
    }
}

/// What was read and is not answered yet.
struct Input {
    /// All of it may be written to; what lies between `start` and `end` was read.
    room: Vec<u8>,
    start: usize,
    end: usize,
}

/// Looks now and then whether anything happened.
struct Patience {
    look: Pin<Box<Sleep>>,
    idle: Duration,
    has_moved: bool,
}

/// What ends a connection that says nothing: its patience, or that everything closes. Both wake by themselves, so they are
/// polled once and then only where one of them has something to say. Unconstrained: who has used up its turn is told to wait
/// as well, and would not be woken later.
struct Ends<'g, F> {
    guard: &'g Guard,
    closing: Pin<&'g mut F>,
    /// Whom both of them wake.
    waker: Option<Waker>,
}

pub(super) async fn serve<S: Enter + Cells>(door: &Resp<S>, mut stream: Stream, guard: &Guard) {
    // However it ends, there is nobody to tell.
    let _: Result<(), End> = talk(door, &mut stream, guard).await;
    let _ = tokio::time::timeout(door.settings.idle_timeout, stream.shutdown()).await;
}

async fn talk<S: Enter + Cells>(door: &Resp<S>, stream: &mut Stream, guard: &Guard) -> Result<(), End> {
    let mut session = Session::new(door.settings.tokens.is_empty());
    let mut patience = Patience::new(door.settings.idle_timeout);
    let mut ends = Ends { guard, closing: pin!(guard.closing()), waker: None };
    let (mut input, mut parser, mut output) = (Input::new(), Parser::default(), Vec::new());
    let mut rounds = 0_u32;
    loop {
        // Taken when the first request needs it, for all of this round.
        let mut seat: Option<Decisions<S>> = None;
        loop {
            match parser.parse(input.read(), session.limits()) {
                Ok(None) => break,
                Ok(Some(length)) => {
                    let request = parser.request(input.read());
                    if request.is_http() {
                        // What came before is answered; this is not, and nothing behind it is looked at.
                        door.tell_of_http();
                        session.is_over = true;
                    } else if request.len() > 0 {
                        door.answer(&request, &mut session, &mut seat, &mut output).await;
                    }
                    input.start += length;
                    parser.next();
                }
                Err(flaw) => {
                    let mut reply = Reply::new(&mut output, session.protocol);
                    reply.error(&format!("ERR Protocol error: {flaw}"));
                    session.is_over = true;
                }
            }
            if session.is_over {
                break;
            }
            if output.len() >= MOST_OUT {
                // Nobody who is slow keeps old rules alive.
                seat = None;
                write(stream, &mut output, &mut patience).await?;
            }
        }
        drop(seat);
        write(stream, &mut output, &mut patience).await?;
        rounds = rounds.wrapping_add(1);
        if session.is_over || (rounds.is_multiple_of(LOOK_EVERY) && guard.is_closing()) {
            return Ok(());
        }
        input.make_room(parser.needs());
        let read = poll_fn(|context| input.poll_fill(stream, &mut patience, &mut ends, context));
        if read.await? == 0 {
            return Ok(());
        }
    }
}

/// Writes all of it. Whoever does not read it is given up in the end, and meanwhile nothing is read from them.
async fn write(stream: &mut Stream, output: &mut Vec<u8>, patience: &mut Patience) -> Result<(), End> {
    let mut written = 0;
    // A socket nearly always has room, and then nobody has to be woken when it has.
    if let Stream::Plain(socket) = stream
        && !output.is_empty()
        && let Ok(taken) = socket.try_write(output)
    {
        (written, patience.has_moved) = (taken, true);
    }
    while written < output.len() {
        written += poll_fn(|context| match Pin::new(&mut *stream).poll_write(context, &output[written..]) {
            Poll::Ready(Ok(0)) => Poll::Ready(Err(End::Over)),
            Poll::Ready(done) => {
                patience.has_moved = true;
                Poll::Ready(done.map_err(End::from))
            }
            Poll::Pending => patience.poll_lost(context),
        })
        .await?;
    }
    output.clear();
    output.shrink_to(ROOM);
    if let Stream::Tls(_) = stream
        && written > 0
    {
        // Bytes that TLS has taken may still be here.
        poll_fn(|context| match Pin::new(&mut *stream).poll_flush(context) {
            Poll::Ready(done) => Poll::Ready(done.map_err(End::from)),
            Poll::Pending => patience.poll_lost(context),
        })
        .await?;
    }
    Ok(())
}

impl Input {
    fn new() -> Self {
        Self { room: vec![0; ROOM], start: 0, end: 0 }
    }

    fn read(&self) -> &[u8] {
        &self.room[self.start..self.end]
    }

    /// Makes room for the rest of a request that has at least so many bytes, and for some of the next.
    fn make_room(&mut self, needed: usize) {
        let waiting = self.end - self.start;
        if waiting == 0 {
            let was_filled = self.end == self.room.len() && self.room.len() < ROOM_FOR_MANY;
            (self.start, self.end) = (0, 0);
            if self.room.len() > ROOM_FOR_MANY {
                self.room.truncate(ROOM);
                self.room.shrink_to_fit();
            } else if was_filled {
                self.room.resize(self.room.len() * 2, 0);
            }
            return;
        }
        if self.start > 0 {
            self.room.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, waiting);
        }
        // Not all that is promised at once: memory is for bytes that have come.
        let wanted = (needed + ROOM).min(waiting.saturating_mul(2).max(ROOM)).max(waiting + ROOM / 4);
        if self.room.len() < wanted {
            self.room.resize(wanted, 0);
        }
    }

    /// Reads what there is, or what comes; zero where nothing will.
    fn poll_fill(
        &mut self,
        stream: &mut Stream,
        patience: &mut Patience,
        ends: &mut Ends<'_, impl Future<Output = ()>>,
        context: &mut Context<'_>,
    ) -> Poll<Result<usize, End>> {
        let mut room = ReadBuf::new(&mut self.room[self.end..]);
        match Pin::new(stream).poll_read(context, &mut room) {
            Poll::Ready(Ok(())) => {
                let read = room.filled().len();
                self.end += read;
                patience.has_moved = true;
                Poll::Ready(Ok(read))
            }
            Poll::Ready(Err(error)) => Poll::Ready(Err(error.into())),
            Poll::Pending => ends.poll(patience, context),
        }
    }
}

impl<F: Future<Output = ()>> Ends<'_, F> {
    fn poll(&mut self, patience: &mut Patience, context: &mut Context<'_>) -> Poll<Result<usize, End>> {
        let is_told = self.waker.as_ref().is_some_and(|waker| waker.will_wake(context.waker()));
        if is_told && !self.guard.is_leaving() && !patience.look.is_elapsed() {
            return Poll::Pending;
        }
        // What came before everything closes was answered.
        if Pin::new(&mut unconstrained(self.closing.as_mut())).poll(context).is_ready() {
            return Poll::Ready(Ok(0));
        }
        self.waker = Some(context.waker().clone());
        patience.poll_lost(context)
    }
}

impl Patience {
    fn new(idle: Duration) -> Self {
        Self { look: Box::pin(sleep(idle)), idle, has_moved: false }
    }

    /// An end where nothing has moved between two looks.
    fn poll_lost<T>(&mut self, context: &mut Context<'_>) -> Poll<Result<T, End>> {
        while Pin::new(&mut unconstrained(self.look.as_mut())).poll(context).is_ready() {
            if !std::mem::take(&mut self.has_moved) {
                return Poll::Ready(Err(End::Over));
            }
            self.look.as_mut().reset(Instant::now() + self.idle);
        }
        Poll::Pending
    }
}
