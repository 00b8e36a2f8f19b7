//! A database that is asked: a few connections, and an end to every wait.

use super::{address::Address, dialect::Dialect};
use crate::{BookError, Source};
use sqlx::{
    Any, AnyConnection, AnyPool, AssertSqlSafe, ConnectOptions, Row, Transaction,
    any::{AnyConnectOptions, AnyPoolOptions, AnyRow},
    query::Query,
};
use std::{
    fs,
    os::unix::fs::MetadataExt,
    sync::{Mutex, Once, PoisonError},
    time::Duration,
};

/// Connections at once: one that follows, and a few people who change something.
const MOST_CONNECTIONS: u32 = 4;
/// How long a connection is waited for.
const CONNECT_WITHIN: Duration = Duration::from_secs(5);
/// How long everything may take that is one question for us: a reading, or some changes.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);
/// How much longer for every change: a row that gets another text is a statement of its own.
const CHANGE_WITHIN: Duration = Duration::from_millis(10);

/// A database.
pub(super) struct Database {
    address: Address,
    options: AnyConnectOptions,
    /// Made by the first question: a pool begins a task, and whoever only names a database may have no runtime.
    open: Mutex<Option<Open>>,
}

/// Connections to a database.
struct Open {
    pool: AnyPool,
    /// Which file it is, where it is one: another may come in its place, and connections would stay with the first.
    file: Option<FileId>,
}

/// A file's device and number.
type FileId = (u64, u64);

/// Why a question was not answered.
pub(super) enum Failed {
    /// By the database.
    Sql(sqlx::Error),
    /// By us.
    Book(BookError),
}

impl From<sqlx::Error> for Failed {
    fn from(error: sqlx::Error) -> Self {
        Self::Sql(error)
    }
}

impl From<BookError> for Failed {
    fn from(error: BookError) -> Self {
        Self::Book(error)
    }
}

impl Database {
    /// The one at this address. Nothing is asked yet.
    pub(super) fn at(url: &str) -> Result<Self, BookError> {
        static DRIVERS: Once = Once::new();
        DRIVERS.call_once(sqlx::any::install_default_drivers);
        let address = Address::read(url)?;
        let options: AnyConnectOptions = address
            .url
            .parse()
            .map_err(|_| BookError::Refused(format!("the address of {} cannot be read", address.name)))?;
        Ok(Self { address, options: options.disable_statement_logging(), open: Mutex::default() })
    }

    pub(super) const fn dialect(&self) -> Dialect {
        self.address.dialect
    }

    pub(super) fn source(&self, read_only: Option<String>) -> Source {
        Source { kind: self.dialect().kind(), name: self.address.name.clone(), read_only }
    }

    /// Connections to what is there now. A file that is gone is not made anew: what was in it would be gone for whoever follows it.
    pub(super) fn pool(&self) -> Result<AnyPool, Failed> {
        let file = self.address.file().and_then(|path| fs::metadata(path).ok());
        let file = file.map(|file| (file.dev(), file.ino()));
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = &mut *open {
            match (known.file, file) {
                (Some(was), Some(is)) if was != is => {}
                (Some(_), None) => {
                    let told = format!("{}: the file is gone", self.address.name);
                    return Err(BookError::Unreachable(told).into());
                }
                // No file at all, or one that the first connection has made.
                _ => {
                    known.file = file;
                    return Ok(known.pool.clone());
                }
            }
        }
        let pool = AnyPoolOptions::new()
            .max_connections(MOST_CONNECTIONS)
            .acquire_timeout(CONNECT_WITHIN)
            .idle_timeout(Duration::from_secs(300))
            .connect_lazy_with(self.options.clone());
        *open = Some(Open { pool: pool.clone(), file });
        Ok(pool)
    }

    /// A transaction that only reads, and sees one moment.
    pub(super) async fn reading(&self) -> Result<Transaction<'static, Any>, Failed> {
        Ok(self.pool()?.begin_with(self.dialect().begin_reading()).await?)
    }

    /// A transaction that writes; what is not committed is undone.
    pub(super) async fn writing(&self) -> Result<Transaction<'static, Any>, Failed> {
        Ok(self.pool()?.begin_with(self.dialect().begin_writing()).await?)
    }

    /// A statement of ours; whatever comes from elsewhere is bound to it.
    pub(super) fn query<'q>(&self, text: &'static str) -> Query<'q, Any, <Any as sqlx::Database>::Arguments> {
        sqlx::query(AssertSqlSafe(self.dialect().sql(text)))
    }

    /// A statement that was put together, of our own words and of numbers. It is not kept for the next time.
    pub(super) fn composed<'q>(&self, text: &str) -> Query<'q, Any, <Any as sqlx::Database>::Arguments> {
        sqlx::query(AssertSqlSafe(self.dialect().sql(text))).persistent(false)
    }

    /// What a question comes to, in time and without secrets.
    pub(super) async fn within<T>(
        &self,
        asking: impl Future<Output = Result<T, Failed>>,
    ) -> Result<T, BookError> {
        self.within_for(0, asking).await
    }

    /// The same for a question of so many changes: each may take a moment more.
    pub(super) async fn within_for<T>(
        &self,
        changes: usize,
        asking: impl Future<Output = Result<T, Failed>>,
    ) -> Result<T, BookError> {
        let name = &self.address.name;
        let longest = ANSWER_WITHIN
            .saturating_add(CHANGE_WITHIN.saturating_mul(changes.try_into().unwrap_or(u32::MAX)));
        match tokio::time::timeout(longest, asking).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(Failed::Book(error))) => Err(error),
            Ok(Err(Failed::Sql(error))) => Err(BookError::Unreachable(self.told(&error))),
            Err(_) => {
                let seconds = longest.as_secs();
                Err(BookError::Unreachable(format!("{name} did not answer within {seconds} seconds")))
            }
        }
    }

    fn told(&self, error: &sqlx::Error) -> String {
        let name = &self.address.name;
        let why = match error {
            sqlx::Error::PoolTimedOut => {
                format!("no connection within {} seconds", CONNECT_WITHIN.as_secs())
            }
            sqlx::Error::Database(error) => error.message().to_owned(),
            other => other.to_string(),
        };
        self.address.shown(&format!("{name}: {why}"))
    }
}

/// A whole number of a row, of whatever width.
pub(super) fn number(row: &AnyRow, column: &str) -> Result<i64, sqlx::Error> {
    row.try_get::<i64, _>(column)
}

/// A text of a row.
pub(super) fn text(row: &AnyRow, column: &str) -> Result<String, sqlx::Error> {
    row.try_get::<String, _>(column)
}

/// A text of a row, or nothing.
pub(super) fn maybe(row: &AnyRow, column: &str) -> Result<Option<String>, sqlx::Error> {
    row.try_get::<Option<String>, _>(column)
}

/// A connection that a transaction holds.
pub(super) type Held<'c> = &'c mut AnyConnection;
