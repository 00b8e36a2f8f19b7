//! Who gets in: tokens, sessions, roles, and what other sites' pages are refused.

use crate::site::{Answer, Site};
use serde_json::json;
use tollgate_admin::{Access, Line, Needs, Operation, fresh_token};
use tollgate_rules::{
    model::{Role, User},
    parse_rules,
};

/// A user as a rule file has it, and the token.
pub(crate) fn user(name: &str, role: Role) -> (User, String) {
    let (token, line) = fresh_token().expect("random numbers");
    let role = role.name();
    let file = format!(
        "version: 1\nlisten: {{ admin: {{ address: 127.0.0.1:0, users: [ {{ name: {name}, role: {role}, token: \"{line}\" }} ] }} }}"
    );
    let admin = parse_rules(&file, |_| None).expect("a good file").listen.admin.expect("it is named");
    (admin.users.into_iter().next().expect("one"), token)
}

struct Guarded {
    site: Site,
    access: Access,
    viewer: String,
    admin: String,
}

impl Guarded {
    async fn open(line: Line) -> Self {
        let ((ann, viewer), (bob, admin)) = (user("ann", Role::Viewer), user("bob", Role::Admin));
        let access = Access::new(vec![ann, bob], line);
        let given = access.clone();
        Self { site: Site::open_with(|it| it.access(given)).await, access, viewer, admin }
    }

    async fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        let mut request = format!("{method} {path} HTTP/1.1\r\nconnection: close\r\n");
        if !headers.iter().any(|(name, _)| *name == "host") {
            request.push_str("host: tollgate.example\r\n");
        }
        for (name, value) in headers {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
        request.push_str(&format!("content-length: {}\r\n\r\n{body}", body.len()));
        self.site.ask(&request).await
    }

    async fn login(&self, token: &str) -> Answer {
        let json = [("content-type", "application/json")];
        self.ask("POST", "/v1/login", &json, &json!({ "token": token }).to_string()).await
    }
}

/// The session that a login gave, as a browser sends it back.
fn cookie(answer: &Answer) -> String {
    let line = answer.head.lines().find_map(|line| line.strip_prefix("set-cookie: ")).expect("a cookie");
    line.split(';').next().expect("a pair").to_owned()
}

#[tokio::test]
async fn without_users_whoever_is_on_this_machine_may_do_everything() {
    let site = Site::open().await;
    let me = site.get("/v1/me").await;
    assert_eq!((me.status, me.json()), (200, json!({ "name": "local", "role": "admin", "login": false })));
    let told = site.ask("POST /v1/login HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: 13\r\n\r\n{\"token\":\"x\"}").await;
    assert_eq!(told.status, 409);
}

/// A name that somebody else lets point to this machine is no way in.
#[tokio::test]
async fn without_users_only_addresses_and_localhost_are_hosts() {
    let site = Site::open().await;
    for (host, status) in [
        ("127.0.0.1:9090", 200),
        ("localhost", 200),
        ("LOCALHOST:1", 200),
        ("[::1]:9090", 200),
        ("10.0.0.1", 200),
        ("evil.example", 403),
        ("localhost.evil.example:9090", 403),
        ("127.0.0.1.evil.example", 403),
        ("", 400),
    ] {
        for page in ["/v1/me", "/metrics", "/v1/top"] {
            let answer =
                site.ask(&format!("GET {page} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n")).await;
            assert_eq!(answer.status, status, "{host} {page}");
        }
    }
    let probe = site.ask("GET /healthz HTTP/1.1\r\nhost: tollgate\r\nconnection: close\r\n\r\n").await;
    assert_eq!(probe.status, 200);
}

#[tokio::test]
async fn with_users_everything_but_health_takes_a_token() {
    let guarded = Guarded::open(Line::Plain).await;
    for Operation { method, path, needs } in guarded.site.operations.clone() {
        let answer = guarded.ask(method.as_str(), path, &[("content-type", "application/json")], "{}").await;
        let is_open = needs == Needs::Nobody;
        assert_eq!(answer.status == 401, !is_open, "{method} {path}: {}", answer.status);
        if !is_open {
            assert!(answer.head.contains("\r\nwww-authenticate: bearer"), "{}", answer.head);
        }
    }
    let ready = guarded.ask("GET", "/readyz", &[], "").await;
    assert_eq!(
        (ready.status, ready.json()),
        (200, json!({ "ready": true })),
        "and nothing of files and errors"
    );
    let bearer = format!("Bearer {}", guarded.viewer);
    let me = guarded.ask("GET", "/v1/me", &[("authorization", &bearer)], "").await;
    assert_eq!(me.json(), json!({ "name": "ann", "role": "viewer", "login": true }));
    let ready = guarded.ask("GET", "/readyz", &[("authorization", &bearer)], "").await;
    assert!(ready.json()["components"].is_object());
    let lower = format!("bearer {}", guarded.admin);
    let me = guarded.ask("GET", "/v1/me", &[("authorization", &lower)], "").await;
    assert_eq!(me.json()["role"], "admin");
}

#[tokio::test]
async fn a_session_is_a_cookie_that_no_script_reads_and_ends_with_its_user() {
    let guarded = Guarded::open(Line::Tls).await;
    let login = guarded.login(&guarded.viewer).await;
    assert_eq!((login.status, login.json()["name"].as_str()), (200, Some("ann")));
    for word in ["httponly", "samesite=strict", "secure", "path=/", "max-age=43200"] {
        assert!(login.head.contains(word), "{}", login.head);
    }
    let session = cookie(&login);
    let other = format!("theme=dark; {session}");
    let me = guarded.ask("GET", "/v1/me", &[("cookie", &other)], "").await;
    assert_eq!((me.status, me.json()["name"].as_str()), (200, Some("ann")));

    let out = guarded.ask("POST", "/v1/logout", &[("cookie", &session)], "").await;
    assert_eq!(out.status, 204);
    assert_eq!(guarded.ask("GET", "/v1/me", &[("cookie", &session)], "").await.status, 401);

    let session = cookie(&guarded.login(&guarded.viewer).await);
    let (renewed, _) = user("ann", Role::Viewer);
    guarded.access.replace(vec![renewed]);
    let me = guarded.ask("GET", "/v1/me", &[("cookie", &session)], "").await;
    assert_eq!(me.status, 401, "the token it was had for is nobody's any more");
    let made_up = format!("tollgate_session={}", "0".repeat(64));
    assert_eq!(guarded.ask("GET", "/v1/me", &[("cookie", &made_up)], "").await.status, 401);
}

#[tokio::test]
async fn guessing_is_slow() {
    let guarded = Guarded::open(Line::Plain).await;
    let mut told = Vec::new();
    for guess in 0..11 {
        told.push(guarded.login(&format!("guess {guess}")).await.status);
    }
    assert_eq!(told, [[401; 10].as_slice(), &[429]].concat());
    let right = guarded.login(&guarded.viewer).await;
    assert_eq!(right.status, 429, "who guessed learns nothing more");
    let after = right.head.lines().find_map(|line| line.strip_prefix("retry-after: ")).expect("it says when");
    assert!((1..=10).contains(&after.parse::<u32>().expect("seconds")), "{after}");
    // Programs have more tries, and run out of them too.
    let bearer = [("authorization", "Bearer guess")];
    let mut tries = 0;
    while guarded.ask("GET", "/v1/me", &bearer, "").await.status == 401 {
        tries += 1;
    }
    assert!((100..200).contains(&tries), "{tries}");
}

/// Behind a proxy everybody has the proxy's address, and one who guesses must not lock out the others.
#[tokio::test]
async fn behind_a_proxy_guesses_count_for_whom_the_proxy_names() {
    let guarded = Guarded::open(Line::Proxied).await;
    let ask = async |from: &str, token: &str| {
        let bearer = format!("Bearer {token}");
        let headers = [("x-forwarded-for", from), ("authorization", bearer.as_str())];
        guarded.ask("GET", "/v1/me", &headers, "").await.status
    };
    while ask("1.2.3.4, 9.9.9.9", "guess").await == 401 {}
    assert_eq!(ask("9.9.9.9", &guarded.viewer).await, 429);
    assert_eq!(ask("9.9.9.9, 8.8.8.8", &guarded.viewer).await, 200);
}

/// Somebody with many addresses runs out of tries, and nobody else does.
#[tokio::test]
async fn who_guesses_from_everywhere_locks_nobody_out() {
    let guarded = Guarded::open(Line::Proxied).await;
    let login = async |from: &str, token: &str| {
        let headers = [("x-forwarded-for", from), ("content-type", "application/json")];
        let body = json!({ "token": token }).to_string();
        guarded.ask("POST", "/v1/login", &headers, &body).await.status
    };
    let mut told = Vec::new();
    for address in 0..300 {
        told.push(login(&format!("2001:db8:0:{address:x}::1"), "guess").await);
    }
    assert!(told.starts_with(&[401; 100]) && told.ends_with(&[429]), "{told:?}");
    assert_eq!(login("2001:db8:1::1", &guarded.viewer).await, 200);
}

#[tokio::test]
async fn what_another_sites_page_sends_is_refused() {
    let guarded = Guarded::open(Line::Proxied).await;
    let session = cookie(&guarded.login(&guarded.admin).await);
    for (headers, allowed) in [
        (&[][..], true),
        (&[("origin", "https://tollgate.example"), ("sec-fetch-site", "same-origin")], true),
        (&[("origin", "https://TOLLGATE.example")], true),
        (&[("sec-fetch-site", "none")], true),
        (&[("origin", "https://evil.example")], false),
        (&[("origin", "https://tollgate.example.evil.example")], false),
        (&[("origin", "https://tollgate.example:8443")], false),
        (&[("origin", "null")], false),
        (&[("sec-fetch-site", "cross-site")], false),
        (&[("sec-fetch-site", "same-site")], false),
        (&[("origin", "https://ops.example"), ("x-forwarded-host", "ops.example")], true),
    ] {
        let headers = [&[("cookie", session.as_str())], headers].concat();
        let status = guarded.ask("POST", "/v1/explain", &headers, "{}").await.status;
        assert_eq!(status, if allowed { 200 } else { 403 }, "{headers:?}");
    }
    // A form cannot say that it is JSON.
    for kind in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"] {
        let told = guarded.ask("POST", "/v1/login", &[("content-type", kind)], "{\"token\":\"x\"}").await;
        assert_eq!(told.status, 415, "{kind}");
    }
}

#[tokio::test]
async fn every_answer_tells_browsers_what_not_to_do_and_no_answer_tells_a_token() {
    let guarded = Guarded::open(Line::Plain).await;
    let wrong = json!({ "token": [guarded.viewer] }).to_string();
    let json = [("content-type", "application/json")];
    let bearer = format!("Bearer {}x", guarded.viewer);
    for answer in [
        guarded.ask("GET", "/healthz", &[], "").await,
        guarded.ask("GET", "/nowhere", &[], "").await,
        guarded.ask("GET", "/v1/me", &[("authorization", &bearer)], "").await,
        guarded.ask("POST", "/v1/login", &json, &wrong).await,
        guarded.ask("POST", "/v1/login", &json, &guarded.viewer).await,
        guarded.login(&format!("{}x", guarded.viewer)).await,
    ] {
        for header in [
            "content-security-policy: default-src 'self'",
            "frame-ancestors 'none'",
            "x-content-type-options: nosniff",
            "referrer-policy: no-referrer",
        ] {
            assert!(answer.head.contains(header), "{}", answer.head);
        }
        assert!(!answer.body.contains(&guarded.viewer), "{}", answer.body);
    }
    assert!(!format!("{:?}", guarded.access).contains("sha256"));
}
