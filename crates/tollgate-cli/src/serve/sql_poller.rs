//! Follows the database with the rules: asks for its revision at every poll, and reads it whole and puts it in force through
//! the pipeline where that is another. A mistake, or a database that is away, changes nothing, and is logged and shown.

use super::{
    Watched,
    change_pubsub::ChangePubsub,
    pipeline::{Rejected, RulePipeline},
    rule_source::{RuleDatabase, is_it_the_right_one, keep},
    state::Tell,
};
use crate::{domains::DomainFiles, file};
use std::{
    net::SocketAddr,
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};
use tokio::{
    task::{self, JoinSet},
    time::{Duration, Instant, MissedTickBehavior, interval},
};
use tollgate::Enter;
use tollgate_admin::{ReloadFailure, State};
use tollgate_book::{Book, BookError, NodeSeen, Wrong};
use tollgate_net::{Contents, ReloadRequests, Watcher};

/// How often a node says that it is there, where nothing else is new.
const SEEN_EVERY: Duration = Duration::from_secs(10);

/// Follows a database.
pub(super) struct SqlPoller<S: Enter> {
    pipeline: Arc<RulePipeline<S>>,
    source: RuleDatabase,
    node: String,
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
}

impl<S: Enter + Tell + 'static> SqlPoller<S> {
    pub(super) fn new(pipeline: Arc<RulePipeline<S>>, source: RuleDatabase, node: String) -> Self {
        pipeline.status.is_revision(&source.book.revision);
        let store = &pipeline.decisions.rules().program().file().store.url.clone();
        let pubsub = ChangePubsub::of(store, &source.keeper.source().name);
        Self { pipeline, source, node, refused: None, file_failure: None, is_away: false, seen: None, pubsub }
    }

    /// Follows the database, and the file that has what is the node's own, for ever.
    pub(super) async fn run(mut self, mut watched: Watched, mut reload: ReloadRequests) {
        let mut watcher = watched.watcher(reload.clone());
        let mut listening = JoinSet::new();
        let heard = match &self.pubsub {
            Some(pubsub) => {
                listening.spawn(pubsub.clone().listen());
                Arc::clone(&pubsub.heard)
            }
            None => Arc::default(),
        };
        let mut polls = interval(self.source.poll);
        polls.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = polls.tick() => self.look_and_tell().await,
                () = self.pipeline.look.notified() => self.look_and_tell().await,
                () = heard.notified() => self.look_and_tell().await,
                () = reload.next() => {
                    // A revision that could not be put in force is tried again.
                    self.refused = None;
                    self.look_and_tell().await;
                }
                reported = watcher.changed() => {
                    task::block_in_place(|| self.file_changed(&mut watched, &mut watcher, &reported));
                }
            }
            self.say_seen().await;
        }
    }

    /// Asks the database once, and tells the others what they may not know.
    async fn look_and_tell(&mut self) {
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
    }

    /// Asks the database once.
    async fn look(&mut self) {
        let revision = match self.source.keeper.revision().await {
            Ok(revision) => revision,
            Err(error) => return self.failed(&error),
        };
        self.is_back();
        if revision == self.pipeline.status.revision() {
            // Put right again by going back to what is in force.
            if self.refused.take().is_some() {
                self.pipeline.status.mended();
            }
            // Put in force by whoever changed it here.
            if self.source.book.revision != revision
                && let Ok(book) = self.source.keeper.read().await
            {
                task::block_in_place(|| keep(self.source.cache.as_ref(), &book));
                self.source.book = book;
            }
            return;
        }
        if self.refused.as_ref() == Some(&revision) {
            return;
        }
        match self.source.keeper.read().await {
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
            tracing::info!(database = %self.source.keeper.source().name, "the database with the rules is back");
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
        if book.is_new && !self.source.book.pieces.is_empty() {
            let why = is_it_the_right_one(&self.source.keeper.source().name);
            self.refused = Some(book.revision);
            return self.reject(&format!("{why}; the rules in force stay").into());
        }
        match self.pipeline.reload(&self.pipeline.own(), &book, &mut DomainFiles::default()) {
            Ok(()) => {
                self.refused = None;
                keep(self.source.cache.as_ref(), &book);
                self.source.book = book;
            }
            Err(rejected) => {
                self.refused = Some(book.revision.clone());
                // The switch counts whatever else is wrong.
                if book.enabled != self.source.book.enabled {
                    let revision = switched(&self.source.book.revision, book.enabled);
                    if self.pipeline.publish_switch(book.enabled, Some(&revision)).is_ok() {
                        self.source.book =
                            Book { revision, enabled: book.enabled, ..self.source.book.clone() };
                    }
                }
                self.reject(&rejected);
            }
        }
    }

    fn file_changed(&mut self, watched: &mut Watched, watcher: &mut Watcher, reported: &[Contents]) {
        self.file_failure = match self.take_file(watched, watcher, reported) {
            Ok(()) => None,
            Err((source, rejected)) => {
                self.pipeline.reject(&source, &rejected);
                self.pipeline.status.rules().failure
            }
        };
    }

    /// Takes what the node has of its own, with the rules there were; or says why not, and of what.
    fn take_file(
        &mut self,
        watched: &mut Watched,
        watcher: &mut Watcher,
        reported: &[Contents],
    ) -> Result<(), (String, Rejected)> {
        let name = watched.path.display().to_string();
        let text = watched.take(reported).map_err(|rejected| (name.clone(), rejected))?;
        let own =
            file::parse(&text).map_err(|mistakes| (name.clone(), Rejected::of_file(&name, &mistakes)))?;
        let patterns = watched.domains.patterns.clone();
        watched.domains.update(&watched.path, &own);
        if watched.domains.patterns != patterns {
            watched.follow_domains(watcher);
        }
        let before = self.pipeline.own();
        self.pipeline.set_own(&text);
        let reloaded = self.pipeline.reload(&text, &self.source.book, &mut watched.domains);
        if let Err(rejected) = reloaded {
            self.pipeline.set_own(&before);
            return Err((self.source.keeper.source().name, rejected));
        }
        // A newer book may have been put in force here meanwhile, and one that was refused may fit now; where it does not, that
        // is told again.
        self.refused = None;
        self.pipeline.look.notify_one();
        Ok(())
    }

    fn reject(&self, rejected: &Rejected) {
        self.pipeline.reject(&self.source.keeper.source().name, rejected);
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
            if self.source.keeper.seen(&NodeSeen { at_ms, ..now.clone() }).await.is_ok() {
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
