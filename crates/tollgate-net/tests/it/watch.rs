//! Watched files: every way in which people and machines save them. Time is moved; files are real.

use rustix::process::{Signal, getpid, kill_process};
use std::{
    fs::{self, File},
    io::Write,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};
use tempfile::TempDir;
use tokio::time::{Instant, sleep, timeout};
use tollgate_net::{Contents, Drain, DrainTimes, Phase, Watcher, reload_on_hangup};

/// From look to look.
const LOOK: Duration = Duration::from_millis(250);

/// Far longer than any change takes to be told.
const LONG: Duration = Duration::from_secs(60);

struct Place(TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a directory"))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, text).expect("writable");
        path
    }
}

fn texts(contents: &[Contents]) -> Vec<&str> {
    contents.iter().map(|file| file.text().expect("readable")).collect()
}

async fn told(watcher: &mut Watcher) -> Vec<Contents> {
    timeout(LONG, watcher.changed()).await.expect("the change is told")
}

async fn nothing_told(watcher: &mut Watcher) {
    let told = timeout(LONG, watcher.changed()).await;
    assert!(told.is_err(), "nothing has changed, and told was {told:?}");
}

#[tokio::test(start_paused = true)]
async fn an_edit_in_place_is_seen_even_of_the_same_length_in_the_same_instant() {
    let place = Place::new();
    let path = place.write("rules", "one");
    let (mut watcher, first) = Watcher::open([&path]).await;
    assert_eq!((texts(&first), first[0].path()), (vec!["one"], &*path));
    for text in ["two", "six", "ten"] {
        place.write("rules", text);
        let begun = Instant::now();
        assert_eq!(texts(&told(&mut watcher).await), [text]);
        assert!(begun.elapsed() <= 2 * LOOK, "told {:?} after it was written", begun.elapsed());
    }
    nothing_told(&mut watcher).await;
}

/// What a program has read before it could watch: it may have changed since, and is half written at the first look.
#[tokio::test(start_paused = true)]
async fn what_differs_from_what_is_known_is_told_when_it_is_whole() {
    let place = Place::new();
    let path = place.write("rules", "one");
    let mut watcher = Watcher::knowing([Contents::new(&*path, "one")]);
    nothing_told(&mut watcher).await;

    let mut watcher = Watcher::knowing([Contents::new(&*path, "one")]);
    place.write("rules", "");
    assert!(timeout(LOOK + LOOK / 2, watcher.changed()).await.is_err(), "one look is not enough");
    place.write("rules", "two");
    assert_eq!(texts(&told(&mut watcher).await), ["two"]);
}

#[tokio::test(start_paused = true)]
async fn a_file_renamed_over_it_is_seen_again_and_again() {
    let place = Place::new();
    let path = place.write("rules", "old");
    let (mut watcher, _) = Watcher::open([&path]).await;
    for text in ["new", "newer", "newest"] {
        fs::rename(place.write("rules~", text), &path).expect("renamed");
        assert_eq!(texts(&told(&mut watcher).await), [text]);
    }
}

/// Kubernetes mounts a ConfigMap as links into `..data`, which is a link to a directory that is replaced as a whole.
#[tokio::test(start_paused = true)]
async fn a_kubernetes_config_map_is_seen_when_its_link_is_re_pointed() {
    let place = Place::new();
    let release = |version: &str| {
        let directory = place.path(&format!("..{version}"));
        fs::create_dir(&directory).expect("made");
        fs::write(directory.join("rules"), version).expect("writable");
        fs::write(directory.join("cert"), version).expect("writable");
        symlink(&directory, place.path("..data_tmp")).expect("linked");
        fs::rename(place.path("..data_tmp"), place.path("..data")).expect("re-pointed");
    };
    release("2024_1");
    let paths = ["rules", "cert"].map(|name| {
        symlink(Path::new("..data").join(name), place.path(name)).expect("linked");
        place.path(name)
    });
    let (mut watcher, first) = Watcher::open(paths).await;
    assert_eq!(texts(&first), ["2024_1"; 2]);
    for version in ["2024_2", "2024_3"] {
        let before = fs::canonicalize(place.path("..data")).expect("it is there");
        release(version);
        fs::remove_dir_all(before).expect("removed");
        assert_eq!(texts(&told(&mut watcher).await), [version; 2]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_file_that_is_written_slowly_is_read_once_and_whole() {
    let place = Place::new();
    let path = place.write("rules", "old");
    let (mut watcher, _) = Watcher::open([&path]).await;
    let writing = async {
        let mut file = File::create(&path).expect("writable");
        for _ in 0..20 {
            file.write_all(b"part ").expect("writable");
            sleep(LOOK * 4 / 5).await;
        }
    };
    let (told, ()) = tokio::join!(told(&mut watcher), writing);
    assert_eq!(texts(&told), ["part ".repeat(20)]);
    nothing_told(&mut watcher).await;
}

#[tokio::test(start_paused = true)]
async fn files_of_a_pair_are_told_together() {
    let place = Place::new();
    let paths = [place.write("cert", "cert 1"), place.write("key", "key 1")];
    let (mut watcher, _) = Watcher::open(paths).await;
    let renewing = async {
        place.write("cert", "cert 2");
        sleep(LOOK * 5 / 4).await;
        place.write("key", "key 2");
    };
    let (told, ()) = tokio::join!(told(&mut watcher), renewing);
    assert_eq!(texts(&told), ["cert 2", "key 2"]);
}

#[tokio::test(start_paused = true)]
async fn what_is_touched_or_saved_unchanged_is_not_told() {
    let place = Place::new();
    let path = place.write("rules", "same");
    let (mut watcher, _) = Watcher::open([&path]).await;
    let saving = async {
        for _ in 0..3 {
            sleep(2 * LOOK).await;
            place.write("rules", "same");
            fs::rename(place.write("rules~", "same"), &path).expect("renamed");
        }
    };
    tokio::join!(nothing_told(&mut watcher), saving);
}

#[tokio::test(start_paused = true)]
async fn a_file_that_is_gone_for_a_moment_was_never_gone_and_one_that_stays_gone_is_told() {
    let place = Place::new();
    let path = place.write("rules", "old");
    let (mut watcher, _) = Watcher::open([&path]).await;
    let saving = async {
        fs::remove_file(&path).expect("removed");
        sleep(LOOK * 5 / 4).await;
        place.write("rules", "new");
    };
    let (new, ()) = tokio::join!(told(&mut watcher), saving);
    assert_eq!(texts(&new), ["new"]);

    fs::remove_file(&path).expect("removed");
    let gone = told(&mut watcher).await[0].text().expect_err("it is gone").to_string();
    assert_eq!(gone, format!("cannot read {}: No such file or directory (os error 2)", path.display()));
    place.write("rules", "back");
    assert_eq!(texts(&told(&mut watcher).await), ["back"]);
}

#[tokio::test(start_paused = true)]
async fn a_file_that_is_not_there_at_first_is_seen_when_it_comes() {
    let place = Place::new();
    let (mut watcher, first) = Watcher::open([place.path("late")]).await;
    assert!(first[0].bytes().is_err());
    place.write("late", "here");
    assert_eq!(texts(&told(&mut watcher).await), ["here"]);
}

#[tokio::test(start_paused = true)]
async fn asking_again_and_again_loses_nothing_and_puts_nothing_off() {
    let place = Place::new();
    let path = place.write("rules", "old");
    let (mut watcher, _) = Watcher::open([&path]).await;
    place.write("rules", "new");
    for _ in 0..100 {
        // Always dropped before an interval is over.
        if let Ok(told) = timeout(LOOK / 5, watcher.changed()).await {
            assert_eq!(texts(&told), ["new"]);
            return;
        }
    }
    panic!("it was never told");
}

#[tokio::test(start_paused = true)]
async fn looks_come_as_often_as_asked_for() {
    let place = Place::new();
    let path = place.write("rules", "old");
    let (watcher, _) = Watcher::open([&path]).await;
    let mut watcher = watcher.every(Duration::from_secs(10));
    place.write("rules", "new");
    let begun = Instant::now();
    told(&mut watcher).await;
    assert_eq!(begun.elapsed().as_secs(), 20);
}

#[test]
fn what_cannot_be_read_says_why() {
    let place = Place::new();
    let why = |path: PathBuf| Contents::read(path).text().expect_err("it cannot be read").to_string();
    let at = |name: &str| place.path(name).display().to_string();

    assert_eq!(why(place.path("")), format!("cannot read {}: it is not a file", at("")));
    let large = File::create(place.path("large")).expect("writable");
    large.set_len((16 << 20) + 1).expect("sparse");
    let tells = "it has 16777217 bytes, and at most 16777216 are read";
    assert_eq!(why(place.path("large")), format!("cannot read {}: {tells}", at("large")));
    fs::write(place.path("bytes"), b"ab\xff").expect("writable");
    let tells = "it is not UTF-8 text: byte 3 is the first that is not";
    assert_eq!(why(place.path("bytes")), format!("cannot read {}: {tells}", at("bytes")));
    assert_eq!(Contents::read(place.path("bytes")).bytes().expect("readable"), b"ab\xff");
}

/// A pipe would hold up the look, and with it every later one, until somebody writes to it.
#[test]
fn a_pipe_is_not_waited_for() {
    let place = Place::new();
    let path = place.path("pipe");
    rustix::fs::mkfifoat(rustix::fs::CWD, &path, rustix::fs::Mode::RUSR).expect("made");
    let why = Contents::read(&path).bytes().expect_err("it is a pipe").to_string();
    assert!(why.ends_with("it is not a file"), "{why}");
}

#[test]
fn contents_are_not_printed() {
    let secret = Contents::new("key.pem", "a secret");
    assert_eq!(format!("{secret:?}"), r#"Contents { path: "key.pem", bytes: Ok(8) }"#);
}

#[tokio::test(start_paused = true)]
async fn files_that_match_a_pattern_are_told_as_they_come_change_and_go() {
    let place = Place::new();
    let path = place.write("rules", "one");
    place.write("b.yaml", "b");
    let mut watcher = Watcher::knowing([Contents::new(&*path, "one")]);
    watcher.follow([place.path("*.yaml")], &[Contents::new(place.path("b.yaml"), "b")]);
    nothing_told(&mut watcher).await;
    place.write("a.yaml", "a");
    place.write("a.txt", "not one of them");
    assert_eq!(texts(&told(&mut watcher).await), ["one", "a", "b"]);
    place.write("b.yaml", "c");
    assert_eq!(texts(&told(&mut watcher).await), ["one", "a", "c"]);
    fs::remove_file(place.path("a.yaml")).expect("removed");
    assert_eq!(texts(&told(&mut watcher).await), ["one", "c"]);
    // Others from here on.
    watcher.follow([place.path("a.txt")], &[Contents::new(place.path("a.txt"), "as it was")]);
    assert_eq!(texts(&told(&mut watcher).await), ["one", "not one of them"]);
}

#[tokio::test(start_paused = true)]
async fn what_was_told_is_told_again_once_it_is_forgotten() {
    let place = Place::new();
    let path = place.write("rules", "one");
    let (mut watcher, _) = Watcher::open([&path]).await;
    nothing_told(&mut watcher).await;
    watcher.forget();
    assert_eq!(texts(&told(&mut watcher).await), ["one"]);
    nothing_told(&mut watcher).await;
}

/// Keeps the watcher from seeing a file twice the same, so that only a request can tell of it.
fn restless(path: PathBuf) -> tokio::task::JoinHandle<()> {
    tokio::spawn(async move {
        for second in 0.. {
            let file = File::options().append(true).open(&path).expect("it is there");
            file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(second)).expect("ours");
            sleep(LOOK / 5).await;
        }
    })
}

/// One test for SIGHUP, because a signal is for the whole process.
#[tokio::test]
async fn sighup_tells_files_at_once_whether_or_not_they_changed_until_the_drain_begins() {
    let place = Place::new();
    let path = place.write("rules", "one");
    let drain = Drain::new(DrainTimes { pause: LONG, deadline: LONG });
    let requests = reload_on_hangup(&drain).expect("signals can be caught");
    let hangup = || kill_process(getpid(), Signal::HUP).expect("we may signal ourselves");
    let (watcher, _) = Watcher::open([&path]).await;
    let mut watcher = watcher.every(LONG).reload_on(requests);

    hangup();
    assert_eq!(texts(&told(&mut watcher).await), ["one"], "unchanged");
    let restless = restless(path.clone());
    let mut watcher = watcher.every(LOOK);
    place.write("rules", "two");
    assert!(timeout(6 * LOOK, watcher.changed()).await.is_err(), "it is not quiet");
    hangup();
    assert_eq!(texts(&told(&mut watcher).await), ["two"]);
    restless.abort();

    drain.begin();
    let leaving = drain.clone();
    tokio::spawn(async move { leaving.run().await });
    drain.reached(Phase::Leaving).await;
    let mut watcher = watcher.every(LONG);
    hangup();
    assert!(timeout(4 * LOOK, watcher.changed()).await.is_err(), "ignored while draining");
}
