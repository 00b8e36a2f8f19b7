//! A book as the rules of this node: judged before it is written, put in force once it is.

use super::{reload::Followers, state::Tell};
use crate::{domains, file};
use std::time::SystemTime;
use tollgate::Enter;
use tollgate_admin::{ReloadFailure, State};
use tollgate_book::{Book, Kind, Wrong, compose};
use tollgate_rules::RuleFile;

impl<S: Enter + Tell + 'static> Followers<S> {
    /// The rules that a book is here, or everything that is wrong with it.
    pub(super) fn judge(&self, book: &Book) -> Result<RuleFile, Vec<Wrong>> {
        let rules = compose(&self.own(), book, file::variable)?;
        let whole = |why: String| vec![about_all(book, why)];
        // Which files are read is said on the node: a draft may come from somebody who may look at rules, not at files.
        let now = self.decisions.rules();
        let (files, in_force) = (rules.domains.settings(), now.program().file().domains.settings());
        if files.files != in_force.files {
            let why =
                "domains: other files are named on the node itself, in its rule file, and not from here";
            return Err(whole(why.to_owned()));
        }
        let patterns = domains::patterns(&self.home, &rules);
        let rules = domains::put_in(rules, &patterns, &domains::read(&patterns)).map_err(whole)?;
        file::same_frame(now.program().file(), &rules).map_err(whole)?;
        if let Some(gateway) = &self.gateway {
            gateway.prepare(&rules).map_err(|error| whole(error.to_string()))?;
        }
        Ok(rules)
    }

    /// Puts a book in force here, or says why not.
    pub(super) fn take_book(&self, book: &Book) -> Result<(), String> {
        // Whoever follows a database has the newest book then too, for when the file changes or the database goes away;
        // and where it cannot be taken whole, takes of it what can be.
        self.look.notify_one();
        let rules = match self.judge(book) {
            Ok(rules) => rules,
            Err(wrong) => {
                let why = wrong.first().map(ToString::to_string).unwrap_or_default();
                // A hand has broken something. The switch counts whatever else is wrong.
                let mut rules = self.decisions.rules().program().file().clone();
                if rules.enabled == book.enabled {
                    return Err(why);
                }
                let failure = self.status.rules().failure.unwrap_or_else(|| ReloadFailure {
                    at: SystemTime::now(),
                    file: self.home.clone(),
                    why,
                    mistakes: Vec::new(),
                });
                rules.enabled = book.enabled;
                self.adopt(rules, None)?;
                self.status.still_fails(&failure);
                return Ok(());
            }
        };
        self.adopt(rules, Some(&book.revision))
    }
}

/// What is wrong with no one place in particular.
fn about_all(book: &Book, message: String) -> Wrong {
    let file = book.pieces.iter().find(|piece| piece.kind == Kind::File);
    Wrong {
        piece: file.map(|file| file.id),
        about: file.map_or_else(|| "the rules as a whole".to_owned(), |file| file.name.clone()),
        line: 1,
        column: 1,
        path: String::new(),
        message,
    }
}
