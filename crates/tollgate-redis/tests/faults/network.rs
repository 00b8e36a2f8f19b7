//! What happens to bytes on their way: cut, late, garbled, swallowed, or answers that say not now.

use crate::{
    Case,
    figures::say,
    load::{TIMEOUT, ends, runtime},
    outage::Outage,
    places::{Places, must},
    seconds,
    servers::leaves_no_key_behind,
};
use std::time::{Duration, Instant};
use testkit::{Proxy, RedisServer};
use tollgate::{Charge, OnFailure, Rate, TokenBucket};
use tollgate_redis::RedisStore;

pub(crate) const CASES: &[Case] = &[
    ("cut", |_| between("cut", seconds(1.0, 3.0), Proxy::cut)),
    ("cut once", cut_once),
    ("a second late", |_| {
        between("a second late", seconds(1.5, 5.0), |proxy| proxy.delay(Duration::from_millis(500)))
    }),
    ("garbage", |_| between("garbage", seconds(1.0, 3.0), Proxy::garble)),
    ("half-open", |_| between("half-open", seconds(1.5, 5.0), Proxy::black_hole)),
    ("half-open, young", young),
    ("no replies", |_| between("no replies", seconds(1.0, 3.0), Proxy::drop_replies)),
    ("loading", |_| {
        let answer = "-LOADING Redis is loading the dataset in memory\r\n";
        between("loading", seconds(1.0, 3.0), |proxy| proxy.answer_with(answer))
    }),
];

/// A fault that lasts, and then is over. What went wrong meanwhile is seen at the server: nobody hammered at it.
fn between(name: &'static str, lasting: Duration, fault: impl Fn(&Proxy)) -> Result<(), String> {
    let server = RedisServer::start();
    let proxy = Proxy::start(server.port());
    let calls = || -> u64 {
        let calls = |command: &str| {
            let line = server.info("commandstats", &format!("cmdstat_{command}"));
            let count = line.strip_prefix("calls=").and_then(|rest| rest.split(',').next()?.parse().ok());
            count.unwrap_or(0_u64)
        };
        calls("evalsha") + calls("eval") + calls("set")
    };
    let before = std::cell::Cell::new((0, 0));
    let asked = std::cell::Cell::new((0, 0));
    Outage::total(name, lasting).run(
        &proxy.url(),
        || {
            fault(&proxy);
            before.set((calls(), proxy.connections()));
        },
        || {
            asked.set((calls() - before.get().0, proxy.connections() - before.get().1));
            proxy.pass();
        },
    )?;
    let (commands, connections) = asked.get();
    println!(
        "{name:22} {:7} {commands} commands and {connections} connections reached the server of all three",
        ""
    );
    // Three nodes: some calls each until they gave up; then a probe and an attempt to connect a second, sooner at first.
    let few = 3 * (15 + 4 + 2 * lasting.as_secs() + 8);
    must(commands <= few, || format!("{commands} commands while it lasted"))?;
    must(connections <= few, || format!("{connections} connections while it lasted"))?;
    leaves_no_key_behind(&server)
}

/// A connection that is lost and can be had again at once: a few calls pay, and nobody is given up.
fn cut_once(_: &Places) -> Result<(), String> {
    let server = RedisServer::start();
    let proxy = Proxy::start(server.port());
    Outage::partial("cut once", Duration::from_millis(300)).run(&proxy.url(), || proxy.cut_once(), || ())?;
    leaves_no_key_behind(&server)
}

/// A limit that begins short has its birth looked up first: that waits no longer than a charge does.
fn young(_: &Places) -> Result<(), String> {
    let server = RedisServer::start();
    let proxy = Proxy::start(server.port());
    proxy.black_hole();
    let runtime = runtime();
    let mut took = runtime.block_on(async {
        let store = RedisStore::builder(&proxy.url()).on_failure(OnFailure::Open).timeout(TIMEOUT);
        let store = store.open().expect("an address");
        let bucket = TokenBucket::new(Rate::per_second(5).expect("a rate"), 5).expect("a limit");
        let limit = store.add("young", bucket.with_initial(1).expect("a level")).expect("a limit");
        let mut took = Vec::new();
        for _ in 0..30 {
            let asked = Instant::now();
            let told = store.check(&[Charge::new(&limit, "k")]).await.map_err(|error| error.to_string())?;
            took.push(asked.elapsed());
            must(told.is_allow(), || "refused, though open".to_owned())?;
        }
        Ok::<_, String>(took)
    })?;
    took.sort_unstable();
    let felt = took.iter().filter(|took| **took >= TIMEOUT / 2).count();
    say(
        "half-open, young",
        &format!("{felt} of 30 calls felt the timeout; the slowest took {:.0?}", took[29]),
    );
    must(felt <= 7 && took[29] <= TIMEOUT + Duration::from_millis(400), || format!("{took:.0?}"))?;
    ends(&runtime)
}
