//! A database server: MariaDB or PostgreSQL.
//!
//! Each has a directory of its own, listens on a free port of 127.0.0.1 and on a socket in that directory, and writes to disk
//! lazily. PostgreSQL refuses to run as root, so it runs as its own user then. The kit speaks to them through their own
//! clients, as a person would who edits a row by hand.

use crate::{
    directory::Directory,
    eventually,
    port::Port,
    process::{Ending, Process, as_user},
};
use rustix::process::geteuid;
use std::{
    env, fmt,
    fs::{self, File},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

const START_WITHIN: Duration = Duration::from_secs(30);
const USER: &str = "tollgate";
const PASSWORD: &str = "s3cret-of-the-database";

/// Which server it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Product {
    MariaDb,
    Postgres,
}

/// A database server of this test's own. It ends, and its directory is removed, on drop.
pub struct DatabaseServer {
    // Before the directory, so that nobody writes there when it is removed.
    process: Mutex<Option<Process>>,
    product: Product,
    port: Port,
    databases: AtomicU32,
    directory: Directory,
}

impl DatabaseServer {
    /// Starts a MariaDB, and waits until it answers.
    ///
    /// # Panics
    ///
    /// As every way to start does, if it does not answer within half a minute; with what the server wrote.
    pub fn mariadb() -> Self {
        Self::start(Product::MariaDb)
    }

    /// Starts a PostgreSQL, and waits until it answers.
    pub fn postgres() -> Self {
        Self::start(Product::Postgres)
    }

    fn start(product: Product) -> Self {
        let server = Self {
            process: Mutex::new(None),
            product,
            port: Port::free(),
            databases: AtomicU32::new(0),
            directory: Directory::new(),
        };
        server.prepare();
        server.run();
        if product == Product::MariaDb {
            server.sql(
                "mysql",
                &format!(
                    "CREATE USER '{USER}'@'%' IDENTIFIED BY '{PASSWORD}'; GRANT ALL ON *.* TO '{USER}'@'%'"
                ),
            );
        }
        server
    }

    /// Makes an empty database, and says its address, with a user's name and password.
    pub fn fresh(&self) -> String {
        let name = format!("rules_{}", self.databases.fetch_add(1, Ordering::Relaxed));
        let (scheme, system) = match self.product {
            Product::MariaDb => ("mysql", "mysql"),
            Product::Postgres => ("postgres", "postgres"),
        };
        self.sql(system, &format!("CREATE DATABASE {name}"));
        format!("{scheme}://{USER}:{PASSWORD}@127.0.0.1:{}/{name}", self.port.number())
    }

    /// The password in its addresses, which nobody must show.
    pub const fn password(&self) -> &'static str {
        PASSWORD
    }

    /// What a statement answers, as the server's own client prints it: a line a row, tabs between columns. `database` may be an
    /// address that [`fresh`](Self::fresh) gave.
    ///
    /// # Panics
    ///
    /// If the statement fails.
    #[track_caller]
    pub fn sql(&self, database: &str, statement: &str) -> String {
        self.try_sql(database, statement).unwrap_or_else(|error| panic!("{statement}: {error}"))
    }

    /// The same, where it may fail.
    ///
    /// # Errors
    /// What the client says.
    pub fn try_sql(&self, database: &str, statement: &str) -> Result<String, String> {
        let database = database.rsplit('/').next().unwrap_or(database);
        let mut command = match self.product {
            Product::MariaDb => {
                let mut command = Command::new(program("MARIADB_CLIENT", "mariadb", &[]));
                command.args(["--no-defaults", "--user=root", "--batch", "--skip-column-names"]);
                command.arg(format!("--socket={}", self.socket().display()));
                command.arg(format!("--database={database}")).arg(format!("--execute={statement}"));
                command
            }
            Product::Postgres => {
                let mut command = Command::new(postgres_program("psql"));
                command.args([
                    "--no-psqlrc",
                    "--quiet",
                    "--tuples-only",
                    "--no-align",
                    "--field-separator=\t",
                ]);
                command.args(["--set=ON_ERROR_STOP=1", "--username", USER, "--dbname", database]);
                command
                    .arg(format!("--port={}", self.port.number()))
                    .arg("--host")
                    .arg(self.directory.path());
                command.arg(format!("--command={statement}"));
                command
            }
        };
        let output = command.output().map_err(|error| format!("the client did not start: {error}"))?;
        match output.status.success() {
            true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
            false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
        }
    }

    /// Ends it, as an operator would: connections are closed, what it holds stays on disk.
    pub fn stop(&self) {
        *self.process() = None;
    }

    /// Starts it again on the same port and in the same directory; ends it first if it runs.
    pub fn restart(&self) {
        self.stop();
        self.run();
    }

    /// What it wrote so far.
    pub fn log(&self) -> String {
        fs::read_to_string(self.directory.join("log")).unwrap_or_default()
    }

    /// Makes what a server needs before it starts for the first time.
    fn prepare(&self) {
        let data = self.data();
        // Another user writes there.
        let open = fs::Permissions::from_mode(0o777);
        fs::set_permissions(self.directory.path(), open)
            .unwrap_or_else(|e| panic!("could not open the directory: {e}"));
        let mut command = match self.product {
            Product::MariaDb => {
                let mut command = Command::new(program("MARIADB_INSTALL_DB", "mariadb-install-db", &[]));
                command.args(["--no-defaults", "--auth-root-authentication-method=normal", "--skip-test-db"]);
                command.args(["--skip-name-resolve", &format!("--datadir={}", data.display())]);
                command.args(self.product.user_words());
                command
            }
            Product::Postgres => {
                let initdb = postgres_program("initdb");
                let mut command = match postgres_user() {
                    Some(user) => {
                        let mut command = Command::new("setpriv");
                        command.args(as_user(user)).arg(initdb);
                        command
                    }
                    None => Command::new(initdb),
                };
                command.args([
                    "--auth=trust",
                    "--username",
                    USER,
                    "--no-sync",
                    "--no-locale",
                    "--encoding=UTF8",
                ]);
                command.arg("--pgdata").arg(data);
                command
            }
        };
        let output = command.current_dir(self.directory.path()).output();
        let output = output
            .unwrap_or_else(|e| panic!("could not prepare {self:?} (`scripts/setup test` installs it): {e}"));
        assert!(
            output.status.success(),
            "could not prepare {self:?}: {}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
    }

    fn run(&self) {
        let log = self.directory.join("log");
        let open = || File::options().create(true).append(true).open(&log);
        let (out, err) =
            open().and_then(|file| Ok((file.try_clone()?, file))).unwrap_or_else(|e| panic!("{e}"));
        let port = self.port.number();
        let mut process = match self.product {
            Product::MariaDb => {
                let server = program("MARIADB_SERVER", "mariadbd", &["/usr/sbin/mariadbd"]);
                Process::start_to_end_by(Ending::Ask, &server.display().to_string(), |command| {
                    command.arg("--no-defaults").args(self.product.user_words());
                    command.arg(format!("--datadir={}", self.data().display()));
                    command.arg(format!("--socket={}", self.socket().display()));
                    command.arg(format!("--pid-file={}", self.directory.join("pid").display()));
                    command.arg(format!("--port={port}")).arg("--bind-address=127.0.0.1");
                    command.args(["--innodb-flush-log-at-trx-commit=0", "--innodb-buffer-pool-size=16M"]);
                    command.args(["--innodb-fast-shutdown=2", "--skip-name-resolve"]);
                    command.stdout(out).stderr(err);
                })
            }
            Product::Postgres => {
                let server = postgres_program("postgres").display().to_string();
                Process::start_as(postgres_user(), Ending::Interrupt, &server, |command| {
                    command.arg("-D").arg(self.data()).arg("-F").arg("-k").arg(self.directory.path());
                    command.args(["-p", &port.to_string(), "-c", "listen_addresses=127.0.0.1"]);
                    command.current_dir(self.directory.path()).stdout(out).stderr(err);
                })
            }
        };
        let system = if self.product == Product::MariaDb { "mysql" } else { "postgres" };
        let is_ready = process.becomes_ready(START_WITHIN, || self.try_sql(system, "SELECT 1").is_ok());
        assert!(is_ready, "{self:?} did not start; it wrote:\n{}", self.log());
        *self.process() = Some(process);
        eventually("the port to answer", || std::net::TcpStream::connect(("127.0.0.1", port)).ok().map(drop));
    }

    fn data(&self) -> PathBuf {
        self.directory.join("data")
    }

    fn socket(&self) -> PathBuf {
        self.directory.join("socket")
    }

    fn process(&self) -> MutexGuard<'_, Option<Process>> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Product {
    /// MariaDB runs as root where it is told to.
    fn user_words(self) -> Vec<String> {
        let is_told = self == Self::MariaDb && geteuid().is_root();
        if is_told { vec!["--user=root".to_owned()] } else { Vec::new() }
    }
}

impl fmt::Debug for DatabaseServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DatabaseServer")
            .field("product", &self.product)
            .field("port", &self.port.number())
            .finish()
    }
}

/// Who runs PostgreSQL: we, unless we are root.
fn postgres_user() -> Option<&'static str> {
    let users = || fs::read_to_string("/etc/passwd").unwrap_or_default();
    let has = |user: &str| users().lines().any(|line| line.starts_with(&format!("{user}:")));
    geteuid().is_root().then(|| if has("postgres") { "postgres" } else { "nobody" })
}

/// A program of PostgreSQL, which Debian has where only its own tools look, a folder a version.
fn postgres_program(name: &str) -> PathBuf {
    if let Some(folder) = env::var_os("POSTGRES_BIN") {
        return Path::new(&folder).join(name);
    }
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut found: Vec<_> =
        versions.map(|version| version.path().join("bin").join(name)).filter(|path| path.is_file()).collect();
    found.sort();
    found.pop().unwrap_or_else(|| PathBuf::from(name))
}

/// A program that a variable may name; else as it is called, or where Debian has it.
fn program(variable: &str, name: &str, places: &[&str]) -> PathBuf {
    if let Some(named) = env::var_os(variable) {
        return named.into();
    }
    let place = places.iter().map(PathBuf::from).find(|place| place.is_file());
    place.unwrap_or_else(|| PathBuf::from(name))
}
