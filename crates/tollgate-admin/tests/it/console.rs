//! The console's files: what is there, how it may be kept, and what is not there.
//!
//! Whether `web/dist` was built or not, there is a page; what it shows is tested in a browser, in `web/tests/pages`.

use crate::site::Site;
use std::time::Duration;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    time::timeout,
};
use tollgate_admin::Admin;

async fn site() -> Site {
    Site::open_with(Admin::console).await
}

/// What was told; bodies may be packed, so they are bytes.
struct Told {
    status: u16,
    head: String,
    body: Vec<u8>,
}

impl Told {
    fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.into_iter().find(|(named, _)| *named == name).map(|(_, value)| value)
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

async fn ask(site: &Site, path: &str, more: &str) -> Told {
    let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{more}\r\n");
    let mut stream = site.connect().await;
    stream.write_all(request.as_bytes()).await.expect("it reads");
    let mut answer = Vec::new();
    let read = stream.read_to_end(&mut answer);
    timeout(Duration::from_secs(30), read).await.expect("it closes").expect("it answers");
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n").expect("a head and a body");
    let head = String::from_utf8_lossy(&answer[..end]).to_ascii_lowercase();
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
    Told { status, head, body: answer.split_off(end + 4) }
}

/// The files that the page names.
fn named(page: &str) -> Vec<&str> {
    page.split('"').filter(|part| part.starts_with("/assets/")).collect()
}

#[tokio::test]
async fn every_page_of_the_console_is_the_one_page() {
    let site = site().await;
    let first = ask(&site, "/", "").await;
    assert_eq!(first.status, 200);
    assert_eq!(first.header("content-type"), Some("text/html; charset=utf-8"));
    assert_eq!(first.header("cache-control"), Some("no-cache"));
    let policy = first.header("content-security-policy").expect("a policy");
    assert!(policy.starts_with("default-src 'self'") && !policy.contains("unsafe-eval"), "{policy}");
    assert_eq!(first.header("x-content-type-options"), Some("nosniff"));
    assert_eq!(first.header("referrer-policy"), Some("no-referrer"));
    for page in ["/rules", "/rules/draft", "/rules/history", "/keys", "/playground", "/nodes"] {
        let told = ask(&site, page, "").await;
        assert_eq!((told.status, &told.body), (200, &first.body), "{page}");
    }
    assert_eq!(ask(&site, "/keys?limit=a&key=%3Cscript%3E", "").await.body, first.body);
}

#[tokio::test]
async fn what_is_not_there_is_not_there() {
    let site = site().await;
    let traversals = [
        "/index.html",
        "/rules/other",
        "/assets/",
        "/assets/none.js",
        "/assets/../index.html",
        "/assets/..%2f..%2fCargo.toml",
        "/assets/%2e%2e/%2e%2e/etc/passwd",
        "/assets//etc/passwd",
        "/assets/..\\..\\secret",
        "/.gitignore",
        "//",
    ];
    for path in traversals {
        let told = ask(&site, path, "").await;
        assert!(matches!(told.status, 400 | 404), "{path}: {}", told.status);
        assert!(!told.text().contains("<html"), "{path}");
    }
    let posted = site.post("/", "{}").await;
    assert_eq!(posted.status, 405);
}

#[tokio::test]
async fn what_is_known_is_not_sent_again() {
    let site = site().await;
    let page = ask(&site, "/", "").await;
    let tag = page.header("etag").expect("a tag").to_owned();
    for known in [tag.clone(), format!("W/{tag}"), format!("\"other\", {tag}"), "*".to_owned()] {
        let again = ask(&site, "/", &format!("if-none-match: {known}\r\n")).await;
        assert_eq!((again.status, again.body.len()), (304, 0), "{known}");
        assert_eq!(again.header("etag"), Some(tag.as_str()));
    }
    assert_eq!(ask(&site, "/", "if-none-match: \"other\"\r\n").await.status, 200);
}

#[tokio::test]
async fn files_are_kept_for_ever_and_sent_packed_to_whoever_takes_it() {
    let site = site().await;
    let page = ask(&site, "/", "").await;
    assert_eq!(page.header("content-encoding"), None, "nobody asked for it");
    // None where the console was not built.
    let text = page.text();
    for file in named(&text) {
        let plain = ask(&site, file, "accept-encoding: br, gzip;q=0\r\n").await;
        assert_eq!(plain.status, 200, "{file}");
        assert_eq!(plain.header("content-encoding"), None);
        assert_eq!(plain.header("cache-control"), Some("public, max-age=31536000, immutable"));
        assert_eq!(plain.header("vary"), Some("accept-encoding"));
        let packed = ask(&site, file, "accept-encoding: br, GZIP ; q=0.5\r\n").await;
        assert_eq!(packed.header("content-encoding"), Some("gzip"), "{file}");
        assert_eq!(packed.header("content-type"), plain.header("content-type"));
        assert!(packed.body.len() < plain.body.len(), "{file}");
    }
}

#[tokio::test]
async fn there_is_none_unless_it_is_asked_for() {
    let site = Site::open().await;
    assert_eq!(ask(&site, "/", "").await.status, 404);
}
