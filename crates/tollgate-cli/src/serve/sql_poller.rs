//! Follows the database with the rules: asks for its revision at every poll, and reads it whole and puts it in force through
//! the pipeline where that is another. A mistake, or a database that is away, changes nothing, and is logged and shown.

use super::{
    change_pubsub::ChangePubsub,
    pipeline::{Rejected, RulePipeline},
    rule_source::{is_it_the_right_one, keep},
    state::Tell,
};
use crate::domains::DomainFiles;
use std::{
    net::SocketAddr,
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};
use tokio::{
    sync::Notify,
    task::{self, JoinSet},
    time::{Duration, Instant, Interval, MissedTickBehavior, interval},
};
use tollgate::Enter;
use tollgate_admin::{ReloadFailure, State};
use tollgate_book::{Book, BookError, NodeSeen, Wrong};
use tollgate_net::ReloadRequests;

/// How often a node says that it is there, where nothing else is new.
const SEEN_EVERY: Duration = Duration::from_secs(10);

/// Follows a database.
pub(super) struct SqlPoller<S: Enter> {
    pipeline: Arc<RulePipeline<S>>,
    node: String,
    polls: Interval,
    reload: ReloadRequests,
    /// The revision that could not be put in force, and is not tried again.
    refused: Option<String>,
    /// Why the file with what is the node's own was not taken, as long as it is so: rules that are taken meanwhile do not
    /// mend it.
    file_failure: Option<ReloadFailure>,
    /// Whether the database did not answer last time.
    is_away: bool,
    /// What was said of this node last, and when.
    seen: Option<(NodeSeen, Instant)>,
    /// Tells other nodes of changes at once, where the store can.
    pubsub: Option<ChangePubsub>,
    /// Another node has told of a change.
    heard: Arc<Notify>,
    _listening: JoinSet<()>,
}

impl<S: Enter + Tell + 'static> SqlPoller<S> {
    pub(super) fn new(
        pipeline: Arc<RulePipeline<S>>,
        poll: Duration,
        node: String,
        reload: ReloadRequests,
    ) -> Self {
        let store = &pipeline.decisions.rules().program().file().store.url.clone();
        let pubsub = ChangePubsub::of(store, &pipeline.keeper.source().name);
        let mut listening = JoinSet::new();
        let heard = pubsub.as_ref().map(|pubsub| {
            listening.spawn(pubsub.clone().listen());
            Arc::clone(&pubsub.heard)
        });
        let mut polls = interval(poll);
        polls.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self {
            pipeline,
            node,
            polls,
            reload,
            refused: None,
            file_failure: None,
            is_away: false,
            seen: None,
            pubsub,
            heard: heard.unwrap_or_default(),
            _listening: listening,
        }
    }

    /// Waits until the database is to be asked.
    pub(super) async fn due(&mut self) {
        tokio::select! {
            _ = self.polls.tick() => {}
            () = self.pipeline.look.notified() => {}
            () = self.heard.notified() => {}
            // A revision that could not be put in force is tried again.
            () = self.reload.next() => self.refused = None,
        }
    }

    /// The file with what is the node's own was read, and put in force where there is no failure.
    pub(super) fn file_was_read(&mut self, failure: Option<ReloadFailure>) {
        if failure.is_none() {
            // A revision that was refused may fit now; where it does not, that is told again.
            self.refused = None;
        }
        self.file_failure = failure;
    }

    /// Asks the database once, and tells the others what they may not know.
    pub(super) async fn look_and_tell(&mut self) {
        self.look().await;
        match self.is_away {
            true => self.pipeline.recorders.meters.look_failed(),
            false => self.pipeline.recorders.meters.looked(),
        }
        if let Some(failure) = &self.file_failure {
            self.pipeline.status.still_fails(failure);
        }
        if let Some(pubsub) = &self.pubsub {
            pubsub.publish_revision(&self.pipeline.status.revision()).await;
        }
        self.say_seen().await;
    }

    /// Asks the database once.
    async fn look(&mut self) {
        let pipeline = Arc::clone(&self.pipeline);
        let _publishing = pipeline.publishing.lock().await;
        let revision = match self.pipeline.keeper.revision().await {
            Ok(revision) => revision,
            Err(error) => return self.failed(&error),
        };
        self.is_back();
        if revision == self.pipeline.status.revision() {
            // Put right again by going back to what is in force.
            if self.refused.take().is_some() {
                self.pipeline.status.mended();
            }
            return;
        }
        if self.refused.as_ref() == Some(&revision) {
            return;
        }
        match self.pipeline.keeper.read().await {
            Ok(book) => task::block_in_place(|| self.take_book(book)),
            Err(error) => {
                if matches!(error, BookError::Wrong(_) | BookError::Refused(_)) {
                    self.refused = Some(revision);
                }
                self.failed(&error);
            }
        }
    }

    /// The database has answered, whatever it said.
    fn is_back(&mut self) {
        if self.is_away {
            self.is_away = false;
            self.pipeline.status.source_ails(None);
            tracing::info!(database = %self.pipeline.keeper.source().name, "the database with the rules is back");
        }
    }

    fn failed(&mut self, error: &BookError) {
        if !matches!(error, BookError::Unreachable(_)) {
            self.is_back();
        }
        match error {
            BookError::Wrong(wrong) => self.reject(&rows_are_wrong(wrong)),
            BookError::Unreachable(why) if !self.is_away => {
                self.is_away = true;
                let told = format!(
                    "the database with the rules does not answer, and the rules stay as they were: {why}"
                );
                tracing::warn!("{told}");
                self.pipeline.status.source_ails(Some(told));
            }
            BookError::Unreachable(_) => {}
            other => {
                let why = other.to_string();
                let is_news = self.pipeline.status.rules().failure.is_none_or(|failure| failure.why != why);
                if is_news {
                    self.reject(&why.into());
                }
            }
        }
    }

    /// Puts a book in force, if it can be.
    fn take_book(&mut self, book: Book) {
        // Whoever takes all rules away says so; a database that was made anew has lost them.
        let now = self.pipeline.document();
        if book.is_new && !now.pieces.is_empty() {
            let why = is_it_the_right_one(&self.pipeline.keeper.source().name);
            self.refused = Some(book.revision);
            return self.reject(&format!("{why}; the rules in force stay").into());
        }
        match self.pipeline.reload(&self.pipeline.own(), &book, &mut DomainFiles::default()) {
            Ok(()) => {
                self.refused = None;
                keep(self.pipeline.cache.as_ref(), &book);
            }
            Err(rejected) => {
                self.refused = Some(book.revision.clone());
                // The switch counts whatever else is wrong.
                if book.enabled != now.enabled {
                    let revision = switched(&now.revision, book.enabled);
                    // Where it fails, as much is wrong as before.
                    let _ = self.pipeline.publish_switch(book.enabled, Some(revision));
                }
                self.reject(&rejected);
            }
        }
    }

    fn reject(&self, rejected: &Rejected) {
        self.pipeline.reject(&self.pipeline.keeper.source().name, rejected);
    }

    /// Says that this node is there, and what it has in force. Whoever cannot be told is told the next time.
    async fn say_seen(&mut self) {
        let status = &self.pipeline.status;
        let failure = status.rules().failure.map(|failure| match failure.mistakes.first() {
            Some(first) => format!("{}: {}: {}", failure.why, first.path, first.message),
            None => failure.why,
        });
        let now = NodeSeen { node: self.node.clone(), revision: status.revision(), failure, at_ms: 0 };
        let is_news = self.seen.as_ref().is_none_or(|(said, at)| *said != now || at.elapsed() >= SEEN_EVERY);
        if is_news && !self.is_away {
            let at_ms = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
            let at_ms = i64::try_from(at_ms).unwrap_or(i64::MAX);
            if self.pipeline.keeper.seen(&NodeSeen { at_ms, ..now.clone() }).await.is_ok() {
                self.seen = Some((now, Instant::now()));
            }
        }
    }
}

fn rows_are_wrong(wrong: &[Wrong]) -> Rejected {
    Rejected::of(&Book::default(), wrong.to_vec())
}

/// The revision of a book with its switch turned: none that the database has had, so that it is never taken for one.
fn switched(revision: &str, enabled: bool) -> String {
    let of = revision.split('+').next().unwrap_or_default();
    format!("{of}+{}", if enabled { "on" } else { "off" })
}

/// What a node calls itself: the machine's name, and the port of its admin listener, or of the first that it has.
pub(super) fn node_name(addresses: &[(&'static str, SocketAddr)]) -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let address = addresses.iter().find(|(name, _)| *name == "admin").or_else(|| addresses.first());
    match (host.trim(), address) {
        ("", Some((_, address))) => address.to_string(),
        (host, Some((_, address))) => format!("{host}:{}", address.port()),
        (host, None) => host.to_owned(),
    }
}
