//! The rule file changes while it is in force: the new rules are taken whole, or the old ones stay and the reason is told.

use super::{
    books::Metrics,
    state::{Status, Tell},
};
use crate::file;
use std::{path::Path, sync::Arc};
use tollgate::Enter;
use tollgate_admin::{Meters, Sketch};
use tollgate_gateway::Gateway;
use tollgate_net::Contents;
use tollgate_rules::{Enforcer, RuleFile};

/// All that follows the file.
pub(super) struct Followers<S: Enter> {
    pub(super) enforcer: Arc<Enforcer<S>>,
    pub(super) gateway: Option<Gateway<S>>,
    pub(super) metrics: Metrics,
    pub(super) meters: Meters,
    pub(super) sketch: Sketch,
    pub(super) status: Arc<Status<S>>,
}

impl<S: Enter + Tell + 'static> Followers<S> {
    /// Takes what was read of the file, if it can be taken.
    pub(super) fn take(&self, path: &Path, contents: &Contents) {
        let text = match contents.text() {
            Ok(text) => text,
            Err(error) => return self.refuse(path, &error.to_string(), None),
        };
        match file::parse(text) {
            Ok(rules) => {
                if let Err(why) = self.adopt(rules) {
                    self.refuse(path, &why, None);
                }
            }
            Err(mistakes) => self.refuse(path, "the file has mistakes", Some(&mistakes)),
        }
    }

    /// Puts rules in force, or says why not.
    pub(super) fn adopt(&self, rules: RuleFile) -> Result<(), String> {
        let now = self.enforcer.edition();
        file::same_frame(now.program().file(), &rules)?;
        let prepared = match &self.gateway {
            Some(gateway) => Some(gateway.prepare(&rules).map_err(|error| error.to_string())?),
            None => None,
        };
        self.enforcer.reload(rules).map_err(|error| error.to_string())?;
        let edition = self.enforcer.edition();
        if let (Some(gateway), Some(prepared)) = (&self.gateway, prepared) {
            let ledger = self.metrics.ledger(edition.program(), &self.meters, &self.sketch);
            gateway.adopt(edition, prepared, ledger);
        }
        self.meters.reloaded();
        let generation = self.status.reloaded();
        tracing::info!(generation, "the rules were changed");
        Ok(())
    }

    fn refuse(&self, path: &Path, why: &str, mistakes: Option<&tollgate_rules::Mistakes>) {
        self.meters.reload_failed();
        self.status.not_reloaded(why, mistakes);
        let told = mistakes.map_or_else(|| why.to_owned(), |mistakes| format!("{why}:\n{mistakes}"));
        tracing::error!(file = %path.display(), "the rules stay as they were: {told}");
    }
}
