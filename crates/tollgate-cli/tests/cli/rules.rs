//! `tollgate rules`: from a file to a database and back.

use crate::{folder::Folder, replay::tollgate};
use std::fs;
use tollgate_book::{Change, Keeper, Kind, SqlKeeper};

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
    insta::assert_snapshot!(told(&folder, &["rules", "push", "-c", &file]), @r#"
    + limit per-client
        + token_bucket: { rate: 10/s, burst: 20 }
    + limit login
        + sliding_log: { limit: 5, window: 1m }
    + upstream app
        + servers: ["http://127.0.0.1:9001"]
    + rule per-ip
        + limits:
        +   - { use: per-client, key: [ip] }
    + route app
        + upstream: app
    + rule app/login
        + when: { path: /login }
        + limits:
        +   - { use: login, key: [ip] }
    sqlite://DIR/rules.db has 6 pieces now
    now take `enabled`, `limits`, `upstreams`, `everywhere` and `routes` out of DIR/tollgate.yaml
    exit code 0
    "#);
    fs::write(&file, own(&folder)).unwrap();
    insta::assert_snapshot!(told(&folder, &["check", &file]), @r#"
    DIR/tollgate.yaml: the rules are in sqlite://DIR/rules.db and were not checked; `tollgate rules pull` prints them
    DIR/tollgate.yaml: good, except for the rules, which were not checked
    exit code 0
    "#);
    let explained = told(&folder, &["explain", &file, "--path", "/"]);
    assert!(explained.contains("are in a database; `tollgate rules pull"), "{explained}");

    let pulled = folder.path().join("rules.yaml").display().to_string();
    assert!(told(&folder, &["rules", "pull", "-c", &file, "-o", &pulled]).ends_with("exit code 0"));
    insta::assert_snapshot!(told(&folder, &["rules", "pull", "-c", &file]), @r#"
    # tollgate rules
    version: 1
    enabled: true
    limits:
      per-client: { token_bucket: { rate: 10/s, burst: 20 } }
      login: { sliding_log: { limit: 5, window: 1m } }
    upstreams:
      app: { servers: ["http://127.0.0.1:9001"] }
    everywhere:
      - { name: per-ip, limits: [{ use: per-client, key: [ip] }] }
    routes:
      - name: app
        upstream: app
        rules:
          - { name: login, when: { path: /login }, limits: [{ use: login, key: [ip] }] }
    exit code 0
    "#);
    assert!(
        told(&folder, &["check", &pulled]).contains("good: 1 route, 2 rules, 2 named limits, 1 upstream")
    );
    insta::assert_snapshot!(told(&folder, &["rules", "diff", "-c", &file, &pulled]), @r#"
    sqlite://DIR/rules.db and DIR/rules.yaml have the same rules
    exit code 0
    "#);

    let edited = fs::read_to_string(&pulled).unwrap();
    let edited = edited.replace("limit: 5,", "limit: 3,").replace("enabled: true", "enabled: false");
    let edited = edited.replace("limits:\n", "limits:\n  new: { concurrency: { limit: 2 } }\n");
    fs::write(&pulled, edited).unwrap();
    insta::assert_snapshot!(told(&folder, &["rules", "diff", "-c", &file, &pulled]), @r#"
    --- sqlite://DIR/rules.db
    +++ DIR/rules.yaml
    everything is off, was on
    + limit new
        + concurrency: { limit: 2 }
    ~ limit login
        - sliding_log: { limit: 5, window: 1m }
        + sliding_log: { limit: 3, window: 1m }
    exit code 1
    "#);
    let other = folder.path().join("other.yaml").display().to_string();
    told(&folder, &["rules", "pull", "-c", &file, "-o", &other]);
    insta::assert_snapshot!(told(&folder, &["rules", "push", "-c", &file, &pulled, "--as", "ann"]), @r#"
    everything is off, was on
    + limit new
        + concurrency: { limit: 2 }
    ~ limit login
        - sliding_log: { limit: 5, window: 1m }
        + sliding_log: { limit: 3, window: 1m }
    sqlite://DIR/rules.db has 7 pieces now
    exit code 0
    "#);
    // Its first line is that of what was pushed.
    insta::assert_snapshot!(told(&folder, &["rules", "push", "-c", &file, &pulled]), @r#"
    sqlite://DIR/rules.db has these rules already
    exit code 0
    "#);
    // The other was pulled before.
    insta::assert_snapshot!(told(&folder, &["rules", "push", "-c", &file, &other]), @r#"
    error: sqlite://DIR/rules.db was changed since DIR/other.yaml was pulled; see `tollgate rules diff`, pull again, or --force
    exit code 1
    "#);
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
    insta::assert_snapshot!(told(&folder, &["rules", "push", "--force", "-c", &file, &bad]), @r#"
    DIR/bad.yaml:2:38: limits.a.token_bucket.rate: must be greater than zero; read "0/s", expected a rate such as 10/s, 0.5/s or 100/30s
    error: DIR/bad.yaml has 1 mistake
    exit code 1
    "#);
    let empty = folder.file("empty.yaml", "version: 1\n");
    insta::assert_snapshot!(told(&folder, &["rules", "push", "-c", &file, &empty]), @r#"
    error: DIR/empty.yaml has no rules; --force empties sqlite://DIR/rules.db
    exit code 1
    "#);
    let foreign = folder.file("foreign.yaml", "version: 1\nlimits: { a: { concurrency: { limit: 1 } } }\n");
    insta::assert_snapshot!(told(&folder, &["rules", "push", "-c", &file, &foreign]), @r#"
    error: sqlite://DIR/rules.db has rules already, and DIR/foreign.yaml was not pulled from there; see `tollgate rules diff`, or --force
    exit code 1
    "#);
    insta::assert_snapshot!(told(&folder, &["rules", "diff", "-c", &empty]), @r#"
    error: DIR/empty.yaml names no database: add `rules_from: { source: ... }` to it
    exit code 1
    "#);
    assert!(told(&folder, &["rules", "diff", "-c", &file]).contains("have the same rules"));
}

#[test]
fn what_a_hand_broke_is_pushed_whole_again() {
    let folder = Folder::new();
    let file = folder.file("tollgate.yaml", format!("{}{RULES}", own(&folder)));
    assert!(told(&folder, &["rules", "push", "-c", &file]).ends_with("exit code 0"));
    let create = |kind: Kind, route: Option<&str>, name: &str, text: &str| Change::Create {
        kind,
        route: route.map(str::to_owned),
        name: name.to_owned(),
        text: text.to_owned(),
        enabled: true,
        before: None,
    };
    let rule = "limits: [ { use: login, key: [] } ]";
    let rows = [
        create(Kind::Rule, Some("gone"), "orphan", rule),
        create(Kind::Limit, None, "login", "sliding_log: { limit: 9, window: 1m }"),
        create(Kind::Route, None, "app", "upstream: app"),
        create(Kind::Rule, Some("app"), "login", rule),
        create(Kind::Rule, None, "per-ip", rule),
    ];
    // As a hand does, without asking whether they are rules.
    let keeper = SqlKeeper::at(&format!("sqlite://{}", folder.path().join("rules.db").display())).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(keeper.change(&rows, "hand", &|_| Ok(()))).unwrap();
    insta::assert_snapshot!(told(&folder, &["rules", "push", "--force", "-c", &file]), @r#"
    - rule gone/orphan
    - limit login, which is there again
    - rule per-ip, which is there again
    - rule app/login, which is there again
    - route app, which is there again
    sqlite://DIR/rules.db has 6 pieces now
    now take `enabled`, `limits`, `upstreams`, `everywhere` and `routes` out of DIR/tollgate.yaml
    exit code 0
    "#);
    assert!(told(&folder, &["rules", "diff", "-c", &file]).contains("have the same rules"));

    // A route that nobody wants, twice, takes its rules along all the same.
    runtime.block_on(keeper.change(&rows[2..4], "hand", &|_| Ok(()))).unwrap();
    let fewer = folder.file("fewer.yaml", format!("version: 1\n{}", RULES.split("routes:").next().unwrap()));
    let pushed = told(&folder, &["rules", "push", "--force", "-c", &file, &fewer]);
    assert!(pushed.contains("has 4 pieces now") && pushed.ends_with("exit code 0"), "{pushed}");
}

#[test]
fn a_push_from_a_pipe_writes_no_file() {
    let folder = Folder::new();
    let file = folder.file("tollgate.yaml", format!("{}{RULES}", own(&folder)));
    assert!(told(&folder, &["rules", "push", "-c", &file]).ends_with("exit code 0"));
    let pulled = String::from_utf8(tollgate(&["rules", "pull", "-c", &file], "").stdout).unwrap();
    let pushed = tollgate(&["rules", "push", "-c", &file, "-"], &pulled.replace("limit: 5", "limit: 6"));
    assert!(pushed.status.success(), "{pushed:?}");
    assert!(!fs::exists("-").unwrap());
    let now = told(&folder, &["rules", "pull", "-c", &file]);
    assert!(now.contains("limit: 6"), "{now}");
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
