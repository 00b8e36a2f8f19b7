//! Frames as a person sees them, and what keys do to them.

use super::{
    draw::Paint,
    plain::{self, Form},
    told::{Told, plain as plain_text},
    view::{Next, Order, View},
};
use insta::assert_snapshot;
use ratatui::{
    Terminal,
    backend::TestBackend,
    crossterm::event::{KeyCode, KeyEvent, KeyModifiers},
    style::Color,
};
use serde_json::{Value, json};

fn of<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).expect("a page of the server")
}

fn told() -> Told {
    let wave: Vec<u64> = (0..60).map(|second| (second % 12) * 10).collect();
    let few: Vec<u64> = (0..60).map(|second| u64::from(second % 15 == 0) * 5).collect();
    let none = vec![0; 60];
    Told {
        overview: of(json!({
            "node": "edge-1:9090", "version": "0.1.0", "started_ms": 1_000, "now_ms": 7_984_000,
            "enabled": true, "ready": true,
            "rules": { "generation": 3, "failure": null, "source": { "kind": "file" } },
            "store": { "mode": "exact", "last_error": null, "keys": 12, "evictions": 0 },
            "listeners": [{ "name": "gateway", "connections": 41, "in_flight": 7 }, { "name": "admin", "connections": 1 }],
            "problems": ["upstream orders: 1 of 2 servers are not reached: http://127.0.0.1:9002"],
        })),
        usage: of(json!({
            "step_ms": 1000, "from_ms": 0,
            "rules": [
                { "route": "orders", "rule": "create", "passed": wave, "delayed": none, "refused": few },
                { "route": null, "rule": "per-ip", "passed": wave, "delayed": few, "refused": wave },
                { "route": "search", "rule": "a-rule-whose-name-is-longer-than-there-is-room-for", "passed": few, "delayed": none, "refused": none },
                { "door": "resp", "limit": "per-client", "route": null, "rule": null, "passed": few, "delayed": none, "refused": none },
            ],
            "total": { "passed": wave, "delayed": few, "refused": few },
        })),
        top: of(json!({
            "limited": [
                { "limit": "per-client", "key": "crawler", "refused_per_second": 41.25, "used_per_second": 10.0 },
                { "limit": "per-ip", "key": ["10.0.0.1", null], "refused_per_second": 0.5, "used_per_second": 1.0 },
                { "limit": "odd", "key": "\u{1b}[2J\u{202e}évil 中文", "refused_per_second": 0.1, "used_per_second": 0.0 },
            ],
            "used": [{ "limit": "all", "key": [], "refused_per_second": 0.0, "used_per_second": 12_345.6 }],
        })),
    }
}

fn frame(view: &View, width: u16, height: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a terminal of memory");
    terminal.draw(|frame| view.draw(frame, "http://127.0.0.1:9090", Paint::Plain)).expect("it draws");
    let lines = terminal.backend().to_string();
    // Wide letters are told of at the end of their line.
    let drawn = |line: &'_ str| line.split("\" Hidden by").next().unwrap_or_default().to_owned();
    lines
        .lines()
        .map(|line| drawn(line).trim_matches('"').trim_end().to_owned())
        .collect::<Vec<_>>()
        .join("\n")
}

fn press(view: &mut View, code: KeyCode) -> Next {
    view.press(KeyEvent::new(code, KeyModifiers::NONE))
}

fn type_in(view: &mut View, text: &str) {
    for letter in text.chars() {
        press(view, KeyCode::Char(letter));
    }
}

#[test]
fn the_usual_terminal() {
    let view = View { told: told(), ..View::default() };
    assert_snapshot!(frame(&view, 80, 24), @"
    tollgate 0.1.0 edge-1:9090  http://127.0.0.1:9090  up 2h13m  ready
    rules #3   store exact, 12 keys, 0 evicted   42 connections, 7 in flight
    upstream orders: 1 of 2 servers are not reached: http://127.0.0.1:9002
    allowed      90.0/s   ▁▂▂▃▄▅▅▆▇█  ▁▂▂▃▄▅▅▆▇█  ▁▂▂▃▄▅▅▆▇█  ▁▂▂▃▄▅▅▆▇█  ▁▂▂▃▄▅▅▆▇█
    delayed       0.0/s █              █              █              █
    denied        0.0/s █              █              █              █
    rule                        allowed/s  delayed/s   denied/s denied
    * / per-ip                       90.0        0.0       90.0 ▃▄▅▆▆▇██ ▁▂▃▃▄▅▆▆▇██
    orders / create                  90.0        0.0        0.0      █
    resp per-client                   0.0        0.0        0.0
    search / a-rule-whose-na…         0.0        0.0        0.0








    limited keys                    a second used keys                      a second
    crawler  per-client                 41.2 (all)  all                        12.3k
    10.0.0.1 (none)  per-ip              0.5
    ?[2J?évil 中文  odd                  0.1
    q quit  p pause  s sort: denied  / filter  ? help
    ");
}

#[test]
fn a_server_that_went_away_and_a_degraded_store() {
    let mut view = View { told: told(), ..View::default() };
    view.told.overview.store =
        of(json!({ "mode": "degraded", "last_error": "Redis cannot be reached", "keys": 3, "evictions": 2 }));
    view.told.overview.ready = false;
    view.hear(Err("cannot connect\n  is a server there?".to_owned()));
    assert_snapshot!(frame(&view, 100, 18), @"
    tollgate 0.1.0 edge-1:9090  http://127.0.0.1:9090  up 2h13m  not ready
    rules #3   store degraded, 3 keys, 2 evicted   42 connections, 7 in flight
    cannot connect
    store: Redis cannot be reached
    upstream orders: 1 of 2 servers are not reached: http://127.0.0.1:9002
    allowed      90.0/s                       ▁▂▂▃▄▅▅▆▇█  ▁▂▂▃▄▅▅▆▇█  ▁▂▂▃▄▅▅▆▇█  ▁▂▂▃▄▅▅▆▇█  ▁▂▂▃▄▅▅▆▇█
    delayed       0.0/s                     █              █              █              █
    denied        0.0/s                     █              █              █              █
    rule                                            allowed/s  delayed/s   denied/s denied
    * / per-ip                                           90.0        0.0       90.0 ▃▄▅▆▆▇██ ▁▂▃▃▄▅▆▆▇██
    orders / create                                      90.0        0.0        0.0      █
    resp per-client                                       0.0        0.0        0.0
    search / a-rule-whose-name-is-longer-than-th…         0.0        0.0        0.0
    limited keys                              a second used keys                                a second
    crawler  per-client                           41.2 (all)  all                                  12.3k
    10.0.0.1 (none)  per-ip                        0.5
    ?[2J?évil 中文  odd                            0.1
    q quit  p pause  s sort: denied  / filter  ? help
    ");
}

#[test]
fn every_size_is_drawn() {
    let mut view = View { told: told(), ..View::default() };
    for is_helping in [false, true] {
        view.is_helping = is_helping;
        for (width, height) in [(1, 1), (5, 40), (20, 5), (79, 10), (300, 100), (u16::MAX / 8, 3)] {
            frame(&view, width, height);
        }
    }
    frame(&View::default(), 80, 24);
}

#[test]
fn keys_sort_filter_pause_and_quit() {
    let mut view = View { told: told(), ..View::default() };
    let first = |view: &View| view.rows()[0].name.clone();
    assert_eq!(first(&view), "* / per-ip");
    assert_eq!(press(&mut view, KeyCode::Char('s')), Next::GoOn);
    assert_eq!(view.order, Order::Delayed);
    press(&mut view, KeyCode::Char('s'));
    press(&mut view, KeyCode::Char('s'));
    assert_eq!((view.order, first(&view).as_str()), (Order::Name, "* / per-ip"));

    press(&mut view, KeyCode::Char('/'));
    type_in(&mut view, "CREATEq");
    press(&mut view, KeyCode::Backspace);
    assert_eq!(view.rows().len(), 1, "q was a letter here");
    press(&mut view, KeyCode::Enter);
    assert!(frame(&view, 80, 24).contains("/ filter: CREATE"));
    assert_eq!(press(&mut view, KeyCode::Esc), Next::GoOn, "out of the filter first");
    assert_eq!(view.rows().len(), 4);

    for _ in 0..9 {
        press(&mut view, KeyCode::Down);
    }
    assert_eq!(view.above, 3, "no further than to the last");
    press(&mut view, KeyCode::Char('g'));

    press(&mut view, KeyCode::Char('p'));
    view.hear(Ok(Told::default()));
    assert_eq!(view.rows().len(), 4, "the picture stays");
    assert!(frame(&view, 80, 24).contains("paused"));
    press(&mut view, KeyCode::Char('p'));
    view.hear(Ok(Told::default()));
    assert!(frame(&view, 80, 24).contains("no traffic"));

    press(&mut view, KeyCode::Char('?'));
    assert!(frame(&view, 80, 24).contains("sort rules by"));
    assert_eq!(press(&mut view, KeyCode::Char('q')), Next::GoOn, "any key leaves the help");
    assert_eq!(press(&mut view, KeyCode::Esc), Next::Quit);
    assert_eq!(press(&mut view, KeyCode::Char('q')), Next::Quit);
    view.is_typing = true;
    assert_eq!(view.press(KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL)), Next::Quit);
}

#[test]
fn colours_are_left_out_where_nobody_wants_them() {
    let view = View { told: told(), ..View::default() };
    for (paint, wanted) in [(Paint::Plain, false), (Paint::Colour, true)] {
        let mut terminal = Terminal::new(TestBackend::new(80, 24)).expect("a terminal of memory");
        terminal.draw(|frame| view.draw(frame, "", paint)).expect("it draws");
        let cells = terminal.backend().buffer().content();
        assert_eq!(cells.iter().any(|cell| cell.fg != Color::Reset || cell.bg != Color::Reset), wanted);
    }
}

#[test]
fn a_terminal_is_only_written_on() {
    assert_eq!(plain_text("a\u{1b}[2J\r\n\u{7f}\u{9b}b\u{202e}é中"), "a?[2J????b?é中");
    let drawn = frame(&View { told: told(), ..View::default() }, 80, 24);
    assert!(!drawn.contains(['\u{1b}', '\u{202e}']));
}

#[test]
fn a_plain_line() {
    assert_snapshot!(plain::line(&told(), Form::Words), @"allowed 90.0/s  delayed 0.0/s  denied 0.0/s  by * / per-ip 90.0  keys crawler, 10.0.0.1 (none), ?[2J?évil 中文  store exact  ready  problem: upstream orders: 1 of 2 servers are not reached: http://127.0.0.1:9002");
    let json: Value = serde_json::from_str(&plain::line(&told(), Form::Json)).expect("JSON");
    assert_eq!(json["rules"][1]["rule"], "per-ip");
    assert_eq!((&json["pace"]["passed"], &json["limited"][0]["key"]), (&json!(90.0), &json!("crawler")));
}
