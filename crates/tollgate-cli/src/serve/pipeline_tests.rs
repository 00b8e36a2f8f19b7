//! Which document is in force when several are published at once.

use super::*;
use crate::serve::{Metrics, Opened, Options, Watched, rule_source::RuleDatabase};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use tokio::time::timeout;
use tollgate::MemoryStore;
use tollgate_book::{Asking, Change, Entry, Judge, NodeSeen, Source, SourceKind};
use tollgate_net::{Drain, DrainTimes, ReloadRequests};

/// Keeps one document, and can be slow to hand it out.
#[derive(Default)]
struct SlowKeeper {
    now: Mutex<Book>,
    is_slow: AtomicBool,
    /// A slow reader has begun, and may end.
    reading: Notify,
    go_on: Notify,
    seen: Mutex<Vec<String>>,
}

impl SlowKeeper {
    fn has(&self, revision: &str) -> Book {
        let book = Book { revision: revision.to_owned(), enabled: true, ..Book::default() };
        self.now.lock().unwrap().clone_from(&book);
        book
    }
}

impl Keeper for SlowKeeper {
    fn source(&self) -> Source {
        Source { kind: SourceKind::Sqlite, name: "a test".to_owned(), read_only: None }
    }

    fn read(&self) -> Asking<'_, Book> {
        let book = self.now.lock().unwrap().clone();
        Box::pin(async {
            if self.is_slow.swap(false, SeqCst) {
                self.reading.notify_one();
                self.go_on.notified().await;
            }
            Ok(book)
        })
    }

    fn revision(&self) -> Asking<'_, String> {
        let revision = self.now.lock().unwrap().revision.clone();
        Box::pin(async { Ok(revision) })
    }

    fn change<'a>(&'a self, _: &'a [Change], _: &'a str, _: Judge<'a>) -> Asking<'a, Book> {
        self.read()
    }

    fn note<'a>(&'a self, _: &'a str, _: &'a str, _: &'a str) -> Asking<'a, ()> {
        Box::pin(async { Ok(()) })
    }

    fn history(&self, _: Option<i64>, _: usize) -> Asking<'_, Vec<Entry>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    fn seen<'a>(&'a self, node: &'a NodeSeen) -> Asking<'a, ()> {
        self.seen.lock().unwrap().push(node.revision.clone());
        Box::pin(async { Ok(()) })
    }

    fn nodes(&self) -> Asking<'_, Vec<NodeSeen>> {
        Box::pin(async { Ok(Vec::new()) })
    }
}

/// A poll that has read a document, and takes its time, does not put it in force after the newer one of the admin API.
#[tokio::test(flavor = "multi_thread")]
async fn a_slow_poll_does_not_undo_a_newer_change() {
    const OWN: &str = "version: 1";
    let keeper = Arc::new(SlowKeeper::default());
    let book = keeper.has("1");
    let source = RuleDatabase {
        keeper: Arc::clone(&keeper) as _,
        poll: Duration::from_secs(3_600),
        cache: None,
        book,
    };
    let watched = Watched { path: "/none".into(), text: OWN.to_owned(), domains: DomainFiles::default() };
    let options = Options {
        watched: Some(watched),
        book: Some(source),
        workers: None,
        reload: ReloadRequests::never(),
        metrics: Metrics::Not,
    };
    let drain = Drain::new(DrainTimes { pause: Duration::ZERO, deadline: Duration::ZERO });
    let rules = file::parse(OWN).expect("rules");
    let opened = Opened::open(Arc::new(MemoryStore::new()), rules, options, drain).await.expect("open");
    let pipeline = opened.pipeline();
    let says = async |revision: &str| {
        while !keeper.seen.lock().unwrap().iter().any(|seen| seen == revision) {
            sleep(Duration::from_millis(5)).await;
        }
    };
    says("1").await;

    keeper.has("2");
    keeper.is_slow.store(true, SeqCst);
    pipeline.look.notify_one();
    keeper.reading.notified().await;
    let newest = keeper.has("3");
    let publishing = Arc::clone(&pipeline);
    let mut change = tokio::spawn(async move { publishing.publish_change(&newest).await });
    // It must not be answered before the poll is done, so all that can be waited for is that it has begun.
    let early = timeout(Duration::from_millis(300), &mut change).await;
    keeper.go_on.notify_one();
    let done = match early {
        Ok(done) => done,
        Err(_) => change.await,
    };
    assert_eq!(done.expect("no panic"), Ok(()));
    says("3").await;
    assert_eq!(pipeline.document().revision, "3");
    assert_eq!(pipeline.status.rules().generation, 3, "each was put in force once, in this order");
}
