//! One connection of HTTP/2 that asks one question at a time, always the same.
//!
//! As little of the protocol as that takes, so that asking costs next to nothing: whoever asks shares the cores with the server.
//! A question is two frames made beforehand, its head indexed as any client's would be; of an answer it is seen that it began
//! with 200, brought a message and ended. Trailers are not read: an answer of another `grpc-status` has no message.

use super::grpc::Question;
use std::{
    io::{ErrorKind, Read, Write},
    net::{Ipv4Addr, TcpStream},
};

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const WINDOW_UPDATE: u8 = 8;

/// Of a whole stream, or of settings and pings that they were heard.
const END_STREAM: u8 = 1;
const ACK: u8 = 1;
const END_HEADERS: u8 = 4;

/// Bytes in front of a frame.
const HEAD: usize = 9;
/// `:status 200` as every server writes it.
const OK: u8 = 0x88;

pub(super) struct Asker {
    stream: TcpStream,
    /// The next question: its frames, in which the stream's number is written anew.
    question: Vec<u8>,
    number: u32,
    heard: Vec<u8>,
    has_message: bool,
}

impl Asker {
    /// Connects, and asks once: then both sides know each other's settings, and the head's fields by number.
    pub(super) fn connect(port: u16, question: &Question) -> Self {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).expect("the server listens");
        stream.set_nodelay(true).expect("no delay");
        let mut hello = PREFACE.to_vec();
        hello.extend(frame(SETTINGS, 0, 0, &[]));
        // Room for all answers there will be.
        hello.extend(frame(WINDOW_UPDATE, 0, 0, &0x7fff_0000_u32.to_be_bytes()));
        stream.write_all(&hello).expect("the server reads");
        let mut asker = Self {
            stream,
            question: frames(&first_head(question.path), question),
            number: 1,
            heard: Vec::new(),
            has_message: false,
        };
        asker.ask();
        while !asker.hear() {}
        asker.question = frames(LATER_HEAD, question);
        asker.stream.set_nonblocking(true).expect("a socket that does not block");
        asker
    }

    pub(super) const fn stream(&self) -> &TcpStream {
        &self.stream
    }

    pub(super) fn ask(&mut self) {
        let number = self.number.to_be_bytes();
        self.number += 2;
        let body = HEAD + usize::from(self.question[2]);
        for place in [5, body + 5] {
            self.question[place..place + 4].copy_from_slice(&number);
        }
        self.stream.write_all(&self.question).expect("room for a short question");
    }

    /// Reads what there is. Whether the answer has ended with it.
    pub(super) fn hear(&mut self) -> bool {
        let mut room = [0; 4096];
        match self.stream.read(&mut room) {
            Ok(0) => panic!("the server has closed"),
            Ok(length) => self.heard.extend_from_slice(&room[..length]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => return false,
            Err(error) => panic!("the server does not answer: {error}"),
        }
        let (mut at, mut has_ended) = (0, false);
        while let Some(head) = self.heard[at..].first_chunk::<HEAD>() {
            let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
            let (kind, flags, from) = (head[3], head[4], at + HEAD);
            let Some(payload) = self.heard.get(from..from + length) else { break };
            at = from + length;
            match kind {
                HEADERS | DATA => {
                    let begins = kind == HEADERS && !self.has_message;
                    assert!(!begins || is_ok(payload), "an answer that is not 200");
                    self.has_message |= kind == DATA;
                    if flags & END_STREAM != 0 {
                        assert!(std::mem::take(&mut self.has_message), "an answer without a message");
                        has_ended = true;
                    }
                }
                SETTINGS | PING if flags & ACK == 0 => {
                    let payload = if kind == PING { payload } else { &[] };
                    self.stream.write_all(&frame(kind, ACK, 0, payload)).expect("the server reads");
                }
                SETTINGS | PING | WINDOW_UPDATE => {}
                other => panic!("a frame of type {other}"),
            }
        }
        self.heard.drain(..at);
        has_ended
    }
}

/// Whether a head begins with 200, behind changes of the table's size if there are some.
fn is_ok(head: &[u8]) -> bool {
    head.iter().find(|byte| !matches!(byte, 0x20..=0x3f)) == Some(&OK)
}

/// The head of a first question, whose fields are then known by number.
fn first_head(path: &str) -> Vec<u8> {
    // `:method POST`, `:scheme http`.
    let mut head = vec![0x83, 0x86];
    // Names that both sides know: `:path`, `:authority`, `content-type`.
    for (name, value) in [(0x44, path), (0x41, "localhost"), (0x5f, "application/grpc")] {
        head.push(name);
        text(&mut head, value);
    }
    head.push(0x40);
    text(&mut head, "te");
    text(&mut head, "trailers");
    head
}

/// The same by number; the last that was told is the first.
const LATER_HEAD: &[u8] = &[0x83, 0x86, 0xc1, 0xc0, 0xbf, 0xbe];

fn text(head: &mut Vec<u8>, text: &str) {
    assert!(text.len() < 127, "a length of one byte");
    head.push(text.len() as u8);
    head.extend_from_slice(text.as_bytes());
}

/// A question's two frames, on no stream yet.
fn frames(head: &[u8], question: &Question) -> Vec<u8> {
    let mut frames = frame(HEADERS, END_HEADERS, 0, head);
    frames.extend(frame(DATA, END_STREAM, 0, &question.framed()));
    frames
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let [_, a, b, c] = u32::try_from(payload.len()).expect("short").to_be_bytes();
    let mut frame = vec![a, b, c, kind, flags];
    frame.extend(stream.to_be_bytes());
    frame.extend_from_slice(payload);
    frame
}
