//! The database with the rules is followed: asked at every poll which book it has, read whole when that is another, and put in
//! force through the same door as a changed file. What is wrong, and a database that is away, changes nothing and is told.

use super::{
    Watched,
    reload::Followers,
    source::{BookSource, is_it_the_right_one, keep, lines},
    state::Tell,
    telling::Telling,
};
use crate::{domains, file};
use std::{
    net::SocketAddr,
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};
use tokio::{
    task::JoinSet,
    time::{Duration, Instant, MissedTickBehavior, interval},
};
use tollgate::Enter;
use tollgate_admin::{ReloadFailure, RuleMistake, State};
use tollgate_book::{Book, BookError, NodeSeen, Wrong, compose};
use tollgate_net::{Contents, ReloadRequests, Watcher};

/// How often a node says that it is there, where nothing else is new.
const SEEN_EVERY: Duration = Duration::from_secs(10);

/// One who follows.
pub(super) struct Following<S: Enter> {
    followers: Arc<Followers<S>>,
    source: BookSource,
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
    /// Other nodes, where they can be told at once.
    telling: Option<Telling>,
}

/// Whether something is in force now.
enum Taken {
    Yes,
    No,
}

impl<S: Enter + Tell + 'static> Following<S> {
    pub(super) fn new(followers: Arc<Followers<S>>, source: BookSource, node: String) -> Self {
        followers.status.is_revision(&source.book.revision);
        let store = &followers.decisions.rules().program().file().store.url.clone();
        let telling = Telling::of(store, &source.keeper.source().name);
        Self {
            followers,
            source,
            node,
            refused: None,
            file_failure: None,
            is_away: false,
            seen: None,
            telling,
        }
    }

    /// Follows the database, and the file that has what is the node's own, for ever.
    pub(super) async fn run(mut self, mut watched: Watched, mut reload: ReloadRequests) {
        let read = Contents::new(watched.path.clone(), watched.text.clone());
        let mut watcher = Watcher::knowing([read]).reload_on(reload.clone());
        watcher.follow(watched.patterns.clone(), &watched.domains);
        let mut listening = JoinSet::new();
        let heard = match &self.telling {
            Some(telling) => {
                listening.spawn(telling.clone().listen());
                Arc::clone(&telling.heard)
            }
            None => Arc::default(),
        };
        let mut polls = interval(self.source.poll);
        polls.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = polls.tick() => self.look_and_tell().await,
                () = self.followers.look.notified() => self.look_and_tell().await,
                () = heard.notified() => self.look_and_tell().await,
                () = reload.next() => {
                    // A revision that could not be put in force is tried again.
                    self.refused = None;
                    self.look_and_tell().await;
                }
                told = watcher.changed() => self.file_changed(&mut watched, &mut watcher, &told),
            }
            self.say_seen().await;
        }
    }

    /// Asks the database once, and tells the others what they may not know.
    async fn look_and_tell(&mut self) {
        self.look().await;
        match self.is_away {
            true => self.followers.recorders.meters.look_failed(),
            false => self.followers.recorders.meters.looked(),
        }
        if let Some(failure) = &self.file_failure {
            self.followers.status.still_fails(failure);
        }
        if let Some(telling) = &self.telling {
            telling.has(&self.followers.status.revision()).await;
        }
    }

    /// Asks the database once.
    async fn look(&mut self) {
        let revision = match self.source.keeper.revision().await {
            Ok(revision) => revision,
            Err(error) => return self.failed(&error),
        };
        self.is_back();
        if revision == self.followers.status.revision() {
            // Put right again by going back to what is in force.
            if self.refused.take().is_some() {
                self.followers.status.mended();
            }
            // Put in force by whoever changed it here.
            if self.source.book.revision != revision
                && let Ok(book) = self.source.keeper.read().await
            {
                keep(self.source.cache.as_ref(), &book);
                self.source.book = book;
            }
            return;
        }
        if self.refused.as_ref() == Some(&revision) {
            return;
        }
        match self.source.keeper.read().await {
            Ok(book) => self.take_book(book),
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
            self.followers.status.source_ails(None);
            tracing::info!(database = %self.source.keeper.source().name, "the database with the rules is back");
        }
    }

    fn failed(&mut self, error: &BookError) {
        if !matches!(error, BookError::Unreachable(_)) {
            self.is_back();
        }
        match error {
            BookError::Wrong(wrong) => self.refuse("rows of the database have mistakes", wrong),
            BookError::Unreachable(why) if !self.is_away => {
                self.is_away = true;
                let told = format!(
                    "the database with the rules does not answer, and the rules stay as they were: {why}"
                );
                tracing::warn!("{told}");
                self.followers.status.source_ails(Some(told));
            }
            BookError::Unreachable(_) => {}
            other => {
                let why = other.to_string();
                let is_news = self.followers.status.rules().failure.is_none_or(|failure| failure.why != why);
                if is_news {
                    self.refuse(&why, &[]);
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
            return self.refuse(&format!("{why}; the rules in force stay"), &[]);
        }
        match self.put_in_force(&book) {
            Ok(()) => {
                self.refused = None;
                keep(self.source.cache.as_ref(), &book);
                self.source.book = book;
            }
            Err((why, wrong)) => {
                self.refused = Some(book.revision.clone());
                // The switch counts whatever else is wrong.
                if book.enabled != self.source.book.enabled {
                    let switched = switched(&self.source.book, book.enabled);
                    if self.put_in_force(&switched).is_ok() {
                        self.source.book = switched;
                    }
                }
                self.refuse(&why, &wrong);
            }
        }
    }

    fn put_in_force(&self, book: &Book) -> Result<(), (String, Vec<Wrong>)> {
        let rules = compose(&self.followers.own(), book, file::variable)
            .map_err(|wrong| ("rows of the database have mistakes".to_owned(), wrong))?;
        let patterns = domains::patterns(&self.followers.home, &rules);
        let read = domains::read(&patterns);
        let adopted = domains::put_in(rules, &patterns, &read)
            .and_then(|rules| self.followers.adopt(rules, Some(&book.revision)));
        adopted.map_err(|why| (why, Vec::new()))
    }

    fn file_changed(&mut self, watched: &mut Watched, watcher: &mut Watcher, told: &[Contents]) {
        let Some(contents) = told.first() else { return };
        self.file_failure = match self.take_file(watched, watcher, contents) {
            Taken::Yes => None,
            Taken::No => self.followers.status.rules().failure,
        };
    }

    /// Takes what the node has of its own, with the rules there were; or says why not.
    fn take_file(&mut self, watched: &mut Watched, watcher: &mut Watcher, contents: &Contents) -> Taken {
        let text = match contents.text() {
            Ok(text) => text.to_owned(),
            Err(error) => {
                self.followers.refuse(&watched.path, &error.to_string(), None);
                return Taken::No;
            }
        };
        let own = match file::parse(&text) {
            Ok(own) => own,
            Err(mistakes) => {
                self.followers.refuse(&watched.path, "the file has mistakes", Some(&mistakes));
                return Taken::No;
            }
        };
        let patterns = domains::patterns(&watched.path, &own);
        if patterns != watched.patterns {
            watcher.follow(patterns.clone(), &domains::read(&patterns));
            watched.patterns = patterns;
        }
        let before = self.followers.own();
        self.followers.is_own(&text);
        if let Err((why, wrong)) = self.put_in_force(&self.source.book) {
            self.followers.is_own(&before);
            self.refuse(&why, &wrong);
            return Taken::No;
        }
        // A newer book may have been put in force here meanwhile, and one that was refused may fit now; where it does not, that
        // is told again.
        self.refused = None;
        self.followers.look.notify_one();
        Taken::Yes
    }

    fn refuse(&self, why: &str, wrong: &[Wrong]) {
        let mistake = |wrong: &Wrong| RuleMistake {
            line: wrong.line,
            column: wrong.column,
            path: match wrong.path.is_empty() {
                true => wrong.about.clone(),
                false => format!("{}: {}", wrong.about, wrong.path),
            },
            message: wrong.message.clone(),
        };
        let told = if wrong.is_empty() { why.to_owned() } else { format!("{why}:\n{}", lines(wrong)) };
        self.followers.recorders.meters.reload_failed();
        let database = self.source.keeper.source().name;
        self.followers.status.not_taken(&database, why, wrong.iter().map(mistake).collect());
        tracing::error!(%database, why = %told, "rules not reloaded; the previous rules stay in force");
    }

    /// Says that this node is there, and what it has in force. Whoever cannot be told is told the next time.
    async fn say_seen(&mut self) {
        let status = &self.followers.status;
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

/// A book with its switch turned. It is no book that the database has had: by its own revision it is never taken for one.
fn switched(book: &Book, enabled: bool) -> Book {
    let of = book.revision.split('+').next().unwrap_or_default();
    let revision = format!("{of}+{}", if enabled { "on" } else { "off" });
    Book { revision, enabled, ..book.clone() }
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
