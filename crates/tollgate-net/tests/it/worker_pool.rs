//! Threads that serve a listener: everybody is served, nobody above the most, and the drain is kept.

use crate::tls;
use std::{
    net::SocketAddr,
    num::{NonZeroU32, NonZeroUsize},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    thread::ThreadId,
    time::Duration,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    sync::Notify,
    time::{sleep, timeout},
};
use tollgate_net::{
    Connection, ConnectionHandler, Drain, DrainTimes, Drained, HttpVersion, Listener, PoolSettings,
    Scheduling, TlsAcceptor, WhenFull, WorkerPool,
};

const LONG: Duration = Duration::from_secs(30);

/// Answers every byte with itself; `!` when it is told to. One that is under way when the drain closes is answered still.
#[derive(Default)]
struct Echo {
    served: AtomicUsize,
    held: Notify,
    go: Notify,
    threads: std::sync::Mutex<Vec<ThreadId>>,
}

impl ConnectionHandler for Echo {
    async fn serve(self: Arc<Self>, connection: Connection) {
        let Connection { mut stream, guard, .. } = connection;
        self.served.fetch_add(1, SeqCst);
        self.threads.lock().expect("nobody panics").push(std::thread::current().id());
        loop {
            let byte = tokio::select! {
                byte = stream.read_u8() => byte,
                () = guard.closing() => return,
            };
            let Ok(byte) = byte else { return };
            if byte == b'!' {
                self.held.notify_one();
                self.go.notified().await;
            }
            if stream.write_u8(byte).await.is_err() {
                return;
            }
        }
    }
}

fn start(workers: usize, most: usize, door: &Arc<Echo>) -> (WorkerPool, Drain) {
    start_with(workers, most, door, |_| {})
}

fn start_with(
    workers: usize,
    most: usize,
    door: &Arc<Echo>,
    change: impl FnOnce(&mut PoolSettings),
) -> (WorkerPool, Drain) {
    let drain = Drain::new(DrainTimes { pause: Duration::ZERO, deadline: LONG });
    let backlog = NonZeroU32::new(64).expect("not zero");
    let listener = Listener::bind(SocketAddr::from(([127, 0, 0, 1], 0)), backlog).expect("a free port");
    let mut settings = PoolSettings::default();
    settings.workers = NonZeroUsize::new(workers).expect("not zero");
    settings.max_connections = NonZeroUsize::new(most).expect("not zero");
    change(&mut settings);
    let pool = WorkerPool::start("echo", listener, settings, &drain, Arc::clone(door)).expect("threads");
    (pool, drain)
}

async fn echo(stream: &mut TcpStream, byte: u8) -> std::io::Result<u8> {
    stream.write_u8(byte).await?;
    timeout(LONG, stream.read_u8()).await.expect("in time")
}

#[tokio::test]
async fn connections_are_spread_over_all_threads() {
    let door = Arc::new(Echo::default());
    let (pool, _drain) = start(3, 100, &door);
    let mut streams = Vec::new();
    for byte in 0..9 {
        let mut stream = TcpStream::connect(pool.address()).await.expect("it listens");
        assert_eq!(echo(&mut stream, byte).await.expect("an answer"), byte);
        streams.push(stream);
    }
    let threads = door.threads.lock().expect("nobody panics").clone();
    for thread in &threads {
        assert_eq!(threads.iter().filter(|other| *other == thread).count(), 3, "{threads:?}");
    }
    assert_eq!(pool.connections()(), 9);
}

#[tokio::test]
async fn one_above_the_most_waits_until_somebody_leaves() {
    let door = Arc::new(Echo::default());
    let (pool, _drain) = start(2, 2, &door);
    let mut first = TcpStream::connect(pool.address()).await.expect("it listens");
    let mut second = TcpStream::connect(pool.address()).await.expect("it listens");
    for stream in [&mut first, &mut second] {
        assert_eq!(echo(stream, b'a').await.expect("an answer"), b'a');
    }
    let mut third = TcpStream::connect(pool.address()).await.expect("the system has room");
    third.write_u8(b'b').await.expect("room in the buffer");
    assert!(timeout(Duration::from_millis(200), third.read_u8()).await.is_err(), "nobody serves it yet");
    assert_eq!(door.served.load(SeqCst), 2);
    drop(first);
    assert_eq!(timeout(LONG, third.read_u8()).await.expect("in time").expect("an answer"), b'b');
}

#[tokio::test]
async fn what_was_begun_is_finished_and_the_threads_end_with_the_drain() {
    let door = Arc::new(Echo::default());
    let (pool, drain) = start(2, 100, &door);
    let address = pool.address();
    let mut busy = TcpStream::connect(address).await.expect("it listens");
    let mut idle = TcpStream::connect(address).await.expect("it listens");
    assert_eq!(echo(&mut idle, b'a').await.expect("an answer"), b'a');
    busy.write_u8(b'!').await.expect("room in the buffer");
    timeout(LONG, door.held.notified()).await.expect("a request under way");

    drain.begin();
    let answered = async {
        let idle = idle.read_u8().await;
        door.go.notify_one();
        (busy.read_u8().await, idle)
    };
    let (drained, (busy, idle)) = tokio::join!(drain.run(), answered);
    assert_eq!(drained, Drained::Empty);
    assert_eq!(busy.expect("an answer that was under way"), b'!');
    assert!(idle.is_err(), "who rested was closed");
    tokio::task::spawn_blocking(|| pool.join()).await.expect("the threads end");
    assert!(TcpStream::connect(address).await.is_err(), "nobody listens");
}

#[tokio::test]
async fn a_dropped_pool_ends_at_once() {
    let door = Arc::new(Echo::default());
    let (pool, drain) = start(2, 100, &door);
    let address = pool.address();
    let mut stream = TcpStream::connect(address).await.expect("it listens");
    assert_eq!(echo(&mut stream, b'a').await.expect("an answer"), b'a');
    tokio::task::spawn_blocking(|| drop(pool)).await.expect("the threads end");
    assert!(timeout(LONG, stream.read_u8()).await.expect("in time").is_err(), "it was closed");
    assert!(TcpStream::connect(address).await.is_err(), "nobody listens");
    assert_eq!(drain.guards(), 0);
}

#[tokio::test]
async fn a_shared_pool_serves_and_keeps_the_drain() {
    let door = Arc::new(Echo::default());
    let (pool, drain) = start_with(2, 100, &door, |settings| settings.scheduling = Scheduling::Shared);
    let address = pool.address();
    let mut streams = Vec::new();
    for byte in 0..9 {
        let mut stream = TcpStream::connect(address).await.expect("it listens");
        assert_eq!(echo(&mut stream, byte).await.expect("an answer"), byte);
        streams.push(stream);
    }
    assert_eq!((pool.gauges().connections, pool.connections()()), (9, 9));
    drain.begin();
    assert_eq!(drain.run().await, Drained::Empty);
    tokio::task::spawn_blocking(|| pool.join()).await.expect("the threads end");
    assert!(TcpStream::connect(address).await.is_err(), "nobody listens");
}

#[tokio::test]
async fn one_above_the_most_is_closed_where_that_is_asked_for() {
    let door = Arc::new(Echo::default());
    let (pool, _drain) = start_with(2, 1, &door, |settings| settings.when_full = WhenFull::Close);
    let mut first = TcpStream::connect(pool.address()).await.expect("it listens");
    assert_eq!(echo(&mut first, b'a').await.expect("an answer"), b'a');
    let mut second = TcpStream::connect(pool.address()).await.expect("the system has room");
    assert!(timeout(LONG, second.read_u8()).await.expect("in time").is_err(), "it was closed");
    assert_eq!(echo(&mut first, b'b').await.expect("an answer"), b'b');
    assert_eq!(door.served.load(SeqCst), 1);
}

/// Tells which HTTP a client speaks, and then everything it says.
struct Detecting;

impl ConnectionHandler for Detecting {
    async fn serve(self: Arc<Self>, mut connection: Connection) {
        let Some(version) = connection.detect_http(Duration::from_millis(300)).await else { return };
        let told = match version {
            HttpVersion::Http1 => b"1:",
            HttpVersion::Http2 => b"2:",
        };
        let mut heard = vec![0; 8 * 1024];
        let stream = &mut connection.stream;
        if stream.write_all(told).await.is_ok()
            && let Ok(length) = stream.read(&mut heard).await
        {
            let _ = stream.write_all(&heard[..length]).await;
        }
    }
}

#[tokio::test]
async fn http_is_told_by_its_first_bytes_and_none_of_them_is_lost() {
    let drain = Drain::new(DrainTimes { pause: Duration::ZERO, deadline: LONG });
    let backlog = NonZeroU32::new(64).expect("not zero");
    let listener = Listener::bind(SocketAddr::from(([127, 0, 0, 1], 0)), backlog).expect("a free port");
    let pool = WorkerPool::start("detect", listener, PoolSettings::default(), &drain, Arc::new(Detecting));
    let pool = pool.expect("threads");
    let preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    for (said, told) in [
        (vec![preface], Some(2)),
        (vec!["P", "RI * HT", "TP/2.0\r\n\r\nSM\r\n\r", "\n"], Some(2)),
        (vec!["GET / HTTP/1.1\r\n\r\n"], Some(1)),
        (vec!["PR", "OPFIND / HTTP/1.1\r\n\r\n"], Some(1)),
        (vec!["PRI * HTTP/2.0\r\n\r\nXX"], Some(1)),
        (vec!["PRI * HTTP"], None),
        (vec![], None),
    ] {
        let mut stream = TcpStream::connect(pool.address()).await.expect("it listens");
        stream.set_nodelay(true).expect("no delay");
        for piece in &said {
            stream.write_all(piece.as_bytes()).await.expect("it reads");
            // So that the pieces come one by one.
            sleep(Duration::from_millis(5)).await;
        }
        let mut heard = String::new();
        timeout(LONG, stream.read_to_string(&mut heard)).await.expect("it closes").expect("text");
        let expected = told.map_or(String::new(), |version| format!("{version}:{}", said.concat()));
        assert_eq!(heard, expected, "{said:?}");
    }
    tokio::task::spawn_blocking(|| drop(pool)).await.expect("the threads end");
}

#[tokio::test]
async fn over_tls_the_preface_of_http_2_is_waited_for_no_longer_than_a_head() {
    let (cert, key) = tls::pair();
    let drain = Drain::new(DrainTimes { pause: Duration::ZERO, deadline: LONG });
    let backlog = NonZeroU32::new(64).expect("not zero");
    let listener = Listener::bind(SocketAddr::from(([127, 0, 0, 1], 0)), backlog).expect("a free port");
    let mut settings = PoolSettings::default();
    settings.tls = Some(TlsAcceptor::new(tls::parse(&cert, &key).expect("a pair"), &["h2", "http/1.1"]));
    let pool = WorkerPool::start("tls", listener, settings, &drain, Arc::new(Detecting)).expect("threads");
    let preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    for (said, told) in
        [(preface, Some(2)), ("PRI * HTTP", None), ("GET / HTTP/1.1\r\n\r\n", None), ("", None)]
    {
        let socket = TcpStream::connect(pool.address()).await.expect("it listens");
        let mut stream = tls::connect(socket, &cert, &["h2"]).await.expect("trusted");
        stream.write_all(said.as_bytes()).await.expect("it reads");
        let mut heard = Vec::new();
        // Whether TLS is ended in form does not matter.
        let _ = timeout(LONG, stream.read_to_end(&mut heard)).await.expect("it closes");
        let expected = told.map_or(String::new(), |version| format!("{version}:{said}"));
        assert_eq!(String::from_utf8_lossy(&heard), expected, "{said:?}");
    }
    tokio::task::spawn_blocking(|| drop(pool)).await.expect("the threads end");
}
