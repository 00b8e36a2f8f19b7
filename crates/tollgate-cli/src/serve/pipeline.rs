//! The one way from rules as they are kept to rules in force, for the start, a changed file, a poll, the admin API and a dry run.
//!
//! ```text
//! document (rule file, tables of a database, t_ratelimite_conf) and the node's own file
//!   -> compile: one rule file, with the files of its domains
//!   -> judge:   the same for a dry run, and whether it could be put in force here
//!   -> publish: in force on this node, whole or not at all
//! ```
//!
//! All of it blocks, and takes time linear in the rules: it runs where blocking is allowed, never on a thread that answers.

use super::{
    recorder::Recorders,
    rule_source::keep,
    state::{Status, Tell},
};
use crate::{domains::DomainFiles, file};
use std::{
    fmt,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::SystemTime,
};
use tokio::{
    sync::Notify,
    task,
    time::{Duration, sleep},
};
use tollgate::Enter;
use tollgate_admin::{Access, ReloadFailure, RuleMistake, State};
use tollgate_book::{Book, Cache, Keeper, Kind, Wrong, compose};
use tollgate_gateway::{Gateway, Prepared};
use tollgate_rules::{DecisionService, Mistake, Mistakes, RuleFile, decision::Api};

/// Everything that changes with the rules.
pub(super) struct RulePipeline<S: Enter> {
    pub(super) decisions: DecisionService<S>,
    pub(super) gateway: Gateway<S>,
    pub(super) recorders: Recorders,
    /// Who may look at the admin listener.
    pub(super) access: Access,
    /// Where the rule file is, for the files that it names.
    pub(super) home: PathBuf,
    /// What the node has of its own, where its rules are kept elsewhere.
    pub(super) own: Mutex<String>,
    /// Where the rules are kept.
    pub(super) keeper: Arc<dyn Keeper>,
    /// Keeps the last good document for the next start.
    pub(super) cache: Option<Cache>,
    /// The document in force.
    pub(super) document: Mutex<Book>,
    /// Held from before a document is read until it is in force: so none is put in force after a newer one.
    pub(super) publishing: tokio::sync::Mutex<()>,
    /// Asks whoever follows the rules to look at once whether they have changed.
    pub(super) look: Notify,
    /// Says that rules were replaced.
    pub(super) replaced: Notify,
    pub(super) status: Arc<Status<S>>,
}

/// Rules that were not put in force, and why.
#[derive(Debug)]
pub(super) struct Rejected {
    pub(super) why: String,
    wrong: Vec<Wrong>,
}

/// The rules that a document is on a node with this file of its own. `files` are those that its domains were read from last,
/// and are read anew only where it names others.
pub(super) fn compile(
    home: &Path,
    own: &str,
    document: &Book,
    files: &mut DomainFiles,
) -> Result<RuleFile, Rejected> {
    let rules = compose(own, document, file::variable).map_err(|wrong| Rejected::of(document, wrong))?;
    files.update(home, &rules);
    Ok(files.put_in(rules)?)
}

impl<S: Enter + Tell + 'static> RulePipeline<S> {
    /// Puts a document in force on this node. It was read while [`publishing`](Self::publishing) was held, and still is.
    pub(super) fn reload(&self, own: &str, document: &Book, files: &mut DomainFiles) -> Result<(), Rejected> {
        let rules = compile(&self.home, own, document, files)?;
        self.publish(rules, document)
    }

    /// The rules that a draft would be here, or everything that is wrong with it. Nothing is changed.
    pub(super) fn judge(&self, draft: &Book) -> Result<RuleFile, Vec<Wrong>> {
        let rules = compose(&self.own(), draft, file::variable)?;
        let whole = |why: String| vec![about_all(draft, why)];
        // Which files are read is said on the node: a draft may come from somebody who may look at rules, not at files.
        let now = self.decisions.rules();
        if rules.domains.settings().files != now.program().file().domains.settings().files {
            let why =
                "domains: other files are named on the node itself, in its rule file, and not from here";
            return Err(whole(why.to_owned()));
        }
        let rules = DomainFiles::read(&self.home, &rules).put_in(rules).map_err(whole)?;
        self.prepare(&rules).map_err(whole)?;
        self.decisions.judge(&rules).map_err(|error| whole(error.to_string()))?;
        Ok(rules)
    }

    /// Puts the newest document in force, which is this one that was changed on this node, or one that came after it. Where it
    /// is wrong its switch alone is, if it was turned.
    pub(super) async fn publish_change(&self, changed: &Book) -> Result<(), String> {
        let before = self.document().revision;
        let _publishing = self.publishing.lock().await;
        // The follower of a file takes the next change as one, and that of a database tells other nodes.
        self.look.notify_one();
        let newest = self.keeper.read().await;
        if newest.is_err() && self.document().revision != before {
            // Another was put in force meanwhile, and nobody can say which is newer. The follower looks again.
            return Ok(());
        }
        let newest = newest.as_ref().unwrap_or(changed);
        let Err(rejected) = self.reload(&self.own(), newest, &mut DomainFiles::default()) else {
            keep(self.cache.as_ref(), newest);
            return Ok(());
        };
        let why = rejected.wrong.first().map_or_else(|| rejected.why.clone(), ToString::to_string);
        if self.decisions.rules().program().file().enabled == newest.enabled {
            return Err(why);
        }
        let failure = self.status.rules().failure.unwrap_or_else(|| ReloadFailure {
            at: SystemTime::now(),
            file: self.home.clone(),
            why,
            mistakes: Vec::new(),
        });
        self.publish_switch(newest.enabled, None).map_err(|rejected| rejected.why)?;
        self.status.still_fails(&failure);
        Ok(())
    }

    /// Turns the global switch of the rules in force, which from now on are this revision where one is given. Under the lock.
    pub(super) fn publish_switch(&self, enabled: bool, revision: Option<String>) -> Result<(), Rejected> {
        let mut rules = self.decisions.rules().program().file().clone();
        rules.enabled = enabled;
        let now = self.document();
        let document = match revision {
            Some(revision) => Book { revision, enabled, ..now },
            None => Book { enabled, ..now },
        };
        self.publish(rules, &document)
    }

    /// Puts rules in force, which are this document.
    fn publish(&self, rules: RuleFile, document: &Book) -> Result<(), Rejected> {
        let prepared = self.prepare(&rules)?;
        let users = rules.listen.admin.as_ref().map(|admin| admin.users.clone());
        self.decisions.reload(rules).map_err(|error| error.to_string())?;
        self.access.replace(users.unwrap_or_default());
        let session = self.decisions.session(Api::Gateway);
        let log = session.rules().program().file().log;
        crate::log::follow(log);
        self.recorders.told.refusals.follow(log);
        let responses = self.recorders.responses(session.rules().program());
        self.gateway.adopt(session, prepared, responses);
        self.status.is_revision(&document.revision);
        document.clone_into(&mut self.document.lock().unwrap_or_else(PoisonError::into_inner));
        self.replaced.notify_one();
        self.recorders.meters.reloaded();
        let generation = self.status.reloaded();
        tracing::info!(generation, "rules reloaded");
        Ok(())
    }

    /// What the gateway needs for these rules, unless they take a restart.
    fn prepare(&self, rules: &RuleFile) -> Result<Prepared, String> {
        file::same_frame(self.decisions.rules().program().file(), rules)?;
        self.gateway.prepare(rules).map_err(|error| error.to_string())
    }

    /// The document in force.
    pub(super) fn document(&self) -> Book {
        self.document.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Frees rules that were replaced once no request is decided by them, for ever.
    pub(super) async fn free_replaced(self: Arc<Self>) {
        loop {
            self.replaced.notified().await;
            while task::block_in_place(|| self.decisions.free_retired()) {
                sleep(Duration::from_millis(500)).await;
            }
        }
    }

    /// What the node has of its own.
    pub(super) fn own(&self) -> String {
        self.own.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The node has something else of its own.
    pub(super) fn set_own(&self, text: &str) {
        text.clone_into(&mut self.own.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Records that rules of this file or database were not put in force.
    pub(super) fn reject(&self, source: &str, rejected: &Rejected) {
        let mistake = |wrong: &Wrong| RuleMistake {
            line: wrong.line,
            column: wrong.column,
            path: match &*wrong.path {
                path if wrong.about == source => path.to_owned(),
                "" => wrong.about.clone(),
                path => format!("{}: {path}", wrong.about),
            },
            message: wrong.message.clone(),
        };
        self.recorders.meters.reload_failed();
        self.status.rejected(source, &rejected.why, rejected.wrong.iter().map(mistake).collect());
        tracing::error!(%source, why = %rejected, "rules not reloaded; the previous rules stay in force");
    }
}

impl Rejected {
    /// Mistakes of a file.
    pub(super) fn of_file(name: &str, mistakes: &Mistakes) -> Self {
        let wrong = |mistake: &Mistake| Wrong {
            piece: None,
            about: name.to_owned(),
            line: mistake.line(),
            column: mistake.column(),
            path: mistake.path().to_owned(),
            message: mistake.message().to_owned(),
        };
        Self { why: "the file has mistakes".to_owned(), wrong: mistakes.iter().map(wrong).collect() }
    }

    /// Mistakes of a document, or of the node's own file.
    pub(super) fn of(document: &Book, mut wrong: Vec<Wrong>) -> Self {
        let why = match file_of(document) {
            Some(file) => {
                wrong.iter_mut().for_each(|wrong| wrong.about.clone_from(&file.name));
                "the file has mistakes"
            }
            None => "rows of the database have mistakes",
        };
        Self { why: why.to_owned(), wrong }
    }

    /// A line for every mistake; where there is none, what is wrong with the whole.
    pub(super) fn mistakes(&self) -> String {
        match self.wrong.is_empty() {
            true => self.why.clone(),
            false => self.wrong.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"),
        }
    }
}

impl From<String> for Rejected {
    fn from(why: String) -> Self {
        Self { why, wrong: Vec::new() }
    }
}

/// A line for every mistake, as editors can jump to them.
impl fmt::Display for Rejected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.wrong.is_empty() {
            true => f.write_str(&self.why),
            false => write!(f, "{}:\n{}", self.why, self.mistakes()),
        }
    }
}

fn file_of(document: &Book) -> Option<&tollgate_book::Piece> {
    document.pieces.iter().find(|piece| piece.kind == Kind::File)
}

/// What is wrong with no one place in particular.
fn about_all(document: &Book, message: String) -> Wrong {
    let file = file_of(document);
    Wrong {
        piece: file.map(|file| file.id),
        about: file.map_or_else(|| "the rules as a whole".to_owned(), |file| file.name.clone()),
        line: 1,
        column: 1,
        path: String::new(),
        message,
    }
}

#[cfg(test)]
#[path = "pipeline_tests.rs"]
mod tests;
