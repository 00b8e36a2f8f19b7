//! Files whose contents change while the program runs: rules, certificates.
//!
//! It looks, four times a second, and is not told by the system. inotify watches an inode: an editor that renames a new file
//! over the old one, or Kubernetes that re-points `..data`, leaves it watching what nobody will write again, so every
//! directory on the way has to be watched and re-watched; and on NFS, and on most files shared into a container or a virtual
//! machine, it says nothing at all. Looking is the same everywhere and has no such cases. It costs a `stat` a file on a thread
//! that may block, four times a second, which is less than a thousandth of a core; contents are read only if the stamp is
//! new. A change is told one to two looks after the last byte was written.
//!
//! - **What counts** is the contents. The stamp (device, inode, length, times of modification and of change) only says
//!   whether to read: the inode differs after a rename or a re-pointed link, and the time of change cannot be set back. A
//!   stamp is coarse, though: a file written twice within one tick looks the same. So contents are read at every look until
//!   the stamp is [`SETTLED`] old.
//! - **Half-written files**: nothing is told until two looks in a row saw the same.
//! - **Files that belong together** (a certificate and its key) are one watcher: told together, when all of them are quiet.
//! - A file that is gone or cannot be read is told as that, when it stayed so for two looks: saving by delete-and-write is
//!   not noticed. What to do about it is up to whoever asked; keeping what was read before is a good answer.
//! - **Files by pattern** are looked for at every look: one that comes or goes is a change like any other.
//! - **On request** ([`ReloadRequests`]) all files are read at once and told, whether or not they differ from before or
//!   are quiet: whoever sends the request says that they are complete.
//! - Files above [`MAX_BYTES`], and what is no file (a pipe would block the look for ever), are not read.

use crate::{ReloadRequests, matching};
use std::{
    fmt,
    fs::{self, File, Metadata},
    io::{self, Read},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime},
};
use tokio::{
    task::{self, JoinHandle},
    time::{self, Instant, Interval, MissedTickBehavior},
};

/// From look to look, unless something else was [asked for](Watcher::every).
const EVERY: Duration = Duration::from_millis(250);

/// From this age on a stamp would have changed with the contents: the coarsest file systems count in two seconds.
const SETTLED: Duration = Duration::from_secs(3);

/// The largest file that is read. A rule file of ten thousand rules has some two million bytes.
const MAX_BYTES: u64 = 16 << 20;

/// Tells when files have other contents.
///
/// ```no_run
/// # async fn example() -> Result<(), tollgate_net::ReadError> {
/// use tollgate_net::Watcher;
///
/// let (mut watcher, first) = Watcher::open(["tollgate.yaml"]).await;
/// let rules = first[0].text()?;
/// # let _ = rules;
/// loop {
///     match watcher.changed().await[0].text() {
///         Ok(rules) => println!("{} bytes of rules", rules.len()),
///         Err(error) => eprintln!("the rules stay as they are: {error}"),
///     }
/// }
/// # }
/// ```
#[derive(Debug)]
pub struct Watcher {
    /// Kept here, so that whoever asks again and again is not put off again and again.
    looks: Interval,
    /// The look under way: kept too, or whoever drops and asks again in the middle of it would lose it.
    looking: Option<JoinHandle<Vec<Sight>>>,
    told: Vec<Contents>,
    last: Vec<Sight>,
    /// How many files are watched by name; behind them come those that match.
    named: usize,
    patterns: Arc<[PathBuf]>,
    requests: ReloadRequests,
    /// A request was received, and what the files hold was not told since.
    is_requested: bool,
}

/// What a file holds. Printed for debugging it shows no contents: there may be secrets in it.
#[derive(Clone, PartialEq, Eq)]
pub struct Contents {
    path: Arc<Path>,
    bytes: Result<Arc<[u8]>, ReadError>,
}

/// A file could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot read {}: {why}", .path.display())]
pub struct ReadError {
    path: Arc<Path>,
    why: String,
}

impl Watcher {
    /// Reads the files, and remembers what they hold: what changes from here on is told. Files that cannot be read are
    /// watched too, until they can.
    pub async fn open<P: Into<PathBuf>>(paths: impl IntoIterator<Item = P>) -> (Self, Vec<Contents>) {
        let unseen: Vec<Sight> = paths.into_iter().map(|path| Sight::unseen(path.into().into())).collect();
        let named = unseen.len();
        let last = look(unseen, named, Arc::default()).await.unwrap_or_default();
        let told = contents(&last);
        (Self::new(told.clone(), last, named), told)
    }

    /// Watches files that were read before: what differs from that is told, also where it changed before this was called.
    #[must_use]
    pub fn knowing(contents: impl IntoIterator<Item = Contents>) -> Self {
        let told: Vec<Contents> = contents.into_iter().collect();
        let last = told.iter().map(|known| Sight::unseen(Arc::clone(&known.path))).collect();
        let named = told.len();
        Self::new(told, last, named)
    }

    fn new(told: Vec<Contents>, last: Vec<Sight>, named: usize) -> Self {
        let (patterns, requests) = (Arc::default(), ReloadRequests::never());
        Self {
            looks: looks(EVERY),
            looking: None,
            told,
            last,
            named,
            patterns,
            requests,
            is_requested: false,
        }
    }

    /// Reads and tells all files at once, changed or not, whenever this is requested.
    #[must_use]
    pub fn reload_on(self, requests: ReloadRequests) -> Self {
        Self { requests, ..self }
    }

    /// From now on watches the files that match these patterns too, and those of no others, told behind the files that are
    /// watched by name. They were read before: what differs from that is told.
    pub fn follow(&mut self, patterns: impl IntoIterator<Item = PathBuf>, known: &[Contents]) {
        self.looking = None;
        self.patterns = patterns.into_iter().collect();
        self.told.truncate(self.named);
        self.last.truncate(self.named);
        self.told.extend_from_slice(known);
        self.last.extend(known.iter().map(|known| Sight::unseen(Arc::clone(&known.path))));
    }

    /// Looks this often, and no more often than every millisecond.
    #[must_use]
    pub fn every(self, every: Duration) -> Self {
        Self { looks: looks(every.max(Duration::from_millis(1))), ..self }
    }

    /// What was told last does not count any more: whatever the files hold at the next look is told. For when somebody else
    /// has put other contents to use, and the files may go back to what was told before.
    pub fn forget(&mut self) {
        self.told.clear();
    }

    /// Waits until a file has other contents than were told last, or until a [reload is requested](Self::reload_on), and
    /// tells the contents of all files, in the order they were named.
    ///
    /// Nothing is lost where this is dropped and called again.
    pub async fn changed(&mut self) -> Vec<Contents> {
        loop {
            if self.looking.is_none() {
                if !self.is_requested {
                    tokio::select! {
                        biased;
                        () = self.requests.next() => self.is_requested = true,
                        _ = self.looks.tick() => {}
                    }
                }
                let mut last = self.last.clone();
                if self.is_requested {
                    // Their stamps do not count: everything is read.
                    last.iter_mut().for_each(|sight| sight.is_settled = false);
                }
                self.looking = Some(look(last, self.named, Arc::clone(&self.patterns)));
            }
            let Some(looking) = &mut self.looking else { continue };
            let seen = looking.await;
            self.looking = None;
            // Fails only where the runtime ends, and then nobody asks for the answer.
            let Ok(now) = seen else { continue };
            let quiet = now.len() == self.last.len()
                && now.iter().zip(&self.last).all(|(now, last)| now.is_same(last));
            self.last = now;
            if quiet || self.is_requested {
                let contents = contents(&self.last);
                if std::mem::take(&mut self.is_requested) || contents != self.told {
                    self.told.clone_from(&contents);
                    return contents;
                }
            }
        }
    }
}

impl Contents {
    /// Contents that come from elsewhere, under a name for messages.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>, bytes: impl Into<Vec<u8>>) -> Self {
        Self { path: path.into().into(), bytes: Ok(bytes.into().into()) }
    }

    /// Reads a file once, without watching it.
    #[must_use]
    pub fn read(path: impl Into<PathBuf>) -> Self {
        Sight::unseen(path.into().into()).again().contents
    }

    /// The file, as it was named.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What it holds.
    ///
    /// # Errors
    ///
    /// If it could not be read.
    pub fn bytes(&self) -> Result<&[u8], ReadError> {
        self.bytes.as_deref().map_err(Clone::clone)
    }

    /// What it holds, as text.
    ///
    /// # Errors
    ///
    /// If it could not be read, or is not UTF-8.
    pub fn text(&self) -> Result<&str, ReadError> {
        std::str::from_utf8(self.bytes()?).map_err(|error| ReadError {
            path: Arc::clone(&self.path),
            why: format!("it is not UTF-8 text: byte {} is the first that is not", error.valid_up_to() + 1),
        })
    }
}

impl fmt::Debug for Contents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.bytes.as_ref().map(|bytes| bytes.len());
        f.debug_struct("Contents").field("path", &self.path).field("bytes", &bytes).finish()
    }
}

/// One look at one file.
#[derive(Clone, Debug)]
struct Sight {
    /// None where there is nothing to read.
    stamp: Option<Stamp>,
    /// Whether the contents cannot have changed under the same stamp since they were read.
    is_settled: bool,
    contents: Contents,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Stamp {
    file: (u64, u64),
    bytes: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Sight {
    fn unseen(path: Arc<Path>) -> Self {
        let bytes = Err(ReadError { path: Arc::clone(&path), why: "nobody has looked yet".to_owned() });
        Self { stamp: None, is_settled: false, contents: Contents { path, bytes } }
    }

    /// Whether nothing happened between two looks.
    fn is_same(&self, other: &Self) -> bool {
        self.stamp == other.stamp && self.contents == other.contents
    }

    /// Looks again, and reads if there may be something new.
    fn again(&self) -> Self {
        let path = &self.contents.path;
        let seen = fs::metadata(path).and_then(|metadata| {
            let stamp = Some(Stamp::of(&metadata)?);
            if self.is_settled && self.stamp == stamp { Ok(self.clone()) } else { Self::read(path) }
        });
        seen.unwrap_or_else(|error| {
            let why = ReadError { path: Arc::clone(path), why: error.to_string() };
            let contents = Contents { path: Arc::clone(path), bytes: Err(why) };
            Self { stamp: None, is_settled: false, contents }
        })
    }

    fn read(path: &Arc<Path>) -> io::Result<Self> {
        let file = File::open(path)?;
        // From before it is read: a file written meanwhile has another stamp at the next look.
        let stamp = Stamp::of(&file.metadata()?)?;
        let mut bytes = Vec::with_capacity(usize::try_from(stamp.bytes).unwrap_or_default());
        // It may grow while it is read.
        file.take(MAX_BYTES).read_to_end(&mut bytes)?;
        let contents = Contents { path: Arc::clone(path), bytes: Ok(bytes.into()) };
        Ok(Self { is_settled: is_past(stamp.changed.0), stamp: Some(stamp), contents })
    }
}

impl Stamp {
    fn of(metadata: &Metadata) -> io::Result<Self> {
        if !metadata.is_file() {
            return Err(io::Error::other("it is not a file"));
        }
        if metadata.len() > MAX_BYTES {
            let tells = format!("it has {} bytes, and at most {MAX_BYTES} are read", metadata.len());
            return Err(io::Error::other(tells));
        }
        Ok(Self {
            file: (metadata.dev(), metadata.ino()),
            bytes: metadata.len(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        })
    }
}

/// Whether a time is long past. One in the future is not: the server's clock may be ahead.
fn is_past(seconds: i64) -> bool {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(seconds).is_ok_and(|then| now >= Duration::from_secs(then).saturating_add(SETTLED))
}

/// The first look is one interval from now, and a late one puts off those after it: two in a row would prove nothing.
fn looks(every: Duration) -> Interval {
    let mut looks = time::interval_at(Instant::now() + every, every);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    looks
}

fn contents(sights: &[Sight]) -> Vec<Contents> {
    sights.iter().map(|sight| sight.contents.clone()).collect()
}

/// One look at all files, where blocking is allowed: a network file system may take its time.
fn look(last: Vec<Sight>, named: usize, patterns: Arc<[PathBuf]>) -> JoinHandle<Vec<Sight>> {
    task::spawn_blocking(move || {
        let (named, matched) = last.split_at(named.min(last.len()));
        let found = matching(&patterns).into_iter().map(|path| {
            let known = matched.iter().find(|sight| *sight.contents.path == *path);
            known.map_or_else(|| Sight::unseen(path.into()).again(), Sight::again)
        });
        named.iter().map(Sight::again).chain(found).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_settled_file_is_not_read_again_until_its_stamp_changes() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("rules");
        fs::write(&path, "one").expect("writable");
        let fresh = Sight::unseen(Arc::from(&*path)).again();
        assert!(!fresh.is_settled, "it was written just now");

        // As if it had been read long after it was written, with other contents, to see whether it is read again.
        let settled = Sight { is_settled: true, contents: Contents::new(&*path, "kept"), ..fresh };
        assert_eq!(settled.again().contents.text(), Ok("kept"));
        assert_eq!(Sight { is_settled: false, ..settled.clone() }.again().contents.text(), Ok("one"));
        fs::write(&path, "longer").expect("writable");
        assert_eq!(settled.again().contents.text(), Ok("longer"));
    }

    #[test]
    fn only_what_is_long_past_is_settled() {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("after 1970").as_secs();
        let now = i64::try_from(now).expect("before the sun goes out");
        assert!(is_past(0) && is_past(now - 10));
        assert!(!is_past(now) && !is_past(now + 3600) && !is_past(i64::MAX) && !is_past(-1));
    }
}
