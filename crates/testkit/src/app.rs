//! Real web applications, to stand behind the gateway: Flask under gunicorn, and Node.
//!
//! They answer in JSON with the view that ran and with what they read of the request, so that a test can compare what the
//! application saw with what the rules saw. Flask is in a folder of its own that `scripts/setup` makes.

use crate::listening::Listening;
use std::path::{Path, PathBuf};

/// An application of this test's own, on a free port of 127.0.0.1.
#[derive(Debug)]
pub struct App(Listening);

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
        Self(Listening::start(&program.display().to_string(), |command, _, address| {
            command.args(["--workers", "1", "--threads", "4", "--bind", &address.to_string()]);
            command.arg("--chdir").arg(repository("tests/apps")).arg("flask_app:app");
        }))
    }

    /// Node.
    ///
    /// # Panics
    ///
    /// If it does not start; with what it wrote.
    #[must_use]
    pub fn node() -> Self {
        Self(Listening::start("node", |command, _, address| {
            command.arg(repository("tests/apps/node_app.js")).arg(address.port().to_string());
        }))
    }

    /// Its address, as a rule file names it.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.0.address())
    }
}

fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}
