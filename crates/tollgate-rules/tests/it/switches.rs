//! Switches in a file: one word is changed, everything else stays.

use crate::example::{EXAMPLE, environment};
use tollgate_rules::{
    parse_rules,
    pieces::{WhichSwitch, switch_text},
};

const BLOCK: &str = "\
# ours
version: 1  # the first
listen:
  gateway: 127.0.0.1:8080
limits:
  a: { sliding_log: { limit: 1, window: 1s } }
upstreams: { u: { servers: [ \"http://127.0.0.1:1\" ] } }
everywhere:
  # who comes
  - name: per-ip # by address
    # what they pay
    limits: [ { use: a, key: [ip] } ]
routes:
- name: orders
  upstream: u
  rules:
    - limits: [ { use: a, key: [] } ]   # odd order
      name: create
    - { name: read, limits: [ { use: a, key: [] } ] }
    - { limits: [ { use: a, key: [] } ], enabled: true, name: list }
    - enabled:   false   # for now
      name: delete
      limits: [ { use: a, key: [] } ]
";

const fn of(route: Option<&'static str>, rule: &'static str) -> WhichSwitch<'static> {
    WhichSwitch::Rule { route, rule }
}

#[test]
fn one_word_is_changed_or_put_in() {
    for (which, enabled, from, to) in [
        (WhichSwitch::Global, false, "# the first\n", "# the first\nenabled: false\n"),
        (WhichSwitch::Global, true, "", ""),
        (of(None, "per-ip"), false, "# by address\n", "# by address\n    enabled: false\n"),
        (
            of(Some("orders"), "create"),
            false,
            "- limits: [ { use: a, key: [] } ]   # odd",
            "- enabled: false\n      limits: [ { use: a, key: [] } ]   # odd",
        ),
        (of(Some("orders"), "read"), false, "{ name: read,", "{ enabled: false, name: read,"),
        (of(Some("orders"), "read"), true, "", ""),
        (of(Some("orders"), "list"), false, "enabled: true,", "enabled: false,"),
        (of(Some("orders"), "delete"), true, "enabled:   false   #", "enabled:   true   #"),
    ] {
        let expected = if from.is_empty() { BLOCK.to_owned() } else { BLOCK.replacen(from, to, 1) };
        assert_eq!(switch_text(BLOCK, which, enabled).unwrap(), expected, "{which:?}");
        let back = switch_text(&expected, which, !enabled).unwrap();
        let file = parse_rules(&back, |_| None).unwrap();
        if which == WhichSwitch::Global {
            assert_eq!(file.enabled, !enabled);
        }
    }
}

#[test]
fn styles_of_all_sorts() {
    for text in [
        "{ version: 1 }",
        "{version: 1}",
        "version: 1",
        "version: 1\r\nlog: {}\r\n",
        "{ \"version\": 1,\n  \"listen\": {} }\n",
        "---\nversion: 1\n...\n",
        "listen:\n  admin: 127.0.0.1:1\nversion: 1",
        "  version: 1\n  log: {}\n",
    ] {
        let off =
            switch_text(text, WhichSwitch::Global, false).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert!(!parse_rules(&off, |_| None).unwrap_or_else(|wrong| panic!("{off}: {wrong}")).enabled);
        let on = switch_text(&off, WhichSwitch::Global, true).unwrap();
        assert!(parse_rules(&on, |_| None).unwrap().enabled);
        assert_eq!(on.matches("enabled").count(), 1, "{on}");
    }
}

#[test]
fn what_cannot_be_turned_is_said() {
    for (text, which, message) in [
        ("version: [", WhichSwitch::Global, "the file cannot be read"),
        ("version: 1\nenabled: ${ON}", WhichSwitch::Global, "is turned where that comes from"),
        (BLOCK, of(None, "gone"), "there is no rule of every route called \"gone\""),
        (BLOCK, of(Some("gone"), "create"), "there is no route called \"gone\""),
        (BLOCK, of(Some("orders"), "gone"), "route \"orders\" has no rule called \"gone\""),
    ] {
        let told = switch_text(text, which, false).unwrap_err().to_string();
        assert!(told.contains(message), "{told}");
    }
}

#[test]
fn every_rule_of_the_example_can_be_turned() {
    let file = parse_rules(EXAMPLE, environment).unwrap();
    let everywhere = file.everywhere.iter().map(|rule| (None, rule.name.as_str(), rule.enabled));
    let routes = file.routes.iter().flat_map(|route| {
        route.rules.iter().map(|rule| (Some(route.name.as_str()), rule.name.as_str(), rule.enabled))
    });
    for (route, rule, enabled) in everywhere.chain(routes) {
        let text = switch_text(EXAMPLE, WhichSwitch::Rule { route, rule }, !enabled).unwrap();
        parse_rules(&text, environment).unwrap_or_else(|wrong| panic!("{rule}: {wrong}"));
        assert_ne!(text, EXAMPLE);
    }
}
