//! The rules of a start whose file says that they are in a database: from the database, or from the cache of it.

use super::{Watched, pipeline::compile, print_line};
use crate::file;
use anyhow::{Result, bail};
use std::{sync::Arc, time::Duration};
use tollgate_book::{Book, BookError, Cache, Keeper, keeper_of};
use tollgate_net::{Drain, ReloadRequests};
use tollgate_rules::{RuleFile, model::RulesFrom};

/// A database that is followed.
pub(crate) struct RuleDatabase {
    pub(crate) keeper: Arc<dyn Keeper>,
    /// How often it is asked.
    pub(crate) poll: Duration,
    pub(crate) cache: Option<Cache>,
    /// What was put in force at the start.
    pub(crate) book: Book,
}

/// The rules of a file and the database it names, and how that is followed from now on. Without a database and without a cache
/// it waits, and says so: a node without rules would let everything pass, or nothing.
pub(super) async fn find(
    watched: &Watched,
    from: &RulesFrom,
    drain: &Drain,
    mut reload: ReloadRequests,
) -> Result<(RuleFile, RuleDatabase)> {
    let keeper = keeper_of(from)?;
    let name = keeper.source().name;
    let cache = from.cache.clone().map(Cache::new);
    let mut said = String::new();
    loop {
        let read = tokio::select! {
            read = keeper.read() => read,
            () = drain.begun() => bail!("stopped before {name} answered"),
        };
        let (book, why) = match read {
            Ok(book) => match composed(watched, &book) {
                Ok(rules) => match kept(cache.as_ref()) {
                    Some(kept) if book.is_new && !kept.pieces.is_empty() => (Some(kept), Unfit::New),
                    _ => {
                        if book.pieces.is_empty() {
                            print_line(&without_rules(&name));
                        }
                        keep(cache.as_ref(), &book);
                        return Ok((rules, RuleDatabase { keeper, poll: from.poll, cache, book }));
                    }
                },
                Err(why) => (kept(cache.as_ref()), Unfit::Wrong(why)),
            },
            Err(error @ (BookError::Wrong(_) | BookError::Refused(_))) => {
                (kept(cache.as_ref()), Unfit::Wrong(error.to_string()))
            }
            Err(error) => (kept(cache.as_ref()), Unfit::Away(error.to_string())),
        };
        if let Some(book) = book {
            let rules = composed(watched, &book)
                .map_err(|why| anyhow::anyhow!("what the cache has is wrong:\n{why}"))?;
            let told = why.told(&name);
            print_line(&format!("{told}\nstarting with the last good rules, from the cache"));
            return Ok((rules, RuleDatabase { keeper, poll: from.poll, cache, book }));
        }
        let told = why.told(&name);
        match why {
            Unfit::Wrong(_) => bail!("{told}"),
            Unfit::Away(_) if said != told => {
                print_line(&format!("{told}\nwaiting for it: nothing is opened without rules"));
                said = told;
            }
            Unfit::Away(_) | Unfit::New => {}
        }
        tokio::select! {
            () = tokio::time::sleep(from.poll) => {}
            () = reload.next() => {}
            () = drain.begun() => bail!("stopped before {name} answered"),
        }
    }
}

/// What is to be said of a database with nothing in it.
fn without_rules(name: &str) -> String {
    format!(
        "{name} has no rules yet: the gateway answers 404 until it has, and the doors know no limit; \
         `tollgate rules push -c FILE` puts a file's rules there"
    )
}

/// What is to be said of a database that is new, where there were rules before.
pub(super) fn is_it_the_right_one(name: &str) -> String {
    format!(
        "{name} has no rules, and none were ever pushed there: is it the right one? `tollgate rules push -c FILE` puts some there, \
         and with --force takes all away"
    )
}

/// Why a start had no rules from the database.
enum Unfit {
    Away(String),
    Wrong(String),
    /// Nothing is there, and nothing ever was.
    New,
}

impl Unfit {
    fn told(&self, name: &str) -> String {
        match self {
            Self::Away(why) => format!("the database with the rules does not answer: {why}"),
            Self::Wrong(why) => format!("the rules of {name} have mistakes:\n{why}"),
            Self::New => is_it_the_right_one(name),
        }
    }
}

fn composed(watched: &Watched, book: &Book) -> Result<RuleFile, String> {
    let rules = compile(&watched.path, &watched.text, book, &mut watched.domains.clone());
    rules.map_err(|rejected| rejected.mistakes())
}

fn kept(cache: Option<&Cache>) -> Option<Book> {
    cache.and_then(|cache| cache.read(file::variable).ok())
}

/// Keeps a good book for the next start.
pub(super) fn keep(cache: Option<&Cache>, book: &Book) {
    if let Some(Err(error)) = cache.map(|cache| cache.keep(book)) {
        tracing::warn!(
            "rules_from.cache: the rules are in force, and cannot be kept for the next start: {error}"
        );
    }
}
