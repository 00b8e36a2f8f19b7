//! The real nginx, to stand beside what is measured against it.
//!
//! One worker, so that there is one order of events. It ends with its master: a master that is killed leaves its workers
//! behind, so this one is asked to end, by us or, where the test is killed, by the system.

mod logged;

pub use logged::{Excess, Logged};

use crate::{
    directory::Directory,
    port::Port,
    process::{Ending, Process},
};
use rustix::process::{Signal, geteuid};
use std::{
    env, fmt,
    fs::{self, File},
    net::{Ipv4Addr, SocketAddr, TcpStream},
    path::Path,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

/// It tries for two and a half seconds to bind a port that is taken.
const START_WITHIN: Duration = Duration::from_secs(10);

/// How often another port is tried where the first was taken between looking and listening.
const ATTEMPTS: u32 = 5;

/// What stands for nginx's own address where a body says `listen`.
const LISTEN: &str = "LISTEN";

/// An nginx of this test's own: on a free port of 127.0.0.1, everything it writes in a directory that goes with it.
///
/// ```
/// use testkit::{Arrivals, Nginx};
///
/// let nginx = Nginx::start(
///     "limit_req_zone $binary_remote_addr zone=one:1m rate=10r/s;
///      server { listen LISTEN; location / { limit_req zone=one; root html; } }",
/// );
/// nginx.file("a", b"text");
/// let schedule = Arrivals::at_once(2).each(|arrival| arrival.path("/a"));
/// let statuses: Vec<u16> = schedule.play(nginx.address()).iter().map(|seen| seen.status()).collect();
/// assert_eq!(statuses, [200, 503]);
/// assert_eq!(nginx.logged(2)[1].limit_req.as_deref(), Some("REJECTED"));
/// ```
///
/// A location that limits has to answer in nginx's content phase, from a file or an upstream: `return` comes before
/// limits, which are then never asked.
pub struct Nginx {
    // Before the directory, so that nobody writes there when it is removed.
    process: Mutex<Option<Process>>,
    directory: Directory,
    port: Port,
}

impl Nginx {
    /// Starts one with this body of its `http` block, and waits until it takes requests. `listen LISTEN` stands for its
    /// own address; it is not let listen where others than this machine could ask.
    ///
    /// # Panics
    ///
    /// If it does not start; with what nginx wrote.
    #[track_caller]
    pub fn start(body: &str) -> Self {
        for _ in 1..ATTEMPTS {
            match Self::try_start(body) {
                Err(log) if log.contains("Address already in use") => {}
                tried => return tried.unwrap_or_else(|log| no_start(&log)),
            }
        }
        Self::try_start(body).unwrap_or_else(|log| no_start(&log))
    }

    /// The server, or what it wrote.
    fn try_start(body: &str) -> Result<Self, String> {
        let nginx = Self { process: Mutex::new(None), directory: Directory::new(), port: Port::free() };
        nginx.make_directory("html");
        nginx.configure(body);
        let mut process = nginx.launch();
        let is_ready = process.becomes_ready(START_WITHIN, || {
            nginx.count("start worker process ") > 0 && TcpStream::connect(nginx.address()).is_ok()
        });
        if !is_ready {
            return Err(nginx.error_log());
        }
        *nginx.process() = Some(process);
        Ok(nginx)
    }

    fn launch(&self) -> Process {
        // What it says before it has read where to say it.
        let output = self.directory.join("output");
        let output = File::create(&output).and_then(|file| Ok((file.try_clone()?, file)));
        let (out, err) = output.unwrap_or_else(|e| panic!("could not write beside nginx: {e}"));
        let prefix = self.directory.path().display().to_string();
        Process::start_to_end_by(Ending::Ask, &program(), |command| {
            command.args(["-p", &prefix, "-c", "nginx.conf"]).stdout(out).stderr(err);
        })
    }

    fn configure(&self, body: &str) {
        assert_listens_here(body);
        // As root it would let its worker be somebody who may not read our directory.
        let user = if geteuid().is_root() { "user root root;" } else { "" };
        let body = body.replace(LISTEN, &self.address().to_string());
        let format = logged::FORMAT;
        let text = format!(
            "daemon off;
            worker_processes 1;
            {user}
            pid nginx.pid;
            error_log error.log info;
            events {{ worker_connections 16384; }}
            http {{
                client_body_temp_path body;
                proxy_temp_path proxy;
                fastcgi_temp_path fastcgi;
                uwsgi_temp_path uwsgi;
                scgi_temp_path scgi;
                log_format arrivals '{format}';
                access_log access.log arrivals;
                keepalive_requests 1000000;
                {body}
            }}\n"
        );
        self.write("nginx.conf", text.as_bytes());
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        SocketAddr::from((Ipv4Addr::LOCALHOST, self.port()))
    }

    /// Where it listens.
    pub const fn port(&self) -> u16 {
        self.port.number()
    }

    /// Where it listens, as a URL without a slash at its end.
    pub fn url(&self) -> String {
        format!("http://{}", self.address())
    }

    /// The process of its master.
    pub fn pid(&self) -> u32 {
        self.process().as_ref().expect("it was started").pid()
    }

    /// Its directory: what paths in its configuration are relative to.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Puts a file into `html`, to be served by `root html`.
    pub fn file(&self, name: &str, bytes: &[u8]) {
        self.write(&format!("html/{name}"), bytes);
    }

    /// Gives it another body, and waits until only new workers take requests. What the old ones are busy with goes on.
    ///
    /// # Errors
    ///
    /// What nginx says where it does not take it; it goes on with the old one.
    pub fn reload(&self, body: &str) -> Result<(), String> {
        let before = self.error_log().len();
        let stopped = self.count("gracefully shutting down");
        self.configure(body);
        self.process().as_mut().expect("it was started").signal(Signal::HUP);
        crate::eventually("nginx to take its new configuration", || {
            let log = self.error_log();
            let news = log.get(before..).unwrap_or_default();
            match news.lines().find(|line| line.contains("[emerg]")) {
                Some(line) => Some(Err(line.to_owned())),
                None => (self.count("gracefully shutting down") > stopped).then_some(Ok(())),
            }
        })
    }

    /// What it wrote to its error log so far, and before it had one.
    pub fn error_log(&self) -> String {
        self.read("output") + &self.read("error.log")
    }

    /// The requests it has logged so far, in the order they ended. It logs after it has answered; see
    /// [`logged`](Self::logged).
    pub fn access_log(&self) -> Vec<Logged> {
        let text = self.read("access.log");
        // The last line may be half written.
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        whole.lines().map(Logged::parse).collect()
    }

    /// Waits until it has logged so many requests, and gives all it has.
    #[track_caller]
    pub fn logged(&self, count: usize) -> Vec<Logged> {
        crate::eventually("nginx to log what it answered", || {
            Some(self.access_log()).filter(|lines| lines.len() >= count)
        })
    }

    /// By how much requests were above what passes at once, where nginx said so: for those it delayed or refused, dry runs
    /// included.
    pub fn excesses(&self) -> Vec<Excess> {
        self.error_log().lines().filter_map(Excess::parse).collect()
    }

    fn count(&self, words: &str) -> usize {
        self.error_log().matches(words).count()
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.directory.join(name)).unwrap_or_default()
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        let path = self.directory.join(name);
        fs::write(&path, bytes).unwrap_or_else(|e| panic!("could not write {}: {e}", path.display()));
    }

    fn make_directory(&self, name: &str) {
        let path = self.directory.join(name);
        fs::create_dir(&path).unwrap_or_else(|e| panic!("could not make {}: {e}", path.display()));
    }

    /// A test that failed while it held this has failed already; nginx can still be ended.
    fn process(&self) -> MutexGuard<'_, Option<Process>> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Nginx {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Nginx").field("port", &self.port()).finish_non_exhaustive()
    }
}

/// A server that is not told where to listen does so everywhere.
#[track_caller]
fn assert_listens_here(body: &str) {
    let spaced = body.replace('{', " { ").replace(';', " ; ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let pairs = || words.iter().zip(words.iter().skip(1));
    let servers = pairs().filter(|pair| *pair == (&"server", &"{")).count();
    let places: Vec<&str> = pairs().filter(|(word, _)| **word == "listen").map(|(_, place)| *place).collect();
    assert!(
        servers <= places.len(),
        "every server needs a `listen {LISTEN};`: without one it listens everywhere"
    );
    for place in places {
        let here = [LISTEN, "127.", "unix:"].iter().any(|known| place.starts_with(known));
        assert!(here, "nginx is to listen at {LISTEN}, 127.x.x.x or unix:, not at {place}");
    }
}

/// Debian has it where only root looks.
fn program() -> String {
    env::var("NGINX").unwrap_or_else(|_| {
        let on_path = env::var_os("PATH")
            .is_some_and(|path| env::split_paths(&path).any(|dir| dir.join("nginx").is_file()));
        if on_path { "nginx".into() } else { "/usr/sbin/nginx".into() }
    })
}

#[track_caller]
fn no_start(log: &str) -> ! {
    panic!("nginx did not start (`scripts/setup test` installs what is missing); it wrote:\n{log}")
}
