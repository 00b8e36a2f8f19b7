//! Requests that could be read in two ways are answered 400 on every path, before anybody is asked who they are.

use crate::{
    access::user,
    site::{Answer, Site},
};
use tollgate_admin::{Access, Line};
use tollgate_rules::model::Role;

async fn get(site: &Site, target: &str, headers: &str) -> Answer {
    site.ask(&format!("GET {target} HTTP/1.1\r\nconnection: close\r\n{headers}\r\n")).await
}

fn assert_refused(answer: &Answer, detail: &str, case: &str) {
    assert_eq!(answer.status, 400, "{case}: {}", answer.body);
    assert!(answer.head.contains("application/problem+json"), "{case}: {}", answer.head);
    assert_eq!(answer.json()["detail"], detail, "{case}");
}

#[tokio::test]
async fn a_host_that_is_none_is_answered_400() {
    let site = Site::open_with(|admin| admin.console()).await;
    let hosts = ["", "a b", "a/../b", "<script>", "[::1", "a,b", "u@a", "localhost/x", "localhost:99999"];
    for path in ["/", "/healthz", "/readyz", "/metrics", "/v1/top", "/nowhere"] {
        for host in hosts {
            let answer = get(&site, path, &format!("host: {host}\r\n")).await;
            assert_refused(&answer, "the request's host is malformed", &format!("{path} {host:?}"));
        }
        assert_refused(&get(&site, path, "").await, "the request names no host", path);
    }
}

#[tokio::test]
async fn an_absolute_target_is_for_http_and_a_host_of_ours() {
    let site = Site::open().await;
    let host = "host: localhost\r\n";
    assert_eq!(get(&site, "http://localhost/v1/me", host).await.status, 200);
    assert_eq!(get(&site, "http://evil.example/v1/me", host).await.status, 403);
    assert_refused(
        &get(&site, "ftp://localhost/v1/me", host).await,
        "the request's target is malformed",
        "ftp",
    );
    let answer = get(&site, "http://u@localhost/v1/me", host).await;
    assert_refused(&answer, "the request's host is malformed", "user information");
}

#[tokio::test]
async fn headers_and_sessions_that_are_read_once_must_not_be_repeated() {
    let (ann, token) = user("ann", Role::Viewer);
    let site = Site::open_with(|admin| admin.access(Access::new(vec![ann], Line::Plain))).await;
    let detail = "the request has Host, Authorization, Content-Type or Content-Length more than once";
    let known = format!("authorization: Bearer {token}\r\n");
    for repeated in [
        format!("host: a\r\n{known}authorization: Bearer x\r\n"),
        format!("host: a\r\nauthorization: Bearer x\r\n{known}"),
        format!("host: a\r\n{known}host: b\r\n"),
        format!("host: a\r\n{known}content-type: application/json\r\ncontent-type: text/plain\r\n"),
    ] {
        assert_refused(&get(&site, "/v1/me", &repeated).await, detail, &repeated);
    }
    let detail = "the request has the cookie tollgate_session more than once";
    for cookies in [
        "cookie: tollgate_session=1; tollgate_session=2\r\n",
        "cookie: tollgate_session=1\r\ncookie: tollgate_session=2\r\n",
    ] {
        assert_refused(&get(&site, "/v1/me", &format!("host: a\r\n{cookies}")).await, detail, cookies);
    }
}

#[tokio::test]
async fn a_query_has_one_meaning() {
    let site = Site::open().await;
    let escape = "the query has a `%` that is not followed by two hexadecimal digits; send a literal percent sign as %25";
    let number = "a number from 1 to 500";
    for (query, detail) in [
        ("n=1&n=2", format!("n is given more than once; it must be {number}")),
        ("n=1&%6e=1", format!("n is given more than once; it must be {number}")),
        ("n=%zz", escape.to_owned()),
        ("n=1%", escape.to_owned()),
        ("n=%ff", "the query is not UTF-8 after decoding".to_owned()),
        ("n=%2531", format!("n must be {number}")),
    ] {
        assert_refused(&get(&site, &format!("/v1/top?{query}"), "host: localhost\r\n").await, &detail, query);
    }
    assert_eq!(get(&site, "/v1/top?n=%31", "host: localhost\r\n").await.status, 200);
}
