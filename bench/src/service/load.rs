//! Who asks: connections that each send some requests at once, and again when all of them were answered.

use std::{
    net::{Ipv4Addr, SocketAddr},
    time::{Duration, Instant},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    runtime::Builder,
    task::JoinSet,
};

/// One kind of request, and how long its answer is.
pub(super) struct Asked {
    /// One request for every key, as bytes.
    pub(super) requests: Vec<Vec<u8>>,
    /// Lines in an answer.
    pub(super) lines: usize,
}

/// Keys that are asked for in turn.
const KEYS: usize = 1_000;

impl Asked {
    /// Requests of these words, with every key in the place of `{key}`.
    pub(super) fn new(words: &[&str], lines: usize) -> Self {
        let request = |key: usize| {
            let mut bytes = format!("*{}\r\n", words.len());
            for word in words {
                let word = word.replace("{key}", &format!("user:{key:06}"));
                bytes.push_str(&format!("${}\r\n{word}\r\n", word.len()));
            }
            bytes.into_bytes()
        };
        Self { requests: (0..KEYS).map(request).collect(), lines }
    }
}

/// Asks for this long over so many connections, so many requests deep. How many were answered, and how long that took.
pub(super) fn ask(
    port: u16,
    asked: &'static Asked,
    (connections, deep): (usize, usize),
    lasting: Duration,
) -> (u64, Duration) {
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let mut streams = Vec::new();
        for _ in 0..connections {
            let stream = TcpStream::connect(address).await.expect("the server listens");
            stream.set_nodelay(true).expect("no delay");
            streams.push(stream);
        }
        let begun = Instant::now();
        let mut tasks = JoinSet::new();
        for (number, stream) in streams.into_iter().enumerate() {
            tasks.spawn(keep_asking(stream, asked, number, deep, begun + lasting));
        }
        let mut answered = 0;
        while let Some(done) = tasks.join_next().await {
            answered += done.expect("an asker panicked");
        }
        (answered, begun.elapsed())
    })
}

async fn keep_asking(
    mut stream: TcpStream,
    asked: &Asked,
    number: usize,
    deep: usize,
    until: Instant,
) -> u64 {
    let (mut key, mut answered) = (number * 17, 0);
    let (mut sent, mut read) = (Vec::new(), vec![0; 16 * 1024]);
    while Instant::now() < until {
        sent.clear();
        for _ in 0..deep {
            sent.extend_from_slice(&asked.requests[key % asked.requests.len()]);
            key += 1;
        }
        stream.write_all(&sent).await.expect("the server reads");
        let mut lines = asked.lines * deep;
        while lines > 0 {
            let length = stream.read(&mut read).await.expect("the server answers");
            assert!(length > 0 && read[0] != b'-', "{}", String::from_utf8_lossy(&read[..length]));
            lines -= read[..length].iter().filter(|byte| **byte == b'\n').count();
        }
        answered += deep as u64;
    }
    answered
}
