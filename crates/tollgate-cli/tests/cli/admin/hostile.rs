//! Input that means harm: nothing of it runs, leaks or gets through.

use super::stage::{ENVIRONMENT, Stage};
use serde_json::json;

const SCRIPT: &str = "<script>alert(1)</script>";

#[test]
fn names_with_markup_come_back_as_json_that_no_browser_reads_as_a_page() {
    let stage = Stage::local();
    for _ in 0..5 {
        stage.order(SCRIPT);
    }
    let named = stage.text().replace("name: create", &format!("name: \"{SCRIPT}\""));
    let version = stage.get("/v1/book")["pieces"][0]["version"].clone();
    let changes = json!({ "changes": [{ "change": "edit", "id": 1, "version": version, "text": named }] });
    let told = stage.ask("POST", "/v1/changes", "", Some(&changes));
    assert_eq!(told.status, 200, "{told:?}");
    let encoded = "%3Cscript%3Ealert(1)%3C/script%3E";
    for path in [
        "/v1/top".to_owned(),
        "/v1/rules".to_owned(),
        "/v1/book".to_owned(),
        "/v1/usage".to_owned(),
        format!("/v1/keys?limit=per-client&key={encoded}"),
        format!("/v1/keys?limit={encoded}"),
        format!("/{encoded}"),
        format!("/v1/top?{encoded}=1"),
    ] {
        let told = stage.ask("GET", &path, "", None);
        let kind = told.head.lines().find_map(|line| line.strip_prefix("content-type: ")).unwrap().to_owned();
        assert!(matches!(kind.as_str(), "application/json" | "application/problem+json"), "{path}: {kind}");
        for header in ["x-content-type-options: nosniff", "content-security-policy: default-src 'self'"] {
            assert!(told.head.contains(header), "{path}: {}", told.head);
        }
    }
    let play = json!({ "limit": SCRIPT, "traffic": { "shape": "steady", "rate": 1, "seconds": 1 } });
    assert_eq!(stage.ask("POST", "/v1/play", "", Some(&play)).status, 422);
}

#[test]
fn there_is_no_way_out_of_the_consoles_folder() {
    let stage = Stage::local();
    for path in [
        "/assets/../../../../etc/passwd",
        "/assets/..%2f..%2f..%2fetc%2fpasswd",
        "/assets/%2e%2e/%2e%2e/etc/passwd",
        "/assets/....//....//etc/passwd",
        "/assets//etc/passwd",
        "/assets/%00",
        "/../tollgate.yaml",
        "/assets/..\\..\\tollgate.yaml",
    ] {
        let told = stage.curl("GET", path, &[]);
        assert!(matches!(told.status, 400 | 404), "{path}: {told:?}");
        assert!(!told.body.contains("root:") && !told.body.contains("version: 1"), "{path}: {told:?}");
    }
}

#[test]
fn bodies_that_are_too_long_too_deep_or_nothing_are_refused() {
    let stage = Stage::local();
    let post = |body: &str| {
        let file = stage.folder().join("body");
        std::fs::write(&file, body).unwrap();
        let data = format!("@{}", file.display());
        // No `Expect`, so that it is sent whatever is answered.
        let json = ["-H", "content-type: application/json", "-H", "expect:", "--data-binary", data.as_str()];
        stage.curl("POST", "/v1/changes/check", &json).status
    };
    assert_eq!(post(&format!("{{\"changes\":[],\"x\":\"{}\"}}", "x".repeat(5 * 1024 * 1024))), 413);
    assert_eq!(post(&"[".repeat(100_000)), 400);
    assert_eq!(post(&format!("{{\"changes\":{}", "[".repeat(100_000))), 400);
    assert_eq!(post(""), 400);
    assert_eq!(post("{\"changes\":[]}"), 400);
    assert_eq!(post("{\"changes\":[{\"change\":\"explode\"}]}"), 400);
    assert_eq!(post("\u{0}"), 400);
    let key = json!({ "limit": "per-client", "key": "k".repeat(9000) });
    assert_eq!(stage.ask("POST", "/v1/keys/reset", "", Some(&key)).status, 400);
    let parts = json!({ "limit": "per-client", "key": vec!["k"; 33] });
    assert_eq!(stage.ask("POST", "/v1/keys/reset", "", Some(&parts)).status, 400);
    let text = "a: &a [x,x]\n".to_owned()
        + &(0..30).map(|n| format!("b{n}: &b{n} [*a,*a,*a]\n")).collect::<String>();
    let changes = json!({ "changes": [{ "change": "edit", "id": 1, "version": 0, "text": text }] });
    let told = stage.ask("POST", "/v1/changes/check", "", Some(&changes));
    assert_eq!(told.status, 200, "a text that unfolds without end is a mistake like others");
    assert!(!told.json()["mistakes"].as_array().unwrap().is_empty());
}

/// A token that is shown, wrong or right, is in no answer and no log; what a file hides from viewers they do not see.
#[test]
fn secrets_are_in_no_log_no_error_and_no_page() {
    let stage = Stage::guarded();
    let wrong = format!("{}0", stage.admin);
    let mut told = Vec::new();
    for token in [stage.viewer.as_str(), &wrong, ""] {
        for path in [
            "/v1/me",
            "/v1/book",
            "/v1/overview",
            "/v1/audit",
            "/v1/rules",
            "/metrics",
            "/readyz",
            "/v1/nodes",
        ] {
            told.push(stage.ask("GET", path, token, None).body);
        }
        let login = json!({ "token": token });
        told.push(stage.ask("POST", "/v1/login", token, Some(&login)).body);
        told.push(stage.ask("POST", "/v1/login", token, Some(&json!([token]))).body);
        told.push(stage.ask("POST", &format!("/v1/play?token={token}"), token, Some(&json!(token))).body);
    }
    let hash = stage.text().split("sha256:").nth(1).unwrap()[..64].to_owned();
    for text in told.iter().chain([&stage.opened.log()]) {
        for secret in [&stage.viewer, &stage.operator, &stage.admin, &hash] {
            assert!(!text.contains(secret.as_str()), "{text}");
        }
    }
    let mine = stage.ask("GET", "/v1/book", &stage.admin, None);
    assert!(mine.body.contains(&hash), "who may change the file sees it as it is");
    let theirs = stage.get("/v1/book")["pieces"][0]["text"].as_str().unwrap().to_owned();
    assert!(theirs.contains("sha256:(not shown)") && theirs.contains("per-client"), "{theirs}");

    // A file that is not in force, for its store takes a restart.
    let store = "store: { url: \"redis-sentinel://h/primary?sentinel-password=hunter2\" }\n";
    std::fs::write(&stage.file, stage.text() + store).unwrap();
    let theirs = stage.ask("GET", "/v1/book", &stage.viewer, None).body;
    assert!(!theirs.contains("hunter2") && theirs.contains("redis-sentinel://h/primary?"), "{theirs}");
}

/// What conditions have from the environment is shown by its name, however it is cut and escaped.
#[test]
fn conditions_keep_what_they_have_from_the_environment() {
    let stage = Stage::guarded();
    let rule = |name: &str, when: &str| {
        format!(
            "  - {{ name: {name}, when: {{ header.x-key: {when} }}, \
             limits: [ {{ token_bucket: {{ rate: 1/s, burst: 1 }}, key: [ip] }} ] }}\n"
        )
    };
    let rules: String = ENVIRONMENT
        .iter()
        .flat_map(|(name, _)| {
            let value = format!("\"${{{name}}}\"");
            [
                rule(&format!("{name}-1"), &value),
                rule(&format!("{name}-2"), &format!("{{ prefix: {value} }}")),
                rule(&format!("{name}-3"), &format!("[ other, \"{}${{{name}}}\" ]", "x".repeat(70))),
            ]
        })
        .collect();
    let text = stage.text().replace("everywhere:\n", &format!("everywhere:\n{rules}"));
    let version = stage.get("/v1/book")["pieces"][0]["version"].clone();
    let changes = json!({ "changes": [{ "change": "edit", "id": 1, "version": version, "text": text }] });
    let told = stage.ask("POST", "/v1/changes", &stage.admin, Some(&changes));
    assert_eq!(told.status, 200, "{told:?}");

    let asked = json!({ "path": "/orders/1", "headers": { "x-key": "another" } });
    let pages = [
        stage.ask("POST", "/v1/explain", &stage.viewer, Some(&json!({ "path": "/orders/1" }))),
        stage.ask("POST", "/v1/explain", &stage.viewer, Some(&asked)),
        stage.ask("GET", "/v1/rules", &stage.viewer, None),
    ];
    for page in pages {
        assert_eq!(page.status, 200, "{page:?}");
        assert!(!page.body.contains("s3cret"), "{}", page.body);
        for (name, _) in ENVIRONMENT {
            assert!(page.body.matches(&format!("${{{name}}}")).count() >= 2, "{}", page.body);
        }
    }
}
