//! Our own tables as a book.

use super::{
    batch::{batches, times},
    database::{Database, Failed, Held, maybe, number, text},
    rows::short,
};
use crate::{
    Asking, Book, BookError, Change, Changed, Entry, Judge, Keeper, NodeSeen, Source,
    apply::{Done, Versions, apply},
    now_ms,
};
use std::sync::atomic::{AtomicBool, Ordering};

/// A node that was not heard of for a day is forgotten.
const FORGET_NODES_MS: i64 = 86_400_000;

/// Keeps a book in tables of its own, which are made where they are missing.
pub struct SqlKeeper {
    database: Database,
    /// Whether the tables were found made; asked again after an error.
    is_made: AtomicBool,
}

impl SqlKeeper {
    /// In the database at this address. Nothing is asked yet.
    ///
    /// # Errors
    /// It is no address of a database.
    pub fn at(url: &str) -> Result<Self, BookError> {
        Ok(Self { database: Database::at(url)?, is_made: AtomicBool::new(false) })
    }

    /// Makes the tables that are missing, as every other question does first.
    ///
    /// # Errors
    /// The database is away, does not let us, or has tables of a newer version.
    pub async fn make_tables(&self) -> Result<(), BookError> {
        self.asked(async { Ok(()) }).await
    }

    /// Makes the first tables only, as an older version would have.
    ///
    /// # Errors
    /// As [`make_tables`](Self::make_tables).
    #[doc(hidden)]
    pub async fn make_tables_of(&self, version: usize) -> Result<(), BookError> {
        self.database.within(self.database.migrate_to(version)).await
    }

    /// Puts a question once the tables are there.
    async fn asked<T>(&self, asking: impl Future<Output = Result<T, Failed>>) -> Result<T, BookError> {
        self.asked_for(0, asking).await
    }

    /// The same for one of so many changes.
    async fn asked_for<T>(
        &self,
        changes: usize,
        asking: impl Future<Output = Result<T, Failed>>,
    ) -> Result<T, BookError> {
        let answer = self
            .database
            .within_for(changes, async {
                if !self.is_made.load(Ordering::Relaxed) {
                    self.database.migrate().await?;
                    self.is_made.store(true, Ordering::Relaxed);
                }
                asking.await
            })
            .await;
        if matches!(answer, Err(BookError::Unreachable(_))) {
            // It may come back as another, without tables.
            self.is_made.store(false, Ordering::Relaxed);
        }
        answer
    }

    async fn changed(&self, changes: &[Change], by: &str, judge: Judge<'_>) -> Result<Book, Failed> {
        let database = &self.database;
        let mut transaction = database.writing().await?;
        // First of all: whoever changes something waits here for whoever does already.
        let count = database.query("UPDATE tollgate_book SET revision = revision + 1 WHERE id = 1");
        count.execute(&mut *transaction).await?;
        let before = database.rows(&mut transaction).await?;
        let changed = Changed { at_ms: now_ms(), by: short(by) };
        let applied = apply(&before.book, changes, &changed, Versions::Asked)?;
        if !changes.iter().all(Change::is_switch) {
            judge(&applied.book).map_err(BookError::Wrong)?;
        }
        database.write(&mut transaction, &before, &applied.book).await?;
        self.audit(&mut transaction, &changed, &applied.done).await?;
        let after = database.rows(&mut transaction).await?;
        transaction.commit().await?;
        Ok(after.book)
    }

    async fn audit(&self, held: Held<'_>, changed: &Changed, done: &[Done<'_>]) -> Result<(), Failed> {
        let length = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        for some in batches(done, |done| length(&done.before) + length(&done.after)) {
            let mut insert = self.database.composed(&format!(
                "INSERT INTO tollgate_audit (at_ms, done_by, action, about, text_before, text_after) VALUES {}",
                times("(?, ?, ?, ?, ?, ?)", some.len())
            ));
            for Done { action, about, before, after } in some {
                let about: String = about.chars().take(400).collect();
                let action: String = action.chars().take(32).collect();
                insert = insert.bind(changed.at_ms).bind(short(&changed.by)).bind(action).bind(about);
                insert = insert.bind(before.clone()).bind(after.clone());
            }
            insert.execute(&mut *held).await?;
        }
        Ok(())
    }

    async fn saw(&self, node: &NodeSeen) -> Result<(), Failed> {
        let database = &self.database;
        let name: String = node.node.chars().take(190).collect();
        let mut connection = database.pool()?.acquire().await?;
        let update =
            database.query("UPDATE tollgate_nodes SET revision = ?, failure = ?, at_ms = ? WHERE node = ?");
        let update =
            update.bind(node.revision.clone()).bind(node.failure.clone()).bind(node.at_ms).bind(name.clone());
        if update.execute(&mut *connection).await?.rows_affected() > 0 {
            return Ok(());
        }
        let forget = database.query("DELETE FROM tollgate_nodes WHERE at_ms < ?");
        forget.bind(node.at_ms.saturating_sub(FORGET_NODES_MS)).execute(&mut *connection).await?;
        let insert =
            database.query("INSERT INTO tollgate_nodes (node, revision, failure, at_ms) VALUES (?, ?, ?, ?)");
        let insert =
            insert.bind(name).bind(node.revision.clone()).bind(node.failure.clone()).bind(node.at_ms);
        insert.execute(&mut *connection).await?;
        Ok(())
    }
}

impl Keeper for SqlKeeper {
    fn source(&self) -> Source {
        self.database.source(None)
    }

    fn read(&self) -> Asking<'_, Book> {
        Box::pin(self.asked(async {
            let mut transaction = self.database.reading().await?;
            let rows = self.database.rows(&mut transaction).await?;
            transaction.commit().await?;
            Ok(rows.book)
        }))
    }

    fn revision(&self) -> Asking<'_, String> {
        Box::pin(self.asked(async {
            let mut transaction = self.database.reading().await?;
            let counted = self.database.revision_in(&mut transaction).await?;
            transaction.commit().await?;
            Ok(counted.revision)
        }))
    }

    fn change<'a>(&'a self, changes: &'a [Change], by: &'a str, judge: Judge<'a>) -> Asking<'a, Book> {
        Box::pin(self.asked_for(changes.len(), self.changed(changes, by, judge)))
    }

    fn note<'a>(&'a self, by: &'a str, action: &'a str, about: &'a str) -> Asking<'a, ()> {
        Box::pin(self.asked(async move {
            let mut connection = self.database.pool()?.acquire().await?;
            let changed = Changed { at_ms: now_ms(), by: by.to_owned() };
            let done = Done { action, about: about.to_owned(), before: None, after: None };
            self.audit(&mut connection, &changed, &[done]).await
        }))
    }

    fn history(&self, before: Option<i64>, most: usize) -> Asking<'_, Vec<Entry>> {
        Box::pin(self.asked(async move {
            let asked = self.database.query(
                "SELECT number, at_ms, done_by, action, about, text_before, text_after FROM tollgate_audit \
                 WHERE number < ? ORDER BY number DESC LIMIT ?",
            );
            let most = i64::try_from(most.min(1000)).unwrap_or(1000);
            let asked = asked.bind(before.unwrap_or(i64::MAX)).bind(most);
            let rows = asked.fetch_all(&self.database.pool()?).await?;
            let entry = |row| {
                Ok(Entry {
                    number: number(row, "number")?,
                    at_ms: number(row, "at_ms")?,
                    by: text(row, "done_by")?,
                    action: text(row, "action")?,
                    about: text(row, "about")?,
                    before: maybe(row, "text_before")?,
                    after: maybe(row, "text_after")?,
                })
            };
            rows.iter().map(entry).collect()
        }))
    }

    fn seen<'a>(&'a self, node: &'a NodeSeen) -> Asking<'a, ()> {
        Box::pin(self.asked(self.saw(node)))
    }

    fn nodes(&self) -> Asking<'_, Vec<NodeSeen>> {
        Box::pin(self.asked(async {
            let asked = self
                .database
                .query("SELECT node, revision, failure, at_ms FROM tollgate_nodes ORDER BY node");
            let rows = asked.fetch_all(&self.database.pool()?).await?;
            let node = |row| {
                Ok(NodeSeen {
                    node: text(row, "node")?,
                    revision: text(row, "revision")?,
                    failure: maybe(row, "failure")?,
                    at_ms: number(row, "at_ms")?,
                })
            };
            rows.iter().map(node).collect()
        }))
    }
}
