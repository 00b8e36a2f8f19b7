//! Servers in processes of their own, and what they spend.

use crate::{child, process};
use std::{
    io::{BufRead, BufReader, Read},
    net::{SocketAddr, TcpListener, TcpStream},
    num::{NonZeroU32, NonZeroUsize},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::Arc,
    time::Duration,
};
use testkit::RedisServer;
use tollgate::{Bounds, MemoryStore};
use tollgate_net::{ConnectionHandler, Drain, DrainTimes, Listener, PoolSettings, WorkerPool};
use tollgate_rules::{DecisionService, parse_rules};
use tollgate_service::{Resp, RespSettings, Rls, RlsSettings};

/// The child that serves until its input ends.
pub(crate) const CHILD: &str = "service";

const RULES: &str = "
version: 1
limits:
  per-client: { token_bucket: { rate: 1000000/s, burst: 1000000 } }
domains: [ bench.yaml ]
";

const DOMAIN: &str = "
domain: bench
descriptors:
  - key: user
    rate_limit: { unit: hour, requests_per_unit: 4000000000 }
";

/// Room for the keys whose memory is looked at, and some.
const MAX_KEYS: usize = 1 << 20;

/// A server that is asked.
pub(super) enum Server {
    /// A process, and where it listens.
    Process {
        child: Child,
        port: u16,
    },
    Redis(Box<RedisServer>),
}

/// What a child of this binary serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ours {
    /// Redis clients, on one thread as Redis does.
    Resp,
    /// Envoy's rate limit service, with the threads it has in `tollgate serve`.
    Grpc,
    /// A service that decides nothing, by tonic, on a thread a core.
    Tonic,
}

impl Server {
    pub(super) fn ours(ours: Ours) -> Self {
        let line = child::arguments(CHILD, ours.name(), 1);
        let mut child = Command::new(&line[0])
            .args(&line[1..])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a child can be started");
        let mut told = String::new();
        BufReader::new(child.stdout.as_mut().expect("piped")).read_line(&mut told).expect("a port");
        Self::Process { child, port: told.trim().parse().expect("a port") }
    }

    pub(super) fn redis() -> Self {
        Self::Redis(Box::new(RedisServer::start()))
    }

    /// throttlecrab-server, as a Redis or as a gRPC server. With a log that says little, and none of it to us.
    pub(super) fn throttlecrab(transport: &str) -> Self {
        let port = free_port();
        let child = Command::new(throttlecrab())
            .args([&format!("--{transport}"), &format!("--{transport}-port"), &port.to_string()])
            .args([&format!("--{transport}-host"), "127.0.0.1", "--log-level", "error"])
            .args(["--store-capacity", &MAX_KEYS.to_string()])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("`make bench` has installed throttlecrab-server");
        testkit::eventually("throttlecrab-server to listen", || {
            TcpStream::connect((std::net::Ipv4Addr::LOCALHOST, port)).ok()
        });
        Self::Process { child, port }
    }

    pub(super) fn port(&self) -> u16 {
        match self {
            Self::Process { port, .. } => *port,
            Self::Redis(redis) => redis.port(),
        }
    }

    fn pid(&self) -> String {
        match self {
            Self::Process { child, .. } => child.id().to_string(),
            Self::Redis(redis) => redis.pid().to_string(),
        }
    }

    /// Processor time of all its threads.
    pub(super) fn processor_time(&self) -> Duration {
        process::processor_time(&self.pid())
    }

    /// Resident bytes.
    pub(super) fn resident_bytes(&self) -> f64 {
        process::resident_bytes(&self.pid())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Self::Process { child, .. } = self {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Where `scripts/setup bench` puts it.
pub(super) fn throttlecrab() -> PathBuf {
    let installed = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/peers/bin/throttlecrab-server");
    std::env::var_os("THROTTLECRAB_SERVER").map_or(installed, PathBuf::from)
}

/// Where `scripts/setup bench` builds what has limitador's library in it.
pub(super) fn limitador() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/peers/build/release/limitador-peer")
}

/// One that was free a moment ago; nobody else opens ports while we measure.
fn free_port() -> u16 {
    let bound = TcpListener::bind((std::net::Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    bound.local_addr().expect("a bound socket has an address").port()
}

impl Ours {
    const ALL: [Self; 3] = [Self::Resp, Self::Grpc, Self::Tonic];

    const fn name(self) -> &'static str {
        match self {
            Self::Resp => "resp",
            Self::Grpc => "grpc",
            Self::Tonic => "tonic",
        }
    }
}

/// Serves until its input ends, and says on which port.
pub(crate) fn serve(name: &str) {
    let ours = Ours::ALL.into_iter().find(|ours| ours.name() == name).expect("one of ours");
    if ours == Ours::Tonic {
        return serve_nothing();
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let _entered = runtime.enter();
    let file = parse_rules(RULES, |_| None).expect("good rules");
    let file = file.with_domain_files(&[("bench.yaml", DOMAIN)]).expect("a good domain");
    let bounds = Bounds { max_keys: MAX_KEYS, ..Bounds::default() };
    let store = Arc::new(MemoryStore::with_bounds(bounds));
    let decisions = DecisionService::new(store, file).expect("room for a limit");
    let drain = Drain::new(DrainTimes::default());
    if ours == Ours::Resp {
        let mut settings = PoolSettings::default();
        settings.workers = NonZeroUsize::MIN;
        open(&drain, settings, Resp::new(decisions, RespSettings::default()));
    } else {
        let door = Rls::new(decisions, RlsSettings::default(), drain.clone());
        // As `tollgate serve` has it.
        open(&drain, PoolSettings::shared(), door);
    }
}

fn open(drain: &Drain, settings: PoolSettings, handler: impl ConnectionHandler) {
    let backlog = NonZeroU32::MIN.saturating_add(1_023);
    let listener = Listener::bind(SocketAddr::from(([127, 0, 0, 1], 0)), backlog).expect("a free port");
    let pool = WorkerPool::start("bench", listener, settings, drain, Arc::new(handler)).expect("threads");
    say(pool.address().port());
}

/// tonic's own health service, which looks a word up.
fn serve_nothing() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    runtime.spawn(async {
        let (_, health) = tonic_health::server::health_reporter();
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
        let port = listener.local_addr().expect("a bound socket has an address").port();
        let incoming = tonic::transport::server::TcpIncoming::from(listener).with_nodelay(Some(true));
        std::thread::spawn(move || say(port));
        tonic::transport::Server::builder().add_service(health).serve_with_incoming(incoming).await
    });
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
}

/// Says where it listens, and waits until its input ends.
fn say(port: u16) {
    println!("{port}");
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
}
