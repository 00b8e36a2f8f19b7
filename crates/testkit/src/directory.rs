//! A directory of a server's own, gone when the server is.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process,
    sync::{
        Once,
        atomic::{AtomicU32, Ordering},
    },
};

const PREFIX: &str = "tollgate-testkit-";

/// A fresh directory under the system's temporary one, removed on drop.
#[derive(Debug)]
pub(crate) struct Directory(PathBuf);

impl Directory {
    pub(crate) fn new() -> Self {
        static SWEPT: Once = Once::new();
        static COUNT: AtomicU32 = AtomicU32::new(0);
        SWEPT.call_once(sweep);
        let name = format!("{PREFIX}{}-{}", process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let path = env::temp_dir().join(name);
        // An earlier process of our id may have left one.
        let _ = fs::remove_dir_all(&path);
        fs::create_dir(&path).unwrap_or_else(|e| panic!("could not make {}: {e}", path.display()));
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn join(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Removes what test processes left that were killed, or kept a server in a static.
fn sweep() {
    let Ok(entries) = fs::read_dir(env::temp_dir()) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let owner = name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.split_once('-')?.0.parse().ok());
        if owner.is_some_and(|pid: u32| !Path::new(&format!("/proc/{pid}")).exists()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}
