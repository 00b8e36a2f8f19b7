//! A request on its way to a server: head and body written as fast as the server takes them, and no faster than the
//! client sends them. At most one frame of the body is held.

use super::connection::Connection;
use crate::{
    body::BodyError,
    framing::{Framing, WrongLength},
    outgoing::Outgoing,
    request::RequestBody,
};
use bytes::BytesMut;
use http_body::Body as _;
use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};
use tokio::io::AsyncWrite;

pub(super) struct Upload {
    body: RequestBody,
    framing: Framing,
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
        let stage = match framing {
            Framing::None => Stage::Closing,
            _ if expect_continue => Stage::Expecting,
            _ => Stage::Sending,
        };
        let out = Outgoing::new(head);
        Self { body, framing, stage, out, written: 0 }
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
                    Some(Ok(frame)) => {
                        if self.framing.write(&mut self.out, frame)? {
                            self.stage = Stage::Closing;
                        }
                    }
                    Some(Err(error)) => return Poll::Ready(Err(Stopped::Client(error))),
                    None => {
                        self.framing.end(&mut self.out, None)?;
                        self.stage = Stage::Closing;
                    }
                },
                Stage::Closing => self.stage = Stage::Done,
                Stage::Expecting => return Poll::Pending,
                Stage::Done | Stage::Stuck => return Poll::Ready(Ok(())),
            }
        }
    }
}

impl From<WrongLength> for Stopped {
    fn from(_: WrongLength) -> Self {
        Self::Client(BodyError::Client)
    }
}
