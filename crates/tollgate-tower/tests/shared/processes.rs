//! Two processes and one limit.

use crate::{
    limits::{self, BURST, MAX_HOLD, RATE, SLOTS, answer, now, request},
    node::{Node, Pass, Task},
};
use std::time::{Duration, Instant};
use testkit::RedisServer;
use tokio::runtime::Builder;
use tower::{Layer, ServiceExt, service_fn};

/// A waiter looks for slots this often at least, and a busy machine is late.
const LATE: Duration = Duration::from_millis(250);

/// What passed at two processes that did the same at the same time, by when it was let through.
fn play(server: &RedisServer, task: Task, prefix: &str) -> Vec<Pass> {
    let mut nodes = [(); 2].map(|()| Node::start(task, &server.url(), prefix));
    nodes.iter_mut().for_each(Node::release);
    let passes = nodes.map(Node::finish);
    assert!(passes.iter().all(|passes| !passes.is_empty()), "one process got nothing");
    let mut passes = passes.concat();
    passes.sort_by_key(|pass| pass.began);
    passes
}

/// Over every stretch of time no more than the burst and what came since was let through, by both processes together.
pub(crate) fn share_a_rate(server: &RedisServer) {
    let passes = play(server, Task::Rate, "tower-rate");
    for (first, _) in passes.iter().enumerate() {
        let mut earliest = u64::MAX;
        for (more, pass) in passes[first..].iter().enumerate() {
            // Each was decided after it was asked for, and before it was let through.
            earliest = earliest.min(pass.asked);
            let earned = u64::from(RATE) * (pass.began - earliest) / 1_000_000_000;
            let passed = more as u64 + 1;
            assert!(passed <= u64::from(BURST) + earned + 1, "{passed} in {} ns", pass.began - earliest);
        }
    }
    assert!(passes.len() > BURST as usize, "it goes on after the burst: {}", passes.len());
}

/// At no time more are in flight than there are slots.
pub(crate) fn share_slots(server: &RedisServer) {
    let passes = play(server, Task::Slots, "tower-slots");
    let mut changes: Vec<(u64, i64)> =
        passes.iter().flat_map(|pass| [(pass.began, 1), (pass.ended, -1)]).collect();
    changes.sort_unstable();
    let (mut in_flight, mut most) = (0, 0);
    for (_, change) in changes {
        in_flight += change;
        most = most.max(in_flight);
    }
    assert!(most <= i64::from(SLOTS), "{most} were in flight");
    assert!(most > 1, "the slots were used");
}

/// A process that is killed cannot give anything back: its slots come back when their time is up.
pub(crate) fn gives_slots_back_when_killed(server: &RedisServer) {
    let mut node = Node::start(Task::Hold, &server.url(), "tower-killed");
    node.release();
    node.hear("held");
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    runtime.block_on(async {
        let store = limits::store(&server.url(), "tower-killed");
        let layer = limits::slots(&store);
        let impatient = layer.clone().wait(Duration::ZERO).layer(service_fn(answer));
        // For longer than they are held without a renewal.
        let begun = Instant::now();
        while begun.elapsed() < 2 * MAX_HOLD {
            let refused = impatient.clone().oneshot(request()).await.unwrap();
            assert_eq!(refused.status(), 429, "a living process holds all slots");
            tokio::time::sleep(MAX_HOLD / 10).await;
        }
        let slots = layer.handle(&store, "slots").unwrap().clone();
        let left = store.peek(&[tollgate::Charge::new(&slots, ()).cost(0)]).await.unwrap();
        let earliest = now() + left.statuses()[0].reset_after().unwrap().as_nanos() as u64;
        node.kill();
        let killed = Instant::now();
        let service = layer.layer(service_fn(answer));
        let all = [(); SLOTS as usize].map(|()| tokio::spawn(service.clone().oneshot(request())));
        let mut responses = Vec::new();
        for response in all {
            responses.push(response.await.unwrap().unwrap());
        }
        let (back, after) = (now(), killed.elapsed());
        assert!(responses.iter().all(|response| response.status() == 200));
        assert!(back + 1_000_000 > earliest, "{after:?} after the kill they were still held");
        assert!(after <= MAX_HOLD + LATE, "they came back {after:?} after the kill");
        println!("{SLOTS} slots came back {after:?} after the kill, of {MAX_HOLD:?}");
    });
}
