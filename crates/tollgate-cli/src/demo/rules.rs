//! The demo's rule file: in a directory of its own, followed like any other, gone at the end.
//!
//! A directory and not a file alone, so that what an editor leaves beside the file goes with it.

use anyhow::{Context, Result};
use std::{
    env, fs, io,
    net::{SocketAddr, TcpListener},
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
    process,
};

/// As it stands here it is a whole and good file; three addresses in it are replaced.
const TEXT: &str = include_str!("rules.yaml");

pub(super) const GATEWAY: &str = "127.0.0.1:8080";
pub(super) const ADMIN: &str = "127.0.0.1:9090";
const UPSTREAM: &str = "127.0.0.1:3000";

/// An address to listen on.
pub(super) struct Place {
    pub(super) address: SocketAddr,
    /// The usual address, where somebody else has it.
    pub(super) taken: Option<&'static str>,
}

impl Place {
    /// The wanted address, or else the usual one, or else a free port beside it.
    pub(super) fn choose(wanted: Option<SocketAddr>, usual: &'static str) -> Result<Self> {
        if let Some(address) = wanted {
            return Ok(Self { address, taken: None });
        }
        let mut address: SocketAddr = usual.parse()?;
        let taken = TcpListener::bind(address).is_err().then_some(usual);
        if taken.is_some() {
            address.set_port(0);
        }
        Ok(Self { address, taken })
    }
}

/// The rules with the addresses of this run.
pub(super) fn text(gateway: SocketAddr, admin: SocketAddr, upstream: SocketAddr) -> String {
    TEXT.replace(GATEWAY, &gateway.to_string())
        .replace(ADMIN, &admin.to_string())
        .replace(UPSTREAM, &upstream.to_string())
}

/// The file, until this is dropped.
pub(super) struct RulesOnDisk {
    directory: PathBuf,
    file: PathBuf,
}

impl RulesOnDisk {
    /// Writes it where nobody else can have put something first.
    pub(super) fn write(text: &str) -> Result<Self> {
        let directory = fresh_directory().context("cannot make a directory for the demo's rule file")?;
        let file = directory.join("rules.yaml");
        let written = Self { directory, file };
        fs::write(&written.file, text).with_context(|| format!("cannot write {}", written.file.display()))?;
        Ok(written)
    }

    pub(super) fn path(&self) -> &Path {
        &self.file
    }
}

impl Drop for RulesOnDisk {
    fn drop(&mut self) {
        // Somebody may have removed it already.
        let _ = fs::remove_dir_all(&self.directory);
    }
}

/// Only its owner may look in. A name that is there already is somebody else's, or a run's that was killed.
fn fresh_directory() -> io::Result<PathBuf> {
    let mut attempt = 0;
    loop {
        let name = match attempt {
            0 => format!("tollgate-demo-{}", process::id()),
            more => format!("tollgate-demo-{}-{more}", process::id()),
        };
        let directory = env::temp_dir().join(name);
        match fs::DirBuilder::new().mode(0o700).create(&directory) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && attempt < 100 => attempt += 1,
            done => return done.map(|()| directory),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_good_and_its_addresses_are_those_of_the_run() {
        let address = |port| SocketAddr::from(([127, 0, 0, 1], port));
        let file = crate::file::parse(&text(address(1), address(2), address(3))).expect("a good file");
        assert_eq!(file.listen.gateway.as_ref().expect("a gateway").address, address(1));
        assert_eq!(file.listen.admin.as_ref().expect("an admin listener").address, address(2));
        assert_eq!(file.upstreams[0].servers[0].url, "http://127.0.0.1:3");
        assert_eq!(file.warnings(), []);
    }

    #[test]
    fn an_address_that_is_taken_is_left_to_its_owner() {
        let owner = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let usual: &'static str = owner.local_addr().expect("an address").to_string().leak();
        let place = Place::choose(None, usual).expect("a place");
        assert_eq!((place.address.port(), place.taken), (0, Some(usual)));
        drop(owner);
        let place = Place::choose(None, usual).expect("a place");
        assert_eq!((place.address.to_string().as_str(), place.taken), (usual, None));
    }

    #[test]
    fn nothing_is_left_of_the_file() {
        let rules = RulesOnDisk::write("version: 1\n").expect("a file");
        let directory = rules.directory.clone();
        fs::write(directory.join(".rules.yaml.swp"), "an editor's").expect("written");
        assert!(rules.path().exists());
        drop(rules);
        assert!(!directory.exists());
    }
}
