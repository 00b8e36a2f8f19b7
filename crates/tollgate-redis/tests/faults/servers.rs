//! What happens to a server: killed, frozen, not there yet, out of memory, busy, demoted.

use crate::{
    Case,
    figures::count,
    load::{BURST, Fleet, RATE, runtime},
    outage::Outage,
    places::{Places, must},
    seconds,
};
use std::{
    io::ErrorKind,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread,
    time::Duration,
};
use testkit::{Connection, RedisServer};
use tollgate::{Charge, OnFailure};
use tollgate_redis::RedisStore;

pub(crate) const CASES: &[Case] = &[
    ("killed", killed),
    ("frozen", frozen),
    ("down at start", down_at_start),
    ("out of memory", out_of_memory),
    ("evicted", evicted),
    ("busy", busy),
    ("demoted", demoted),
    ("dropped while down", dropped_while_down),
];

fn killed(_: &Places) -> Result<(), String> {
    let server = RedisServer::start();
    let outage = Outage::total("killed", seconds(1.0, 5.0)).losing(1);
    outage.run(&server.url(), || server.kill(), || server.restart())?;
    leaves_no_key_behind(&server)
}

fn frozen(_: &Places) -> Result<(), String> {
    let server = RedisServer::start();
    let outage = Outage::total("frozen", seconds(2.0, 5.0));
    outage.run(&server.url(), || server.pause(), || server.resume())?;
    leaves_no_key_behind(&server)
}

fn down_at_start(_: &Places) -> Result<(), String> {
    let server = RedisServer::start();
    let outage = Outage::total("down at start", seconds(1.0, 3.0)).at_start();
    outage.run(&server.url(), || server.kill(), || server.restart())?;
    leaves_no_key_behind(&server)
}

/// Nothing can be written; what is refused needs no write, and so is still decided by Redis.
fn out_of_memory(_: &Places) -> Result<(), String> {
    let server = RedisServer::start();
    let outage = Outage::partial("out of memory", seconds(1.0, 3.0));
    let limit = |bytes: &str| drop(server.command(&["CONFIG", "SET", "maxmemory", bytes]).done());
    outage.run(&server.url(), || limit("1000"), || limit("0"))?;
    leaves_no_key_behind(&server)
}

/// A key that the server throws out is a fresh bucket: no failure, and one burst more each time.
fn evicted(_: &Places) -> Result<(), String> {
    let server = RedisServer::start();
    let evictions = Evictions::listen(&server);
    let mut fleet = Fleet::new(&server.url());
    fleet.charge("k");
    // Under load: what the buffers of its clients take is not left to keys.
    thread::sleep(Duration::from_millis(200));
    let used: u64 = server.info("memory", "used_memory").parse().expect("a number");
    let most = (used + 300_000).to_string();
    server.command(&["CONFIG", "SET", "maxmemory", &most, "maxmemory-policy", "volatile-ttl"]).done();
    let from = fleet.now();
    let filler = "x".repeat(1_000);
    let lasting = seconds(0.6, 3.0);
    for number in 0.. {
        let refused = server.command(&["SET", &format!("filler-{number}"), &filler, "EX", "60"]).is_error();
        if fleet.now() > from + lasting || refused {
            break;
        }
    }
    let to = fleet.now();
    fleet.stop()?;
    let evicted = evictions.count();
    for node in &fleet.nodes {
        let samples = node.samples();
        let figures = count(node, &samples, &(from..to));
        figures.print("evicted");
        let calls = samples.iter().filter(|sample| sample.is_by_store()).count();
        must(calls == samples.len(), || format!("only {calls} of {} by Redis", samples.len()))?;
        let admitted = samples.iter().filter(|sample| sample.is_allow()).count() as f64;
        let elapsed = fleet.now().as_secs_f64();
        let most = f64::from(BURST) * (1 + evicted) as f64 + f64::from(RATE) * elapsed + 1.0;
        must(admitted <= most, || format!("{admitted} admitted, above {most:.0} with {evicted} evictions"))?;
        let plain = f64::from(BURST) + f64::from(RATE) * elapsed;
        println!("{:22} {:7} {admitted} admitted, {plain:.0} without evictions", "", figures.policy);
    }
    println!("{:22} {:7} {evicted} evictions of a bucket", "", "");
    must(evicted > 0, || "no bucket was evicted".to_owned())?;
    fleet.end()
}

/// Somebody's script runs for ever.
fn busy(_: &Places) -> Result<(), String> {
    let server = RedisServer::start_with(&["--busy-reply-threshold", "50"]);
    let outage = Outage::total("busy", seconds(1.0, 3.0));
    let mut other = Connection::open(server.port(), Duration::from_secs(30)).expect("a connection");
    let begin = || {
        other.send(&["EVAL", "while true do end", "0"]).expect("a request is sent");
        testkit::eventually("the server to be busy", || {
            let answer = server.command(&["PING"]);
            answer.is_error().then_some(())
        });
    };
    outage.run(&server.url(), begin, || drop(server.command(&["SCRIPT", "KILL"]).done()))?;
    leaves_no_key_behind(&server)
}

/// A replica now, with the connections still up. What is refused needs no write, and so is still decided there.
fn demoted(_: &Places) -> Result<(), String> {
    let server = RedisServer::start();
    let outage = Outage::partial("demoted", seconds(1.5, 5.0));
    let follow = |words: [&str; 3]| drop(server.command(&words).done());
    outage.run(
        &server.url(),
        || follow(["REPLICAOF", "127.0.0.1", "1"]),
        || follow(["REPLICAOF", "NO", "ONE"]),
    )?;
    leaves_no_key_behind(&server)
}

/// A store that is dropped while Redis is down leaves nobody behind who looks for it.
fn dropped_while_down(_: &Places) -> Result<(), String> {
    let server = RedisServer::start();
    let runtime = runtime();
    let builder = RedisStore::builder(&server.url()).on_failure(OnFailure::Open);
    server.kill();
    runtime.block_on(async {
        let store = builder.timeout(Duration::from_millis(50)).open().expect("an address");
        let bucket = tollgate::FixedWindow::forever(5).expect("a limit");
        let limit = store.add("quota", bucket).expect("a limit");
        for _ in 0..20 {
            let told = store.check(&[Charge::new(&limit, "k")]).await.map_err(|error| error.to_string())?;
            must(told.is_allow(), || "refused, though open".to_owned())?;
        }
        must(store.health().outages == 1, || format!("{:?}", store.health()))
    })?;
    crate::load::ends(&runtime)?;
    crate::figures::say("dropped while down", "no task is left");
    Ok(())
}

/// Who listens for keys that are thrown out.
struct Evictions {
    stop: Arc<AtomicBool>,
    thread: thread::JoinHandle<u32>,
}

impl Evictions {
    fn listen(server: &RedisServer) -> Self {
        server.command(&["CONFIG", "SET", "notify-keyspace-events", "Ee"]).done();
        let mut connection =
            Connection::open(server.port(), Duration::from_millis(100)).expect("a connection");
        connection.command(&["SUBSCRIBE", "__keyevent@0__:evicted"]).expect("an answer").done();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = thread::spawn(move || {
            let mut count = 0;
            loop {
                match connection.receive() {
                    Ok(message) => count += u32::from(message.items()[2].text().contains("bucket")),
                    Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                        if stopped.load(Relaxed) {
                            return count;
                        }
                    }
                    Err(error) => panic!("{error}"),
                }
            }
        });
        Self { stop, thread }
    }

    fn count(self) -> u32 {
        self.stop.store(true, Relaxed);
        self.thread.join().expect("the listener counts")
    }
}

pub(crate) fn leaves_no_key_behind(server: &RedisServer) -> Result<(), String> {
    let left = server.keys_without_ttl();
    must(left.is_empty(), || format!("keys without a TTL: {left:?}"))
}
