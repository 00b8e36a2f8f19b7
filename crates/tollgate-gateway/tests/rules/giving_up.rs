//! Clients that disconnect while their requests are held leave no gap in the queue: the limit's bound holds over the times at
//! which requests reach the upstream, and its rate is used.
//!
//! The load is 200 clients a second for 100 units a second and a burst of one. All of them disconnect after half a second. The
//! clock is real, so a request that was released reaches the upstream as late as the threads on its way are. The test measures
//! that by requests that no rule holds, on the same way at the same time, and accepts no other excess over the bound.

use crate::stage::Stage;
use std::{
    io::{Read as _, Write as _},
    net::{self, SocketAddr},
    sync::atomic::{AtomicBool, Ordering::SeqCst},
    thread,
    time::{Duration, Instant},
};
use testkit::Asked;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    runtime::{Builder, Runtime},
    task::JoinSet,
    time::{sleep_until, timeout},
};

const RATE: f64 = 100.0;
const BURST: f64 = 1.0;
const BETWEEN_ARRIVALS: Duration = Duration::from_millis(5);
const PATIENCE: Duration = Duration::from_millis(500);
const ARRIVALS: u32 = 800;
/// The queue is filling until then.
const FILLING: Duration = Duration::from_secs(1);

/// How many connections are probed on, so that each worker of the gateway has some, and the pause between two probes on one.
const PROBES: usize = 4;
const BETWEEN_PROBES: Duration = Duration::from_millis(2);

const RULES: &str = "
limits: { turns: { token_bucket: { rate: 100/s, burst: 1 } } }
routes:
  - { name: probe, when: { path: /probe }, upstream: up }
  - { name: all, upstream: up, rules: [ { name: only, limits: [ { use: turns, key: [] } ], excess: { wait: 10s } } ] }
";

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().expect("a runtime")
}

/// Sends a request, and disconnects when the answer takes too long.
async fn send_request(address: SocketAddr) {
    let Ok(mut socket) = TcpStream::connect(address).await else { return };
    let asked = socket.write_all(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n").await;
    let _ = timeout(PATIENCE, socket.read(&mut [0; 512])).await;
    asked.expect("room in the buffer");
}

/// Runs the load: each client connects at its time. Says how late the latest was.
fn run_load(address: SocketAddr) -> Duration {
    runtime().block_on(async {
        let (began, mut clients) = (tokio::time::Instant::now(), JoinSet::new());
        let mut late = Duration::ZERO;
        for arrival in 0..ARRIVALS {
            let due = began + BETWEEN_ARRIVALS * arrival;
            sleep_until(due).await;
            late = late.max(due.elapsed());
            clients.spawn(send_request(address));
        }
        clients.join_all().await;
        late
    })
}

/// Probes over one connection until `is_over`; when each was sent.
fn probe(address: SocketAddr, connection: usize, is_over: &AtomicBool) -> Vec<Instant> {
    let mut socket = net::TcpStream::connect(address).expect("it listens");
    socket.set_nodelay(true).expect("no delay");
    let mut sent = Vec::new();
    while !is_over.load(SeqCst) {
        let request =
            format!("GET /probe HTTP/1.1\r\nhost: a\r\nx-probe: {connection} {}\r\n\r\n", sent.len());
        sent.push(Instant::now());
        socket.write_all(request.as_bytes()).expect("sent");
        assert!(socket.read(&mut [0; 512]).expect("an answer") > 0);
        thread::sleep(BETWEEN_PROBES);
    }
    sent
}

/// By how much probes reached the upstream later than the quickest of them did.
fn lateness(sent: &[Vec<Instant>], asked: &[Asked], epoch: Instant) -> Duration {
    let took = |asked: &Asked| {
        let (_, text) = asked.headers.iter().find(|(name, _)| name == "x-probe")?;
        let (connection, number) = text.split_once(' ')?;
        let sent = sent[connection.parse::<usize>().ok()?][number.parse::<usize>().ok()?];
        // On two clocks, which are as far apart for all of them.
        asked.at.checked_sub(sent - epoch)
    };
    let took: Vec<Duration> = asked.iter().filter_map(took).collect();
    let (least, most) = (took.iter().min().expect("probes"), took.iter().max().expect("probes"));
    *most - *least + BETWEEN_PROBES
}

/// The largest excess over burst + rate * t of any window, and the length of that window.
fn most_over(reached: &[Duration]) -> (f64, Duration) {
    let mut worst = (0.0, Duration::ZERO);
    for (first, from) in reached.iter().enumerate() {
        for (count, to) in (1_u32..).zip(&reached[first..]) {
            let excess = f64::from(count) - BURST - RATE * (*to - *from).as_secs_f64();
            if excess > worst.0 {
                worst = (excess, *to - *from);
            }
        }
    }
    worst
}

#[test]
fn disconnected_clients_leave_no_gap() {
    let (stage, is_over) = (Stage::real(RULES), AtomicBool::new(false));
    // After the upstream's own.
    let epoch = Instant::now();
    let (address, is_over) = (stage.address(), &is_over);
    let (behind, sent) = thread::scope(|scope| {
        let probing = std::array::from_fn::<_, PROBES, _>(|connection| connection)
            .map(|connection| scope.spawn(move || probe(address, connection, is_over)));
        let behind = run_load(address);
        is_over.store(true, SeqCst);
        (behind, probing.map(|probing| probing.join().expect("times")))
    });
    stage.rests();
    let asked = stage.up.asked();
    let late = lateness(&sent, &asked, epoch);
    let mut reached: Vec<Duration> =
        asked.iter().filter(|asked| asked.target == "/").map(|asked| asked.at).collect();
    reached.sort_unstable();
    let (first, end) = (reached[0] + FILLING, reached[0] + BETWEEN_ARRIVALS * ARRIVALS);
    let used = reached.iter().filter(|at| (first..end).contains(at)).count();
    let share = used as f64 / (RATE * (end - first).as_secs_f64());
    let (excess, within) = most_over(&reached);
    let grain = 1.0 + RATE * late.as_secs_f64();
    let figures = format!(
        "{} reached the upstream, {:.1} % of the rate; at most {excess:.2} over the bound, within {within:.1?}, where a way \
         that takes up to {late:.2?} longer explains {grain:.2}; clients were late by up to {behind:.2?}",
        reached.len(),
        share * 100.0
    );
    println!("{figures}");
    assert!(excess <= grain, "{figures}");
    // What was released before the end may have come after it, and who comes late is not there to be released.
    let missing = (late + behind).as_secs_f64() / (end - first).as_secs_f64();
    assert!(share >= 0.95 - missing, "{figures}");
}
