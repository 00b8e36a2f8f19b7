//! The rule file changes while it is in force: the new rules are taken whole, or the old ones stay and the reason is told.

use super::{
    Watched,
    answers::AnswerBooks,
    books::{Metrics, Told},
    state::{Status, Tell},
};
use crate::{domains, file};
use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};
use tokio::sync::Notify;
use tollgate::Enter;
use tollgate_admin::{Access, Meters, Sketch};
use tollgate_gateway::Gateway;
use tollgate_net::{Contents, Watcher};
use tollgate_rules::{Enforcer, RuleFile};
use tollgate_service::{Desk, DoorName};

/// All that follows the file.
pub(super) struct Followers<S: Enter> {
    pub(super) enforcer: Arc<Enforcer<S>>,
    pub(super) gateway: Option<Gateway<S>>,
    pub(super) desk: Desk<S>,
    /// The doors that are open.
    pub(super) doors: Vec<DoorName>,
    pub(super) metrics: Metrics,
    pub(super) meters: Meters,
    pub(super) sketch: Sketch,
    pub(super) told: Told,
    /// Who may look at the admin listener.
    pub(super) access: Access,
    /// Where the rule file is, for the files that it names.
    pub(super) home: PathBuf,
    /// What the node has of its own, where its rules are kept elsewhere.
    pub(super) own: Mutex<String>,
    /// Held while rules are put in force, which comes one after the other: what is told of them is then what they are.
    pub(super) adopting: Mutex<()>,
    /// Says to look at once whether the rules have changed.
    pub(super) look: Notify,
    pub(super) status: Arc<Status<S>>,
}

impl<S: Enter + Tell + 'static> Followers<S> {
    /// Takes what was read of the file and of its domains' files, if it can be taken. Where the file names other files
    /// now, they are read here, and watched from then on.
    pub(super) fn take(&self, watched: &mut Watched, watcher: &mut Watcher, told: &[Contents]) {
        let Some((contents, domains)) = told.split_first() else { return };
        let path = &watched.path.clone();
        let text = match contents.text() {
            Ok(text) => text,
            Err(error) => return self.refuse(path, &error.to_string(), None),
        };
        let rules = match file::parse(text) {
            Ok(rules) => rules,
            Err(mistakes) => return self.refuse(path, "the file has mistakes", Some(&mistakes)),
        };
        let patterns = domains::patterns(path, &rules);
        let domains = if patterns == watched.patterns {
            domains.to_vec()
        } else {
            let read = domains::read(&patterns);
            watcher.follow(patterns.clone(), &read);
            watched.patterns.clone_from(&patterns);
            read
        };
        let adopted = domains::put_in(rules, &patterns, &domains).and_then(|rules| self.adopt(rules, None));
        if let Err(why) = adopted {
            self.refuse(path, &why, None);
        }
    }

    /// What the node has of its own.
    pub(super) fn own(&self) -> String {
        self.own.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The node has something else of its own.
    pub(super) fn is_own(&self, text: &str) {
        text.clone_into(&mut self.own.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Puts rules in force, which are this book where that is known; or says why not.
    pub(super) fn adopt(&self, rules: RuleFile, revision: Option<&str>) -> Result<(), String> {
        let _one = self.adopting.lock().unwrap_or_else(PoisonError::into_inner);
        let now = self.enforcer.edition();
        file::same_frame(now.program().file(), &rules)?;
        let prepared = match &self.gateway {
            Some(gateway) => Some(gateway.prepare(&rules).map_err(|error| error.to_string())?),
            None => None,
        };
        let users = rules.listen.admin.as_ref().map(|admin| admin.users.clone());
        self.enforcer.reload(rules).map_err(|error| error.to_string())?;
        self.access.replace(users.unwrap_or_default());
        let edition = self.enforcer.edition();
        let log = edition.program().file().log;
        crate::log::follow(log);
        self.told.refusals.follow(log);
        let answers = AnswerBooks::new(edition.program(), &self.doors, &self.meters, &self.sketch);
        self.desk.keep_books(Arc::new(answers));
        if let (Some(gateway), Some(prepared)) = (&self.gateway, prepared) {
            let ledger = self.metrics.ledger(edition.program(), &self.meters, &self.sketch, &self.told);
            gateway.adopt(edition, prepared, ledger);
        }
        if let Some(revision) = revision {
            self.status.is_revision(revision);
        }
        self.meters.reloaded();
        let generation = self.status.reloaded();
        tracing::info!(generation, "rules reloaded");
        Ok(())
    }

    pub(super) fn refuse(&self, path: &Path, why: &str, mistakes: Option<&tollgate_rules::Mistakes>) {
        self.meters.reload_failed();
        self.status.not_reloaded(why, mistakes);
        // A line each as editors can jump to them.
        let line = |mistake: &tollgate_rules::Mistake| format!("\n{}:{mistake}", path.display());
        let told = mistakes.map_or_else(
            || why.to_owned(),
            |all| format!("{why}:{}", all.iter().map(line).collect::<String>()),
        );
        tracing::error!(
            file = %path.display(),
            why = %told,
            "rules not reloaded; the previous rules stay in force"
        );
    }
}
