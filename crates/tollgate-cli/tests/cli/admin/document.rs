//! The document and the server say the same.

use super::stage::{Stage, Told, document, operations};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// That an answer is one of those the document tells of.
fn check(document: &Value, operation: &Value, asked: &str, told: &Told) {
    let answer = &operation["responses"][told.status.to_string()];
    assert!(!answer.is_null(), "{asked}: {} is not in the document: {told:?}", told.status);
    let answer = match answer["$ref"].as_str() {
        Some(pointer) => document.pointer(&pointer[1..]).unwrap(),
        None => answer,
    };
    let Some(content) = answer["content"].as_object() else {
        return assert_eq!(told.body, "", "{asked}");
    };
    let kind = told.head.lines().find_map(|line| line.strip_prefix("content-type: ")).unwrap();
    let schema =
        &content.get(kind).unwrap_or_else(|| panic!("{asked}: {kind} is not in the document"))["schema"];
    if kind.contains("json") {
        let whole = json!({ "allOf": [schema], "components": document["components"] });
        let validator = jsonschema::draft202012::new(&whole).unwrap();
        let errors: Vec<_> = validator.iter_errors(&told.json()).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{asked}: {errors:?}: {}", told.body);
    }
}

/// The query of an operation's examples.
fn query(operation: &Value) -> String {
    let parameters = operation["parameters"].as_array().into_iter().flatten();
    let pairs = parameters.filter_map(|parameter| {
        let name = parameter["name"].as_str()?;
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        match parameter.get("example")? {
            Value::Array(values) => {
                let pairs = values.iter().map(|value| format!("{name}={}", text(value)));
                Some(pairs.collect::<Vec<_>>().join("&"))
            }
            value => Some(format!("{name}={}", text(value))),
        }
    });
    pairs.collect::<Vec<_>>().join("&")
}

#[test]
fn every_example_is_answered_as_the_document_says() {
    let (stage, document) = (Stage::guarded(), document());
    assert_eq!(document["info"]["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(stage.get("/v1/openapi.json"), document);
    let mut asked = 0;
    for (method, path, says) in operations(&document) {
        // Told live for ever; tried elsewhere.
        if path == "/v1/events" {
            continue;
        }
        let examples = says["requestBody"]["content"]["application/json"]["examples"].as_object();
        let bodies: Vec<Option<&Value>> = match examples {
            Some(examples) => examples.values().map(|example| Some(&example["value"])).collect(),
            None => vec![None],
        };
        for body in bodies {
            let url = match query(says) {
                none if none.is_empty() => path.to_owned(),
                query => format!("{path}?{query}"),
            };
            let name = format!("{method} {url} {body:?}");
            let told = stage.ask(&method, &url, &stage.admin, body);
            // Nobody's token is in the document.
            let expected = if path == "/v1/login" { 401..402 } else { 200..300 };
            assert!(expected.contains(&told.status), "{name}: {told:?}");
            check(&document, says, &name, &told);
            asked += 1;
        }
    }
    assert!(asked > 30, "{asked}");
}

#[test]
fn every_schema_is_one_and_every_reference_leads_somewhere() {
    let document = document();
    for (name, schema) in document["components"]["schemas"].as_object().unwrap() {
        jsonschema::draft202012::meta::validate(schema).unwrap_or_else(|error| panic!("{name}: {error}"));
    }
    let text = document.to_string();
    for reference in text.split("\"$ref\":\"#").skip(1) {
        let pointer = reference.split('"').next().unwrap();
        assert!(document.pointer(pointer).is_some(), "{pointer}");
    }
}

#[test]
fn the_document_has_every_page_and_no_other() {
    let (stage, document) = (Stage::local(), document());
    let told = stage.ask("GET", "/nowhere", "", None).json()["detail"].as_str().unwrap().to_owned();
    let listed = told.strip_prefix("there are ").unwrap().replace(" and ", ", ");
    // The console's own pages are no API.
    let is_of_the_api =
        |path: &&str| path.starts_with("/v1/") || ["/healthz", "/readyz", "/metrics"].contains(path);
    let listed: BTreeSet<&str> = listed.split(", ").filter(is_of_the_api).collect();
    let described: BTreeSet<&str> =
        document["paths"].as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(listed, described);
}

/// Whoever lacks the role does nothing, whatever the operation; whoever has it is let through to it.
#[test]
fn nobody_does_what_their_role_does_not_allow() {
    let (stage, document) = (Stage::guarded(), document());
    let order = ["nobody", "viewer", "operator", "admin"];
    let rank = |role: &str| order.iter().position(|known| *known == role).unwrap();
    let before = stage.text();
    for (method, path, says) in operations(&document) {
        let needs = rank(says["x-role"].as_str().unwrap());
        // Nothing that could be obeyed: a body that makes no sense is refused after the role is asked for.
        let nonsense = json!({ "nonsense": true });
        let body = says.get("requestBody").map(|_| &nonsense);
        let tokens = [("nobody", ""), ("viewer", &stage.viewer), ("operator", &stage.operator)];
        for (role, token) in tokens {
            if path == "/v1/events" && rank(role) >= needs {
                continue;
            }
            let told = stage.ask(&method, path, token, body);
            let name = format!("{method} {path} as {role}: {told:?}");
            let is_let_in = path == "/v1/login" || !matches!(told.status, 401 | 403);
            assert_eq!(is_let_in, rank(role) >= needs, "{name}");
            if !is_let_in {
                assert_eq!(told.status, if role == "nobody" { 401 } else { 403 }, "{name}");
            }
        }
    }
    assert_eq!(stage.text(), before, "nothing was changed");
}
