//! Requests that come, wait, work, fail, panic and are dropped in any order: never more in flight than may be, and in the end
//! every slot is free.

use crate::stage::{Frames, store};
use http::{Request, Response};
use proptest::prelude::*;
use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering::SeqCst},
    },
    time::Duration,
};
use tokio::{task::JoinHandle, time::sleep};
use tollgate::{Charge, Concurrency};
use tollgate_tower::{LayerLimit, LimitBody, LimitLayer};
use tower::{Layer, ServiceExt, service_fn};

#[derive(Clone, Copy, Debug)]
enum Step {
    /// A request whose work takes so many milliseconds, and ends in this way.
    Come(u64, End),
    /// A client that is gone while its request waits, or works, or its body is there.
    Leave(prop::sample::Index),
    Pause(u64),
}

#[derive(Clone, Copy, Debug)]
enum End {
    Body,
    Error,
    Panic,
}

fn step() -> impl Strategy<Value = Step> {
    let end = prop_oneof![3 => Just(End::Body), 1 => Just(End::Error), 1 => Just(End::Panic)];
    prop_oneof![
        4 => (0..5_000_u64, end).prop_map(|(millis, end)| Step::Come(millis, end)),
        2 => any::<prop::sample::Index>().prop_map(Step::Leave),
        2 => (0..3_000_u64).prop_map(Step::Pause),
    ]
}

/// Somebody is in, until this is dropped.
struct In(Arc<AtomicU32>);

impl Drop for In {
    fn drop(&mut self) {
        self.0.fetch_sub(1, SeqCst);
    }
}

type Answer = Result<Response<LimitBody<Frames>>, &'static str>;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn never_more_than_may_be_and_none_in_the_end(
        limit in 1..4_u32,
        queue in 0..4_u32,
        wait in 0..4_000_u64,
        steps in prop::collection::vec(step(), 1..60),
    ) {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let store = store();
            let numbers = Concurrency::new(limit, Duration::from_secs(1)).unwrap().with_queue(queue);
            let layer = LimitLayer::in_store(&store, [LayerLimit::new("slots", numbers)]).unwrap();
            let handle = layer.handle(&store, "slots").unwrap().clone();
            let now = Arc::new(AtomicU32::new(0));
            let most = Arc::new(AtomicU32::new(0));
            let behind = {
                let (now, most) = (Arc::clone(&now), Arc::clone(&most));
                service_fn(move |request: Request<()>| {
                    let is_in = In(Arc::clone(&now));
                    most.fetch_max(now.fetch_add(1, SeqCst) + 1, SeqCst);
                    let (millis, end) = *request.extensions().get::<(u64, End)>().unwrap();
                    async move {
                        sleep(Duration::from_millis(millis)).await;
                        drop(is_in);
                        match end {
                            End::Body => Ok(Response::new(Frames(1))),
                            End::Error => Err("broken"),
                            End::Panic => std::panic::resume_unwind(Box::new("on purpose")),
                        }
                    }
                })
            };
            let service = layer.wait(Duration::from_millis(wait)).layer(behind);
            let mut under_way: Vec<JoinHandle<Answer>> = Vec::new();
            for step in steps {
                match step {
                    Step::Come(millis, end) => {
                        let mut request = Request::new(());
                        request.extensions_mut().insert((millis, end));
                        under_way.push(tokio::spawn(service.clone().oneshot(request)));
                        tokio::task::yield_now().await;
                    }
                    Step::Leave(who) if !under_way.is_empty() => {
                        let gone = under_way.swap_remove(who.index(under_way.len()));
                        gone.abort();
                        let _ = gone.await;
                    }
                    Step::Leave(_) => {}
                    Step::Pause(millis) => sleep(Duration::from_millis(millis)).await,
                }
            }
            // Bodies that came meanwhile are held by their tasks, and keep their slots: none may have lost one.
            prop_assert!(most.load(SeqCst) <= limit);
            for request in under_way {
                request.abort();
                let _ = request.await;
            }
            let left = store.peek(&[Charge::new(&handle, ()).cost(0)]).unwrap().statuses()[0].remaining();
            prop_assert_eq!(left, limit);
            Ok(())
        })?;
    }
}
