//! Follows the rules: every change of the rule file, of the files of its domains and of a database goes through the pipeline.

use super::{
    pipeline::{Rejected, RulePipeline},
    sql_poller::SqlPoller,
    state::Tell,
};
use crate::{domains::DomainFiles, file};
use std::{future::pending, path::PathBuf, sync::Arc};
use tokio::task;
use tollgate::Enter;
use tollgate_admin::State;
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

    /// What the file holds now, after the watcher reported these contents of it and of the files of its domains: what it
    /// held when the watcher looked may have been changed from here since.
    pub(super) fn take(&mut self, reported: &[Contents]) -> Result<String, Rejected> {
        reported.get(1..).unwrap_or_default().clone_into(&mut self.domains.contents);
        let file = Contents::read(self.path.clone());
        Ok(file.text().map_err(|error| error.to_string())?.to_owned())
    }
}

/// Follows the rule file, and the database with the rules where there is one.
pub(super) struct Follower<S: Enter> {
    pub(super) pipeline: Arc<RulePipeline<S>>,
    pub(super) watched: Watched,
    pub(super) database: Option<SqlPoller<S>>,
}

impl<S: Enter + Tell + 'static> Follower<S> {
    /// Puts every change in force, for ever.
    pub(super) async fn run(mut self, reload: ReloadRequests) {
        self.pipeline.status.is_revision(&self.pipeline.document().revision);
        let mut watcher = self.watched.watcher(reload);
        loop {
            tokio::select! {
                reported = watcher.changed() => {
                    let pipeline = Arc::clone(&self.pipeline);
                    let _publishing = pipeline.publishing.lock().await;
                    task::block_in_place(|| self.file_changed(&mut watcher, &reported));
                }
                // Somebody has changed the file from here and put it in force. Should it be as it was before by the next look,
                // that is a change too.
                () = self.pipeline.look.notified(), if self.database.is_none() => watcher.forget(),
                () = async {
                    match &mut self.database {
                        Some(database) => database.due().await,
                        None => pending().await,
                    }
                } => {}
            }
            if let Some(database) = &mut self.database {
                database.look_and_tell().await;
            }
        }
    }

    fn file_changed(&mut self, watcher: &mut Watcher, reported: &[Contents]) {
        let patterns = self.watched.domains.patterns.clone();
        let taken = self.take_file(reported);
        if self.watched.domains.patterns != patterns {
            self.watched.follow_domains(watcher);
        }
        if let Err((source, rejected)) = &taken {
            self.pipeline.reject(source, rejected);
        }
        if let Some(database) = &mut self.database {
            let failure = taken.err().and_then(|_| self.pipeline.status.rules().failure);
            database.file_was_read(failure);
        }
    }

    /// Puts in force what the file holds: the rules, or what the node has of its own with the rules there were. Or says why not,
    /// and of what.
    fn take_file(&mut self, reported: &[Contents]) -> Result<(), (String, Rejected)> {
        let (pipeline, watched) = (&self.pipeline, &mut self.watched);
        let name = watched.path.display().to_string();
        let text = watched.take(reported).map_err(|rejected| (name.clone(), rejected))?;
        if self.database.is_none() {
            let document = FileKeeper::new(watched.path.clone()).document(text);
            return pipeline.reload("", &document, &mut watched.domains).map_err(|rejected| (name, rejected));
        }
        let own =
            file::parse(&text).map_err(|mistakes| (name.clone(), Rejected::of_file(&name, &mistakes)))?;
        watched.domains.update(&watched.path, &own);
        let before = pipeline.own();
        pipeline.set_own(&text);
        pipeline.reload(&text, &pipeline.document(), &mut watched.domains).map_err(|rejected| {
            pipeline.set_own(&before);
            (pipeline.keeper.source().name, rejected)
        })
    }
}
