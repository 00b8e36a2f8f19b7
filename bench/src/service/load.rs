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

/// Asks for this long over so many connections, so many requests deep. How many were answered, how long
/// that took, and how many microseconds each round of requests.
pub(super) fn ask(
    port: u16,
    asked: &'static Asked,
    (connections, deep): (usize, usize),
    lasting: Duration,
) -> (u64, Duration, Vec<u32>) {
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
        let (mut answered, mut times) = (0, Vec::new());
        while let Some(done) = tasks.join_next().await {
            let (some, mut took) = done.expect("an asker panicked");
            answered += some;
            times.append(&mut took);
        }
        (answered, begun.elapsed(), times)
    })
}

async fn keep_asking(
    mut stream: TcpStream,
    asked: &Asked,
    number: usize,
    deep: usize,
    until: Instant,
) -> (u64, Vec<u32>) {
    let (mut key, mut answered) = (number * 17, 0);
    let mut times = Vec::with_capacity(1 << 14);
    let (mut sent, mut read) = (Vec::new(), vec![0; 16 * 1024]);
    let mut begun = Instant::now();
    while begun < until {
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
        let now = Instant::now();
        times.push(u32::try_from((now - begun).as_micros()).unwrap_or(u32::MAX));
        begun = now;
    }
    (answered, times)
}

/// Has so many keys charged once, by one connection that sends a thousand at a time.
pub(super) fn fill(port: u16, command: &str, keys: usize) {
    use std::io::{BufRead, BufReader, Write};
    let mut stream = std::net::TcpStream::connect((Ipv4Addr::LOCALHOST, port)).expect("the server listens");
    let mut answers = BufReader::new(stream.try_clone().expect("a stream can be shared"));
    let mut line = String::new();
    for first in (0..keys).step_by(1_000) {
        let mut sent = String::new();
        for key in first..first + 1_000 {
            let key = format!("fill:{key:07}");
            // An hour until it is as if never used: nobody forgets it meanwhile.
            sent.push_str(&format!(
                "*6\r\n${}\r\n{command}\r\n${}\r\n{key}\r\n$1\r\n9\r\n$1\r\n1\r\n$4\r\n3600\r\n$1\r\n1\r\n",
                command.len(),
                key.len(),
            ));
        }
        stream.write_all(sent.as_bytes()).expect("the server reads");
        for _ in 0..6 * 1_000 {
            line.clear();
            answers.read_line(&mut line).expect("the server answers");
            assert!(!line.starts_with('-'), "{line}");
        }
    }
}
