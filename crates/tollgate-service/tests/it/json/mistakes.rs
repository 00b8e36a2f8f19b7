//! What is told to those who ask wrongly: where it is, and what to do.

use super::stage::memory;

/// Path, body, status, what is said.
const MISTAKES: &[(&str, &str, u16, &str)] = &[
    ("check", "", 400, "the body is not JSON at line 1, column 0: EOF while parsing a value"),
    ("check", "{", 400, "the body is not JSON at line 1, column 1: EOF while parsing an object"),
    ("check", "{\n  limit: 1}", 400, "the body is not JSON at line 2, column 3: key must be a string"),
    ("check", "{} {}", 400, "the body is not JSON at line 1, column 4: trailing characters"),
    (
        "check",
        "[]",
        400,
        "the body must be an object such as {\"limit\":\"per-client\",\"key\":\"alice\",\"cost\":1}; read []",
    ),
    ("check", "{}", 400, "limit: is missing; give the name of a limit, or its definition"),
    ("check", r#"{"limt":"login"}"#, 400, "limt: is not a known field; did you mean \"limit\"?"),
    ("check", r#"{"limit":7}"#, 400, "limit: must be the name of a limit, or its definition; read 7"),
    ("check", r#"{"limit":"login","cots":1}"#, 400, "cots: is not a known field; did you mean \"cost\"?"),
    (
        "check",
        r#"{"limit":"login","up_to_ms":1}"#,
        400,
        "up_to_ms: is not a known field; known are \"limit\", \"key\", \"cost\", \"id\", \"charges\", \"checks\"",
    ),
    ("check", r#"{"limit":"login","limit":"login"}"#, 400, "limit: is given twice; leave one of them"),
    (
        "check",
        r#"{"checks":[{"limit":"login"}],"checks":[]}"#,
        400,
        "checks: is given twice; leave one of them",
    ),
    ("check", r#"{"limit":"login","cost":1,"cost":2}"#, 400, "cost: is given twice; leave one of them"),
    (
        "check",
        r#"{"limit":"login","cost":-1}"#,
        400,
        "cost: must be a whole number from 0 to 4294967295; read -1",
    ),
    (
        "check",
        r#"{"limit":"login","cost":1.5}"#,
        400,
        "cost: must be a whole number from 0 to 4294967295; read 1.5",
    ),
    (
        "check",
        r#"{"limit":"login","cost":4294967296}"#,
        400,
        "cost: must be a whole number from 0 to 4294967295; read 4294967296",
    ),
    (
        "check",
        r#"{"limit":"login","cost":99999999999999999999}"#,
        400,
        "cost: must be a whole number from 0 to 4294967295; read 1e+20",
    ),
    (
        "check",
        r#"{"limit":"login","cost":"1"}"#,
        400,
        "cost: must be a whole number from 0 to 4294967295; read \"1\"",
    ),
    (
        "check",
        r#"{"limit":"login","cost":null}"#,
        400,
        "cost: must be a whole number from 0 to 4294967295; read null",
    ),
    (
        "check",
        r#"{"limit":"login","key":7}"#,
        400,
        "key: must be text, or a list of texts and nulls; left out, it is one bucket for all; read 7",
    ),
    (
        "check",
        r#"{"limit":"login","key":null}"#,
        400,
        "key: must be text, or a list of texts and nulls; left out, it is one bucket for all; read null",
    ),
    (
        "check",
        r#"{"limit":"login","key":["a",7]}"#,
        400,
        "key: must be text, or a list of texts and nulls; left out, it is one bucket for all; read [\"a\",7]",
    ),
    (
        "check",
        r#"{"charges":[["login","a",1]]}"#,
        400,
        "charges[0]: must be an object such as {\"limit\":\"per-client\",\"key\":\"alice\",\"cost\":1}; read [\"login\",\"a\",1]",
    ),
    (
        "check",
        r#"{"limit":{"concurrency":{"limit":1,"limit":2}}}"#,
        400,
        "limit.concurrency.limit: is given twice; leave one of them",
    ),
    (
        "check",
        r#"{"limit":"login","id":""}"#,
        400,
        "id: must be text of 1 to 128 bytes that no other question has; read \"\"",
    ),
    ("check", r#"{"charges":[]}"#, 400, "charges: is empty; there is nothing to ask"),
    ("check", r#"{"charges":{}}"#, 400, "charges: must be a list; read {}"),
    (
        "check",
        r#"{"charges":[7]}"#,
        400,
        "charges[0]: must be an object such as {\"limit\":\"per-client\",\"key\":\"alice\",\"cost\":1}; read 7",
    ),
    (
        "check",
        r#"{"charges":[{"limit":"login"}],"key":"a"}"#,
        400,
        "key: stands beside \"charges\"; put it inside, or leave out \"charges\"",
    ),
    (
        "check",
        r#"{"charges":[{"limit":"login","id":"x"}]}"#,
        400,
        "charges[0].id: is not a known field; known are \"limit\", \"key\", \"cost\"",
    ),
    (
        "check",
        r#"{"charges":[{"limit":"login"},{"limit":"login","cost":-1}]}"#,
        400,
        "charges[1].cost: must be a whole number from 0 to 4294967295; read -1",
    ),
    (
        "check",
        r#"{"checks":[{"limit":"login"},{"charges":[{"limit":"login"},{"limit":"login","cost":0.5}]}]}"#,
        400,
        "checks[1].charges[1].cost: must be a whole number from 0 to 4294967295; read 0.5",
    ),
    (
        "check",
        r#"{"checks":[{"checks":[]}]}"#,
        400,
        "checks[0].checks: is not a known field; known are \"limit\", \"key\", \"cost\", \"id\", \"charges\"",
    ),
    (
        "check",
        r#"{"checks":[{"limit":"login"}],"limit":"login"}"#,
        400,
        "limit: stands beside \"checks\"; put it inside, or leave out \"checks\"",
    ),
    (
        "check",
        r#"{"limit":"logn"}"#,
        404,
        "limit: there is no limit \"logn\"; did you mean \"login\"? (GET /v1/limits lists them)",
    ),
    (
        "check",
        r#"{"checks":[{"limit":"login"},{"charges":[{"limit":"nobody's"}]}]}"#,
        404,
        "checks[1].charges[0].limit: there is no limit \"nobody's\" (GET /v1/limits lists them)",
    ),
    (
        "check",
        r#"{"limit":{}}"#,
        400,
        "limit: names no algorithm, such as `token_bucket: { rate: 10/s, burst: 5 }`; known are `token_bucket`, `leaky_bucket`, `smooth_bursty`, `smooth_warming_up`, `fixed_window`, `sliding_log`, `sliding_window`, `sliding_counter`, `concurrency`, `bandwidth`",
    ),
    (
        "check",
        r#"{"limit":{"token_bucket":{"rate":"0/s","burst":5}}}"#,
        400,
        "limit: token_bucket.rate: must be greater than zero; read \"0/s\", expected a rate such as 10/s, 0.5/s or 100/30s",
    ),
    (
        "check",
        r#"{"limit":{"bandwidth":{"rate":"1KiB/s"}}}"#,
        400,
        "limit: bandwidth paces a body and cannot be checked; name a limit on requests",
    ),
    (
        "check",
        r#"{"limit":"checkout"}"#,
        400,
        "limit: is a concurrency limit, whose slots have to be given back; ask POST /v1/permits",
    ),
    (
        "wait",
        r#"{"limit":"checkout","up_to_ms":1}"#,
        400,
        "limit: is a concurrency limit, whose slots have to be given back; ask POST /v1/permits",
    ),
    ("wait", r#"{"limit":"login"}"#, 400, "up_to_ms: is missing; say how long to wait, such as 1000"),
    (
        "wait",
        r#"{"limit":"login","up_to_ms":600001}"#,
        400,
        "up_to_ms: must be a whole number of milliseconds from 0 to 600000; read 600001",
    ),
    (
        "wait",
        r#"{"limit":"login","up_to_ms":-1}"#,
        400,
        "up_to_ms: must be a whole number of milliseconds from 0 to 600000; read -1",
    ),
    (
        "permits",
        r#"{"limit":"login"}"#,
        400,
        "limit: is not a concurrency limit: it has no slots to hold; ask POST /v1/check",
    ),
    ("refund", r#"{"limit":"login"}"#, 400, "units: is missing; say how many to give back, such as 1"),
    (
        "refund",
        r#"{"limit":"login","units":0}"#,
        400,
        "units: must be a whole number from 1 to 4294967295; read 0",
    ),
    (
        "refund",
        r#"{"charges":[]}"#,
        400,
        "charges: is not a known field; known are \"limit\", \"key\", \"units\"",
    ),
    (
        "reset",
        r#"{"limit":"login","units":1}"#,
        400,
        "units: is not a known field; known are \"limit\", \"key\"",
    ),
    (
        "reset",
        r#"{"limit":"logn"}"#,
        404,
        "limit: there is no limit \"logn\"; did you mean \"login\"? (GET /v1/limits lists them)",
    ),
];

#[test]
fn every_mistake_is_told_with_its_place() {
    let (stage, _) = memory();
    let mut client = stage.client();
    let mut wrong = Vec::new();
    for (path, body, status, said) in MISTAKES {
        let told = client.post(&format!("/v1/{path}"), body);
        if (told.status, told.detail().as_str()) != (*status, *said) {
            wrong.push(format!("{body}\n  {}: {}\n  {status}: {said}", told.status, told.detail()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(stage.remaining("login", ""), 5, "nothing was charged");
}

#[test]
fn the_field_is_told_to_programs_too() {
    let (stage, _) = memory();
    let told = stage.post("/v1/check", r#"{"checks":[{"limit":"login","cost":-1}]}"#).json();
    assert_eq!(told["field"], "checks[0].cost");
    assert_eq!((&told["title"], &told["type"]), (&"Bad Request".into(), &"about:blank".into()));
}

#[test]
fn too_many_at_once_are_refused() {
    let (stage, _) = memory();
    let ask = |list: &str, many: usize| {
        let items = vec![r#"{"limit":"per-client","cost":0}"#; many].join(",");
        stage.post("/v1/check", &format!(r#"{{"{list}":[{items}]}}"#))
    };
    assert_eq!(ask("charges", 64).status, 200);
    assert_eq!(ask("checks", 128).status, 200);
    assert_eq!(ask("charges", 65).detail(), "charges: has 65 items; ask for at most 64 at once");
    assert_eq!(ask("checks", 129).detail(), "checks: has 129 items; ask for at most 128 at once");
}

#[test]
fn nesting_without_end_is_not_followed() {
    let (stage, _) = memory();
    let deep = "[".repeat(100_000);
    let told = stage.post("/v1/check", &format!(r#"{{"limit":"login","key":{deep}"#));
    assert!(told.detail().contains("recursion limit"), "{told:?}");
}

#[test]
fn what_is_not_text_is_told() {
    let (stage, _) = memory();
    for body in [&b"{\"limit\":\"\xff\xfe\"}"[..], b"{\"limit\":\"\\ud800\"}", b"\xff\xfe{\x00}\x00"] {
        let mut client = stage.client();
        let head = format!(
            "POST /v1/check HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        std::io::Write::write_all(client.stream.get_mut(), &[head.as_bytes(), body].concat()).expect("sent");
        assert_eq!(client.told().expect("an answer").status, 400);
    }
}
