//! Rules in pieces: put together, taken apart, and every mistake with the piece it is in.

use crate::{
    example::{EXAMPLE, environment},
    schema::repository,
};
use insta::assert_snapshot;
use proptest::prelude::*;
use std::fs;
use tollgate_rules::{
    RuleFile, parse_rules,
    pieces::{PieceKind, PieceText, compose_rules, split_rules, whole_text},
};

const OWN: &str =
    "version: 1\nrules_from: { source: \"sqlite://rules.db\" }\nlisten: { gateway: 127.0.0.1:8080 }\n";

fn piece(kind: PieceKind, route: Option<&str>, name: &str, text: &str) -> PieceText {
    let (route, name, text) = (route.map(str::to_owned), name.to_owned(), text.to_owned());
    PieceText { kind, route, name, enabled: true, text }
}

fn limit(name: &str, text: &str) -> PieceText {
    piece(PieceKind::Limit, None, name, text)
}

fn rule(route: Option<&str>, name: &str, text: &str) -> PieceText {
    piece(PieceKind::Rule, route, name, text)
}

/// A small good set.
fn good() -> Vec<PieceText> {
    vec![
        limit("per-client", "token_bucket: { rate: 10/s, burst: 5 }"),
        piece(PieceKind::Upstream, None, "orders", "servers: [ \"http://127.0.0.1:9001\" ]"),
        rule(None, "per-ip", "limits: [ { use: per-client, key: [ip] } ]"),
        piece(PieceKind::Route, None, "orders", "when: { path: /orders/** }\nupstream: orders"),
        rule(
            Some("orders"),
            "create",
            "# posts\nwhen: { method: POST }\nlimits:\n  - { use: per-client, key: [ip] }\n",
        ),
    ]
}

/// Everything that a file says but where its rules are kept: two of the same say the same.
fn said(file: &RuleFile) -> String {
    let mut file = file.clone();
    file.rules_from = None;
    format!("{file:?}{}", file.store.url)
}

fn told(pieces: &[PieceText]) -> String {
    let wrong = compose_rules(OWN, true, pieces, |_| None).unwrap_err();
    let line = |wrong: &tollgate_rules::pieces::PieceMistake| {
        let about = wrong.piece.map_or_else(|| "file".to_owned(), |piece| pieces[piece].about());
        format!("{about}:{}", wrong.mistake)
    };
    wrong.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn pieces_are_what_the_whole_file_would_be() {
    let mut pieces = good();
    pieces[4].enabled = false;
    // A rule may be listed before its route.
    pieces.swap(3, 4);
    let whole = parse_rules(
        "version: 1\nenabled: false\nlisten: { gateway: 127.0.0.1:8080 }\n\
         limits: { per-client: { token_bucket: { rate: 10/s, burst: 5 } } }\n\
         upstreams: { orders: { servers: [ \"http://127.0.0.1:9001\" ] } }\n\
         everywhere: [ { name: per-ip, limits: [ { use: per-client, key: [ip] } ] } ]\n\
         routes: [ { name: orders, when: { path: /orders/** }, upstream: orders, rules: [ { name: create, enabled: false, \
         when: { method: POST }, limits: [ { use: per-client, key: [ip] } ] } ] } ]",
        |_| None,
    )
    .unwrap();
    let composed = compose_rules(OWN, false, &pieces, |_| None).unwrap();
    assert!(composed.rules_from.is_some());
    assert_eq!(said(&composed), said(&whole));
}

#[test]
fn a_mistake_names_its_piece_its_line_and_its_setting() {
    let mut pieces = good();
    pieces[0].text = "token_bucket:\n  rate: 10/s\n  brust: 5".to_owned();
    pieces[2].text = "limits: [ { use: per-clint, key: [ip] } ]\nlimits: []".to_owned();
    pieces[3].text = "\n\nupstream: order".to_owned();
    pieces[4].text = "when: { methd: POST }\nlimits:\n  - { use: per-client, key: [ip] }\n  - { sliding_log: { limit: 0, window: 1s }, key: [] }".to_owned();
    pieces.push(rule(Some("orders"), "create", "limits: [ { use: per-client, key: [ip] } ]"));
    pieces.push(limit("per-client", "sliding_log: { limit: 1, window: 1s }"));
    pieces.push(limit("", "sliding_log: { limit: 1, window: 1s }"));
    assert_snapshot!(told(&pieces), @r#"
    limit per-client:2:3: token_bucket.burst: is missing, such as `burst: 100`
    limit per-client:3:3: token_bucket.brust: is not a known key; did you mean `burst`?
    rule per-ip:1:18: limits[0].use: there is no limit called "per-clint"; did you mean `per-client`?
    rule per-ip:2:1: limits: is given twice, first on line 1
    route orders:3:11: upstream: there is no upstream called "order"; did you mean `orders`?
    rule orders/create:1:9: when.methd: is not a known key; did you mean `method`?
    rule orders/create:4:29: limits[1].sliding_log.limit: must be greater than zero; read "0", expected a whole number such as 100
    rule orders/create:1:1: name: is given twice: every rule of a route, and of `everywhere`, needs a name of its own
    limit per-client:1:1: is given twice: every limit needs a name of its own
    limit :1:1: must not be empty
    "#);
}

#[test]
fn what_stands_beside_a_text_must_not_stand_in_it() {
    let mut pieces = good();
    pieces[3].text = "name: orders\nupstream: orders\nrules: []".to_owned();
    pieces[4].text = "limits: [ { use: per-client, key: [ip] } ]\nenabled: true".to_owned();
    pieces.push(rule(Some("gone"), "a", "limits: [ { use: per-client, key: [ip] } ]"));
    pieces.push(rule(None, "b", "[ 1 ]"));
    assert_snapshot!(told(&pieces), @r#"
    route orders:1:1: name: must not stand in the text: it is kept beside it
    route orders:3:1: rules: must not stand in the text of a route: every rule is a piece of its own
    rule orders/create:2:1: enabled: must not stand in the text: it is kept beside it
    rule gone/a:1:1: there is no route called "gone", whose rule it is
    rule b:1:1: must be a mapping such as `{ name: per-ip, limits: [ { use: per-client, key: [ip] } ] }`, without `name`, `enabled`
    "#);
}

#[test]
fn hostile_texts_are_mistakes() {
    let texts = [
        "---\na: 1\n---\nb: 2",
        "a: &x 1\nb: *x",
        "\tlimits: 1",
        "",
        "# nothing",
        "}",
        "limits: [",
        "!!str x",
        "limits: [ { use: per-client, key: [ip] } ]\nroutes: []",
        "<<: { a: 1 }",
        "\u{0}",
        "? [a]\n: b",
    ];
    let all = texts.map(|text| {
        let mut pieces = good();
        pieces[2].text = text.to_owned();
        told(&pieces)
    });
    assert_snapshot!(all.join("\n"), @r#"
    rule per-ip:3:1: must be one document: remove the `---`
    rule per-ip:2:4: is not supported: write the value out instead of an alias (`*name`)
    rule per-ip:1:10: limits: must be a list such as `[ { use: per-client, key: [ip] } ]`; read a single value
    rule per-ip:1:1: is empty
    rule per-ip:1:1: is empty
    rule per-ip:1:1: is not YAML: misplaced bracket
    rule per-ip:2:1: is not YAML: while parsing a node, did not find expected node content
    rule per-ip:1:1: must not carry a tag such as `!!int`
    rule per-ip:2:1: routes: is not a known key; known here: `name`, `enabled`, `when`, `limits`, `excess`, `on_failure`
    rule per-ip:1:1: <<: is not supported: write the keys out instead of a merge key (`<<`)
    rule per-ip:1:1: limits: is missing, such as `limits: [ { use: per-client, key: [ip] } ]`
    rule per-ip:1:1: is not YAML: found unprintable character
    rule per-ip:1:1: limits: is missing, such as `limits: [ { use: per-client, key: [ip] } ]`
    rule per-ip:1:3: keys must be names; read a list
    "#);
}

#[test]
fn the_file_says_nothing_of_what_the_database_has() {
    let own = format!("{OWN}enabled: true\nlimits: {{}}\nroutes: []\n");
    let wrong = compose_rules(&own, true, &[], |_| None).unwrap_err();
    assert_snapshot!(wrong.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"), @r#"
    4:1: enabled: must not stand here, for the rules are in the database (`rules_from`); move it there with `tollgate rules push`
    5:1: limits: must not stand here, for the rules are in the database (`rules_from`); move it there with `tollgate rules push`
    6:1: routes: must not stand here, for the rules are in the database (`rules_from`); move it there with `tollgate rules push`
    "#);
    let mistakes = parse_rules(&own, |_| None).unwrap_err();
    let paths = |paths: Vec<&str>| paths.join(" ");
    assert_eq!(paths(mistakes.iter().map(|mistake| mistake.path()).collect()), "enabled limits routes");
}

#[test]
fn beside_a_foreign_table_the_file_has_rules_of_its_own() {
    let own = "version: 1\nrules_from: { source: \"mysql://u:secret@h/d\", table: t_ratelimite_conf, poll: 500ms, cache: c.yaml }\nenabled: false\n\
               limits: { own: { sliding_log: { limit: 1, window: 1s } } }\n\
               everywhere: [ { name: first, limits: [ { use: own, key: [] } ] } ]\n";
    let file = compose_rules(own, true, &good()[..1], |_| None).unwrap();
    assert_eq!(
        file.limits.iter().map(|limit| limit.name.as_str()).collect::<Vec<_>>(),
        ["own", "per-client"]
    );
    assert!(parse_rules(own, |_| None).is_ok());
    assert!(!file.enabled);
    assert!(!format!("{file:?}").contains("secret"));
}

#[test]
fn where_the_rules_are_is_checked() {
    for (from, message) in [
        ("{}", "rules_from.source: is missing"),
        ("{ source: \"oracle://scott:tiger@h\" }", "must begin with `mysql://`"),
        ("{ source: \"sqlite://\" }", "names no database"),
        ("{ source: \"sqlite://a\", poll: 1ms }", "must be from 50ms to 1h"),
        ("{ source: \"sqlite://a\", table: foreign }", "must be one of `native`, `t_ratelimite_conf`"),
        ("{ source: \"sqlite://a\", cache: \"\" }", "must not be empty"),
    ] {
        let told = parse_rules(&format!("version: 1\nrules_from: {from}"), |_| None).unwrap_err().to_string();
        assert!(told.contains(message), "{told}");
        assert!(!told.contains("tiger"), "{told}");
    }
}

/// Splits, composes, and makes one file again: each says what the text said.
fn check_round_trip(name: &str, text: &str) {
    let environment = |name: &str| environment(name).or_else(|| Some("12".to_owned()));
    let expected = parse_rules(text, environment).unwrap_or_else(|wrong| panic!("{name}: {wrong}"));
    let split = split_rules(text, environment).unwrap_or_else(|wrong| panic!("{name}: {wrong}"));
    let composed = compose_rules(&split.own, split.enabled, &split.pieces, environment)
        .unwrap_or_else(|wrong| panic!("{name}: {}\n{split:#?}", wrong[0]));
    assert_eq!(said(&composed), said(&expected), "{name}");
    let whole = whole_text(&split.own, split.enabled, &split.pieces).unwrap();
    let again = parse_rules(&whole, environment).unwrap_or_else(|wrong| panic!("{name}: {wrong}\n{whole}"));
    assert_eq!(said(&again), said(&expected), "{name}");
    for held in text.match_indices("${").map(|(at, _)| &text[at..at + 4]) {
        assert!(whole.contains(held), "{name}: {held}\n{whole}");
    }
}

#[test]
fn every_file_of_the_repository_comes_back() {
    check_round_trip("EXAMPLE", EXAMPLE);
    let mut files = 0;
    for folder in ["examples/rules", "docs", "."] {
        for entry in fs::read_dir(repository(folder)).unwrap() {
            let path = entry.unwrap().path();
            let is_text = path.extension().is_some_and(|ending| ending == "md" || ending == "yaml");
            if !is_text {
                continue;
            }
            let text = fs::read_to_string(&path).unwrap();
            let texts: Vec<&str> = match path.extension().is_some_and(|ending| ending == "yaml") {
                true => vec![&text],
                // Whole files in the pages begin so.
                false => {
                    text.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect()
                }
            };
            for text in texts {
                let any = |_: &str| Some("redis://127.0.0.1:6379".to_owned());
                if parse_rules(text, any).is_ok_and(|file| file.rules_from.is_none()) {
                    check_round_trip(&path.display().to_string(), text);
                    files += 1;
                }
            }
        }
    }
    assert!(files > 8, "{files}");
}

#[test]
fn a_switch_from_the_environment_is_not_split() {
    let text = "version: 1\nenabled: \"${ON}\"";
    let told = split_rules(text, |_| Some("true".to_owned())).unwrap_err().to_string();
    assert_eq!(told, "2:10: enabled: must be written out as `true` or `false`: it is kept beside the text");
}

#[test]
fn texts_read_well() {
    let split = split_rules(EXAMPLE, environment).unwrap();
    let rule = split.pieces.iter().find(|piece| piece.about() == "rule orders/create").unwrap();
    assert_snapshot!(rule.text, @r#"
    when: { method: POST, not: { ip: 10.9.0.0/16 } }
    limits:
      - { use: per-client, key: [header.x-api-key], missing: deny }
      - { use: login, key: [ip/24], cost: 2 }
      - { token_bucket: { rate: 100/m, burst: 100 }, key: [] }
    excess: reject
    on_failure: closed
    "#);
}

proptest! {
    #[test]
    fn no_text_of_a_piece_makes_it_panic(at in 0..5_usize, text in "[ -~\\n\\t]{0,80}", name in "\\PC{0,20}") {
        let mut pieces = good();
        pieces[at].text = text;
        pieces[at].name = name;
        let _ = compose_rules(OWN, true, &pieces, |_| None);
        let _ = whole_text(OWN, true, &pieces);
    }

    /// Whatever a value is, it comes back.
    #[test]
    fn any_value_comes_back(value in "\\PC{0,30}", odd in prop::sample::select(vec!["\n", "\t", "\u{2028}", "a: b", "- x", "#", "'", "\"", "~", "true", "12", "[", "${A}", "%", "@"])) {
        let quoted = format!("{value}{odd}").replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n").replace('\t', "\\t");
        let text = format!(
            "version: 1\neverywhere:\n  - name: a\n    when: {{ header.x: \"{quoted}\" }}\n    limits: [ {{ token_bucket: {{ rate: 1/s, burst: 1 }}, key: [] }} ]\n"
        );
        if parse_rules(&text, environment).is_ok() {
            check_round_trip("made up", &text);
        }
    }
}
