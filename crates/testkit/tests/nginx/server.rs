//! The kit's nginx itself: what it does for a test.

use std::{
    env, fs,
    io::{BufRead, BufReader},
    process::{Command, Stdio},
    thread,
};
use testkit::{Arrivals, Canned, Nginx, Upstream, eventually};

fn body(key: &str, rate: &str, answer: &Upstream) -> String {
    format!(
        "limit_req_zone {key} zone=one:1m rate={rate};
         server {{ listen LISTEN; location / {{ limit_req zone=one; proxy_pass {}; }} }}",
        answer.url()
    )
}

fn status(nginx: &Nginx) -> u16 {
    Arrivals::at_once(1).play(nginx.address())[0].status()
}

/// The processes whose parent this is.
fn children(pid: u32) -> Vec<u32> {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    text.split_whitespace().map(|word| word.parse().unwrap()).collect()
}

#[test]
fn its_workers_end_with_it() {
    let nginx = Nginx::start(&body("$remote_addr", "1r/s", &Upstream::ok()));
    let directory = nginx.directory().to_owned();
    let mut pids = children(nginx.pid());
    assert_eq!(pids.len(), 1);
    pids.push(nginx.pid());
    drop(nginx);
    for pid in pids {
        assert!(!fs::exists(format!("/proc/{pid}")).unwrap(), "{pid} is left");
    }
    assert!(!directory.exists());
}

const ROLE: &str = "TESTKIT_NGINX_TO_BE_KILLED";

/// The process that the next test kills: it starts nginx, tells the numbers of master and worker, and waits for its end.
#[test]
fn to_be_killed() {
    if env::var_os(ROLE).is_some() {
        let nginx = Nginx::start("server { listen LISTEN; }");
        println!("\nnginx {} {}", nginx.pid(), children(nginx.pid())[0]);
        loop {
            thread::park();
        }
    }
}

#[test]
fn a_test_process_that_is_killed_leaves_no_nginx() {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--exact", "server::to_be_killed", "--nocapture"]).env(ROLE, "1").stdout(Stdio::piped());
    let mut process = command.spawn().unwrap();
    let mut lines = BufReader::new(process.stdout.take().unwrap()).lines().map_while(Result::ok);
    let pids = lines.find_map(|line| line.strip_prefix("nginx ").map(str::to_owned));
    process.kill().unwrap();
    process.wait().unwrap();
    for pid in pids.unwrap().split(' ') {
        eventually("the abandoned nginx to end", || (!runs(pid)).then_some(()));
    }
}

/// Whether a process runs. One that ended and that nobody has asked after yet does not.
fn runs(pid: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, state)| !state.starts_with(['Z', 'X']))
}

#[test]
fn a_reload_changes_rules_and_keeps_what_was_used() {
    let (one, other) = (Upstream::ok(), Upstream::start(|_| Canned::text("other")));
    let nginx = Nginx::start(&body("$remote_addr", "1r/m", &one));
    assert_eq!((status(&nginx), status(&nginx)), (200, 503));
    nginx.reload(&body("$remote_addr", "1r/m", &other)).unwrap();
    assert_eq!(status(&nginx), 503, "what was used is kept");
    let asked = one.asked().len();
    nginx.reload(&body("$remote_addr", "1000r/s", &other)).unwrap();
    eventually("the new rate to pay for what was used", || (status(&nginx) == 200).then_some(()));
    assert_eq!((one.asked().len(), other.asked().len()), (asked, 1));
}

#[test]
fn a_reload_that_nginx_refuses_changes_nothing() {
    let upstream = Upstream::ok();
    let nginx = Nginx::start(&body("$remote_addr", "1r/m", &upstream));
    let why = nginx.reload(&body("$http_x_key", "1r/m", &upstream)).unwrap_err();
    assert!(why.contains("key while previously it used"), "{why}");
    let why = nginx.reload(&body("$remote_addr", "0r/m", &upstream)).unwrap_err();
    assert!(why.contains("invalid rate"), "{why}");
    assert_eq!((status(&nginx), status(&nginx)), (200, 503));
}

#[test]
#[should_panic(expected = "unknown directive \"no_such_thing\"")]
fn what_nginx_does_not_understand_it_says() {
    Nginx::start("no_such_thing; server { listen LISTEN; }");
}

#[test]
#[should_panic(expected = "not at 0.0.0.0:80")]
fn it_listens_to_this_machine_alone() {
    Nginx::start("server { listen LISTEN; } server { listen 0.0.0.0:80; }");
}

#[test]
#[should_panic(expected = "without one it listens everywhere")]
fn it_does_not_listen_everywhere_unasked() {
    Nginx::start("server { location / { root html; } }");
}
