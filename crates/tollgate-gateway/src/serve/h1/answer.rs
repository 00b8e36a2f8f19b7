//! An answer on its way out: head and first frame in one write where they are small, then frame by frame as the client takes them.

use super::{
    intake::{Fed, Intake},
    wire::{MOST_AHEAD, Wire},
};
use crate::{
    body::Body,
    framing::Framing,
    outgoing::{Outgoing, line, status_line},
    passed::Passed,
};
use bytes::{BufMut, Bytes, BytesMut};
use http::{HeaderMap, Response, StatusCode, Version, header};
use http_body::{Body as _, Frame};
use std::{
    cell::RefCell,
    pin::Pin,
    task::{Context, Poll},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

/// What the request says of its answer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asked {
    /// It was by HEAD.
    pub(super) head_only: bool,
    pub(super) version: Version,
    pub(super) keep_alive: bool,
}

/// An answer that is being sent.
pub(super) struct Answer {
    body: Body,
    framing: Framing,
    /// The last of it is among the bytes on their way.
    ended: bool,
    out: Outgoing,
    keep_alive: bool,
}

/// An answer could not be sent to its end.
pub(super) struct BrokenOff;

impl Answer {
    /// `rest` goes before it: what is left of an invitation to send a body, and interim responses.
    pub(super) fn new(rest: &[u8], response: Response<Body>, asked: Asked) -> Self {
        let (mut head, mut body) = response.into_parts();
        let passed = body.take_passed();
        let length = head.headers.get(header::CONTENT_LENGTH);
        let length: Option<u64> = length.and_then(|value| value.to_str().ok()?.parse().ok());
        let framing = match (body.size_hint().exact(), length) {
            _ if asked.head_only || is_bodiless(head.status) => Framing::None,
            (Some(exact), _) => Framing::Length(exact),
            (None, Some(length)) => Framing::Length(length),
            (None, None) if asked.version == Version::HTTP_10 => Framing::UntilClose,
            (None, None) => Framing::Chunked,
        };
        if let (Some(exact @ 1..), None, true) = (body.size_hint().exact(), length, asked.head_only) {
            head.headers.insert(header::CONTENT_LENGTH, exact.into());
        }
        let keep_alive = asked.keep_alive && framing != Framing::UntilClose && !says_close(&head.headers);
        let told = Told { status: head.status, passed, headers: head.headers, framing, keep_alive };
        let out = told.written(rest, asked.version);
        let ended = matches!(framing, Framing::None | Framing::Length(0));
        let mut answer = Self { body, framing, ended, out: Outgoing::new(out), keep_alive };
        if ended && told.status != StatusCode::SWITCHING_PROTOCOLS {
            answer.body = Body::empty();
        }
        answer
    }

    pub(super) fn keeps_alive(&self) -> bool {
        self.keep_alive
    }

    /// Sends what there is; ready when all of it is sent.
    pub(super) fn poll(
        &mut self,
        wire: &mut Wire,
        intake: Option<&mut Intake>,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), BrokenOff>> {
        let mut intake = intake;
        loop {
            let mut waits = false;
            // A frame at a time: it goes out before the next is asked for.
            if !self.ended && self.out.has_room() {
                match Pin::new(&mut self.body).poll_frame(context) {
                    Poll::Ready(Some(Ok(frame))) => self.take(frame)?,
                    Poll::Ready(Some(Err(_))) => return Poll::Ready(Err(BrokenOff)),
                    Poll::Ready(None) => self.end()?,
                    Poll::Pending => waits = true,
                }
            }
            let mut stuck = false;
            while !self.out.is_empty() {
                match self.out.poll_write(Pin::new(&mut wire.io), context) {
                    Poll::Ready(Ok(1..)) => {}
                    Poll::Ready(_) => return Poll::Ready(Err(BrokenOff)),
                    Poll::Pending => {
                        stuck = true;
                        break;
                    }
                }
            }
            if !stuck && (waits || self.ended) {
                match wire.poll_flush(context) {
                    Poll::Ready(Ok(())) if self.ended => return Poll::Ready(Ok(())),
                    Poll::Ready(Ok(())) => {}
                    Poll::Ready(Err(_)) => return Poll::Ready(Err(BrokenOff)),
                    Poll::Pending => stuck = true,
                }
            }
            if stuck || waits {
                match attend(wire, intake.as_deref_mut(), context) {
                    Fed::Some => {}
                    Fed::Pending => return Poll::Pending,
                    Fed::Gone => return Poll::Ready(Err(BrokenOff)),
                }
            }
        }
    }

    fn take(&mut self, frame: Frame<Bytes>) -> Result<(), BrokenOff> {
        self.ended = self.framing.write(&mut self.out, frame).map_err(|_| BrokenOff)?;
        if self.ended {
            // Lets go of what it holds before the client has its last byte.
            self.body = Body::empty();
        } else if self.body.is_end_stream() {
            return self.end();
        }
        Ok(())
    }

    fn end(&mut self) -> Result<(), BrokenOff> {
        self.framing.end(&mut self.out, None).map_err(|_| BrokenOff)?;
        self.ended = true;
        self.body = Body::empty();
        Ok(())
    }
}

/// While something else is waited for: feeds the request's body, and notices when the client leaves.
pub(super) fn attend(wire: &mut Wire, intake: Option<&mut Intake>, context: &mut Context<'_>) -> Fed {
    if let Some(intake) = intake.filter(|intake| !intake.is_done()) {
        return intake.feed(wire, context);
    }
    while wire.ahead.len() < MOST_AHEAD {
        match wire.poll_fill(context) {
            Poll::Ready(Ok(1..)) => {}
            Poll::Ready(_) => return Fed::Gone,
            Poll::Pending => break,
        }
    }
    Fed::Pending
}

/// Statuses that never have a body.
fn is_bodiless(status: StatusCode) -> bool {
    status.is_informational() || matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED)
}

fn says_close(headers: &HeaderMap) -> bool {
    headers.get(header::CONNECTION).is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"close"))
}

/// Room for a body that is copied behind its head.
fn small(framing: Framing) -> usize {
    match framing {
        Framing::Length(length @ ..=4096) => length as usize,
        _ => 0,
    }
}

/// All that a head tells.
struct Told {
    status: StatusCode,
    passed: Option<Box<Passed>>,
    headers: HeaderMap,
    framing: Framing,
    keep_alive: bool,
}

impl Told {
    fn written(&self, rest: &[u8], version: Version) -> BytesMut {
        let Self { status, passed, headers, framing, keep_alive } = self;
        let lines = passed.as_ref().map_or(0, |passed| passed.len());
        let mut out = BytesMut::with_capacity(192 + lines + 64 * headers.len() + small(*framing));
        out.put_slice(rest);
        if *status == StatusCode::OK {
            out.put_slice(b"HTTP/1.1 200 OK\r\n");
        } else {
            status_line(&mut out, *status);
        }
        let switches = *status == StatusCode::SWITCHING_PROTOCOLS;
        let mut dated = false;
        if let Some(passed) = passed {
            passed.write(&mut out);
            dated = passed.dated;
        }
        for (name, value) in headers {
            match *name {
                // What the answer to HEAD, and 304, tell of a body that does not come.
                header::CONTENT_LENGTH if *framing != Framing::None || *status == StatusCode::NO_CONTENT => {
                    continue;
                }
                header::TRANSFER_ENCODING => continue,
                header::CONNECTION if !switches => continue,
                header::DATE => dated = true,
                _ => {}
            }
            line(&mut out, name, value);
        }
        framing.write_header(&mut out);
        if !switches && !keep_alive {
            out.put_slice(b"connection: close\r\n");
        } else if !switches && version == Version::HTTP_10 {
            out.put_slice(b"connection: keep-alive\r\n");
        }
        if !dated {
            date(&mut out);
        }
        out.put_slice(b"\r\n");
        out
    }
}

/// The time, written once a second.
fn date(out: &mut BytesMut) {
    thread_local! {
        static WRITTEN: RefCell<(Duration, String)> = const { RefCell::new((Duration::MAX, String::new())) };
    }
    let now = SystemTime::now();
    let second = Duration::from_secs(now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs());
    WRITTEN.with_borrow_mut(|(written, text)| {
        if *written != second {
            *text = format!("date: {}\r\n", httpdate::fmt_http_date(now));
            *written = second;
        }
        out.put_slice(text.as_bytes());
    });
}
