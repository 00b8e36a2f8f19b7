//! Real web applications, to stand behind the gateway: Flask under gunicorn, and Node.
//!
//! They answer in JSON with the view that ran and with what they read of the request, so that a test can compare what the
//! application saw with what the rules saw. Flask is in a folder of its own that `scripts/setup` makes.

use crate::{directory::Directory, port::Port, process::Process};
use std::{
    fs::{self, File},
    net::{SocketAddr, TcpStream},
    path::{Path, PathBuf},
    process::Command,
    thread,
    time::{Duration, Instant},
};

const START_WITHIN: Duration = Duration::from_secs(30);

/// An application of this test's own, on a free port of 127.0.0.1.
#[derive(Debug)]
pub struct App {
    // Before the directory, so that nobody writes there when it is removed.
    _process: Process,
    _directory: Directory,
    port: Port,
}

impl App {
    /// Flask under gunicorn.
    ///
    /// # Panics
    ///
    /// If it does not start; with what it wrote.
    #[must_use]
    pub fn flask() -> Self {
        let program = repository("target/clients/apps/bin/gunicorn");
        assert!(program.exists(), "there is no {}; please run scripts/setup test", program.display());
        Self::start(&program.display().to_string(), |command, port| {
            command.args(["--workers", "1", "--threads", "4", "--bind", &format!("127.0.0.1:{port}")]);
            command.arg("--chdir").arg(repository("tests/apps")).arg("flask_app:app");
        })
    }

    /// Node.
    ///
    /// # Panics
    ///
    /// If it does not start; with what it wrote.
    #[must_use]
    pub fn node() -> Self {
        Self::start("node", |command, port| {
            command.arg(repository("tests/apps/node_app.js")).arg(port.to_string());
        })
    }

    fn start(program: &str, prepare: impl FnOnce(&mut Command, u16)) -> Self {
        let (directory, port) = (Directory::new(), Port::free());
        let log = directory.join("log");
        let (out, err) = File::create(&log).and_then(|file| Ok((file.try_clone()?, file))).expect("a log");
        let mut process = Process::start(program, |command| {
            prepare(command, port.number());
            command.stdout(out).stderr(err);
        });
        let begun = Instant::now();
        let address = SocketAddr::from(([127, 0, 0, 1], port.number()));
        while TcpStream::connect(address).is_err() {
            let is_late = process.has_ended() || begun.elapsed() > START_WITHIN;
            assert!(!is_late, "{program} did not start:\n{}", fs::read_to_string(&log).unwrap_or_default());
            thread::sleep(Duration::from_millis(20));
        }
        Self { _process: process, _directory: directory, port }
    }

    /// Its address, as a rule file names it.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port.number())
    }
}

fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}
