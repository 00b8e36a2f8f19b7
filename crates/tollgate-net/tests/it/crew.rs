//! Threads that serve a listener: everybody is served, nobody above the most, and the drain is kept.

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
    time::timeout,
};
use tollgate_net::{Crew, CrewSettings, Door, Drain, DrainTimes, Drained, Guard, Listener, Stream};

const LONG: Duration = Duration::from_secs(30);

/// Answers every byte with itself; `!` when it is told to. One that is under way when the drain closes is answered still.
#[derive(Default)]
struct Echo {
    served: AtomicUsize,
    held: Notify,
    go: Notify,
    threads: std::sync::Mutex<Vec<ThreadId>>,
}

impl Door for Echo {
    async fn serve(self: Arc<Self>, mut stream: Stream, _: SocketAddr, guard: Guard) {
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

fn start(workers: usize, most: usize, door: &Arc<Echo>) -> (Crew, Drain) {
    let drain = Drain::new(DrainTimes { pause: Duration::ZERO, deadline: LONG });
    let backlog = NonZeroU32::new(64).expect("not zero");
    let listener = Listener::bind(SocketAddr::from(([127, 0, 0, 1], 0)), backlog).expect("a free port");
    let mut settings = CrewSettings::default();
    settings.workers = NonZeroUsize::new(workers).expect("not zero");
    settings.max_connections = NonZeroUsize::new(most).expect("not zero");
    let crew = Crew::start("echo", listener, settings, &drain, Arc::clone(door)).expect("threads");
    (crew, drain)
}

async fn echo(stream: &mut TcpStream, byte: u8) -> std::io::Result<u8> {
    stream.write_u8(byte).await?;
    timeout(LONG, stream.read_u8()).await.expect("in time")
}

#[tokio::test]
async fn connections_are_spread_over_all_threads() {
    let door = Arc::new(Echo::default());
    let (crew, _drain) = start(3, 100, &door);
    let mut streams = Vec::new();
    for byte in 0..9 {
        let mut stream = TcpStream::connect(crew.address()).await.expect("it listens");
        assert_eq!(echo(&mut stream, byte).await.expect("an answer"), byte);
        streams.push(stream);
    }
    let threads = door.threads.lock().expect("nobody panics").clone();
    for thread in &threads {
        assert_eq!(threads.iter().filter(|other| *other == thread).count(), 3, "{threads:?}");
    }
    assert_eq!(crew.connections()(), 9);
}

#[tokio::test]
async fn one_above_the_most_waits_until_somebody_leaves() {
    let door = Arc::new(Echo::default());
    let (crew, _drain) = start(2, 2, &door);
    let mut first = TcpStream::connect(crew.address()).await.expect("it listens");
    let mut second = TcpStream::connect(crew.address()).await.expect("it listens");
    for stream in [&mut first, &mut second] {
        assert_eq!(echo(stream, b'a').await.expect("an answer"), b'a');
    }
    let mut third = TcpStream::connect(crew.address()).await.expect("the system has room");
    third.write_u8(b'b').await.expect("room in the buffer");
    assert!(timeout(Duration::from_millis(200), third.read_u8()).await.is_err(), "nobody serves it yet");
    assert_eq!(door.served.load(SeqCst), 2);
    drop(first);
    assert_eq!(timeout(LONG, third.read_u8()).await.expect("in time").expect("an answer"), b'b');
}

#[tokio::test]
async fn what_was_begun_is_finished_and_the_threads_end_with_the_drain() {
    let door = Arc::new(Echo::default());
    let (crew, drain) = start(2, 100, &door);
    let address = crew.address();
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
    tokio::task::spawn_blocking(|| crew.join()).await.expect("the threads end");
    assert!(TcpStream::connect(address).await.is_err(), "nobody listens");
}
