//! Servers in processes of their own, one thread each, and what they spend.

use crate::child;
use std::{
    fs,
    io::{BufRead, BufReader, Read},
    net::SocketAddr,
    num::{NonZeroU32, NonZeroUsize},
    process::{Child, Command, Stdio},
    sync::Arc,
    time::Duration,
};
use testkit::RedisServer;
use tollgate::MemoryStore;
use tollgate_net::{Crew, CrewSettings, Drain, DrainTimes, Listener};
use tollgate_rules::{Enforcer, parse_rules};
use tollgate_service::{Desk, NoLedger, Resp, RespSettings};

/// The child that serves until its input ends.
pub(crate) const CHILD: &str = "resp-server";

const RULES: &str = "
version: 1
limits:
  per-client: { token_bucket: { rate: 1000000/s, burst: 1000000 } }
";

/// A server that is asked.
pub(super) enum Server {
    Ours { child: Child, port: u16 },
    Redis(Box<RedisServer>),
}

impl Server {
    pub(super) fn ours() -> Self {
        let line = child::arguments(CHILD, "memory", 1);
        let mut child = Command::new(&line[0])
            .args(&line[1..])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a child can be started");
        let mut told = String::new();
        BufReader::new(child.stdout.as_mut().expect("piped")).read_line(&mut told).expect("a port");
        Self::Ours { child, port: told.trim().parse().expect("a port") }
    }

    pub(super) fn redis() -> Self {
        Self::Redis(Box::new(RedisServer::start()))
    }

    pub(super) fn port(&self) -> u16 {
        match self {
            Self::Ours { port, .. } => *port,
            Self::Redis(redis) => redis.port(),
        }
    }

    /// Processor time of all its threads.
    pub(super) fn processor_time(&self) -> Duration {
        let pid = match self {
            Self::Ours { child, .. } => child.id(),
            Self::Redis(redis) => redis.pid(),
        };
        let threads = fs::read_dir(format!("/proc/{pid}/task")).expect("a Linux");
        let nanos = threads.map(|thread| {
            let text = fs::read_to_string(thread.expect("a thread").path().join("schedstat"));
            text.unwrap_or_default().split_whitespace().next().and_then(|it| it.parse().ok()).unwrap_or(0)
        });
        Duration::from_nanos(nanos.sum())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Self::Ours { child, .. } = self {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Serves Redis clients on one thread until its input ends, and says on which port.
pub(crate) fn serve() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let runtime = runtime.expect("a runtime");
    let _entered = runtime.enter();
    let file = parse_rules(RULES, |_| None).expect("good rules");
    let enforcer = Enforcer::new(Arc::new(MemoryStore::new()), file).expect("room for a limit");
    let desk = Desk::new(Arc::new(enforcer), Arc::new(NoLedger));
    let listener =
        Listener::bind(SocketAddr::from(([127, 0, 0, 1], 0)), NonZeroU32::MIN.saturating_add(1_023));
    let drain = Drain::new(DrainTimes::default());
    let mut settings = CrewSettings::default();
    settings.workers = NonZeroUsize::MIN;
    let door = Arc::new(Resp::new(desk, RespSettings::default()));
    let crew = Crew::start("resp", listener.expect("a free port"), settings, &drain, door).expect("threads");
    println!("{}", crew.address().port());
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
}
