//! The script lends as the model does: the same calls at the same times get the same units, lives and refusals.

use super::{
    super::{Answer, BucketId, LeaseId, Line, Settlement, Wish},
    server::{Align, Numbers, Server},
};
use crate::{
    limit::RedisLimit,
    question::{Question, Told, Verb},
    store::RedisStore,
};
use proptest::prelude::*;
use std::{
    sync::{
        OnceLock,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};
use testkit::RedisServer;
use tokio::runtime::{Builder, Runtime};
use tollgate::{Key, ManualClock};

const NODES: u32 = 2;
const LIFE: Duration = Duration::from_millis(100);

/// A call about one bucket, `after` so many microseconds: settle up to two of the leases that are out, charge, wish.
#[derive(Clone, Debug)]
struct Step {
    after: u64,
    cost: u32,
    settle: [Option<(usize, u32)>; 2],
    wish: u32,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let settle = prop::option::of((0_usize..4, 0_u32..40));
    let after = prop_oneof![0_u64..2_000, 0_u64..60_000, 0_u64..3_000_000];
    let cost = prop_oneof![1 => Just(0_u32), 4 => 1_u32..6];
    let step = (after, cost, [settle.clone(), settle], prop_oneof![Just(0_u32), 1_u32..40])
        .prop_map(|(after, cost, settle, wish)| Step { after, cost, settle, wish });
    prop::collection::vec(step, 1..40)
}

fn limits() -> impl Strategy<Value = Numbers> {
    let window = (20_u32..400, 20_000_u64..2_000_000);
    prop_oneof![
        (1_u64..9, 1_u64..20_000, 20_u32..400).prop_map(|(earn, price, capacity)| Numbers::Level {
            earn,
            price,
            capacity,
            initial: capacity,
        }),
        window.clone().prop_map(|(limit, window)| Numbers::Fixed { limit, window, align: Align::Epoch }),
        window.clone().prop_map(|(limit, window)| Numbers::Fixed { limit, window, align: Align::FirstHit }),
        (window.clone(), 1_u64..30).prop_map(|((limit, window), parts)| {
            Numbers::Sliding { limit, window, precision: (window / parts).max(1) }
        }),
        window.prop_map(|(limit, window)| Numbers::Counter { limit, window }),
    ]
}

/// What of an answer must be the same. When a refusal ends is a hint, which the script words more cautiously while leases are out.
fn compared(answer: &Answer) -> (bool, u32, u32, u32, Duration) {
    (answer.denied.is_some(), answer.limit, answer.remaining, answer.leased, answer.life)
}

struct Redis {
    server: RedisServer,
    runtime: Runtime,
}

fn redis() -> &'static Redis {
    static REDIS: OnceLock<Redis> = OnceLock::new();
    REDIS.get_or_init(|| Redis {
        server: RedisServer::start(),
        runtime: Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap(),
    })
}

async fn ask(store: &RedisStore, limit: &RedisLimit, line: Line) -> Answer {
    let part = store.part(limit, Key::from("k"), line.cost.into(), None).await.unwrap();
    let verb =
        Verb::Lease { shares: u64::from(NODES) * 4, micros: LIFE.as_micros() as u64, lines: vec![line] };
    match store.ask(Question { verb, parts: [part].into() }).await.unwrap() {
        Told::Statuses(standings) => standings[0].lent_as_told(),
        other => panic!("{other:?}"),
    }
}

fn play(numbers: &Numbers, steps: &[Step]) -> Result<(), TestCaseError> {
    static RUNS: AtomicU64 = AtomicU64::new(0);
    let redis = redis();
    redis.runtime.block_on(async {
        let clock = ManualClock::new();
        let prefix = format!("tg-lend-{}", RUNS.fetch_add(1, Relaxed));
        let store = RedisStore::builder(&redis.server.url())
            .prefix(&prefix)
            .timeout(Duration::from_secs(5))
            .errors_on_failure()
            .clock(clock.clone())
            .open()
            .unwrap();
        let limit = store.add("limit", numbers.limit()).unwrap();
        let bucket = BucketId(7);
        let mut model = Server::new(NODES, LIFE, None);
        model.add(bucket, numbers);
        let (mut now, mut out, mut next) = (0, Vec::new(), 1);
        for (place, step) in steps.iter().enumerate() {
            now += step.after;
            clock.advance(Duration::from_micros(step.after));
            let mut taken = |which: Option<(usize, u32)>| {
                let (nth, used) = which.filter(|_| !out.is_empty())?;
                let place = nth % out.len();
                Some(Settlement { lease: out.swap_remove(place), used })
            };
            let settle = [taken(step.settle[0]), taken(step.settle[1])];
            let wish = (step.wish > 0).then_some(Wish { lease: LeaseId(next), units: step.wish });
            next += 1;
            let line = Line { bucket, cost: step.cost, settle, wish };
            let expected = model.ask(now, &[line]).remove(0);
            let told = ask(&store, &limit, line).await;
            prop_assert_eq!(
                compared(&told),
                compared(&expected),
                "step {} {:?} of {:?}",
                place,
                step,
                numbers
            );
            if let Some(wish) = wish.filter(|_| told.leased > 0) {
                out.push(wish.lease);
            }
        }
        Ok(())
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases()))]

    #[test]
    fn the_script_lends_as_the_model_does(limit in limits(), steps in steps()) {
        play(&limit, &steps)?;
    }
}

fn cases() -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(300)
}
