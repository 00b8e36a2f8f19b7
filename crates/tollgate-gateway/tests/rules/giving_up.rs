//! Clients that disconnect while their requests are held leave no gap in the queue: the limit's bound holds over the times at
//! which requests reach the upstream, and its rate is used.
//!
//! The load is 200 clients a second for 100 units a second and a burst of one. All of them disconnect after half a second. The
//! clock is real, so a request may be late by as much as timers are. The test measures that on as many threads as the gateway
//! has workers, and accepts no other excess over the bound.

use crate::stage::{Stage, one_rule};
use std::{
    net::SocketAddr,
    sync::atomic::{AtomicBool, Ordering::SeqCst},
    thread,
    time::{Duration, Instant},
};
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

const RULES: &str = "limits: { turns: { token_bucket: { rate: 100/s, burst: 1 } } }\n";

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

/// Runs the load: each client connects at its time.
fn run_load(address: SocketAddr) {
    runtime().block_on(async {
        let (began, mut clients) = (tokio::time::Instant::now(), JoinSet::new());
        for arrival in 0..ARRIVALS {
            sleep_until(began + BETWEEN_ARRIVALS * arrival).await;
            clients.spawn(send_request(address));
        }
        clients.join_all().await;
    });
}

/// The largest delay of a timer until `is_over`.
fn watch_timers(is_over: &AtomicBool) -> Duration {
    runtime().block_on(async {
        let mut latest = Duration::ZERO;
        while !is_over.load(SeqCst) {
            let due = Instant::now() + Duration::from_millis(2);
            sleep_until(due.into()).await;
            latest = latest.max(due.elapsed());
        }
        latest
    })
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
    let rules = RULES.to_owned() + &one_rule("limits: [ { use: turns, key: [] } ], excess: { wait: 10s }");
    let (stage, is_over) = (Stage::real(&rules), AtomicBool::new(false));
    let late = thread::scope(|scope| {
        let watching = [(); 2].map(|()| scope.spawn(|| watch_timers(&is_over)));
        run_load(stage.address());
        is_over.store(true, SeqCst);
        watching.into_iter().map(|watching| watching.join().expect("a time")).max().unwrap_or_default()
    });
    stage.rests();
    let mut reached: Vec<Duration> = stage.up.asked().into_iter().map(|asked| asked.at).collect();
    reached.sort_unstable();
    let (first, end) = (reached[0] + FILLING, reached[0] + BETWEEN_ARRIVALS * ARRIVALS);
    let used = reached.iter().filter(|at| (first..end).contains(at)).count();
    let share = used as f64 / (RATE * (end - first).as_secs_f64());
    let (excess, within) = most_over(&reached);
    let grain = 1.0 + RATE * late.as_secs_f64();
    let figures = format!(
        "{} reached the upstream, {:.1} % of the rate; at most {excess:.2} over the bound, within {within:.1?}, where timers \
         late by {late:.2?} explain {grain:.2}",
        reached.len(),
        share * 100.0
    );
    println!("{figures}");
    assert!(excess <= grain, "{figures}");
    assert!(share >= 0.95, "{figures}");
}
