//! Sockets.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::{
    env,
    fs::File,
    net::{Ipv4Addr, SocketAddr},
    num::NonZeroU32,
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::{Duration, Instant},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpSocket, TcpStream},
    time::timeout,
};
use tollgate_net::Listener;
use tracing::{Event, Metadata, Subscriber, span};

const BACKLOG: NonZeroU32 = NonZeroU32::new(16).expect("not zero");

#[tokio::test]
async fn connections_come_with_their_address() {
    let listener = Listener::bind((Ipv4Addr::LOCALHOST, 0).into(), BACKLOG).expect("a free port");
    assert_ne!(listener.address().port(), 0);
    let mut client = TcpStream::connect(listener.address()).await.expect("it listens");
    let (mut accepted, peer) = listener.accept().await;
    assert_eq!(peer, client.local_addr().expect("it has one"));
    assert!(accepted.nodelay().expect("it can be asked"));
    client.write_all(b"x").await.expect("it reads");
    assert_eq!(accepted.read_u8().await.expect("it was written"), b'x');
}

#[tokio::test]
async fn a_port_that_is_taken_is_named() {
    let first = Listener::bind((Ipv4Addr::LOCALHOST, 0).into(), BACKLOG).expect("a free port");
    let address: SocketAddr = first.address();
    let error = Listener::bind(address, BACKLOG).expect_err("it is taken");
    let told = error.to_string();
    assert!(told.starts_with(&format!("cannot listen on {address}: ")), "{told}");
    drop(first);
    Listener::bind(address, BACKLOG).expect("it is free again");
}

/// In a process of its own, which has few descriptors.
#[test]
fn running_out_of_descriptors_is_counted_and_logged_once_a_second() {
    const CHILD: &str = "TOLLGATE_TEST_FEW_DESCRIPTORS";
    if env::var_os(CHILD).is_none() {
        let name = "listener::running_out_of_descriptors_is_counted_and_logged_once_a_second";
        let mut child = Command::new(env::current_exe().expect("a test"));
        let status = child.args(["--exact", name]).env(CHILD, "1").status().expect("a child can be started");
        assert!(status.success(), "{status}");
        return;
    }
    let logged = Arc::new(AtomicUsize::new(0));
    tracing::subscriber::with_default(Counting(Arc::clone(&logged)), || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(accept_without_descriptors(&logged));
    });
}

async fn accept_without_descriptors(logged: &AtomicUsize) {
    let listener = Listener::bind((Ipv4Addr::LOCALHOST, 0).into(), BACKLOG).expect("a free port");
    let client = TcpSocket::new_v4().expect("a socket");
    let few = Rlimit { current: Some(64), ..getrlimit(Resource::Nofile) };
    setrlimit(Resource::Nofile, few).expect("fewer descriptors");
    let mut taken = Vec::new();
    while let Ok(file) = File::open("/dev/null") {
        taken.push(file);
    }
    let mut client = client.connect(listener.address()).await.expect("it listens");
    let (errors, begun) = (listener.accept_errors(), Instant::now());
    let starved = async {
        while errors.load(SeqCst) < 5 {
            assert!(
                timeout(Duration::from_millis(20), listener.accept()).await.is_err(),
                "no descriptor is free"
            );
        }
    };
    timeout(Duration::from_secs(30), starved).await.expect("errors are counted");
    let most = 1 + begun.elapsed().as_secs() as usize;
    assert!((1..=most).contains(&logged.load(SeqCst)), "{logged:?} lines");
    drop(taken);
    let (mut accepted, _) = timeout(Duration::from_secs(30), listener.accept()).await.expect("it goes on");
    client.write_all(b"x").await.expect("it reads");
    assert_eq!(accepted.read_u8().await.expect("it was written"), b'x');
}

/// Counts what is logged.
struct Counting(Arc<AtomicUsize>);

impl Subscriber for Counting {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("tollgate")
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, _: &Event<'_>) {
        self.0.fetch_add(1, SeqCst);
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}
