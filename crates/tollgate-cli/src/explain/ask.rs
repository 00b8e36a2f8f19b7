//! One question to a server's admin listener: a POST over HTTP/1.1, and no more of HTTP than that takes.

use crate::{replay::Misuse, token::VARIABLE};
use anyhow::{Result, anyhow, bail};
use serde_json::{Map, Value};
use std::{
    fmt,
    io::{self, Read, Write},
    net::{TcpStream, ToSocketAddrs},
    time::{Duration, Instant},
};

/// The whole conversation takes no longer.
const PATIENCE: Duration = Duration::from_secs(5);

/// Far more than an explanation of the largest file.
const LONGEST: usize = 16 * 1024 * 1024;

/// An admin listener, by its address.
pub(super) struct Listener {
    /// Host and port, as `Host` has it.
    authority: String,
    token: Option<String>,
}

impl fmt::Display for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "http://{}", self.authority)
    }
}

impl Listener {
    pub(super) fn parse(url: &str, token: Option<String>) -> Result<Self, Misuse> {
        if url.starts_with("https://") {
            return Err(Misuse::new(
                "--ask does not speak https yet; ask where the listener is reached by http",
            ));
        }
        let authority = url.strip_prefix("http://").map(|rest| rest.strip_suffix('/').unwrap_or(rest));
        match authority {
            Some(authority) if !authority.is_empty() && !authority.contains(['/', '?', '#', '@', ' ']) => {
                let has_port =
                    authority.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
                let authority = if has_port { authority.to_owned() } else { format!("{authority}:80") };
                Ok(Self { authority, token })
            }
            _ => Err(Misuse::new(format!(
                "--ask must be an address such as http://127.0.0.1:9090; read {url:?}"
            ))),
        }
    }

    /// What the listener says about a request.
    pub(super) fn ask(&self, question: &str) -> Result<Map<String, Value>> {
        let ends = Instant::now() + PATIENCE;
        let answer = self.talk(question, ends).map_err(|error| {
            let address = &self.authority;
            anyhow!(
                "cannot ask {self}: {error}\n  is a server there, with `listen: {{ admin: {address} }}` in its file?"
            )
        })?;
        let (status, body) =
            understood(&answer).ok_or_else(|| anyhow!("what answers at {self} does not speak HTTP"))?;
        let body: Option<Map<String, Value>> = serde_json::from_slice(body).ok();
        match (status, body) {
            (200, Some(told)) if told.contains_key("holds") => Ok(told),
            (401, _) if self.token.is_none() => bail!(
                "{self} asks who you are: --token-file FILE names a file with your token, or {VARIABLE} has it"
            ),
            (401, _) => bail!("{self} does not know your token"),
            (400 | 403 | 429 | 503, Some(problem)) if problem.contains_key("detail") => {
                bail!("{self} says: {}", problem["detail"].as_str().unwrap_or_default())
            }
            _ => bail!(
                "what answers at {self} is no admin listener of this version (status {status}); \
                 its address is in the server's file at `listen.admin`"
            ),
        }
    }

    fn talk(&self, question: &str, ends: Instant) -> io::Result<Vec<u8>> {
        let mut stream = self.connect(ends)?;
        let (host, length) = (&self.authority, question.len());
        let token = self.token.as_ref();
        let token = token.map(|token| format!("authorization: Bearer {token}\r\n")).unwrap_or_default();
        let head = format!(
            "POST /v1/explain HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/json\r\n{token}\
             content-length: {length}\r\nconnection: close\r\n\r\n"
        );
        stream.set_write_timeout(Some(left(ends)?))?;
        stream.write_all(format!("{head}{question}").as_bytes())?;
        let mut answer = Vec::new();
        let mut piece = [0; 16 * 1024];
        loop {
            stream.set_read_timeout(Some(left(ends)?))?;
            match stream.read(&mut piece) {
                Ok(0) => return Ok(answer),
                Ok(read) => answer.extend_from_slice(&piece[..read]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Err(too_late()),
                // Who closes before it has read everything may still have answered.
                Err(_) if !answer.is_empty() => return Ok(answer),
                Err(error) => return Err(error),
            }
            if answer.len() > LONGEST {
                return Err(io::Error::other("it answers without end"));
            }
        }
    }

    /// To the first of the host's addresses that takes the connection.
    fn connect(&self, ends: Instant) -> io::Result<TcpStream> {
        let mut failed = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
        for address in self.authority.to_socket_addrs()? {
            match TcpStream::connect_timeout(&address, left(ends)?) {
                Ok(stream) => return Ok(stream),
                Err(error) => failed = error,
            }
        }
        Err(failed)
    }
}

fn left(ends: Instant) -> io::Result<Duration> {
    let left = ends.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(too_late()) } else { Ok(left) }
}

fn too_late() -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, format!("nothing came within {PATIENCE:?}"))
}

/// The status and the body, which ends with the connection.
fn understood(answer: &[u8]) -> Option<(u16, &[u8])> {
    let end = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n")?;
    let head = str::from_utf8(&answer[..end]).ok()?;
    let status = head.strip_prefix("HTTP/1.")?.split(' ').nth(1)?.parse().ok()?;
    Some((status, &answer[end + 4..]))
}
