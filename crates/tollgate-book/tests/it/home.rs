//! Where a test's book is kept, and hands that reach past the keeper.

use std::{
    fs,
    path::PathBuf,
    process,
    sync::{
        LazyLock,
        atomic::{AtomicU32, Ordering},
    },
};
use testkit::DatabaseServer;
use tollgate_book::{Book, Change, Kind, Piece, PieceId, SqlKeeper, Wrong};

/// Which database.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Product {
    MariaDb,
    Postgres,
    Sqlite,
}

static MARIADB: LazyLock<DatabaseServer> = LazyLock::new(DatabaseServer::mariadb);
static POSTGRES: LazyLock<DatabaseServer> = LazyLock::new(DatabaseServer::postgres);

/// An empty database.
pub(crate) struct Home {
    product: Product,
    pub(crate) url: String,
    folder: Option<PathBuf>,
}

/// A folder that is this test's alone.
pub(crate) fn folder() -> PathBuf {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let name = format!("tollgate-book-{}-{}", process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    let path = std::env::temp_dir().join(name);
    let _ = fs::remove_dir_all(&path);
    fs::create_dir(&path).unwrap();
    path
}

impl Home {
    pub(crate) fn new(product: Product) -> Self {
        let (url, folder) = match product {
            Product::MariaDb => (MARIADB.fresh(), None),
            Product::Postgres => (POSTGRES.fresh(), None),
            Product::Sqlite => {
                let folder = folder();
                (format!("sqlite://{}", folder.join("rules.db").display()), Some(folder))
            }
        };
        Self { product, url, folder }
    }

    /// Another keeper of the same book, as another node has one.
    pub(crate) fn keeper(&self) -> SqlKeeper {
        SqlKeeper::at(&self.url).unwrap()
    }

    /// A statement of somebody who edits by hand.
    pub(crate) async fn sql(&self, statement: &str) {
        match self.product {
            Product::MariaDb => drop(MARIADB.sql(&self.url, statement)),
            Product::Postgres => drop(POSTGRES.sql(&self.url, statement)),
            Product::Sqlite => {
                sqlx::any::install_default_drivers();
                let pool = sqlx::AnyPool::connect(&format!("{}?mode=rwc", self.url)).await.unwrap();
                let statement = sqlx::AssertSqlSafe(statement.to_owned());
                sqlx::query(statement).execute(&pool).await.unwrap();
                pool.close().await;
            }
        }
    }

    pub(crate) const fn is_postgres(&self) -> bool {
        matches!(self.product, Product::Postgres)
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        if let Some(folder) = &self.folder {
            let _ = fs::remove_dir_all(folder);
        }
    }
}

/// Runs a test over every database.
macro_rules! everywhere {
    ($($name:ident,)*) => {
        mod mariadb {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() { super::$name($crate::home::Home::new($crate::home::Product::MariaDb)).await; })*
        }
        mod postgres {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() { super::$name($crate::home::Home::new($crate::home::Product::Postgres)).await; })*
        }
        mod sqlite {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() { super::$name($crate::home::Home::new($crate::home::Product::Sqlite)).await; })*
        }
    };
}
pub(crate) use everywhere;

/// What a node has of its own.
pub(crate) const OWN: &str = "version: 1\nrules_from: { source: \"sqlite://x\" }\n";

pub(crate) fn judged(book: &Book) -> Result<(), Vec<Wrong>> {
    tollgate_book::judge(OWN, |_| None)(book)
}

pub(crate) fn create(kind: Kind, route: Option<&str>, name: &str, text: &str) -> Change {
    let (route, name, text) = (route.map(str::to_owned), name.to_owned(), text.to_owned());
    Change::Create { kind, route, name, text, enabled: true, before: None }
}

/// A small good book.
pub(crate) fn first_rules() -> Vec<Change> {
    vec![
        create(Kind::Limit, None, "per-client", "token_bucket: { rate: 10/s, burst: 5 }"),
        create(Kind::Upstream, None, "orders", "servers: [ \"http://127.0.0.1:9001\" ]"),
        create(Kind::Route, None, "orders", "when: { path: /orders/** }\nupstream: orders"),
        create(Kind::Rule, Some("orders"), "create", "limits: [ { use: per-client, key: [ip] } ]"),
        create(Kind::Rule, Some("orders"), "read", "limits: [ { use: per-client, key: [] } ] # é 订单"),
        create(Kind::Rule, None, "per-ip", "limits: [ { use: per-client, key: [ip] } ]"),
    ]
}

pub(crate) fn named<'a>(book: &'a Book, about: &str) -> &'a Piece {
    book.pieces
        .iter()
        .find(|piece| piece.about() == about)
        .unwrap_or_else(|| panic!("no {about} in {book:#?}"))
}

pub(crate) fn names(book: &Book) -> Vec<String> {
    book.pieces.iter().map(Piece::about).collect()
}

pub(crate) fn edit(piece: &Piece, text: &str) -> Change {
    Change::Edit { id: piece.id, version: piece.version, name: None, text: text.to_owned() }
}

/// A piece that there is not.
pub(crate) const NOBODY: PieceId = PieceId(999_999);
