//! Follows the rule file: every change of it, and of the files of its domains, goes through the pipeline.

use super::{
    pipeline::{Rejected, RulePipeline},
    state::Tell,
};
use crate::domains::DomainFiles;
use std::{path::PathBuf, sync::Arc};
use tokio::task;
use tollgate::Enter;
use tollgate_book::FileKeeper;
use tollgate_net::{Contents, ReloadRequests, Watcher};

/// A rule file that is followed, and what it held when its rules were put in force.
pub(crate) struct Watched {
    pub(crate) path: PathBuf,
    pub(crate) text: String,
    pub(crate) domains: DomainFiles,
}

impl Watched {
    /// Watches the file and those of its domains: each may have changed since it was read, and may be half written now.
    pub(super) fn watcher(&self, reload: ReloadRequests) -> Watcher {
        let read = Contents::new(self.path.clone(), self.text.clone());
        let mut watcher = Watcher::knowing([read]).reload_on(reload);
        self.follow_domains(&mut watcher);
        watcher
    }

    /// Watches the files of the domains that are named now.
    pub(super) fn follow_domains(&self, watcher: &mut Watcher) {
        watcher.follow(self.domains.patterns.clone(), &self.domains.contents);
    }

    /// What the file holds, after the watcher reported these contents of it and of the files of its domains.
    pub(super) fn take(&mut self, reported: &[Contents]) -> Result<String, Rejected> {
        let Some((file, domains)) = reported.split_first() else { return Ok(self.text.clone()) };
        domains.clone_into(&mut self.domains.contents);
        Ok(file.text().map_err(|error| error.to_string())?.to_owned())
    }
}

/// Puts every change of the file in force, for ever.
pub(super) async fn follow<S: Enter + Tell + 'static>(
    mut watched: Watched,
    pipeline: Arc<RulePipeline<S>>,
    keeper: Arc<FileKeeper>,
    reload: ReloadRequests,
) {
    pipeline.status.is_revision(&FileKeeper::revision_of(&watched.text));
    let mut watcher = watched.watcher(reload);
    loop {
        let reported = tokio::select! {
            reported = watcher.changed() => reported,
            // Somebody has changed the file from here and put it in force. Should it be as it was before by the next look,
            // that is a change too.
            () = pipeline.look.notified() => {
                watcher.forget();
                continue;
            }
        };
        task::block_in_place(|| {
            let patterns = watched.domains.patterns.clone();
            let reloaded = watched
                .take(&reported)
                .and_then(|text| pipeline.reload("", &keeper.document(text), &mut watched.domains));
            if watched.domains.patterns != patterns {
                watched.follow_domains(&mut watcher);
            }
            if let Err(rejected) = reloaded {
                pipeline.reject(&watched.path.display().to_string(), &rejected);
            }
        });
    }
}
