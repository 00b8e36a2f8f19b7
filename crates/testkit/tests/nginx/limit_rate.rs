//! `limit_rate`: bytes a second of one response, past the first few.
//!
//! nginx counts whole seconds, and a response may begin shortly before one ends; so how long it takes depends on when it
//! begins. What does not is what it lets go at once, and that it sleeps for all that it sent but the last piece.

use std::{fs, time::Duration};
use testkit::{Arrival, Arrivals, Canned, Nginx, Seen, Upstream};
use tollgate::{Bandwidth, Pace, Pacer, Rate, Time};

const SIZE: u64 = 200_000;
const RATE: u64 = 50 * 1024;
const AFTER: u64 = 50 * 1024;

/// The response's head, which nginx counts too.
const HEAD: u64 = 400;

/// How long this many bytes take at the rate.
fn time_of(bytes: u64) -> Duration {
    Duration::from_secs_f64(bytes as f64 / RATE as f64)
}

/// The bytes that came within so long of the first.
fn bytes_by(seen: &Seen, time: Duration) -> u64 {
    seen.answered().bytes_by(seen.answered().began + time)
}

/// How long a response takes at ours, and the most that went at once.
fn ours() -> (Duration, u64) {
    let rate = Rate::per_second(u32::try_from(RATE).unwrap()).unwrap();
    let mut pacer = Pacer::new(Bandwidth::new(rate).with_after(AFTER), Time::ZERO);
    let (mut now, mut left, mut most) = (Time::ZERO, SIZE, 0);
    while left > 0 {
        match pacer.allow(now) {
            Pace::Send(bytes) => {
                let bytes = bytes.min(left);
                pacer.sent(bytes);
                left -= bytes;
                most = most.max(bytes);
            }
            Pace::Sleep(time) => now += time,
        }
    }
    (now - Time::ZERO, most)
}

/// nginx lets a second's bytes go at once besides those that go unpaced; ours, a 32nd of that.
#[test]
fn a_response_is_paced_past_its_first_bytes() {
    let upstream = Upstream::start(|_| Canned::bytes(SIZE));
    let nginx = Nginx::start(&format!(
        "limit_rate 50k; limit_rate_after 50k; root html;
         server {{
             listen LISTEN;
             location / {{ proxy_pass {}; }}
             location /at_once/ {{ sendfile on; }}
             location /in_pieces/ {{ sendfile off; output_buffers 2 32k; }}
             location /unpaced/ {{ limit_rate 0; }}
         }}",
        upstream.url()
    ));
    for folder in ["at_once", "in_pieces", "unpaced"] {
        fs::create_dir(nginx.directory().join("html").join(folder)).unwrap();
        nginx.file(&format!("{folder}/file"), &vec![b'x'; usize::try_from(SIZE).unwrap()]);
    }
    let paths = ["/at_once/file", "/in_pieces/file", "/proxied", "/unpaced/file"];
    let schedule = Arrivals::new(paths.map(|path| Arrival::at_ms(0).path(path)));
    let seen = schedule.play(nginx.address());
    for seen in &seen {
        assert_eq!((seen.status(), seen.answered().body.len() as u64), (200, SIZE));
    }
    let soon = Duration::from_millis(500);
    let at_once = bytes_by(&seen[0], soon);
    assert!((RATE + AFTER - HEAD..=RATE + AFTER).contains(&at_once), "{at_once}");
    assert_eq!(bytes_by(&seen[3], Duration::from_secs(1)), SIZE);

    for (path, seen) in paths.iter().zip(&seen[..3]) {
        // Nobody gets more than a second's bytes ahead, or two where a second ends right after the response begins.
        for (at, bytes) in &seen.answered().progress {
            let whole = (*at - seen.asked).as_secs() + 2;
            assert!(*bytes <= AFTER + RATE * whole, "{path}: {bytes} bytes at {at:?}");
        }
        // All but the last piece is slept for; a piece is no more than what goes in a second, or twice that.
        let took = seen.took();
        let (soonest, latest) = (time_of(SIZE - AFTER - 2 * RATE), time_of(SIZE - AFTER));
        assert!(took > soonest && took < latest + Duration::from_secs(1), "{path}: {took:?}");
        println!("nginx, {path}: {SIZE} bytes in {took:.3?}, {} in half a second", bytes_by(seen, soon));
    }

    let (took, at_once) = ours();
    println!("ours: {SIZE} bytes in {took:.3?}, {at_once} at once");
    assert_eq!(at_once, AFTER + RATE / 32);
    let apart = took.abs_diff(time_of(SIZE - AFTER - RATE / 32));
    assert!(apart < Duration::from_millis(1), "{took:?}");
}
