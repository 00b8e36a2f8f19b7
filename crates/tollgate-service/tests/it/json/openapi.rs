//! The document and the door say the same.

use super::stage::{Told, memory};
use serde_json::{Value, json};
use std::{fs, path::PathBuf};
use tollgate_service::openapi;

fn document() -> Value {
    serde_json::from_slice(&openapi()).expect("JSON")
}

/// The schema under this pointer.
fn validator(document: &Value, schema: &Value) -> jsonschema::Validator {
    let whole = json!({ "allOf": [schema], "components": document["components"] });
    jsonschema::draft202012::new(&whole).expect("a schema")
}

fn resolved<'d>(document: &'d Value, value: &'d Value) -> &'d Value {
    match value["$ref"].as_str() {
        Some(pointer) => document.pointer(&pointer[1..]).unwrap_or_else(|| panic!("there is no {pointer}")),
        None => value,
    }
}

/// That an answer is one of those the document tells of.
fn check_answer(document: &Value, operation: &Value, asked: &str, told: &Told) {
    let answer = &operation["responses"][told.status.to_string()];
    assert!(!answer.is_null(), "{asked}: {} is not in the document: {told:?}", told.status);
    let answer = resolved(document, answer);
    let Some(content) = answer["content"].as_object() else {
        return assert_eq!(told.body, "", "{asked}");
    };
    let schema = &content[told.header("content-type").expect("a type")]["schema"];
    let body = told.json();
    if let Err(error) = validator(document, schema).validate(&body) {
        panic!("{asked}: {error}: {body}");
    }
}

#[test]
fn the_committed_document_is_current() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/openapi-questions.json");
    let expected = openapi();
    if std::env::var_os("BLESS").is_some() {
        fs::write(&path, &expected).expect("written");
    }
    let committed = fs::read(&path).unwrap_or_default();
    let how = "run `BLESS=1 cargo test -p tollgate-service openapi`";
    assert!(committed == expected, "docs/openapi-questions.json is out of date: {how}");
    assert_eq!(document()["info"]["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(document()["openapi"], "3.1.0");
}

#[test]
fn every_schema_is_one() {
    let document = document();
    for (name, schema) in document["components"]["schemas"].as_object().expect("schemas") {
        jsonschema::draft202012::meta::validate(schema).unwrap_or_else(|error| panic!("{name}: {error}"));
        validator(&document, schema);
    }
}

#[test]
fn every_example_is_answered_as_the_document_says() {
    let (stage, _) = memory();
    let document = document();
    let mut sent = 0;
    for (path, operations) in document["paths"].as_object().expect("paths") {
        let operation = &operations["post"];
        let content = &operation["requestBody"]["content"]["application/json"];
        let Some(examples) = content["examples"].as_object() else { continue };
        for (name, example) in examples {
            let asked = format!("{path}: {name}");
            let body = &example["value"];
            if let Err(error) = validator(&document, &content["schema"]).validate(body) {
                panic!("{asked}: {error}");
            }
            // Nobody before has used anything.
            for (limit, key) in [("checkout", "alice"), ("checkout", "bob")] {
                stage.post("/v1/reset", &json!({"limit": limit, "key": key}).to_string());
            }
            let told = stage.post(path, &body.to_string());
            assert!(
                told.status < 300 || (told.status == 429 && told.body.contains("never")),
                "{asked}: {told:?}"
            );
            check_answer(&document, operation, &asked, &told);
            sent += 1;
        }
    }
    assert!(sent > 15, "{sent} examples");
}

#[test]
fn everything_else_is_answered_as_the_document_says() {
    let (stage, _) = memory();
    let document = document();
    let mut client = stage.client();
    for path in ["/v1/limits", "/healthz", "/openapi.json"] {
        let told = client.request("GET", path);
        assert_eq!(told.status, 200);
        check_answer(&document, &document["paths"][path]["get"], path, &told);
    }
    let permit = stage.post("/v1/permits", r#"{"limit":"checkout"}"#).json()["permit"]
        .as_str()
        .expect("a name")
        .to_owned();
    let operations = &document["paths"]["/v1/permits/{permit}"];
    for (method, name, status) in [
        ("PUT", &*permit, 200),
        ("DELETE", &*permit, 204),
        ("DELETE", &*permit, 410),
        ("PUT", &*permit, 410),
        ("PUT", "x", 404),
        ("DELETE", "x", 404),
    ] {
        let told = client.request(method, &format!("/v1/permits/{name}"));
        assert_eq!(told.status, status);
        check_answer(&document, &operations[method.to_lowercase()], method, &told);
    }
    for (path, body) in [
        ("/v1/check", "{}"),
        ("/v1/check", r#"{"limit":"x"}"#),
        ("/v1/check", r#"{"limit":"login","cost":9}"#),
        ("/v1/peek", r#"{"charges":[{"limit":"login","cost":9},{"limit":"one"}]}"#),
        ("/v1/wait", r#"{"limit":"login","cost":9,"up_to_ms":0}"#),
        ("/v1/permits", r#"{"limit":"checkout","cost":9}"#),
        ("/v1/refund", "{}"),
        ("/v1/reset", r#"{"limit":"x"}"#),
    ] {
        let told = stage.post(path, body);
        check_answer(&document, &document["paths"][path]["post"], body, &told);
    }
}
