//! `tollgate rules`: from a file to a database and back.

use crate::{folder::Folder, replay::tollgate};
use std::fs;

const RULES: &str = "\
enabled: true
limits:
  per-client: { token_bucket: { rate: 10/s, burst: 20 } }
  login: { sliding_log: { limit: 5, window: 1m } }
upstreams: { app: { servers: [ \"http://127.0.0.1:9001\" ] } }
everywhere:
  - { name: per-ip, limits: [ { use: per-client, key: [ip] } ] }
routes:
  - name: app
    upstream: app
    rules:
      - name: login # guessing is slow
        when: { path: /login }
        limits: [ { use: login, key: [ip] } ]
";

fn own(folder: &Folder) -> String {
    let database = folder.path().join("rules.db");
    format!("version: 1\nrules_from: {{ source: \"sqlite://{}\" }}\n", database.display())
}

/// What a command says, without the folder's name, and its exit code.
fn told(folder: &Folder, args: &[&str]) -> String {
    let ran = tollgate(args, "");
    let text = [ran.stdout, ran.stderr].map(|text| String::from_utf8(text).unwrap()).concat();
    let text = text.replace(folder.path().to_str().unwrap(), "DIR");
    // The revision's hash is nobody's business.
    let text: Vec<String> =
        text.lines().map(|line| line.split(", revision").next().unwrap().to_owned()).collect();
    format!("{}\nexit code {}", text.join("\n"), ran.status.code().unwrap())
}

#[test]
fn from_a_file_to_a_database_and_back() {
    let folder = Folder::new();
    let file = folder.file("tollgate.yaml", format!("{}{RULES}", own(&folder)));
    let checked = told(&folder, &["check", &file]);
    assert!(checked.contains("limits: must not stand here") && checked.ends_with("exit code 1"), "{checked}");
    insta::assert_snapshot!(told(&folder, &["rules", "push", "-c", &file]), @"");
    fs::write(&file, own(&folder)).unwrap();
    insta::assert_snapshot!(told(&folder, &["check", &file]), @"");
    let explained = told(&folder, &["explain", &file, "--path", "/"]);
    assert!(explained.contains("are in a database; `tollgate rules pull"), "{explained}");

    let pulled = folder.path().join("rules.yaml").display().to_string();
    assert!(told(&folder, &["rules", "pull", "-c", &file, "-o", &pulled]).ends_with("exit code 0"));
    insta::assert_snapshot!(told(&folder, &["rules", "pull", "-c", &file]), @"");
    assert!(
        told(&folder, &["check", &pulled]).contains("good: 1 route, 2 rules, 2 named limits, 1 upstream")
    );
    insta::assert_snapshot!(told(&folder, &["rules", "diff", "-c", &file, &pulled]), @"");

    let edited = fs::read_to_string(&pulled).unwrap();
    let edited = edited.replace("limit: 5,", "limit: 3,").replace("enabled: true", "enabled: false");
    let edited = edited.replace("limits:\n", "limits:\n  new: { concurrency: { limit: 2 } }\n");
    fs::write(&pulled, edited).unwrap();
    insta::assert_snapshot!(told(&folder, &["rules", "diff", "-c", &file, &pulled]), @"");
    let other = folder.path().join("other.yaml").display().to_string();
    told(&folder, &["rules", "pull", "-c", &file, "-o", &other]);
    insta::assert_snapshot!(told(&folder, &["rules", "push", "-c", &file, &pulled, "--as", "ann"]), @"");
    // Its first line is that of what was pushed.
    insta::assert_snapshot!(told(&folder, &["rules", "push", "-c", &file, &pulled]), @"");
    // The other was pulled before.
    insta::assert_snapshot!(told(&folder, &["rules", "push", "-c", &file, &other]), @"");
    assert!(told(&folder, &["rules", "push", "--force", "-c", &file, &other]).ends_with("exit code 0"));
    assert!(told(&folder, &["rules", "diff", "-c", &file, &other]).ends_with("exit code 0"));
}

#[test]
fn what_cannot_be_pushed_changes_nothing() {
    let folder = Folder::new();
    let file = folder.file("tollgate.yaml", format!("{}{RULES}", own(&folder)));
    assert!(told(&folder, &["rules", "push", "-c", &file]).ends_with("exit code 0"));
    let bad =
        folder.file("bad.yaml", "version: 1\nlimits: { a: { token_bucket: { rate: 0/s, burst: 1 } } }\n");
    insta::assert_snapshot!(told(&folder, &["rules", "push", "--force", "-c", &file, &bad]), @"");
    let empty = folder.file("empty.yaml", "version: 1\n");
    insta::assert_snapshot!(told(&folder, &["rules", "push", "-c", &file, &empty]), @"");
    let foreign = folder.file("foreign.yaml", "version: 1\nlimits: { a: { concurrency: { limit: 1 } } }\n");
    insta::assert_snapshot!(told(&folder, &["rules", "push", "-c", &file, &foreign]), @"");
    insta::assert_snapshot!(told(&folder, &["rules", "diff", "-c", &empty]), @"");
    assert!(told(&folder, &["rules", "diff", "-c", &file]).contains("have the same rules"));
}

#[test]
fn an_order_that_changes_moves_rows() {
    let folder = Folder::new();
    let rule = |name: &str| {
        format!("  - {{ name: {name}, limits: [ {{ concurrency: {{ limit: 1 }}, key: [] }} ] }}\n")
    };
    let rules = |names: &[&str]| {
        format!("version: 1\neverywhere:\n{}", names.iter().map(|name| rule(name)).collect::<String>())
    };
    let file = folder.file("tollgate.yaml", own(&folder));
    let mut before: &[&str] = &[];
    for names in
        [["a", "b", "c"].as_slice(), &["c", "a", "b"], &["c", "new", "b", "a"], &["b"], &["d", "b", "e"]]
    {
        let wanted = folder.file("wanted.yaml", rules(names));
        let pushed = told(&folder, &["rules", "push", "--force", "-c", &file, &wanted]);
        assert!(pushed.ends_with("exit code 0"), "{pushed}");
        let same = told(&folder, &["rules", "diff", "-c", &file, &wanted]);
        assert!(same.ends_with("exit code 0"), "from {before:?} to {names:?}: {same}");
        before = names;
    }
}
