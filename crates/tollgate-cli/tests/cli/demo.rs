//! The demo as it runs: what it prints, what answers meanwhile, and that nothing is left of it.

use rustix::process::{Pid, Signal, kill_process};
use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    sync::{
        atomic::{AtomicU32, Ordering::Relaxed},
        mpsc::{Receiver, channel},
    },
    thread,
    time::{Duration, Instant},
};
use testkit::eventually;

/// Ends by itself if a test does not end it.
const PLAIN: &str = "demo --plain --for 60s --gateway 127.0.0.1:0 --admin 127.0.0.1:0";

/// A demo with a place of its own for temporary files.
struct Demo {
    child: Child,
    lines: Receiver<String>,
    place: PathBuf,
}

impl Demo {
    fn start(program: &str, args: &[&str]) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("tollgate-cli-demo-{}-{}", std::process::id(), NEXT.fetch_add(1, Relaxed));
        let place = std::env::temp_dir().join(name);
        fs::create_dir(&place).unwrap();
        let mut child = Command::new(program)
            .args(args)
            .env("TMPDIR", &place)
            .env("TERM", "xterm")
            .env("NO_COLOR", "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let (told, lines) = channel();
        thread::spawn(move || {
            for line in output.lines() {
                // A test that has seen enough closes the pipe.
                if line.is_ok_and(|line| told.send(line).is_err()) {
                    return;
                }
            }
        });
        Self { child, lines, place }
    }

    fn plain() -> Self {
        Self::start(env!("CARGO_BIN_EXE_tollgate"), &PLAIN.split(' ').collect::<Vec<_>>())
    }

    /// On a terminal of its own. No shell stays in between: one that gets Ctrl-C too answers with an end of its own.
    fn on_a_terminal(args: &str) -> Self {
        let command = format!("exec {} {args}", env!("CARGO_BIN_EXE_tollgate"));
        Self::start("script", &["-qec", &command, "/dev/null"])
    }

    /// What the next line with this beginning goes on with.
    fn line(&self, beginning: &str) -> String {
        let by = Instant::now() + Duration::from_secs(30);
        loop {
            let left = by.saturating_duration_since(Instant::now());
            let line =
                self.lines.recv_timeout(left).unwrap_or_else(|_| panic!("no line begins {beginning:?}"));
            if let Some(rest) = line.strip_prefix(beginning) {
                return rest.trim().to_owned();
            }
        }
    }

    /// A host and port that is printed as a URL.
    fn address(&self, door: &str) -> String {
        let told = self.line(&format!("{door} "));
        let url = told.strip_prefix("http://").unwrap();
        url.split(['/', ' ']).next().unwrap().to_owned()
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    fn ended(&mut self) -> ExitStatus {
        eventually("the demo to end", || self.child.try_wait().unwrap())
    }

    fn left_behind(&self) -> Vec<PathBuf> {
        fs::read_dir(&self.place).unwrap().map(|entry| entry.unwrap().path()).collect()
    }
}

impl Drop for Demo {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.place);
    }
}

/// The whole answer.
fn ask(address: &str, request: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    write!(stream, "{request} HTTP/1.1\r\nhost: localhost\r\nx-api-key: you\r\nconnection: close\r\n\r\n")
        .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

fn edit(path: &Path, change: impl FnOnce(&str) -> String) {
    let text = fs::read_to_string(path).unwrap();
    fs::write(path, change(&text)).unwrap();
}

#[test]
fn a_line_a_second_and_it_ends_by_itself() {
    let args = "demo --plain --for 3s --gateway 127.0.0.1:0 --admin 127.0.0.1:0";
    let mut demo = Demo::start(env!("CARGO_BIN_EXE_tollgate"), &args.split(' ').collect::<Vec<_>>());
    assert_eq!(demo.ended().code(), Some(0));
    let lines: Vec<String> = demo.lines.iter().collect();
    let output = lines.join("\n");
    assert!(!output.contains('\x1b'), "{output}");
    assert!(
        lines.iter().any(|line| line.starts_with("try      curl -i -H 'x-api-key: you' http://127.0.0.1:"))
    );

    let of = |line: &str, word: &str| -> u64 {
        line.split("  ").find_map(|part| part.strip_prefix(word)?.trim().parse().ok()).unwrap()
    };
    let seconds: Vec<_> = lines.iter().filter(|line| line.contains("s  allowed ")).collect();
    assert!((2..=3).contains(&seconds.len()), "{output}");
    assert!(seconds.iter().map(|line| of(line, "allowed")).sum::<u64>() > 20, "{output}");
    assert!(seconds.iter().map(|line| of(line, "denied")).sum::<u64>() > 20, "{output}");
    assert!(output.contains(" by per-client") && output.contains(" by login"), "{output}");
    assert!(!output.contains("failed"), "{output}");
    assert!(demo.left_behind().is_empty());
}

#[test]
fn its_addresses_answer_while_it_runs() {
    let demo = Demo::plain();
    let (gateway, admin) = (demo.address("gateway"), demo.address("admin"));
    assert!(ask(&admin, "GET /readyz").starts_with("HTTP/1.1 200"));
    let page = ask(&gateway, "GET /orders/1").to_ascii_lowercase();
    assert!(page.starts_with("http/1.1 200") && page.contains("ratelimit: "), "{page}");
    assert!(page.ends_with("order 1: on its way\n"), "{page}");

    // Five tries in ten seconds, and one too many.
    let tries: Vec<_> = (0..6).map(|_| ask(&gateway, "POST /login")[9..12].to_owned()).collect();
    assert_eq!(tries, ["401", "401", "401", "401", "401", "429"]);
    let metrics = ask(&admin, "GET /metrics");
    assert!(metrics.contains(r#"route="login",rule="login",outcome="reject""#), "{metrics}");
    let top = ask(&admin, "GET /v1/top");
    assert!(top.contains("127.0.0.1"), "{top}");
}

#[test]
fn its_rules_can_be_edited_meanwhile() {
    let demo = Demo::plain();
    let gateway = demo.address("gateway");
    let told = demo.line("rules ");
    let path = PathBuf::from(told.split("  ").next().unwrap());
    assert!(path.starts_with(&demo.place), "{told}");
    demo.line("1s ");

    edit(&path, |text| text.replace("limit: 5, window: 10s", "limit: 1, window: 10s"));
    demo.line("your change 1 is in force");
    let tries: Vec<_> = (0..2).map(|_| ask(&gateway, "POST /login")[9..12].to_owned()).collect();
    assert_eq!(tries, ["401", "429"]);

    edit(&path, |text| text.replace("limit: 1, window: 10s", "limit: 0, window: 10s"));
    let why = demo.line("your change is not in force: line ");
    assert!(why.contains("sliding_log.limit: "), "{why}");
}

#[test]
fn signals_end_it_at_once_and_nothing_is_left() {
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let mut demo = Demo::plain();
        let gateway = demo.address("gateway");
        demo.line("1s ");
        // One who rests on a connection is not waited for.
        let _resting = TcpStream::connect(&gateway).unwrap();
        assert_eq!(demo.left_behind().len(), 1);
        let asked = Instant::now();
        demo.signal(signal);
        assert_eq!(demo.ended().code(), Some(0), "{signal:?}");
        assert!(asked.elapsed() < Duration::from_secs(2), "{signal:?} took {:?}", asked.elapsed());
        assert!(demo.left_behind().is_empty(), "{signal:?}");
    }
}

#[test]
fn whoever_reads_may_stop_reading() {
    let mut demo = Demo::plain();
    demo.line("1s ");
    // The thread that reads finds nobody to tell, and closes the pipe.
    demo.lines = channel().1;
    assert_eq!(demo.ended().code(), Some(0));
    assert!(demo.left_behind().is_empty());
}

#[test]
fn a_terminal_is_given_back_as_it_was() {
    let mut demo = Demo::on_a_terminal("demo --for 2s --gateway 127.0.0.1:0 --admin 127.0.0.1:0");
    assert_eq!(demo.ended().code(), Some(0));
    let output = demo.lines.iter().collect::<Vec<_>>().join("\n");
    check_given_back(&output);
    assert!(output.contains("denied by per-client") || output.contains("denied by login"), "{output}");
    assert!(!output.contains("\x1b[32m"), "NO_COLOR is set");
    assert!(demo.left_behind().is_empty());
}

#[test]
fn ctrl_c_on_a_terminal_gives_it_back_too() {
    let mut demo = Demo::on_a_terminal("demo --for 60s --gateway 127.0.0.1:0 --admin 127.0.0.1:0");
    let mut seen = Vec::new();
    while !seen.iter().any(|line: &String| line.starts_with("gateway ")) {
        seen.push(demo.lines.recv_timeout(Duration::from_secs(30)).unwrap());
    }
    let keyboard = demo.child.stdin.as_mut().unwrap();
    keyboard.write_all(b"\x03").unwrap();
    keyboard.flush().unwrap();
    assert_eq!(demo.ended().code(), Some(0));
    seen.extend(demo.lines.iter());
    check_given_back(&seen.join("\n"));
    assert!(demo.left_behind().is_empty());
}

#[track_caller]
fn check_given_back(output: &str) {
    let last = |code: &str| output.rfind(code).unwrap_or_else(|| panic!("no {code:?} in {output:?}"));
    assert!(last("\x1b[?25h") > last("\x1b[?25l"), "the cursor is shown again");
    assert!(last("\x1b[?1049l") > last("\x1b[?1049h"), "the first screen is back");
    assert!(last("s: allowed ") > last("\x1b[?1049l"), "the summary stays to be read");
}
