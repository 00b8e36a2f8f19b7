//! Rules in a database, served: a row changed by hand is in force on every node; what is broken, or away, changes nothing.

use crate::{
    folder::Folder,
    replay::{start, tollgate},
    serving::Serving,
};
use std::{
    fs,
    io::Read,
    net::TcpListener,
    sync::LazyLock,
    thread,
    time::{Duration, Instant},
};
use testkit::{DatabaseServer, Upstream, eventually};

static MARIADB: LazyLock<DatabaseServer> = LazyLock::new(DatabaseServer::mariadb);

/// What a node has of its own.
fn own(url: &str, more: &str) -> String {
    format!(
        "version: 1\nlisten: {{ gateway: \"127.0.0.1:0\", admin: \"127.0.0.1:0\" }}\nheaders: x-ratelimit\n\
         rules_from: {{ source: \"{url}\", poll: 200ms{more} }}\n"
    )
}

/// Rules that answer requests with so many units left.
pub(crate) fn rules(upstream: &Upstream, burst: u32) -> String {
    format!(
        "upstreams: {{ app: {{ servers: [ \"{}\" ] }} }}\n\
         limits: {{ all: {{ fixed_window: {{ limit: {burst}, window: forever }} }} }}\n\
         routes:\n  - name: app\n    upstream: app\n    rules: [ {{ name: all, limits: [ {{ use: all, key: [] }} ] }} ]\n",
        upstream.url()
    )
}

/// Puts these rules into the database.
fn push(folder: &Folder, url: &str, rules: &str) {
    let file = folder.file("push.yaml", format!("{}{rules}", own(url, "")));
    let pushed = tollgate(&["rules", "push", "--force", "-c", &file], "");
    assert!(pushed.status.success(), "{pushed:?}");
}

fn limit(serving: &Serving) -> String {
    serving.get("/").header("x-ratelimit-limit").unwrap_or("none").to_owned()
}

/// How often a node has looked at the database.
fn looks(serving: &Serving) -> u64 {
    serving.metric("tollgate_rules_looks_total{result=\"ok\"}")
}

fn becomes(serving: &Serving, wanted: &str) {
    eventually(&format!("a limit of {wanted}"), || (limit(serving) == wanted).then_some(()));
}

/// A limit changed by SQL.
fn set_limit(server: &DatabaseServer, url: &str, limit: &str) {
    server.sql(
        url,
        &format!("UPDATE tollgate_pieces SET text = 'fixed_window: {{ limit: {limit}, window: forever }}' WHERE kind = 'limit'"),
    );
}

#[test]
fn a_row_changed_in_mariadb_is_in_force_on_two_gateways() {
    let (upstream, folder, url) = (Upstream::ok(), Folder::new(), MARIADB.fresh());
    push(&folder, &url, &rules(&upstream, 100));
    let file = folder.file("tollgate.yaml", own(&url, ""));
    let nodes = [Serving::start(&file, &[]), Serving::start(&file, &[])];
    for node in &nodes {
        assert_eq!(limit(node), "100");
    }
    for changed in 101..=105_u64 {
        set_limit(&MARIADB, &url, &changed.to_string());
        let begun = Instant::now();
        // One look may have begun before the change; the next is a poll later, and takes it.
        let by: Vec<u64> = nodes.iter().map(|node| looks(node) + 2).collect();
        for (node, by) in nodes.iter().zip(by) {
            eventually("the change to be in force", || {
                let looked = looks(node);
                let is_in_force = limit(node) == changed.to_string();
                assert!(is_in_force || looked < by, "{looked} looks, of which that at {by} had to take it");
                is_in_force.then_some(())
            });
        }
        println!("in force on both after {:?}, polled every 200 ms", begun.elapsed());
    }
    let seen = nodes[0].get("/");
    let left: u32 = seen.header("x-ratelimit-remaining").unwrap().parse().unwrap();
    assert!(left < 100, "what was used before is used: {left}");
    // Both are known there, with what they have in force.
    eventually("both nodes to be told of", || {
        let told = MARIADB
            .sql(&url, "SELECT COUNT(*), COUNT(DISTINCT revision) FROM tollgate_nodes WHERE failure IS NULL");
        (told.trim() == "2\t1").then_some(())
    });

    // The switches, by hand.
    MARIADB.sql(&url, "UPDATE tollgate_pieces SET enabled = 0 WHERE kind = 'rule'");
    nodes.iter().for_each(|node| becomes(node, "none"));
    MARIADB.sql(&url, "UPDATE tollgate_pieces SET enabled = 1 WHERE kind = 'rule'");
    nodes.iter().for_each(|node| becomes(node, "105"));
    MARIADB.sql(&url, "UPDATE tollgate_book SET enabled = 0");
    nodes.iter().for_each(|node| becomes(node, "none"));
    for node in &nodes {
        assert!(!node.log().contains(MARIADB.password()), "{}", node.log());
    }
}

#[test]
fn a_database_without_rules_is_told_of() {
    let folder = Folder::new();
    let url = format!("sqlite://{}/rules.db", folder.path().display());
    let file = folder.file("tollgate.yaml", own(&url, ""));
    let serving = Serving::start(&file, &[]);
    assert_eq!(serving.get("/").status(), 404);
    assert!(serving.log().contains("/rules.db has no rules yet"), "{}", serving.log());
    // Where there are some, there is nothing to say.
    let upstream = Upstream::ok();
    push(&folder, &url, &rules(&upstream, 5));
    becomes(&serving, "5");
    assert!(!Serving::start(&file, &[]).log().contains("no rules yet"));
}

/// A database that was made anew in the place of another, as on a machine whose disk was not mounted.
#[test]
fn a_new_database_takes_no_rule_along() {
    let (upstream, folder) = (Upstream::ok(), Folder::new());
    let path = folder.path().join("rules.db");
    let url = format!("sqlite://{}", path.display());
    push(&folder, &url, &rules(&upstream, 7));
    let cache = folder.path().join("cache.yaml");
    let file = folder.file("tollgate.yaml", own(&url, &format!(", cache: {}", cache.display())));
    let serving = Serving::start(&file, &[]);
    assert_eq!(limit(&serving), "7");
    let kept = fs::read_to_string(&cache).unwrap();

    fs::remove_file(&path).unwrap();
    let gone = || serving.ready().1["components"]["rules_from"].to_string().contains("the file is gone");
    eventually("the file to be missed", || gone().then_some(()));
    let second = Serving::start(&file, &[]);
    assert!(
        second.log().contains("none were ever pushed there") && second.log().contains("from the cache"),
        "{}",
        second.log()
    );
    // Both look at the new one by now, and see nothing in it.
    for node in [&serving, &second] {
        let looked = looks(node);
        eventually("another look", || (looks(node) >= looked + 2).then_some(()));
        assert_eq!(limit(node), "7");
        let told = node.ready().1["components"]["rules"].to_string();
        assert!(told.contains("none were ever pushed there"), "{told}");
    }
    assert_eq!(fs::read_to_string(&cache).unwrap(), kept);
    push(&folder, &url, &rules(&upstream, 8));
    becomes(&serving, "8");
    becomes(&second, "8");
}

#[test]
fn rows_that_a_hand_deletes_are_rules_no_more() {
    let (upstream, folder, url) = (Upstream::ok(), Folder::new(), MARIADB.fresh());
    push(&folder, &url, &rules(&upstream, 7));
    let serving = Serving::start(&folder.file("tollgate.yaml", own(&url, "")), &[]);
    assert_eq!(limit(&serving), "7");
    MARIADB.sql(&url, "DELETE FROM tollgate_pieces");
    eventually("no route to be left", || (serving.get("/").status() == 404).then_some(()));
}

/// Neither a server that is not there nor one that says nothing keeps a node from being stopped.
#[test]
fn a_node_that_waits_for_its_database_can_be_stopped() {
    let folder = Folder::new();
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    for address in [closed, silent.local_addr().unwrap()] {
        let file = folder.file("tollgate.yaml", own(&format!("mysql://ann:s3cret@{address}/rules"), ""));
        let mut waiting = start(&["serve", "-c", &file]);
        let mut stderr = waiting.stderr.take().unwrap();
        // It has connected, and hears nothing; or it has found nobody, and said so.
        let _heard = (address != closed).then(|| silent.accept().unwrap());
        if address == closed {
            stderr.read_exact(&mut [0; 16]).unwrap();
        }
        let pid = rustix::process::Pid::from_raw(waiting.id().try_into().unwrap()).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        eventually("the node to end", || waiting.try_wait().unwrap());
        let mut said = String::new();
        stderr.read_to_string(&mut said).unwrap();
        assert!(said.contains("stopped before mysql://ann@127.0.0.1") && !said.contains("s3cret"), "{said}");
    }
}

#[test]
fn a_broken_row_changes_nothing_and_is_named() {
    let (upstream, folder, url) = (Upstream::ok(), Folder::new(), MARIADB.fresh());
    push(&folder, &url, &rules(&upstream, 100));
    let serving = Serving::start(&folder.file("tollgate.yaml", own(&url, "")), &[]);
    set_limit(&MARIADB, &url, "0");
    let told = eventually("the failure", || {
        let (status, told) = serving.ready();
        assert_eq!(status, 200);
        Some(told["components"]["rules"].clone()).filter(|rules| rules["state"] == "ailing")
    });
    let failure = &told["last_failure"];
    assert_eq!(failure["mistakes"][0]["path"], "limit all: fixed_window.limit", "{told}");
    assert_eq!(limit(&serving), "100");
    eventually("the failure among the nodes", || {
        let failed = MARIADB.sql(&url, "SELECT failure FROM tollgate_nodes");
        failed.contains("limit all: fixed_window.limit: must be greater than zero").then_some(())
    });
    // The switch counts all the same, and everything does once the row is right.
    MARIADB.sql(&url, "UPDATE tollgate_book SET enabled = 0");
    becomes(&serving, "none");
    MARIADB.sql(&url, "UPDATE tollgate_book SET enabled = 1");
    becomes(&serving, "100");
    set_limit(&MARIADB, &url, "102");
    becomes(&serving, "102");
    eventually("to be well", || (serving.ready().1["components"]["rules"]["state"] == "well").then_some(()));
    assert_eq!(
        serving.log().matches("must be greater than zero").count(),
        3,
        "told once a change: {}",
        serving.log()
    );
    // Likewise where a row is none that anybody knows, and by whatever hand.
    MARIADB.sql(&url, "UPDATE tollgate_pieces SET kind = 'rool' WHERE kind = 'rule'");
    eventually("the row to be named", || serving.log().contains("kind: must be one of").then_some(()));
    MARIADB.sql(&url, "UPDATE tollgate_book SET enabled = 0");
    becomes(&serving, "none");
    let (status, told) = ask(&serving, "PUT", "/v1/switch", r#"{"enabled":true}"#);
    assert_eq!((status.as_str(), limit(&serving).as_str()), ("200", "102"), "{told}");
    let (status, told) =
        ask(&serving, "PUT", "/v1/switch/rule", r#"{"route":"app","rule":"gone","enabled":true}"#);
    assert_eq!(status, "404", "{told}");
    let (status, told) = ask(&serving, "GET", "/v1/book", "");
    assert_eq!(status, "200", "what there is can be looked at: {told}");
    MARIADB.sql(&url, "UPDATE tollgate_pieces SET kind = 'rule' WHERE kind = 'rool'");
    eventually("to be well", || (serving.ready().1["components"]["rules"]["state"] == "well").then_some(()));
    assert_eq!(limit(&serving), "102");
}

#[test]
fn what_is_undone_beside_the_switch_is_in_force_again() {
    let (upstream, folder, url) = (Upstream::ok(), Folder::new(), MARIADB.fresh());
    push(&folder, &url, &rules(&upstream, 100));
    let serving = Serving::start(&folder.file("tollgate.yaml", own(&url, "")), &[]);
    let both = |limit: u32, enabled: u32| {
        let text = format!("fixed_window: {{ limit: {limit}, window: forever }}");
        let rows = format!(
            "START TRANSACTION; UPDATE tollgate_pieces SET text = '{text}' WHERE kind = 'limit'; \
             UPDATE tollgate_book SET enabled = {enabled}; COMMIT"
        );
        MARIADB.sql(&url, &rows);
    };
    both(102, 1);
    becomes(&serving, "102");
    both(0, 0);
    becomes(&serving, "none");
    // Nothing is counted up: everything is as it was.
    both(102, 1);
    becomes(&serving, "102");
    eventually("to be well", || (serving.ready().1["components"]["rules"]["state"] == "well").then_some(()));
}

#[test]
fn a_file_that_is_taken_mends_no_row() {
    let (upstream, folder, url) = (Upstream::ok(), Folder::new(), MARIADB.fresh());
    push(&folder, &url, &rules(&upstream, 100));
    let file = folder.file("tollgate.yaml", own(&url, ""));
    let serving = Serving::start(&file, &[]);
    set_limit(&MARIADB, &url, "0");
    let ailing = || {
        let told = serving.ready().1["components"]["rules"].to_string();
        told.contains("limit all: fixed_window.limit").then_some(())
    };
    eventually("the failure", ailing);
    fs::write(&file, own(&url, "").replace("headers: x-ratelimit", "headers: none")).unwrap();
    becomes(&serving, "none");
    eventually("the failure again", ailing);
}

#[test]
fn a_database_that_stops_takes_no_rule_along() {
    let server = DatabaseServer::postgres();
    let (upstream, folder, url) = (Upstream::ok(), Folder::new(), server.fresh());
    push(&folder, &url, &rules(&upstream, 100));
    let cache = folder.path().join("cache.yaml").display().to_string();
    let file = folder.file("tollgate.yaml", own(&url, &format!(", cache: {cache}")));
    let serving = Serving::start(&file, &[]);
    assert_eq!(limit(&serving), "100");
    server.stop();
    let told = eventually("the database to be missed", || {
        let (status, told) = serving.ready();
        assert_eq!(status, 200, "rules are in force");
        Some(told["components"]["rules_from"].clone()).filter(|from| from["state"] == "ailing")
    });
    assert!(!told.to_string().contains(server.password()), "{told}");
    assert_eq!(limit(&serving), "100");

    // A start without it goes by the cache, and by nothing where there is none.
    let second = Serving::start(&file, &[]);
    assert_eq!(limit(&second), "100");
    assert!(second.log().contains("starting with the last good rules"), "{}", second.log());
    let bare = folder.file("bare.yaml", own(&url, ""));
    let mut waiting = start(&["serve", "-c", &bare]);
    let mut stderr = waiting.stderr.take().unwrap();
    let mut said = String::new();
    while !said.contains("waiting for it: nothing is opened without rules") {
        let mut some = [0; 256];
        let read = stderr.read(&mut some).unwrap();
        assert!(read > 0, "{said}");
        said.push_str(&String::from_utf8_lossy(&some[..read]));
    }
    assert!(!said.contains(server.password()), "{said}");

    server.restart();
    set_limit(&server, &url, "101");
    becomes(&serving, "101");
    becomes(&second, "101");
    eventually("all to be well", || serving.ready().1["components"]["rules_from"].is_null().then_some(()));
    eventually("the one that waited to open", || {
        let mut some = [0; 256];
        let read = stderr.read(&mut some).unwrap();
        said.push_str(&String::from_utf8_lossy(&some[..read]));
        said.contains("gateway ").then_some(())
    });
    waiting.kill().unwrap();
    waiting.wait().unwrap();
    let away = serving.log().matches("does not answer").count();
    assert_eq!(away, 1, "said once: {}", serving.log());
}

#[test]
fn a_changed_file_keeps_the_rules_of_the_database() {
    let (upstream, folder) = (Upstream::ok(), Folder::new());
    let url = format!("sqlite://{}", folder.path().join("rules.db").display());
    push(&folder, &url, &rules(&upstream, 100));
    let file = folder.file("tollgate.yaml", own(&url, ""));
    let serving = Serving::start(&file, &[]);
    assert_eq!(limit(&serving), "100");
    fs::write(&file, own(&url, "").replace("headers: x-ratelimit", "headers: none")).unwrap();
    becomes(&serving, "none");
    fs::write(&file, format!("{}limits: {{}}\n", own(&url, ""))).unwrap();
    eventually("the failure", || {
        let told = serving.ready().1["components"]["rules"].to_string();
        told.contains("move it there with `tollgate rules push`").then_some(())
    });
    // A rule that is taken meanwhile does not mend the file.
    let (status, told) =
        ask(&serving, "PUT", "/v1/switch/rule", r#"{"route":"app","rule":"all","enabled":false}"#);
    assert_eq!(status, "200", "{told}");
    for _ in 0..3 {
        // The database is asked several times meanwhile.
        thread::sleep(Duration::from_millis(500));
        let told = serving.ready().1["components"]["rules"].to_string();
        assert!(told.contains("move it there with `tollgate rules push`"), "{told}");
    }
    let (status, told) =
        ask(&serving, "PUT", "/v1/switch/rule", r#"{"route":"app","rule":"all","enabled":true}"#);
    assert_eq!(status, "200", "{told}");
    fs::write(&file, own(&url, "")).unwrap();
    becomes(&serving, "100");
    eventually("to be well", || (serving.ready().1["components"]["rules"]["state"] == "well").then_some(()));
    fs::write(&file, own(&url, ", table: t_ratelimite_conf")).unwrap();
    eventually("the other failure", || {
        let told = serving.ready().1["components"]["rules"].to_string();
        told.contains("rules_from: was changed, which takes a restart").then_some(())
    });
}

#[test]
fn a_table_of_another_program_is_limits_and_rules() {
    let (upstream, folder, url) = (Upstream::ok(), Folder::new(), MARIADB.fresh());
    // As that program's own statement makes it.
    MARIADB.sql(
        &url,
        "CREATE TABLE t_ratelimite_conf (configId INT(11) NOT NULL AUTO_INCREMENT, channelType VARCHAR(24) NULL, \
         interfaceNo VARCHAR(24) NULL, interfaceUrl VARCHAR(128) NULL, rateLimit INT(11) NULL, cache FLOAT(3, 2) NULL, \
         status TINYINT(1) DEFAULT 0 NOT NULL, lastModifyTime datetime DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP, \
         PRIMARY KEY (configId)); \
         INSERT INTO t_ratelimite_conf (interfaceUrl, rateLimit, cache, status) VALUES ('/AirAvail', 3, 0, 1), ('/Off', 1, 0, 0)",
    );
    let file = format!(
        "{}upstreams: {{ app: {{ servers: [ \"{}\" ] }} }}\nroutes: [ {{ name: app, upstream: app }} ]\n",
        own(&url, ", table: t_ratelimite_conf").replace("admin:", "http: \"127.0.0.1:0\", admin:"),
        upstream.url()
    );
    let file = folder.file("tollgate.yaml", file);
    let serving = Serving::start(&file, &[]);
    let statuses: Vec<_> = (0..6).map(|_| serving.get("/ibe/AirAvail").status()).collect();
    assert!(statuses.starts_with(&[200, 200, 200]) && statuses.contains(&429), "{statuses:?}");
    let ask = |limit: &str| {
        let body = format!("{{\"limit\":\"{limit}\"}}");
        let url = format!("http://{}/v1/check", serving.door("http"));
        crate::served::curl(&["-s", "--json", &body, &url])
    };
    // A door asks for it by name: the bucket is the gateway's. One that is off lets pass.
    assert!(ask("/AirAvail").contains("\"limit\":3"), "{}", ask("/AirAvail"));
    for _ in 0..3 {
        assert!(ask("/Off").contains("\"allow\":true"));
    }
    MARIADB.sql(
        &url,
        "INSERT INTO t_ratelimite_conf (interfaceUrl, rateLimit, status) VALUES ('/AirAvail', 5, 1)",
    );
    let told = eventually("the failure", || {
        let told = serving.ready().1["components"]["rules"].clone();
        (told["state"] == "ailing").then(|| told.to_string())
    });
    assert!(told.contains("row 3 of t_ratelimite_conf (/AirAvail)") && told.contains("row 1 of"), "{told}");
    MARIADB.sql(&url, "UPDATE t_ratelimite_conf SET status = 0 WHERE configId = 1");
    eventually("the other row", || ask("/AirAvail").contains("\"limit\":5").then_some(()));

    // A name that the file has too is refused until the file lets go of it.
    let text = fs::read_to_string(&file).unwrap();
    let more = "limits: { /Mine: { fixed_window: { limit: 9, window: forever } } }\n";
    fs::write(&file, format!("{text}{more}")).unwrap();
    eventually("the file's own limit", || ask("/Mine").contains("\"limit\":9").then_some(()));
    MARIADB
        .sql(&url, "INSERT INTO t_ratelimite_conf (interfaceUrl, rateLimit, status) VALUES ('/Mine', 7, 1)");
    eventually("the failure", || {
        serving.ready().1["components"]["rules"].to_string().contains("/Mine").then_some(())
    });
    fs::write(&file, &text).unwrap();
    eventually("the row", || ask("/Mine").contains("\"limit\":7").then_some(()));
}

/// A request that changes something, and its status and body.
fn ask(serving: &Serving, method: &str, page: &str, body: &str) -> (String, String) {
    let url = format!("http://{}{page}", serving.admin);
    let told = crate::served::curl(&["-s", "-X", method, "--json", body, "-w", "\n%{http_code}", &url]);
    let (body, status) = told.rsplit_once('\n').unwrap();
    (status.to_owned(), body.to_owned())
}

#[test]
fn nodes_that_share_a_redis_are_told_at_once() {
    let (upstream, folder, redis) = (Upstream::ok(), Folder::new(), testkit::RedisServer::start());
    let url = format!("sqlite://{}", folder.path().join("rules.db").display());
    push(&folder, &url, &rules(&upstream, 100));
    // So seldom that only a message can be what tells them.
    let own = own(&url, "").replace("poll: 200ms", "poll: 1h");
    let file = folder.file("tollgate.yaml", format!("{own}store: {{ url: \"{}\" }}\n", redis.url()));
    let [one, other] = [Serving::start(&file, &[]), Serving::start(&file, &[])];
    eventually("both to listen", || {
        let listening = redis.command(&["PUBSUB", "NUMPAT"]).integer() == 0;
        let channel = format!("tollgate:rules:{url}");
        let told = redis.command(&["PUBSUB", "NUMSUB", &channel]).done();
        (listening && told.items()[1].integer() == 2).then_some(())
    });
    assert_eq!([limit(&one), limit(&other)], ["100", "100"]);
    let (status, told) = ask(&one, "PUT", "/v1/switch", r#"{"enabled":false}"#);
    assert_eq!(status, "200", "{told}");
    assert_eq!(limit(&one), "none", "in force when it is answered");
    becomes(&other, "none");
    let (status, told) =
        ask(&other, "PUT", "/v1/switch/rule", r#"{"route":"app","rule":"all","enabled":false}"#);
    assert_eq!(status, "200", "{told}");
    let (status, told) = ask(&other, "PUT", "/v1/switch", r#"{"enabled":true}"#);
    assert_eq!(status, "200", "{told}");
    let (status, told) =
        ask(&one, "PUT", "/v1/switch/rule", r#"{"route":"app","rule":"all","enabled":true}"#);
    assert_eq!(status, "200", "{told}");
    for node in [&one, &other] {
        becomes(node, "100");
    }
}

#[test]
fn a_change_through_one_node_is_in_force_on_both_and_in_the_audit() {
    let (upstream, folder, url) = (Upstream::ok(), Folder::new(), MARIADB.fresh());
    push(&folder, &url, &rules(&upstream, 100));
    let file = folder.file("tollgate.yaml", own(&url, ""));
    let [one, other] = [Serving::start(&file, &[]), Serving::start(&file, &[])];
    let id = MARIADB.sql(&url, "SELECT id FROM tollgate_pieces WHERE kind = 'limit'").trim().to_owned();
    let edit = |limit: u32| {
        let text = format!("fixed_window: {{ limit: {limit}, window: forever }}");
        format!(r#"{{"changes":[{{"change":"edit","id":{id},"version":1,"text":"{text}"}}]}}"#)
    };
    let (status, told) = ask(&one, "POST", "/v1/changes", &edit(0));
    assert_eq!(status, "422", "{told}");
    let (status, told) = ask(&one, "POST", "/v1/changes", &edit(150));
    assert_eq!(status, "200", "{told}");
    assert_eq!(limit(&one), "150", "in force when it is answered");
    becomes(&other, "150");
    let (status, told) = ask(&other, "POST", "/v1/changes", &edit(160));
    assert_eq!(status, "409", "made on what is gone: {told}");
    assert_eq!(limit(&other), "150");
    let entries =
        MARIADB.sql(&url, "SELECT done_by, action, about FROM tollgate_audit WHERE action = 'edit'");
    assert_eq!(entries.trim(), "local\tedit\tlimit all");
    for told in [one.log(), other.log(), told] {
        assert!(!told.contains(MARIADB.password()), "{told}");
    }
}
