//! Plays a schedule: a task for every connection, which are told in order when a request of theirs is due.
//!
//! One thread runs all of them, and runs first whoever was told first; that is what keeps the order. It is a thread of the
//! play's own, since a test's own runtime may be around, and its time may be paused.

use super::{Answered, Arrival, NUMBER, Seen};
use crate::http::{self, Head, Length};
use std::{
    io::{self, ErrorKind},
    net::SocketAddr,
    thread,
    time::Duration,
};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::{TcpSocket, TcpStream},
    runtime,
    sync::mpsc,
    task::JoinSet,
    time::{Instant, sleep_until, timeout_at},
};

/// More than any answer here takes; only a test that fails waits this long.
const PATIENCE: Duration = Duration::from_secs(30);

/// Long enough for what is left to do between opening the last connection and the first request.
const LEAD: Duration = Duration::from_millis(5);

pub(super) fn play(schedule: &[Arrival], address: SocketAddr) -> Vec<Seen> {
    thread::scope(|scope| {
        let run = || {
            let runtime = runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime can be made").block_on(run(schedule, address))
        };
        match scope.spawn(run).join() {
            Ok(seen) => seen,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

/// A request on its way to its connection's task.
type Due = (usize, Arrival);

async fn run(schedule: &[Arrival], address: SocketAddr) -> Vec<Seen> {
    let mut order: Vec<usize> = (0..schedule.len()).collect();
    order.sort_by_key(|number| schedule[*number].at);

    // Whom to tell, for every request.
    let mut told: Vec<Option<mpsc::UnboundedSender<Due>>> = vec![None; schedule.len()];
    let mut waiting = Vec::new();
    for &number in &order {
        let arrival = &schedule[number];
        let earlier = order.iter().find(|other| {
            told[**other].is_some()
                && arrival.connection.is_some()
                && schedule[**other].connection == arrival.connection
        });
        told[number] = match earlier {
            Some(&other) => told[other].clone(),
            None => {
                let (tell, due) = mpsc::unbounded_channel();
                waiting.push((open(arrival, address).await, due));
                Some(tell)
            }
        };
    }

    let start = Instant::now() + LEAD;
    let mut connections = JoinSet::new();
    for (stream, due) in waiting {
        connections.spawn(connection(stream, address, due, start));
    }
    for &number in &order {
        let arrival = schedule[number].clone();
        sleep_until(start + arrival.at).await;
        if let Some(tell) = told[number].take() {
            // A connection whose server has closed it still answers for its requests.
            let _ = tell.send((number, arrival));
        }
    }
    let mut seen: Vec<Seen> = connections.join_all().await.into_iter().flatten().collect();
    seen.sort_by_key(|seen| seen.number);
    seen
}

async fn open(arrival: &Arrival, address: SocketAddr) -> io::Result<BufReader<TcpStream>> {
    let socket = TcpSocket::new_v4()?;
    let from = SocketAddr::from((arrival.from, 0));
    socket.bind(from).unwrap_or_else(|e| panic!("could not come from {from}: {e}"));
    let stream = socket.connect(address).await?;
    stream.set_nodelay(true)?;
    Ok(BufReader::with_capacity(64 * 1024, stream))
}

/// Asks what is due on one connection, and returns when nothing more will be.
async fn connection(
    stream: io::Result<BufReader<TcpStream>>,
    address: SocketAddr,
    mut due: mpsc::UnboundedReceiver<Due>,
    start: Instant,
) -> Vec<Seen> {
    let mut stream = stream.map_err(|e| format!("could not connect to {address}: {e}"));
    let mut all = Vec::new();
    while let Some((number, arrival)) = due.recv().await {
        let asked = Instant::now();
        let answer = match &mut stream {
            Ok(open) => {
                let until = asked + arrival.give_up_after.unwrap_or(PATIENCE);
                match timeout_at(until, ask(open, number, &arrival, address, start)).await {
                    Ok(Ok((answered, Stays::Open))) => Ok(answered),
                    Ok(Ok((answered, Stays::Closed))) => {
                        stream = Err("the connection was closed by the answer before".into());
                        Ok(answered)
                    }
                    Ok(Err(error)) => Err(error.to_string()),
                    Err(_) => Err(format!("no whole answer within {:?}", until - asked)),
                }
            }
            Err(why) => Err(why.clone()),
        };
        if let (Err(why), Ok(_)) = (&answer, &stream) {
            stream = Err(format!("the connection was lost before: {why}"));
        }
        all.push(Seen { number, asked: asked.saturating_duration_since(start), answer });
    }
    all
}

enum Stays {
    Open,
    Closed,
}

async fn ask(
    stream: &mut BufReader<TcpStream>,
    number: usize,
    arrival: &Arrival,
    address: SocketAddr,
    start: Instant,
) -> io::Result<(Answered, Stays)> {
    let head = request(number, arrival, address);
    let early = stream.get_mut().write_all(head.as_bytes()).await;
    // Who refuses may do so before the body has come, and close: the answer is there all the same.
    let early = match early {
        Ok(()) if !arrival.body.is_empty() => write_or_hear(stream, &arrival.body).await,
        early => early,
    };
    match (early, answer(stream, arrival, start).await) {
        (Err(error), Err(_)) => Err(error),
        (_, answer) => answer,
    }
}

/// Writes a body until it is written or something is answered.
async fn write_or_hear(stream: &mut BufReader<TcpStream>, body: &[u8]) -> io::Result<()> {
    let mut left = body;
    let mut first = [0];
    while !left.is_empty() {
        let connection = stream.get_mut();
        tokio::select! {
            biased;
            heard = connection.peek(&mut first) => return heard.map(|_| ()),
            writable = connection.writable() => writable?,
        }
        match connection.try_write(left) {
            Ok(count) => left = &left[count..],
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

async fn answer(
    stream: &mut BufReader<TcpStream>,
    arrival: &Arrival,
    start: Instant,
) -> io::Result<(Answered, Stays)> {
    let now = || Instant::now().saturating_duration_since(start);
    loop {
        stream.fill_buf().await?;
        let began = now();
        let Some(head) = Head::read(stream).await? else {
            return Err(io::Error::new(ErrorKind::UnexpectedEof, "closed without an answer"));
        };
        let status: Option<u16> = head.first.split(' ').nth(1).and_then(|word| word.parse().ok());
        let Some(status) = status.filter(|_| head.first.starts_with("HTTP/1.")) else {
            return Err(io::Error::new(ErrorKind::InvalidData, format!("no answer begins {:?}", head.first)));
        };
        // 100 and its kin come before the answer.
        if status < 200 && status != 101 {
            continue;
        }
        let length = match arrival.method == "HEAD" || matches!(status, 101 | 204 | 304) {
            true => Length::Bytes(0),
            false => head.length(Length::UntilClosed)?,
        };
        let (mut body, mut progress) = (Vec::new(), Vec::new());
        let take = |bytes: &[u8]| {
            body.extend_from_slice(bytes);
            progress.push((now(), body.len() as u64));
        };
        http::body(stream, length, take).await?;
        let ends = head.closes() || head.first.starts_with("HTTP/1.0") || length == Length::UntilClosed;
        let stays = if ends { Stays::Closed } else { Stays::Open };
        return Ok((Answered { status, headers: head.headers, body, began, ended: now(), progress }, stays));
    }
}

fn request(number: usize, arrival: &Arrival, address: SocketAddr) -> String {
    let mut head = format!("{} {} HTTP/1.1\r\n", arrival.method, arrival.path);
    let mut add = |name: &str, value: &str| head.push_str(&format!("{name}: {value}\r\n"));
    if http::header(&arrival.headers, "host").is_none() {
        add("host", &address.to_string());
    }
    for (name, value) in &arrival.headers {
        add(name, value);
    }
    add(NUMBER, &number.to_string());
    if !arrival.body.is_empty() {
        add("content-length", &arrival.body.len().to_string());
    }
    if arrival.connection.is_none() {
        add("connection", "close");
    }
    head + "\r\n"
}
