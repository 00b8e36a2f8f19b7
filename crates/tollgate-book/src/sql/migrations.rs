//! Our tables, made and brought up to date.
//!
//! Every step has a number; the table `tollgate_schema` has those that were made. A step is never changed once it was released:
//! another is added. Nodes that start at the same time take turns (a lock of the server, or the file's), and who finds everything
//! made asks for no right to make tables. Rows stay whatever they were.

use super::{
    database::{Database, Failed, number},
    dialect::Dialect,
};
use crate::{BookError, now_ms};
use sqlx::{AnyConnection, AssertSqlSafe, Connection};

/// The steps, each of one or more statements.
const STEPS: [&[&str]; 3] = [
    // What is kept: a row for everything that a rule file has a name for, and one row for all of it.
    &[
        "CREATE TABLE IF NOT EXISTS tollgate_pieces (
            id {number},
            kind VARCHAR(16) NOT NULL,
            route VARCHAR(128) NULL,
            name VARCHAR(128) NOT NULL,
            text {long} NOT NULL,
            enabled SMALLINT NOT NULL DEFAULT 1,
            place BIGINT NOT NULL DEFAULT 1000000,
            version BIGINT NOT NULL DEFAULT 1
        ){options}",
        "CREATE TABLE IF NOT EXISTS tollgate_book (
            id SMALLINT NOT NULL PRIMARY KEY,
            enabled SMALLINT NOT NULL DEFAULT 1,
            revision BIGINT NOT NULL DEFAULT 0
        ){options}",
        "INSERT INTO tollgate_book (id) SELECT 1 FROM (SELECT 1 AS one) AS only_row
            WHERE NOT EXISTS (SELECT 1 FROM tollgate_book WHERE id = 1)",
    ],
    // Whose work it is, and what was done.
    &[
        "ALTER TABLE tollgate_pieces ADD COLUMN changed_at_ms BIGINT NOT NULL DEFAULT 0",
        "ALTER TABLE tollgate_pieces ADD COLUMN changed_by VARCHAR(128) NOT NULL DEFAULT ''",
        "CREATE TABLE IF NOT EXISTS tollgate_audit (
            number {number},
            at_ms BIGINT NOT NULL,
            done_by VARCHAR(128) NOT NULL,
            action VARCHAR(32) NOT NULL,
            about VARCHAR(400) NOT NULL,
            text_before {long} NULL,
            text_after {long} NULL
        ){options}",
    ],
    // Who follows.
    &["CREATE TABLE IF NOT EXISTS tollgate_nodes (
            node VARCHAR(190) NOT NULL PRIMARY KEY,
            revision VARCHAR(64) NOT NULL,
            failure {long} NULL,
            at_ms BIGINT NOT NULL
        ){options}"],
];

/// Any number that nobody else locks.
const LOCK: i64 = 0x746f_6c6c_6761_7465;

impl Database {
    /// Makes what is missing.
    pub(super) async fn migrate(&self) -> Result<(), Failed> {
        self.migrate_to(STEPS.len()).await
    }

    /// Makes what is missing of the first steps.
    pub(super) async fn migrate_to(&self, wanted: usize) -> Result<(), Failed> {
        let mut connection = self.pool()?.acquire().await?;
        // Where all is made, nobody needs the right to make anything.
        if made(&mut connection).await.is_ok_and(|made| made == wanted as i64) {
            return Ok(());
        }
        match self.dialect() {
            Dialect::MySql => {
                // Tables are made outside of transactions there. The lock belongs to the connection, which is not used again:
                // whoever gives up in the middle gives the lock back with it.
                connection.close_on_drop();
                let locked = sqlx::query("SELECT GET_LOCK('tollgate_schema', 8) AS locked")
                    .fetch_one(&mut *connection)
                    .await?;
                if number(&locked, "locked")? != 1 {
                    return Err(BookError::Unreachable("another node is making the tables".to_owned()).into());
                }
                let done = self.make(&mut connection, wanted).await;
                sqlx::query("DO RELEASE_LOCK('tollgate_schema')").execute(&mut *connection).await?;
                done
            }
            dialect => {
                let mut transaction = connection.begin_with(dialect.begin_writing()).await?;
                if dialect == Dialect::Postgres {
                    let lock = format!("SELECT pg_advisory_xact_lock({LOCK})");
                    sqlx::query(AssertSqlSafe(lock)).execute(&mut *transaction).await?;
                }
                self.make(&mut transaction, wanted).await?;
                Ok(transaction.commit().await?)
            }
        }
    }

    async fn make(&self, connection: &mut AnyConnection, wanted: usize) -> Result<(), Failed> {
        let dialect = self.dialect();
        let known = dialect.definition(
            "CREATE TABLE IF NOT EXISTS tollgate_schema (version BIGINT NOT NULL PRIMARY KEY, at_ms BIGINT NOT NULL){options}",
        );
        sqlx::query(AssertSqlSafe(known)).execute(&mut *connection).await?;
        let made = made(connection).await?;
        let Ok(done) = usize::try_from(made) else { return Ok(()) };
        if done > STEPS.len() {
            return Err(BookError::Refused(format!(
                "the tables are of version {made}, and this tollgate knows versions up to {}; it takes a newer one",
                STEPS.len()
            ))
            .into());
        }
        for (index, statements) in STEPS.iter().enumerate().take(wanted).skip(done) {
            for statement in *statements {
                let statement = dialect.definition(statement);
                match sqlx::query(AssertSqlSafe(statement)).execute(&mut *connection).await {
                    // Broken off after this one the last time: MySQL keeps what a broken step has made.
                    Err(sqlx::Error::Database(error)) if error.code().as_deref() == Some("42S21") => {}
                    done => {
                        done?;
                    }
                }
            }
            let step = i64::try_from(index + 1).unwrap_or(i64::MAX);
            let note = self.query("INSERT INTO tollgate_schema (version, at_ms) VALUES (?, ?)");
            note.bind(step).bind(now_ms()).execute(&mut *connection).await?;
        }
        Ok(())
    }
}

/// How many steps were made.
async fn made(connection: &mut AnyConnection) -> Result<i64, sqlx::Error> {
    let asked = "SELECT COALESCE(MAX(version), 0) AS made FROM tollgate_schema";
    let row = sqlx::query(asked).fetch_one(connection).await?;
    number(&row, "made")
}
