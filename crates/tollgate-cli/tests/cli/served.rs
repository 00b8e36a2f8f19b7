//! `tollgate serve` as a child: on ports of its own, ended with the test.

use std::{
    fs,
    io::{BufRead, BufReader},
    net::SocketAddr,
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};

/// A running server.
pub(crate) struct Served {
    child: Child,
    directory: PathBuf,
    pub(crate) gateway: SocketAddr,
    pub(crate) admin: SocketAddr,
}

impl Served {
    /// Serves these upstreams, routes and limits, with `listen` and `version` put before them.
    pub(crate) fn start(rules: &str) -> Self {
        let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!(
            "served-{}-{:?}",
            std::process::id(),
            thread::current().id()
        ));
        fs::create_dir_all(&directory).expect("a folder");
        let file = directory.join("tollgate.yaml");
        let head = "version: 1\nlisten: { gateway: 127.0.0.1:0, admin: 127.0.0.1:0 }\n";
        fs::write(&file, format!("{head}{rules}")).expect("a file");
        let mut child = Command::new(env!("CARGO_BIN_EXE_tollgate"))
            .args(["serve", "--workers", "2", "-c"])
            .arg(&file)
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program");
        let lines = BufReader::new(child.stderr.take().expect("piped")).lines();
        let (told, hear) = mpsc::channel();
        thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                let mut words = line.split_whitespace();
                if let (Some(name), Some(Ok(address))) = (words.next(), words.next().map(str::parse)) {
                    let _ = told.send((name.to_owned(), address));
                }
            }
        });
        let next = |wanted: &str| -> SocketAddr {
            let (name, address) = hear.recv_timeout(Duration::from_secs(20)).expect("it opens its listeners");
            assert_eq!(name, wanted);
            address
        };
        let (gateway, admin) = (next("gateway"), next("admin"));
        Self { child, directory, gateway, admin }
    }

    /// The value of a metric, summed over series that have this in their line.
    pub(crate) fn metric(&self, part: &str) -> f64 {
        let page = curl(&["-s", &format!("http://{}/metrics", self.admin)]);
        let lines = page.lines().filter(|line| !line.starts_with('#') && line.contains(part));
        lines.filter_map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok()).sum()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.directory);
    }
}

/// What curl prints.
pub(crate) fn curl(arguments: &[&str]) -> String {
    let output = Command::new("curl").args(arguments).output().expect("curl is installed by the set-up");
    String::from_utf8_lossy(&output.stdout).into_owned()
}
