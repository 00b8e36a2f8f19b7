//! A program that listens on a free port of 127.0.0.1, with a directory of its own for what it reads and writes.

use crate::{directory::Directory, port::Port, process::Process};
use std::{
    fs::{self, File},
    net::{Ipv4Addr, SocketAddr, TcpStream},
    process::Command,
    time::Duration,
};

/// More than any of them takes on a busy machine.
const START_WITHIN: Duration = Duration::from_secs(30);

/// Dropping it ends the process and removes the directory.
#[derive(Debug)]
pub(crate) struct Listening {
    // Before the directory, so that nobody writes there when it is removed.
    process: Process,
    _directory: Directory,
    port: Port,
}

impl Listening {
    /// Starts a program, and waits until it accepts connections; `prepare` adds arguments, and writes what the program reads.
    ///
    /// # Panics
    ///
    /// If it does not start; with what it wrote.
    pub(crate) fn start(program: &str, prepare: impl FnOnce(&mut Command, &Directory, SocketAddr)) -> Self {
        let (directory, port) = (Directory::new(), Port::free());
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port.number()));
        let log = directory.join("log");
        let (out, err) = File::create(&log).and_then(|file| Ok((file.try_clone()?, file))).expect("a log");
        let mut process = Process::start(program, |command| {
            prepare(command, &directory, address);
            command.stdout(out).stderr(err);
        });
        let is_ready = process.becomes_ready(START_WITHIN, || TcpStream::connect(address).is_ok());
        assert!(is_ready, "{program} did not start:\n{}", fs::read_to_string(&log).unwrap_or_default());
        Self { process, _directory: directory, port }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        SocketAddr::from((Ipv4Addr::LOCALHOST, self.port.number()))
    }

    pub(crate) fn pid(&self) -> u32 {
        self.process.pid()
    }
}
