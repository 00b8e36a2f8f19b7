//! What a server is started with.
//!
//! Everything is on the command line, except where sentinels insist on a file. Besides its port every server listens on
//! a socket in its own directory, and the kit asks there: the answer is our server's and no other's that has taken the
//! port meanwhile, and a server that speaks only TLS can still be asked.

use crate::{directory::Directory, port::Port, process::Process, tls::TlsFiles};
use std::{
    env,
    fs::{self, File},
    path::PathBuf,
};

/// Nothing is kept on disk. Unless told, a primary waits five seconds for more replicas before it sends the first its data,
/// and pings it every ten; until the first ping a cluster does not count the replica as one.
const DATA: [&str; 8] = [
    "--save",
    "",
    "--appendonly",
    "no",
    "--repl-diskless-sync-delay",
    "0",
    "--repl-ping-replica-period",
    "1",
];

/// How to start a server, and start it again.
#[derive(Debug)]
pub(crate) struct Launch {
    pub(crate) role: Role,
    pub(crate) tls: Option<TlsFiles>,
    pub(crate) user: Option<User>,
    pub(crate) extra: Vec<String>,
    pub(crate) directory: Directory,
}

/// What a server is there for.
#[derive(Debug)]
pub(crate) enum Role {
    Data,
    Node {
        bus: Port,
    },
    /// With the lines of its file.
    Sentinel(String),
}

/// The one user who may log in.
#[derive(Debug)]
pub(crate) struct User {
    pub(crate) name: String,
    pub(crate) password: String,
}

impl Launch {
    pub(crate) fn new(role: Role) -> Self {
        Self { role, tls: None, user: None, extra: Vec::new(), directory: Directory::new() }
    }

    /// With further arguments, which win over ours.
    pub(crate) fn with(mut self, extra: &[&str]) -> Self {
        self.extra.extend(extra.iter().map(ToString::to_string));
        self
    }

    /// Where the kit asks.
    pub(crate) fn socket(&self) -> PathBuf {
        self.directory.join("redis.sock")
    }

    /// What the server wrote so far.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.directory.join("log")).unwrap_or_default()
    }

    pub(crate) fn start(&self, port: u16) -> Process {
        let log = self.directory.join("log");
        let open = || {
            File::options()
                .create(true)
                .append(true)
                .open(&log)
                .and_then(|file| Ok((file.try_clone()?, file)))
        };
        let (out, err) = open().unwrap_or_else(|e| panic!("could not write {}: {e}", log.display()));
        // So that the same tests can be run on Valkey, or on a Redis that was just built.
        let program = env::var("REDIS_SERVER").unwrap_or_else(|_| "redis-server".into());
        let arguments = self.arguments(port);
        Process::start(&program, |command| {
            command.args(arguments).stdout(out).stderr(err);
        })
    }

    fn arguments(&self, port: u16) -> Vec<String> {
        let mut arguments = Vec::new();
        if let Role::Sentinel(lines) = &self.role {
            let file = self.directory.join("sentinel.conf");
            // It keeps what it learns in there, for when it comes back.
            if !file.exists() {
                fs::write(&file, lines).unwrap_or_else(|e| panic!("could not write {}: {e}", file.display()));
            }
            arguments.push(file.display().to_string());
        }
        let mut add = |words: &[&str]| arguments.extend(words.iter().map(ToString::to_string));
        let port = port.to_string();
        let socket = self.socket().display().to_string();
        add(&["--bind", "127.0.0.1", "--daemonize", "no", "--unixsocket", &socket]);
        add(&["--dir", &self.directory.path().display().to_string()]);
        match &self.tls {
            None => add(&["--port", &port]),
            Some(files) => {
                add(&["--port", "0", "--tls-port", &port, "--tls-auth-clients", "no"]);
                add(&["--tls-ca-cert-file", &files.authority.display().to_string()]);
                add(&["--tls-cert-file", &files.certificate.display().to_string()]);
                add(&["--tls-key-file", &files.key.display().to_string()]);
            }
        }
        if let Some(User { name, password }) = &self.user {
            add(&["--user", name, "on", &format!(">{password}"), "~*", "&*", "+@all"]);
            add(&["--user", "default", "off"]);
        }
        match &self.role {
            Role::Sentinel(_) => add(&["--sentinel"]),
            Role::Data => add(&DATA),
            Role::Node { bus } => {
                add(&DATA);
                add(&["--cluster-enabled", "yes", "--cluster-port", &bus.number().to_string()]);
            }
        }
        arguments.extend(self.extra.iter().cloned());
        arguments
    }
}
