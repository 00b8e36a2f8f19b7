//! A request on its way to a server: head and body written as fast as the server takes them, and no faster than the
//! client sends them. At most one frame of the body is held.

use super::{connection::Connection, encode::Framing};
use crate::{body::BodyError, outgoing::Outgoing, request::RequestBody};
use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use http_body::{Body as _, Frame};
use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};
use tokio::io::AsyncWrite;

pub(super) struct Upload {
    body: RequestBody,
    framing: Framing,
    /// Bytes of a body of known length that are still to come.
    left: u64,
    stage: Stage,
    out: Outgoing,
    pub(super) written: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// The body is not asked for before the server says `100 Continue`.
    Expecting,
    Sending,
    /// The last byte is in `out`.
    Closing,
    Done,
    /// The server takes no more; its answer may still come.
    Stuck,
}

/// Why a request could not be sent to its end.
pub(super) enum Stopped {
    Client(BodyError),
    Server,
}

impl Upload {
    /// `head` is written already, `framing` fits `body`.
    pub(super) fn new(head: BytesMut, body: RequestBody, framing: Framing, expect_continue: bool) -> Self {
        let left = if let Framing::Length(length) = framing { length } else { 0 };
        let stage = match framing {
            Framing::None => Stage::Closing,
            _ if expect_continue => Stage::Expecting,
            _ => Stage::Sending,
        };
        let out = Outgoing::new(head);
        Self { body, framing, left, stage, out, written: 0 }
    }

    pub(super) fn is_done(&self) -> bool {
        self.stage == Stage::Done
    }

    pub(super) fn is_bodiless(&self) -> bool {
        self.framing == Framing::None
    }

    pub(super) fn is_expecting(&self) -> bool {
        self.stage == Stage::Expecting
    }

    /// Whether everything there was has been sent, and the client is to send more.
    pub(super) fn waits_for_client(&self) -> bool {
        self.stage == Stage::Sending && self.out.is_empty()
    }

    /// The body is asked for from now on.
    pub(super) fn go_on(&mut self) {
        if self.stage == Stage::Expecting {
            self.stage = Stage::Sending;
        }
    }

    /// Nothing more is sent, if there is anything left to send.
    pub(super) fn give_up(&mut self) {
        if self.is_done() {
            return;
        }
        self.stage = Stage::Stuck;
        self.out = Outgoing::default();
        self.body = RequestBody::empty();
    }

    /// The body, untouched where nothing was written.
    pub(super) fn into_body(self) -> RequestBody {
        self.body
    }

    pub(super) fn take_buffer(&mut self) -> BytesMut {
        std::mem::take(&mut self.out.head)
    }

    /// Writes what can be written; ready when all of it is, or nothing more can be.
    pub(super) fn poll(
        &mut self,
        connection: &mut Connection,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), Stopped>> {
        loop {
            while !self.out.is_empty() {
                match ready!(self.out.poll_write(Pin::new(&mut connection.stream), context)) {
                    Ok(0) | Err(_) => return Poll::Ready(Err(Stopped::Server)),
                    Ok(written) => self.written += written as u64,
                }
            }
            if self.stage != Stage::Done {
                ready!(Pin::new(&mut connection.stream).poll_flush(context)).map_err(|_| Stopped::Server)?;
            }
            match self.stage {
                Stage::Sending => match ready!(Pin::new(&mut self.body).poll_frame(context)) {
                    Some(Ok(frame)) => self.frame(frame)?,
                    Some(Err(error)) => return Poll::Ready(Err(Stopped::Client(error))),
                    None => self.end(None)?,
                },
                Stage::Closing => self.stage = Stage::Done,
                Stage::Expecting => return Poll::Pending,
                Stage::Done | Stage::Stuck => return Poll::Ready(Ok(())),
            }
        }
    }

    fn frame(&mut self, frame: Frame<Bytes>) -> Result<(), Stopped> {
        let data = match frame.into_data() {
            Ok(data) => data,
            Err(frame) => return self.end(frame.into_trailers().ok().as_ref()),
        };
        // An empty chunk would end the body.
        if data.is_empty() {
            return Ok(());
        }
        if self.framing == Framing::Chunked {
            self.out.put_chunk(data);
        } else {
            self.left = self.left.checked_sub(data.len() as u64).ok_or(Stopped::Client(BodyError::Client))?;
            if self.left == 0 {
                self.stage = Stage::Closing;
            }
            self.out.put(data);
        }
        Ok(())
    }

    fn end(&mut self, trailers: Option<&HeaderMap>) -> Result<(), Stopped> {
        if self.left > 0 {
            return Err(Stopped::Client(BodyError::Client));
        }
        if self.framing == Framing::Chunked {
            self.out.end_chunks(trailers);
        }
        self.stage = Stage::Closing;
        Ok(())
    }
}
