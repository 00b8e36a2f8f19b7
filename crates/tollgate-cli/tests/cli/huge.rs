//! Rule files with very many overrides: `check` and `serve` agree on what fits, and a reload holds up nobody who asks how the
//! server is.

use crate::{folder::Folder, serving::Serving};
use std::{
    fmt::Write,
    fs,
    process::{Command, Output},
    time::{Duration, Instant},
};
use testkit::Arrival;

/// A file with so many overrides of one limit.
fn rules(overrides: u32, burst: u32) -> String {
    let mut text = String::from(
        "version: 1\n\
         listen: { gateway: \"127.0.0.1:0\", admin: \"127.0.0.1:0\" }\n\
         headers: x-ratelimit\n\
         upstreams: { up: { servers: [ \"http://127.0.0.1:9\" ] } }\n\
         routes:\n  \
           - { name: all, upstream: up, rules: [ { name: per-key, limits: [ { use: per-key, key: [header.x-key] } ] } ] }\n\
         limits:\n  \
           per-key:\n    \
             token_bucket: { rate: 10/s, burst: 10 }\n    \
             overrides:\n",
    );
    for key in 0..overrides {
        writeln!(text, "      key-{key}: {{ burst: {} }}", burst + key % 7).unwrap();
    }
    text
}

fn check(file: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tollgate")).args(["check", file]).output().unwrap()
}

/// The limit that the gateway tells a key of.
fn limit_of(serving: &Serving, key: &str) -> String {
    let seen = testkit::Arrivals::new([Arrival::at_ms(0).path("/").header("x-key", key)])
        .play(serving.gateway)
        .remove(0);
    seen.header("x-ratelimit-limit").unwrap_or_default().to_owned()
}

#[test]
fn a_hundred_thousand_overrides_are_good_start_and_are_reloaded_beside_everything_else() {
    const OVERRIDES: u32 = 100_000;
    let folder = Folder::new();
    let file = folder.file("tollgate.yaml", rules(OVERRIDES, 20));
    let begun = Instant::now();
    let checked = check(&file);
    let work = begun.elapsed();
    assert!(checked.status.success(), "{checked:?}");
    let serving = Serving::start(&file, &[]);
    for (key, limit) in [("key-0", "20"), ("key-65535", "21"), ("key-99999", "24"), ("key-100000", "10")] {
        assert_eq!(limit_of(&serving, key), limit, "{key}");
    }

    // All that it keeps is changed, while keys are in use.
    fs::write(&file, rules(OVERRIDES, 40)).unwrap();
    let mut slowest = Duration::ZERO;
    let begun = Instant::now();
    loop {
        let asked = Instant::now();
        let (status, told) = serving.ready();
        slowest = slowest.max(asked.elapsed());
        assert_eq!(status, 200, "{told}");
        if told["components"]["rules"]["generation"] == 2 {
            break;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "{}", serving.log());
    }
    eprintln!("check {work:?}, reload {:?}, slowest /readyz {slowest:?}", begun.elapsed());
    assert!(slowest < work / 3, "/readyz took {slowest:?}, and the reload's work is {work:?}");
    assert_eq!(limit_of(&serving, "key-65535"), "41");
}

#[test]
fn a_file_that_no_reload_would_read_is_refused_by_check_and_serve_alike() {
    let folder = Folder::new();
    let file = folder.file("tollgate.yaml", format!("{}# {}\n", rules(1, 20), "x".repeat(16 << 20)));
    let checked = check(&file);
    let started = Command::new(env!("CARGO_BIN_EXE_tollgate")).args(["serve", "-c", &file]).output().unwrap();
    for told in [checked, started] {
        let said = String::from_utf8_lossy(&told.stderr);
        assert!(!told.status.success() && said.contains("at most 16777216 are read"), "{said}");
    }
}
