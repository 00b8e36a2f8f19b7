//! `tollgate top` beside a running server: plain, as JSON, and on a terminal of its own.

use crate::{folder::Folder, serving::Serving};
use serde_json::Value;
use std::{
    io::{Read, Write},
    process::{Child, Command, Output, Stdio},
    sync::{Arc, Mutex},
    thread,
};
use testkit::{Arrival, Arrivals, Upstream, eventually};

/// A server with a rule that refuses all but the first.
fn serve(folder: &Folder, upstream: &Upstream, more: &str) -> Serving {
    let text = format!(
        r#"
version: 1
listen: {{ gateway: "127.0.0.1:0", admin: {{ address: "127.0.0.1:0"{more} }} }}
upstreams: {{ app: {{ servers: [ "{}" ] }} }}
routes:
  - name: orders
    when: {{ path: /** }}
    upstream: app
    rules: [ {{ name: create, limits: [ {{ fixed_window: {{ limit: 1, window: forever }}, key: [header.x-api-key] }} ] }} ]
"#,
        upstream.url()
    );
    Serving::start(&folder.file("tollgate.yaml", text), &[])
}

fn send(serving: &Serving, key: &str) {
    let arrivals = Arrivals::new((0..20).map(|_| Arrival::at_ms(0).on(1).header("x-api-key", key)));
    arrivals.play(serving.gateway);
}

fn top(serving: &Serving, more: &[&str]) -> Output {
    let url = format!("http://{}", serving.admin);
    let mut command = Command::new(env!("CARGO_BIN_EXE_tollgate"));
    command.args(["top", "--ask", &url]).args(more).stdin(Stdio::null()).output().unwrap()
}

#[test]
fn a_refused_client_is_seen_in_lines() {
    let (folder, upstream) = (Folder::new(), Upstream::ok());
    let serving = serve(&folder, &upstream, "");
    let told = eventually("the refusals to be told of", || {
        send(&serving, "crawler");
        let output = top(&serving, &["--once", "--json"]);
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        let told: Value = serde_json::from_slice(&output.stdout).unwrap();
        (told["pace"]["refused"].as_f64()? > 0.0).then_some(told)
    });
    assert_eq!((&told["rules"][0]["route"], &told["rules"][0]["rule"]), (&"orders".into(), &"create".into()));
    assert_eq!(told["limited"][0]["key"], "crawler");
    assert_eq!((&told["store"], &told["ready"]), (&"memory".into(), &true.into()));
    let lines = eventually("a line of words", || {
        send(&serving, "crawler");
        let output = top(&serving, &["--for", "1500ms"]);
        assert_eq!(output.status.code(), Some(0));
        let lines = String::from_utf8(output.stdout).unwrap();
        lines.contains("by orders / create").then_some(lines)
    });
    assert!(lines.contains("keys crawler") && lines.contains("store memory  ready"), "{lines}");
}

#[test]
fn whom_it_cannot_ask() {
    let (folder, upstream) = (Folder::new(), Upstream::ok());
    let told = |url: &str, more: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tollgate"));
        let output = command.args(["top", "--once", "--ask", url]).args(more).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, why) = told("http://127.0.0.1:1", &[]);
    assert_eq!(code, Some(1));
    assert!(why.contains("is a server there, with `listen: { admin: 127.0.0.1:1 }`"), "{why}");
    let (code, why) = told("127.0.0.1:1", &[]);
    assert_eq!(code, Some(2));
    assert!(why.contains("--ask must be an address such as http://127.0.0.1:9090"), "{why}");

    // The hash of `t0ken`.
    let users = ", users: [ { name: ann, role: viewer, token: \"sha256:HASH\" } ]";
    let serving = serve(&folder, &upstream, &users.replace("HASH", &sha256("t0ken")));
    let url = format!("http://{}", serving.admin);
    let (code, why) = told(&url, &[]);
    assert_eq!(code, Some(1));
    assert!(why.contains("--token-file FILE"), "{why}");
    let (_, why) = told(&url, &["--token-file", &folder.file("wrong", "another")]);
    assert!(why.contains("does not know your token") && !why.contains("another"), "{why}");
    let (code, why) = told(&url, &["--token-file", &folder.file("token", "t0ken\n")]);
    assert_eq!((code, why.as_str()), (Some(0), ""));
}

fn sha256(text: &str) -> String {
    let mut child = Command::new("sha256sum").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    String::from_utf8(output.stdout).unwrap()[..64].to_owned()
}

/// On a terminal of its own.
struct OnTerminal {
    child: Child,
    shown: Arc<Mutex<String>>,
}

impl OnTerminal {
    fn start(serving: &Serving) -> Self {
        let program = env!("CARGO_BIN_EXE_tollgate");
        let command =
            format!("stty rows 24 cols 100; exec {program} top --ask http://{} --for 60s", serving.admin);
        let mut child = Command::new("script")
            .args(["-qefc", &command, "/dev/null"])
            .env("TERM", "xterm")
            .env("NO_COLOR", "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let shown = Arc::new(Mutex::new(String::new()));
        let (mut output, kept) = (child.stdout.take().unwrap(), Arc::clone(&shown));
        thread::spawn(move || {
            let mut piece = [0; 4096];
            while let Ok(read @ 1..) = output.read(&mut piece) {
                kept.lock().unwrap().push_str(&String::from_utf8_lossy(&piece[..read]));
            }
        });
        Self { child, shown }
    }

    /// Waits for a word: blanks between words are not written but skipped.
    fn shows(&self, text: &str) {
        eventually(text, || self.shown.lock().unwrap().contains(text).then_some(()));
    }

    fn press(&mut self, keys: &[u8]) {
        let keyboard = self.child.stdin.as_mut().unwrap();
        keyboard.write_all(keys).unwrap();
        keyboard.flush().unwrap();
    }

    #[track_caller]
    fn gives_back(mut self) {
        let ended = eventually("it to end", || self.child.try_wait().unwrap());
        assert_eq!(ended.code(), Some(0));
        let shown = eventually("the first screen to be back", || {
            let shown = self.shown.lock().unwrap().clone();
            shown.contains("\x1b[?1049l").then_some(shown)
        });
        let last = |code: &str| shown.rfind(code).unwrap_or_else(|| panic!("no {code:?} in {shown:?}"));
        assert!(last("\x1b[?1049l") > last("\x1b[?1049h"), "the first screen is back");
        assert!(last("\x1b[?25h") > last("\x1b[?25l"), "the cursor is shown again");
        assert!(!shown.contains("\x1b[31m") && !shown.contains("\x1b[38;5;1m"), "NO_COLOR is set: {shown:?}");
    }
}

impl Drop for OnTerminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn keys_are_obeyed_on_a_terminal_and_it_is_given_back() {
    let (folder, upstream) = (Folder::new(), Upstream::ok());
    let serving = serve(&folder, &upstream, "");
    let mut top = OnTerminal::start(&serving);
    top.shows("sort:");
    eventually("the crawler to be shown", || {
        send(&serving, "crawler");
        top.shown.lock().unwrap().contains("crawler").then_some(())
    });
    top.shows("create");
    top.press(b"?");
    top.shows("picture");
    top.press(b" p");
    top.shows("paused");
    top.press(b"q");
    top.gives_back();
}

#[test]
fn ctrl_c_gives_a_terminal_back_too() {
    let (folder, upstream) = (Folder::new(), Upstream::ok());
    let serving = serve(&folder, &upstream, "");
    let mut top = OnTerminal::start(&serving);
    top.shows("sort:");
    top.press(b"\x03");
    top.gives_back();
}

#[test]
fn a_server_that_goes_away_is_told_of() {
    let (folder, upstream) = (Folder::new(), Upstream::ok());
    let serving = serve(&folder, &upstream, "");
    let mut top = OnTerminal::start(&serving);
    top.shows("sort:");
    drop(serving);
    top.shows("(os");
    top.press(b"q");
    top.gives_back();
}
