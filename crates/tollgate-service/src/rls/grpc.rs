//! gRPC on HTTP/2, as far as this door needs it: messages behind five bytes, and how a call ends.

use super::AskError;
use bytes::{BufMut, Bytes, BytesMut};
use http::{HeaderMap, HeaderValue, Response, StatusCode, header::CONTENT_TYPE};
use prost::Message;
use std::{borrow::Cow, fmt::Write};

/// What every answer of gRPC is.
const GRPC: HeaderValue = HeaderValue::from_static("application/grpc");

/// How a call ends that has no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Failure {
    pub(super) code: Code,
    pub(super) message: Cow<'static, str>,
}

/// The codes of gRPC that are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Code {
    InvalidArgument = 3,
    DeadlineExceeded = 4,
    NotFound = 5,
    ResourceExhausted = 8,
    FailedPrecondition = 9,
    Unimplemented = 12,
    Unavailable = 14,
    Unauthenticated = 16,
}

impl Failure {
    pub(super) fn new(code: Code, message: impl Into<Cow<'static, str>>) -> Self {
        Self { code, message: message.into() }
    }
}

impl From<AskError> for Failure {
    fn from(error: AskError) -> Self {
        let code = match error {
            AskError::NotLoaded => Code::FailedPrecondition,
            AskError::Store(_) | AskError::Full { .. } => Code::Unavailable,
            _ => Code::InvalidArgument,
        };
        Self::new(code, error.to_string())
    }
}

/// The messages of a call, as their bytes come in.
#[derive(Default)]
pub(super) struct Inbox {
    /// What is left of earlier pieces. Empty while messages come in one piece each.
    kept: BytesMut,
}

impl Inbox {
    /// Takes what came in, and gives the next message where that is complete. What is behind it is kept.
    pub(super) fn next(&mut self, mut piece: Bytes, longest: usize) -> Result<Option<Bytes>, Failure> {
        if !self.kept.is_empty() {
            // In place: however small the pieces are, no byte is copied for each of them.
            self.kept.extend_from_slice(&piece);
            return Ok(whole(&self.kept, longest)?.map(|end| self.kept.split_to(end).freeze().slice(HEAD..)));
        }
        let message = whole(&piece, longest)?.map(|end| piece.split_to(end).slice(HEAD..));
        self.kept.extend_from_slice(&piece);
        Ok(message)
    }

    /// How long the message is that is not complete yet, where its head says so already.
    pub(super) fn awaited(&self) -> Option<usize> {
        length(&self.kept)
    }
}

/// Bytes in front of a message: whether it is compressed, and how long it is.
const HEAD: usize = 5;

/// Where the message ends that these bytes begin with, if all of it is here.
fn whole(bytes: &[u8], longest: usize) -> Result<Option<usize>, Failure> {
    let Some(length) = length(bytes) else { return Ok(None) };
    if bytes[0] != 0 {
        let message = "the message is compressed, and no encoding but identity is read";
        return Err(Failure::new(Code::Unimplemented, message));
    }
    if length > longest {
        let message = format!("the message has {length} bytes, and at most {longest} are read");
        return Err(Failure::new(Code::ResourceExhausted, message));
    }
    Ok((bytes.len() >= HEAD + length).then_some(HEAD + length))
}

fn length(bytes: &[u8]) -> Option<usize> {
    let &[_, a, b, c, d] = bytes.first_chunk::<HEAD>()?;
    Some(u32::from_be_bytes([a, b, c, d]) as usize)
}

/// What a message says.
pub(super) fn read<M: Message + Default>(bytes: Bytes) -> Result<M, Failure> {
    M::decode(bytes)
        .map_err(|error| Failure::new(Code::InvalidArgument, format!("the message cannot be read: {error}")))
}

/// A message as it goes on the wire.
pub(super) fn write(message: &impl Message) -> Bytes {
    let length = message.encoded_len();
    let mut bytes = BytesMut::with_capacity(5 + length);
    bytes.put_u8(0);
    bytes.put_u32(u32::try_from(length).unwrap_or(u32::MAX));
    // Fails only where there is no room, and a buffer grows.
    let _ = message.encode(&mut bytes);
    bytes.freeze()
}

/// The head of an answer that has messages.
pub(super) fn head() -> Response<()> {
    let mut head = Response::new(());
    head.headers_mut().insert(CONTENT_TYPE, GRPC);
    head
}

/// The end of an answer that has messages.
pub(super) fn end() -> HeaderMap {
    let mut trailers = HeaderMap::with_capacity(1);
    trailers.insert("grpc-status", HeaderValue::from_static("0"));
    trailers
}

/// The whole of an answer that has none.
pub(super) fn failed(failure: &Failure) -> Response<()> {
    let mut head = head();
    *head.status_mut() = StatusCode::OK;
    fail(failure, head.headers_mut());
    head
}

/// The end of an answer that began well.
pub(super) fn fail(failure: &Failure, headers: &mut HeaderMap) {
    headers.insert("grpc-status", HeaderValue::from(failure.code as u16));
    if let Ok(message) = HeaderValue::from_str(&in_percents(&failure.message)) {
        headers.insert("grpc-message", message);
    }
}

/// Text as gRPC has it in headers: what is not printable, and the percent sign, in percents.
fn in_percents(text: &str) -> String {
    let mut written = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b' '..=b'~' if byte != b'%' => written.push(byte.into()),
            _ => {
                // Writing to a string does not fail.
                let _ = write!(written, "%{byte:02X}");
            }
        }
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_may_come_in_any_pieces() {
        let two = [&[0, 0, 0, 0, 3][..], b"abc", &[0, 0, 0, 0, 0], &[0, 0, 0, 0, 1], b"x"].concat();
        for size in 1..=two.len() {
            let mut inbox = Inbox::default();
            let mut messages = Vec::new();
            for piece in two.chunks(size) {
                let mut next = inbox.next(Bytes::copy_from_slice(piece), 10).expect("whole");
                while let Some(message) = next {
                    messages.push(message);
                    next = inbox.next(Bytes::new(), 10).expect("whole");
                }
            }
            assert_eq!(messages, ["abc", "", "x"], "in pieces of {size}");
        }
    }

    /// Every piece once copied all that was there before it: then this would take until the next morning.
    #[test]
    fn a_long_message_may_come_byte_by_byte() {
        let length = 1_usize << 20;
        let mut inbox = Inbox::default();
        assert_eq!(inbox.next(Bytes::from_static(&[0, 0, 0x10, 0, 0]), length), Ok(None));
        assert_eq!(inbox.awaited(), Some(length));
        for _ in 1..length {
            assert_eq!(inbox.next(Bytes::from_static(b"x"), length), Ok(None));
        }
        let message = inbox.next(Bytes::from_static(b"xy"), length).expect("whole").expect("complete");
        assert_eq!((message.len(), &inbox.kept[..]), (length, &b"y"[..]));
    }

    #[test]
    fn what_is_too_long_or_compressed_is_refused_at_its_beginning() {
        let refused = |bytes: &'static [u8]| Inbox::default().next(Bytes::from_static(bytes), 10);
        assert_eq!(refused(&[0, 0, 0, 0, 11]).map_err(|it| it.code), Err(Code::ResourceExhausted));
        assert_eq!(refused(&[0, 255, 255, 255, 255]).map_err(|it| it.code), Err(Code::ResourceExhausted));
        assert_eq!(refused(&[1, 0, 0, 0, 0]).map_err(|it| it.code), Err(Code::Unimplemented));
    }

    #[test]
    fn messages_are_printable() {
        assert_eq!(in_percents("50% of ä\n"), "50%25 of %C3%A4%0A");
    }
}
