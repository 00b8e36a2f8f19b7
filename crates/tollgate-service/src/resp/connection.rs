//! One connection: read, answer every whole request, write once.
//!
//! A round is one read and one write, however many requests came. No timer is set for a request: the connection is looked at
//! every `idle_timeout` ([`supervise`]), whether bytes have moved since.

use super::{Resp, parse::Parser, reply::Reply, session::Session};
use std::{
    future::poll_fn,
    io,
    pin::{Pin, pin},
    task::{Context, Poll, ready},
};
use tokio::{
    io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf},
    task::unconstrained,
};
use tollgate::{Cells, Enter};
use tollgate_net::{Connection, ConnectionActivity, ConnectionTimeouts, Stream, supervise};
use tollgate_rules::decision::Session as Decisions;

/// What a connection has room for at first, and again once a larger request is done with.
const ROOM: usize = 4 * 1024;
/// Room is doubled up to here while reads fill it, whatever the request.
const ROOM_FOR_MANY: usize = 64 * 1024;
/// Answers are written when so many bytes wait, however many requests are left.
const MOST_OUT: usize = 64 * 1024;

/// What was read and is not answered yet.
struct Input {
    /// All of it may be written to; what lies between `start` and `end` was read.
    room: Vec<u8>,
    start: usize,
    end: usize,
}

pub(super) async fn serve<S: Enter + Cells>(door: &Resp<S>, connection: Connection) {
    let Connection { mut stream, guard, .. } = connection;
    let (activity, idle) = (ConnectionActivity::new(guard), door.settings.idle_timeout);
    let timeouts = ConnectionTimeouts::new(idle, idle);
    let talking = async {
        // However it ends, there is nobody to tell.
        let _: io::Result<()> = talk(door, &mut stream, &activity).await;
        let _ = stream.shutdown().await;
    };
    supervise(pin!(talking), |_| activity.finish(), &activity, &timeouts).await;
}

async fn talk<S: Enter + Cells>(
    door: &Resp<S>,
    stream: &mut Stream,
    activity: &ConnectionActivity,
) -> io::Result<()> {
    let mut session = Session::new(door.settings.tokens.is_empty());
    let (mut input, mut parser, mut output) = (Input::new(), Parser::default(), Vec::new());
    loop {
        activity.begin_work();
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
                write(stream, &mut output, activity).await?;
            }
        }
        drop(seat);
        write(stream, &mut output, activity).await?;
        activity.end_work();
        if session.is_over {
            return Ok(());
        }
        input.make_room(parser.needs());
        if poll_fn(|context| input.poll_fill(stream, activity, context)).await? == 0 {
            return Ok(());
        }
    }
}

/// Writes all of it. Meanwhile nothing is read from the client, which is cut off where it does not read.
async fn write(stream: &mut Stream, output: &mut Vec<u8>, activity: &ConnectionActivity) -> io::Result<()> {
    let mut written = 0;
    // A socket nearly always has room, and then nobody has to be woken when it has.
    if !output.is_empty()
        && let Some(Ok(taken)) = stream.try_write(output)
    {
        written = taken;
    }
    while written < output.len() {
        let taken = poll_fn(|context| {
            let polled = Pin::new(&mut *stream).poll_write(context, &output[written..]);
            activity.mark_write(&polled);
            polled
        });
        match taken.await? {
            0 => return Err(io::ErrorKind::WriteZero.into()),
            taken => written += taken,
        }
    }
    output.clear();
    output.shrink_to(ROOM);
    if stream.is_tls() && written > 0 {
        // Bytes that TLS has taken may still be here.
        poll_fn(|context| {
            let polled = Pin::new(&mut *stream).poll_flush(context);
            activity.mark_write(&polled);
            polled
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

    /// Reads what there is, or what comes; zero where nothing will, or nothing is waited for.
    fn poll_fill(
        &mut self,
        stream: &mut Stream,
        activity: &ConnectionActivity,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        let mut room = ReadBuf::new(&mut self.room[self.end..]);
        let mut polled = Pin::new(&mut *stream).poll_read(context, &mut room);
        if polled.is_pending() && activity.is_finishing() {
            // A task that has used up its turn is told to wait although there are bytes. What came before the end is answered.
            let read = poll_fn(|context| Pin::new(&mut *stream).poll_read(context, &mut room));
            polled = pin!(unconstrained(read)).poll(context);
            if polled.is_pending() {
                return Poll::Ready(Ok(0));
            }
        }
        ready!(polled)?;
        let read = room.filled().len();
        self.end += read;
        activity.bytes_moved();
        Poll::Ready(Ok(read))
    }
}
