//! `tollgate check`, and what serving says of a file or a port that cannot be used.

use crate::{folder::Folder, replay::tollgate};
use insta::assert_snapshot;
use std::net::TcpListener;

/// What a command says, without the folder's name, and its exit code.
fn told(folder: &Folder, args: &[&str]) -> String {
    let ran = tollgate(args, "");
    let text = [ran.stdout, ran.stderr].map(|text| String::from_utf8(text).unwrap()).concat();
    let code = ran.status.code().unwrap();
    format!("{}exit code {code}", text.replace(folder.path().to_str().unwrap(), "DIR"))
}

#[test]
fn a_good_file() {
    let folder = Folder::new();
    let text = "version: 1\nlimits: { a: { concurrency: { limit: 1 } } }\n";
    let good = folder.file("good.yaml", format!("{text}listen: {{ resp: \"127.0.0.1:0\" }}\n"));
    assert_snapshot!(told(&folder, &["check", &good]), @r#"
    DIR/good.yaml: good: 0 routes, 0 rules, 1 named limit, 0 upstreams
    exit code 0
    "#);
    let closed = folder.file("closed.yaml", text);
    assert_snapshot!(told(&folder, &["check", &closed]), @r#"
    DIR/closed.yaml: good: 0 routes, 0 rules, 1 named limit, 0 upstreams
    DIR/closed.yaml: warning: listen: `tollgate serve` needs a listener, such as `listen: { gateway: 127.0.0.1:8080 }`
    exit code 0
    "#);
}

#[test]
fn mistakes_are_all_told_and_counted() {
    let folder = Folder::new();
    let bad = "version: 1\nlimit: {}\nlimits:\n  a: { token_bucket: { rate: 0/s, burst: 5 } }\nroutes:\n  - { name: r, upstream: u }\n";
    let bad = folder.file("bad.yaml", bad);
    assert_snapshot!(told(&folder, &["check", &bad]), @r#"
    DIR/bad.yaml:2:1: limit: is not a known key; did you mean `limits`?
    DIR/bad.yaml:4:30: limits.a.token_bucket.rate: must be greater than zero; read "0/s", expected a rate such as 10/s, 0.5/s or 100/30s
    DIR/bad.yaml:6:26: routes[0].upstream: there is no upstream called "u"; the file has no `upstreams`
    error: DIR/bad.yaml has 3 mistakes
    exit code 1
    "#);
    let one = folder.file("one.yaml", "version: 2\n");
    assert_snapshot!(told(&folder, &["check", &one]), @r#"
    DIR/one.yaml:1:10: version: must be 1, the only version there is; read "2"
    error: DIR/one.yaml has 1 mistake
    exit code 1
    "#);
    let piped = tollgate(&["check", "-"], "version: 1\nlimits: 7\n");
    assert_snapshot!(String::from_utf8(piped.stderr).unwrap(), @r#"
    standard input:2:9: limits: must be a mapping such as `{ per-client: { token_bucket: { rate: 10/s, burst: 100 } } }`; read a single value
    error: standard input has 1 mistake
    "#);
    assert_eq!(piped.status.code(), Some(1));
}

#[test]
fn what_a_store_would_not_take_is_told_by_its_name() {
    let folder = Folder::new();
    let check = |store: &str| {
        let file = folder.file("store.yaml", format!("version: 1\nstore: {store}\n"));
        told(&folder, &["check", &file])
    };
    assert_snapshot!(check("{ url: \"redis://127.0.0.1:6379\", lease: 1ms }"), @r#"
    error: DIR/store.yaml: store.lease must be from 50ms to 5s
    exit code 1
    "#);
    assert!(check("{ url: \"redis://127.0.0.1:99999\" }").contains("store.url: "));
}

#[test]
fn what_is_no_file() {
    let folder = Folder::new();
    let missing = folder.path().join("missing.yaml");
    assert_snapshot!(told(&folder, &["check", missing.to_str().unwrap()]), @r#"
    error: cannot read DIR/missing.yaml: No such file or directory (os error 2)
    exit code 1
    "#);
    assert_snapshot!(told(&folder, &["check", folder.path().to_str().unwrap()]), @r#"
    error: DIR is a directory; name the rule file in it
    exit code 1
    "#);
    let bytes = folder.file("bytes.yaml", b"version: 1\n# \xc3\xa9 \xff\n");
    assert_snapshot!(told(&folder, &["check", &bytes]), @r#"
    error: DIR/bytes.yaml:2:5: must be UTF-8; read the byte 0xff
    exit code 1
    "#);
    assert_eq!(tollgate(&["check"], "").status.code(), Some(2));
}

#[test]
fn serving_without_a_file_shows_one_that_works() {
    let folder = Folder::new();
    let missing = folder.path().join("missing.yaml");
    let missing = missing.to_str().unwrap();
    let named = told(&folder, &["serve", "-c", missing]);
    // The option may be left out.
    assert_eq!(told(&folder, &["serve", missing]), named);
    assert_snapshot!(named, @r#"
    error: rule file DIR/missing.yaml does not exist; name one with `tollgate serve -c FILE`

    A small file to start with:
      version: 1
      listen: { gateway: 127.0.0.1:8080, admin: 127.0.0.1:9090 }
      upstreams:
        app: { servers: [ "http://127.0.0.1:3000" ] }
      routes:
        - name: app
          when: { path: /** }
          upstream: app
          rules:
            - name: per-client
              limits: [ { token_bucket: { rate: 10/s, burst: 20 }, key: [ip] } ]

    All keys: docs/reference.md, or `tollgate schema`.
    exit code 1
    "#);
    let (_, shown) = named.split_once("start with:\n").unwrap();
    let (shown, _) = shown.split_once("\n\n").unwrap();
    let shown = folder.file("shown.yaml", shown);
    assert_eq!(tollgate(&["check", &shown], "").status.code(), Some(0));
}

#[test]
fn a_port_that_is_taken() {
    let folder = Folder::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    for listener in ["gateway", "admin"] {
        let file =
            folder.file("taken.yaml", format!("version: 1\nlisten: {{ {listener}: \"{address}\" }}\n"));
        let told = told(&folder, &["serve", "-c", &file]);
        let expected = format!(
            "error: listen.{listener}: {address} is in use already; end what listens there, or name another port\nexit code 1"
        );
        assert_eq!(told, expected);
    }
    let file = folder.file("elsewhere.yaml", "version: 1\nlisten: { gateway: \"192.0.2.1:9090\" }\n");
    assert_snapshot!(told(&folder, &["serve", "-c", &file]), @r#"
    error: listen.gateway: cannot listen on 192.0.2.1:9090: Cannot assign requested address (os error 99)
    exit code 1
    "#);
}
