//! One Redis server.

use crate::{
    connection::Connection,
    launch::{Launch, Role, User},
    port::Port,
    process::Process,
    reply::Reply,
    tls::TlsFiles,
};
use std::{
    fmt, io,
    os::unix::net::UnixStream,
    path::Path,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

const START_WITHIN: Duration = Duration::from_secs(10);
const ANSWER_WITHIN: Duration = Duration::from_secs(10);

/// How often another port is tried where the first was taken between looking and listening.
const ATTEMPTS: u32 = 5;

/// A Redis server of this test's own: on a free port of 127.0.0.1, with an empty directory, nothing written to disk.
///
/// It is killed, and its directory removed, on drop. Every verb takes `&self`: a test may hurt a server that others use.
pub struct RedisServer {
    // Before the directory, so that nobody writes there when it is removed.
    process: Mutex<Option<Process>>,
    launch: Launch,
    port: Port,
}

impl RedisServer {
    /// Starts one, and waits until it answers.
    ///
    /// # Panics
    ///
    /// As every way to start does, if it does not answer within ten seconds; with what the server wrote.
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    /// Starts one with arguments, as in `&["--maxmemory", "2mb"]`.
    pub fn start_with(arguments: &[&str]) -> Self {
        Self::launch(|| Launch::new(Role::Data).with(arguments))
    }

    /// Starts one that speaks TLS alone. Whom to trust is in [`tls`](Self::tls).
    pub fn start_tls() -> Self {
        Self::launch(|| {
            let launch = Launch::new(Role::Data);
            let tls = TlsFiles::make(launch.directory.path());
            Launch { tls: Some(tls), ..launch }
        })
    }

    /// Starts one where this user may do everything, and nobody else anything.
    pub fn start_with_user(name: &str, password: &str) -> Self {
        Self::launch(|| {
            let user = User { name: name.to_owned(), password: password.to_owned() };
            Launch { user: Some(user), ..Launch::new(Role::Data) }
        })
    }

    pub(crate) fn launch(plan: impl Fn() -> Launch) -> Self {
        for _ in 1..ATTEMPTS {
            match Self::try_launch(plan()) {
                Err(log) if log.contains("Failed listening on port") => {}
                tried => return tried.unwrap_or_else(|log| no_start(&log)),
            }
        }
        Self::try_launch(plan()).unwrap_or_else(|log| no_start(&log))
    }

    /// The server, or what it wrote.
    fn try_launch(launch: Launch) -> Result<Self, String> {
        let server = Self { process: Mutex::new(None), launch, port: Port::free() };
        server.run()?;
        Ok(server)
    }

    fn run(&self) -> Result<(), String> {
        let mut process = self.launch.start(self.port());
        if !process.becomes_ready(START_WITHIN, || self.answers_within(Duration::from_secs(1))) {
            return Err(self.log());
        }
        *self.process() = Some(process);
        Ok(())
    }

    /// Where it is, as a URL. With the user's name and password where there is one.
    pub fn url(&self) -> String {
        let scheme = if self.launch.tls.is_some() { "rediss" } else { "redis" };
        let user = self.launch.user.as_ref().map(|user| format!("{}:{}@", user.name, user.password));
        format!("{scheme}://{}127.0.0.1:{}", user.unwrap_or_default(), self.port())
    }

    /// Its port.
    pub const fn port(&self) -> u16 {
        self.port.number()
    }

    /// Its process.
    ///
    /// # Panics
    ///
    /// If it was killed.
    pub fn pid(&self) -> u32 {
        self.process().as_ref().expect("the server was killed").pid()
    }

    /// Its certificate and who signed it.
    ///
    /// # Panics
    ///
    /// If it does not speak TLS.
    pub fn tls(&self) -> &TlsFiles {
        self.launch.tls.as_ref().expect("the server does not speak TLS")
    }

    /// Its directory: where it writes, if told to.
    pub fn directory(&self) -> &Path {
        self.launch.directory.path()
    }

    /// What it wrote so far.
    pub fn log(&self) -> String {
        self.launch.log()
    }

    /// Ends it at once, as a crash would: connections are reset, what it held is gone.
    pub fn kill(&self) {
        *self.process() = None;
    }

    /// Starts it again on the same port and in the same directory; kills it first if it runs.
    pub fn restart(&self) {
        self.kill();
        self.run().unwrap_or_else(|log| no_start(&log));
    }

    /// Freezes it: its connections stay, and nothing is answered.
    pub fn pause(&self) {
        self.process().as_mut().expect("the server was killed").pause();
    }

    /// Lets a frozen one go on.
    pub fn resume(&self) {
        self.process().as_mut().expect("the server was killed").resume();
    }

    /// Whether it runs and is not frozen.
    pub fn is_awake(&self) -> bool {
        self.process().as_mut().is_some_and(Process::is_awake)
    }

    /// Whether it answers a ping.
    pub fn answers_within(&self, patience: Duration) -> bool {
        let ask = || self.connect(patience)?.command(&["PING"]);
        ask().is_ok_and(|answer| !answer.is_error())
    }

    /// Asks it, past any proxy and any limit on its port.
    ///
    /// # Panics
    ///
    /// If there is no answer. A refusal is one.
    #[track_caller]
    pub fn command<A: AsRef<[u8]>>(&self, words: &[A]) -> Reply {
        self.try_command(words).unwrap_or_else(|e| panic!("no answer from {self:?} to {}: {e}", shown(words)))
    }

    /// Asks it; no answer within ten seconds is an error.
    pub fn try_command<A: AsRef<[u8]>>(&self, words: &[A]) -> io::Result<Reply> {
        self.connect(ANSWER_WITHIN)?.command(words)
    }

    fn connect(&self, patience: Duration) -> io::Result<Connection<UnixStream>> {
        let mut connection = Connection::at(&self.launch.socket(), patience)?;
        if let Some(User { name, password }) = &self.launch.user {
            connection.command(&["AUTH", name, password])?.done();
        }
        Ok(connection)
    }

    /// One line of what it says of itself, as in `info("replication", "role")`. Empty if there is no such line.
    #[track_caller]
    pub fn info(&self, section: &str, name: &str) -> String {
        self.says(section).field(name)
    }

    /// A sentinel that gives a server another place closes the connections of its clients, whatever they are in the middle of.
    /// This changes nothing, and is asked again.
    #[track_caller]
    fn says(&self, section: &str) -> Reply {
        let words = ["INFO", section];
        self.try_command(&words).unwrap_or_else(|_| self.command(&words))
    }

    /// Every key that would stay for ever.
    #[track_caller]
    pub fn keys_without_ttl(&self) -> Vec<String> {
        let mut found = Vec::new();
        let mut cursor = "0".to_owned();
        loop {
            let page = self.command(&["SCAN", &cursor, "COUNT", "1000"]).done();
            for key in page.items()[1].items() {
                let Reply::Bulk(name) = key else { panic!("not a key: {key:?}") };
                if self.command(&[b"PTTL", name.as_slice()]).integer() == -1 {
                    found.push(key.text());
                }
            }
            cursor = page.items()[0].text();
            if cursor == "0" {
                // A scan may show a key twice.
                found.sort();
                found.dedup();
                return found;
            }
        }
    }

    /// Bytes that a key takes, itself and its value. `None` if there is no such key.
    #[track_caller]
    pub fn memory_of(&self, key: impl AsRef<[u8]>) -> Option<u64> {
        match self.command(&[b"MEMORY".as_slice(), b"USAGE", key.as_ref()]).done() {
            Reply::Nil => None,
            answer => u64::try_from(answer.integer()).ok(),
        }
    }

    /// Whether this replica has all that its primary had, and is sent what comes.
    ///
    /// It says so itself a little too early: the primary holds new writes back until it has heard from the replica.
    pub(crate) fn is_in_sync_with(&self, primary: &Self) -> bool {
        let online = format!("port={},state=online", self.port());
        self.info("replication", "master_link_status") == "up"
            && primary.says("replication").text().contains(&online)
    }

    /// The port of its links to the other nodes of a cluster.
    pub(crate) fn bus(&self) -> u16 {
        match &self.launch.role {
            Role::Node { bus } => bus.number(),
            role => panic!("not a node of a cluster: {role:?}"),
        }
    }

    /// A test that failed while it held this has failed already; the server can still be killed.
    fn process(&self) -> MutexGuard<'_, Option<Process>> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for RedisServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisServer").field("port", &self.port()).finish_non_exhaustive()
    }
}

fn no_start(log: &str) -> ! {
    panic!("redis-server did not start (`scripts/setup test` installs what is missing); it wrote:\n{log}")
}

fn shown<A: AsRef<[u8]>>(words: &[A]) -> String {
    let words: Vec<_> = words.iter().map(|word| String::from_utf8_lossy(word.as_ref())).collect();
    words.join(" ")
}
