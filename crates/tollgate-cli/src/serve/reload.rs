//! The rule file changes while it is in force: the new rules are taken whole, or the old ones stay and the reason is told.

use super::{
    Watched,
    recorder::Recorders,
    state::{Status, Tell},
};
use crate::{domains, file};
use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};
use tokio::sync::Notify;
use tollgate::Enter;
use tollgate_admin::Access;
use tollgate_gateway::Gateway;
use tollgate_net::{Contents, Watcher};
use tollgate_rules::{DecisionService, RuleFile, decision::Api};

/// All that follows the file.
pub(super) struct Followers<S: Enter> {
    pub(super) decisions: DecisionService<S>,
    pub(super) gateway: Option<Gateway<S>>,
    pub(super) recorders: Recorders,
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
        let now = self.decisions.rules();
        file::same_frame(now.program().file(), &rules)?;
        let prepared = match &self.gateway {
            Some(gateway) => Some(gateway.prepare(&rules).map_err(|error| error.to_string())?),
            None => None,
        };
        let users = rules.listen.admin.as_ref().map(|admin| admin.users.clone());
        self.decisions.reload(rules).map_err(|error| error.to_string())?;
        self.access.replace(users.unwrap_or_default());
        let session = self.decisions.session(Api::Gateway);
        let log = session.rules().program().file().log;
        crate::log::follow(log);
        self.recorders.told.refusals.follow(log);
        if let (Some(gateway), Some(prepared)) = (&self.gateway, prepared) {
            let responses = self.recorders.responses(session.rules().program());
            gateway.adopt(session, prepared, responses);
        }
        if let Some(revision) = revision {
            self.status.is_revision(revision);
        }
        self.recorders.meters.reloaded();
        let generation = self.status.reloaded();
        tracing::info!(generation, "rules reloaded");
        Ok(())
    }

    pub(super) fn refuse(&self, path: &Path, why: &str, mistakes: Option<&tollgate_rules::Mistakes>) {
        self.recorders.meters.reload_failed();
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
