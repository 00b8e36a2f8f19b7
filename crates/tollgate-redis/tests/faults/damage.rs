//! Something else stands where a state should: an error that names the key, and a fresh bucket for the next charge. A later
//! version's state is left alone. Nobody else notices.

use crate::{
    Case,
    figures::say,
    load::{ends, runtime},
    msgpack,
    places::{Places, must, patient},
};
use testkit::RedisServer;
use tokio::task::JoinSet;
use tollgate::{Charge, Rate, StoreError, TokenBucket};
use tollgate_redis::{RedisLimit, RedisStore};

pub(crate) const CASES: &[Case] = &[("damaged states", damaged)];

const BURST: u32 = 100;

struct Place<'a> {
    server: &'a RedisServer,
    store: RedisStore,
    limit: RedisLimit,
    prefix: String,
}

impl Place<'_> {
    fn key(&self, key: &str) -> String {
        format!("{}:{{{key}}}:bucket", self.prefix)
    }

    async fn check(&self, key: &str) -> Result<u32, StoreError> {
        let told = self.store.check(&[Charge::new(&self.limit, key)]).await?;
        Ok(told.statuses()[0].remaining())
    }
}

fn damaged(places: &Places) -> Result<(), String> {
    let server = places.server();
    let runtime = runtime();
    runtime.block_on(async {
        let prefix = "damaged".to_owned();
        let store = patient(&server.url()).prefix(&prefix).open().expect("an address");
        let bucket =
            TokenBucket::new(Rate::new(1, std::time::Duration::from_secs(3_600)).expect("a rate"), BURST);
        let limit = store.add("bucket", bucket.expect("a limit")).expect("a limit");
        let place = Place { server, store, limit, prefix };
        place.check("real").await.map_err(|error| error.to_string())?;
        let testkit::Reply::Bulk(real) = server.command(&["GET", &place.key("real")]) else {
            return Err("no state".to_owned());
        };
        let later = [&msgpack::string(b"tg9")[..], &real[4..]].concat();
        let set = |bytes: Vec<u8>| {
            move |key: &str| vec![b"SET".to_vec(), key.into(), bytes, b"EX".into(), b"60".into()]
        };
        let half = real[..real.len() / 2].to_vec();
        healed(&place, "garbage", set(b"\xc1 not a state".to_vec())).await?;
        healed(&place, "empty", set(Vec::new())).await?;
        healed(&place, "text", set(b"12".to_vec())).await?;
        healed(&place, "half", set(half)).await?;
        healed(&place, "list", |key: &str| vec![b"RPUSH".to_vec(), key.into(), b"a".to_vec()]).await?;
        healed(&place, "hash", |key: &str| vec![b"HSET".to_vec(), key.into(), b"a".to_vec(), b"b".to_vec()])
            .await?;
        left_alone(&place, set(later)).await?;
        among_others(&place).await?;
        must(place.store.health().failed == 0, || format!("{:?}", place.store.health()))?;
        say(
            "damaged states",
            "6 kinds named, healed for the next charge; a later format left alone; 199 of 199 others served",
        );
        Ok(())
    })?;
    ends(&runtime)
}

async fn healed(place: &Place<'_>, name: &str, put: impl FnOnce(&str) -> Vec<Vec<u8>>) -> Result<(), String> {
    let key = place.key(name);
    place.server.command(&put(&key)).done();
    match place.check(name).await {
        Err(StoreError::Damaged { key: named }) if named == key => {}
        other => return Err(format!("{name}: {other:?}")),
    }
    let next = place.check(name).await;
    must(next == Ok(BURST - 1), || format!("{name}, the next charge: {next:?}"))?;
    let ttl = place.server.command(&["PTTL", &key]).integer();
    must(ttl > 0, || format!("{name}: a TTL of {ttl}"))
}

async fn left_alone(place: &Place<'_>, put: impl FnOnce(&str) -> Vec<Vec<u8>>) -> Result<(), String> {
    let key = place.key("later");
    place.server.command(&put(&key)).done();
    let before = place.server.command(&["GET", &key]);
    for _ in 0..3 {
        match place.check("later").await {
            Err(StoreError::TooNew { key: named }) if named == key => {}
            other => return Err(format!("a later format: {other:?}")),
        }
        for told in [
            place.store.refund(&place.limit, "later", 1).await,
            place.store.grant(&place.limit, "later", 1).await,
        ] {
            must(matches!(told, Err(StoreError::TooNew { .. })), || format!("a later format: {told:?}"))?;
        }
    }
    must(place.server.command(&["GET", &key]) == before, || "a later format was written over".to_owned())
}

/// Two hundred charges at once, which go together: one of them on a damaged key, and one set with it.
async fn among_others(place: &Place<'_>) -> Result<(), String> {
    place.server.command(&["SET", &place.key("bad"), "bad", "EX", "60"]).done();
    let mut callers = JoinSet::new();
    for number in 0..200 {
        let (store, limit) = (place.store.clone(), place.limit.clone());
        callers.spawn(async move {
            let key = if number == 100 { "bad".to_owned() } else { format!("good-{number}") };
            (number, store.check(&[Charge::new(&limit, key.as_str())]).await.map(|told| told.is_allow()))
        });
    }
    while let Some(done) = callers.join_next().await {
        let (number, told) = done.map_err(|error| error.to_string())?;
        let expected =
            if number == 100 { matches!(told, Err(StoreError::Damaged { .. })) } else { told == Ok(true) };
        must(expected, || format!("call {number}: {told:?}"))?;
    }
    place.server.command(&["SET", &place.key("bad"), "bad", "EX", "60"]).done();
    let before = place.check("fine").await;
    let set = [Charge::new(&place.limit, "fine"), Charge::new(&place.limit, "bad")];
    let told = place.store.check(&set).await;
    must(matches!(told, Err(StoreError::Damaged { .. })), || format!("a set with a damaged key: {told:?}"))?;
    let after = place.check("fine").await;
    must(before == Ok(BURST - 1) && after == Ok(BURST - 2), || {
        format!("charged with a damaged key: {after:?}")
    })
}
