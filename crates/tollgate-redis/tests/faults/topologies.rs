//! Every way to have Redis, from the address to the answer.

use crate::{
    Case,
    figures::say,
    load::{ends, runtime},
    places::{Places, must, patient, remaining, three_keys},
};
use std::time::{Duration, Instant};
use testkit::{RedisServer, Sentinels};
use tollgate::{Charge, Concurrency, DecidedBy, Rate, TokenBucket};

pub(crate) const CASES: &[Case] = &[
    ("redis://", |places| works("redis://", &places.server().url())),
    ("rediss://", encrypted),
    ("redis-sentinel://", |_| works("redis-sentinel://", &Sentinels::start().url())),
    ("redis-cluster://", |places| works("redis-cluster://", &places.cluster().url())),
];

/// All that a store needs of a server: a user that may do this and nothing else will do.
const RIGHTS: [&str; 14] = [
    "~run*",
    "+eval",
    "+evalsha",
    "+time",
    "+get",
    "+set",
    "+mget",
    "+exists",
    "+setrange",
    "+del",
    "+getex",
    "+ping",
    "+client|setname",
    "-@dangerous",
];

/// With an authority of one's own and a user that may do what is needed, and nothing else.
fn encrypted(_: &Places) -> Result<(), String> {
    let server = RedisServer::start_tls();
    let mut words = vec!["ACL", "SETUSER", "tollgate", "on", ">secret"];
    words.extend(RIGHTS);
    server.command(&words).done();
    let ca = server.tls().authority.display();
    works("rediss://", &format!("rediss://tollgate:secret@127.0.0.1:{}?ca={ca}", server.port()))
}

/// Every verb, once.
fn works(name: &str, url: &str) -> Result<(), String> {
    let runtime = runtime();
    runtime.block_on(async {
        let begun = Instant::now();
        let store = patient(url).open().map_err(|error| error.to_string())?;
        let short =
            TokenBucket::new(Rate::new(1, Duration::from_secs(3_600)).expect("a rate"), 5).expect("a limit");
        // Its birth matters, so that this is looked up as well.
        let young = store.add("young", short.with_initial(2).expect("a level")).expect("a limit");
        let bucket = store.add("bucket", short).expect("a limit");
        let slots = store
            .add("slots", Concurrency::new(2, Duration::from_secs(60)).expect("a limit"))
            .expect("a limit");
        let told = |error: tollgate::StoreError| error.to_string();
        let first = store.check(&[Charge::new(&bucket, "k")]).await.map_err(told)?;
        let first_took = begun.elapsed();
        must(first.statuses()[0].decided_by() == DecidedBy::Store, || format!("{first:?}"))?;
        for (key, left) in three_keys().iter().zip([4, 4, 4]) {
            let set = [Charge::new(&bucket, key.as_str()), Charge::new(&slots, key.as_str())];
            let set = store.check(&set).await.map_err(told)?;
            must(set.is_allow() && set.statuses()[0].remaining() == left, || format!("{set:?}"))?;
            let permit = set.permit().ok_or("no permit")?;
            let charge = [Charge::new(&slots, key.as_str())];
            must(store.renew(&charge, permit).await.map_err(told)?, || "not renewed".to_owned())?;
            must(store.leave(&charge, permit).await.map_err(told)? == 1, || "not given back".to_owned())?;
        }
        must(remaining(&store, &young, "k").await? == 2, || "born full".to_owned())?;
        store.refund(&bucket, "k", 1).await.map_err(told)?;
        must(remaining(&store, &bucket, "k").await? == 5, || "not refunded".to_owned())?;
        store.grant(&bucket, "k", 2).await.map_err(told)?;
        must(remaining(&store, &bucket, "k").await? == 7, || "not granted".to_owned())?;
        let denied = store.check(&[Charge::new(&bucket, "k").cost(7)]).await.map_err(told)?;
        must(denied.is_allow(), || format!("{denied:?}"))?;
        let denied = store.check(&[Charge::new(&bucket, "k")]).await.map_err(told)?;
        must(denied.is_deny(), || format!("{denied:?}"))?;
        store.reset(&bucket, "k").await.map_err(told)?;
        store.ban(&bucket, "k", Duration::from_secs(9)).await.map_err(told)?;
        let banned = store.check(&[Charge::new(&bucket, "k")]).await.map_err(told)?;
        must(banned.statuses()[0].decided_by() == DecidedBy::Ban, || format!("{banned:?}"))?;
        let turn = store.reserve(&[Charge::new(&bucket, "t").cost(5)], Duration::ZERO).await;
        turn.map_err(|error| error.to_string())?.cancel().await.map_err(told)?;
        let mut took = Vec::new();
        for _ in 0..200 {
            let asked = Instant::now();
            let _ = store.peek(&[Charge::new(&bucket, "t")]).await.map_err(told)?;
            took.push(asked.elapsed());
        }
        took.sort_unstable();
        must(store.health().failed == 0, || format!("{:?}", store.health()))?;
        say(
            name,
            &format!("every verb works; first answer after {first_took:.1?}, then {:.0?} each", took[100]),
        );
        Ok::<_, String>(())
    })?;
    ends(&runtime)
}
