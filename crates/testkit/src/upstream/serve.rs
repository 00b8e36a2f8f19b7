//! One connection of an upstream: requests one after the other, each read whole and answered as the handler says.

use super::{Asked, Canned, Shared};
use crate::http::{self, Head, Length};
use std::{
    future::pending,
    io::{self, ErrorKind},
    sync::{Arc, atomic::Ordering::SeqCst},
    time::Duration,
};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
    task::JoinSet,
    time::sleep,
};

/// What is written at once where nothing else was said.
const PIECE: u64 = 64 * 1024;

/// Takes connections until it is dropped, and them with it.
pub(super) async fn accept(listener: TcpListener, shared: &Arc<Shared>) {
    let mut connections = JoinSet::new();
    loop {
        let accepted = listener.accept().await;
        // Nobody asks how they ended; but a set keeps those that did until somebody does.
        while connections.try_join_next().is_some() {}
        let Ok((stream, _)) = accepted else {
            // No more file descriptors, as a rule: some come back.
            sleep(Duration::from_millis(10)).await;
            continue;
        };
        let number = shared.connections.fetch_add(1, SeqCst);
        let shared = Arc::clone(shared);
        connections.spawn(async move {
            // A client that went away, or wrote what is no request, finds its connection closed.
            let _ = connection(&shared, stream, number).await;
        });
    }
}

async fn connection(shared: &Shared, stream: TcpStream, number: u64) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut stream = BufReader::new(stream);
    while let Some(head) = Head::read(&mut stream).await? {
        let _busy = Busy::new(shared);
        let at = shared.started.elapsed();
        let closes = head.closes();
        if head.header("expect").is_some_and(|value| value.eq_ignore_ascii_case("100-continue")) {
            stream.get_mut().write_all(b"HTTP/1.1 100 Continue\r\n\r\n").await?;
        }
        let length = head.length(Length::Bytes(0))?;
        let mut body = Vec::new();
        http::body(&mut stream, length, |bytes| body.extend_from_slice(bytes)).await?;
        let mut words = head.first.split(' ');
        let (Some(method), Some(target), Some(version), None) =
            (words.next(), words.next(), words.next(), words.next())
        else {
            return Err(io::Error::new(ErrorKind::InvalidData, head.first));
        };
        let closes = closes || version == "HTTP/1.0";
        let asked = {
            let mut all = shared.asked();
            let asked = Asked {
                number: all.len(),
                at,
                method: method.to_owned(),
                target: target.to_owned(),
                headers: head.headers,
                body,
                connection: number,
            };
            all.push(asked.clone());
            asked
        };
        let canned = (shared.handler)(&asked);
        pause(shared, &mut stream, canned.after).await?;
        let whole = answer(shared, &mut stream, &canned, &asked, closes).await?;
        if closes || !whole {
            return stream.get_mut().shutdown().await;
        }
    }
    Ok(())
}

/// Writes an answer, and says whether all of it.
async fn answer(
    shared: &Shared,
    to: &mut BufReader<TcpStream>,
    canned: &Canned,
    asked: &Asked,
    closes: bool,
) -> io::Result<bool> {
    let size = canned.size();
    let mut head = format!("HTTP/1.1 {} Canned\r\n", canned.status);
    for (name, value) in &canned.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str(if closes { "connection: close\r\n" } else { "" });
    match canned.chunked {
        true => head.push_str("transfer-encoding: chunked\r\n\r\n"),
        false => head.push_str(&format!("content-length: {size}\r\n\r\n")),
    }
    let has_body = asked.method != "HEAD" && !matches!(canned.status, 204 | 304);
    let goes = if has_body { canned.cut_after.unwrap_or(size).min(size) } else { 0 };
    let (piece, pause) = canned.pieces.unwrap_or((PIECE, Duration::ZERO));
    let mut bytes = head.into_bytes();
    let mut sent = 0;
    while sent < goes {
        let count = piece.min(goes - sent);
        let part = canned.body.part(sent, count);
        match canned.chunked {
            true => {
                bytes.extend_from_slice(format!("{count:x}\r\n").as_bytes());
                bytes.extend_from_slice(&part);
                bytes.extend_from_slice(b"\r\n");
            }
            false => bytes.extend_from_slice(&part),
        }
        to.write_all(&bytes).await?;
        bytes.clear();
        sent += count;
        if sent < goes {
            self::pause(shared, to, pause).await?;
        }
    }
    let whole = !has_body || goes == size;
    if whole && has_body && canned.chunked {
        bytes.extend_from_slice(b"0\r\n\r\n");
    }
    to.write_all(&bytes).await?;
    Ok(whole)
}

/// Does nothing for a while, and notices a client that goes away meanwhile.
async fn pause(shared: &Shared, stream: &mut BufReader<TcpStream>, time: Duration) -> io::Result<()> {
    if time.is_zero() {
        return Ok(());
    }
    tokio::select! {
        () = (shared.sleep)(time) => Ok(()),
        () = gone(stream) => Err(ErrorKind::ConnectionAborted.into()),
    }
}

async fn gone(stream: &mut BufReader<TcpStream>) {
    // What has come, if anything, is the next request: it can wait.
    if stream.fill_buf().await.is_ok_and(|bytes| !bytes.is_empty()) {
        pending::<()>().await;
    }
}

/// Counts a request from its head to the end of its answer, whatever that end is.
struct Busy<'a>(&'a Shared);

impl<'a> Busy<'a> {
    fn new(shared: &'a Shared) -> Self {
        let now = shared.in_flight.fetch_add(1, SeqCst) + 1;
        shared.most_in_flight.fetch_max(now, SeqCst);
        Self(shared)
    }
}

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, SeqCst);
    }
}
