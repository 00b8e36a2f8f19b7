//! The schema, the reference and the reader say the same.

use crate::{
    example::{EXAMPLE, environment},
    yaml::json,
};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::{collections::BTreeSet, fs, path::PathBuf, sync::LazyLock};
use tollgate_rules::{json_schema, parse_rules, reference};

static SCHEMA: LazyLock<Value> = LazyLock::new(|| serde_json::from_str(&json_schema()).unwrap());
static VALIDATOR: LazyLock<jsonschema::Validator> =
    LazyLock::new(|| jsonschema::draft202012::new(&SCHEMA).unwrap());

/// Where a file of the repository is.
pub(crate) fn repository(file: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").join(file)
}

/// That a committed file is what the code says. With `BLESS=1` it is made so.
fn check_committed(file: &str, expected: &str) {
    let path = repository(file);
    if std::env::var_os("BLESS").is_some() {
        fs::write(&path, expected).unwrap();
    }
    let committed = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        committed == expected,
        "{file} is out of date: run `BLESS=1 cargo test -p tollgate-rules schema`"
    );
}

/// JSON is YAML, so the reader takes it.
fn is_read(file: &Value) -> bool {
    parse_rules(&file.to_string(), environment).is_ok()
}

#[test]
fn the_committed_schema_is_current() {
    check_committed("docs/tollgate.schema.json", &json_schema());
}

#[test]
fn the_committed_reference_is_current() {
    check_committed("docs/reference.md", &reference());
}

#[test]
fn the_schema_is_one() {
    jsonschema::draft202012::meta::validate(&SCHEMA).unwrap();
}

/// The keys of every definition of the schema, as the reference writes them.
fn keys_of_schema() -> BTreeSet<(String, String)> {
    let mut keys = BTreeSet::new();
    for (name, definition) in SCHEMA["$defs"].as_object().unwrap() {
        let of =
            |field: &str| definition[field].as_object().into_iter().flatten().map(|(key, _)| key.clone());
        let families = of("patternProperties").map(|key| {
            let beginning = key.trim_start_matches('^').trim_end_matches('.').replace('\\', "");
            format!("{beginning}.NAME")
        });
        keys.extend(of("properties").chain(families).map(|key| (name.clone(), key)));
    }
    keys
}

#[test]
fn the_reference_has_every_key_and_no_other() {
    let mut listed = BTreeSet::new();
    let mut section = String::new();
    for line in fs::read_to_string(repository("docs/reference.md")).unwrap().lines() {
        if let Some(name) = line.strip_prefix("## ") {
            section = name.to_owned();
        } else if let Some(row) = line.strip_prefix("| `") {
            let (key, rest) = row.split_once('`').unwrap();
            assert_eq!(rest.matches(" | ").count(), 3, "{line}");
            assert!(!rest.ends_with(" |  |"), "nothing is said of {section}.{key}");
            assert!(listed.insert((section.clone(), key.to_owned())), "{section}.{key} stands there twice");
        }
    }
    assert_eq!(listed, keys_of_schema());
    assert!(listed.len() > 100);
}

#[test]
fn the_examples_of_the_reference_are_valid() {
    let text = fs::read_to_string(repository("docs/reference.md")).unwrap();
    for section in text.split("\n## ").skip(1) {
        let (name, rest) = section.split_once('\n').unwrap();
        let (_, example) = rest.split_once("```yaml\n").unwrap();
        let (example, _) = example.split_once("```").unwrap();
        let schema = json!({ "$ref": format!("#/$defs/{name}"), "$defs": SCHEMA["$defs"] });
        let validator = jsonschema::draft202012::new(&schema).unwrap();
        let mut example = json(example);
        // Written as three dots, since nobody should copy one.
        if name == "user" {
            example["token"] = Value::from(format!("sha256:{}", "0".repeat(64)));
        }
        let errors: Vec<_> = validator.iter_errors(&example).map(|error| error.to_string()).collect();
        assert_eq!(errors, [""; 0], "{name}: {example}");
    }
}

#[test]
fn good_files_are_good_for_both() {
    let file = json(EXAMPLE);
    let errors: Vec<_> = VALIDATOR.iter_errors(&file).map(|error| format!("{error}")).collect();
    assert_eq!(errors, [""; 0]);
    assert!(is_read(&file));
    for text in [
        "version: 1",
        "{ version: 1, store: { nodes: \"${VIP_KEY}\" } }",
        "{ version: 1, limits: { a: { leaky_bucket: { rate: 1/s, capacity: 5, delay: none } } } }",
        "{ version: \"${VIP_KEY}\" }",
    ] {
        assert!(VALIDATOR.is_valid(&json(text)), "{text}");
    }
}

#[test]
fn bad_files_are_bad_for_both() {
    for text in [
        "{}",
        "{ version: 2 }",
        "{ version: 1, enabled: perhaps }",
        "{ version: 1, store: { nodes: 0 } }",
        "{ version: 1, limits: { a: {} } }",
        "{ version: 1, limits: { a: { sliding_log: { limit: 5 } } } }",
        "{ version: 1, limits: { a: { sliding_log: { limit: 5, window: 60 } } } }",
        "{ version: 1, limits: { a: { token_bucket: { rate: 5, burst: 5 } } } }",
        "{ version: 1, routes: [{ name: a }] }",
        "{ version: 1, everywhere: [{ name: a, limits: [{ key: [ip] }] }] }",
        "{ version: 1, everywhere: [{ name: a, limits: [{ use: a, key: [ip] }], excess: later }] }",
    ] {
        let file = json(text);
        assert!(!VALIDATOR.is_valid(&file), "{text}");
        assert!(!is_read(&file), "{text}");
    }
}

/// A file with each kind of mapping that has defaults, whose keys stand for `...`.
const WITH_DEFAULTS: [(&str, &str); 24] = [
    ("file", "..."),
    ("rules_from", "rules_from: { source: \"sqlite://rules.db\", ... }"),
    ("listener", "listen: { admin: { address: 127.0.0.1:9000, ... } }"),
    ("store", "store: { ... }"),
    ("log", "log: { ... }"),
    ("telemetry", "telemetry: { otlp: \"http://127.0.0.1:4318\", ... }"),
    ("domains", "domains: { files: [a.yaml], ... }"),
    ("token_bucket", "limits: { a: { token_bucket: { rate: 1/s, burst: 5, ... } } }"),
    ("leaky_bucket", "limits: { a: { leaky_bucket: { rate: 1/s, capacity: 5, ... } } }"),
    ("smooth_bursty", "limits: { a: { smooth_bursty: { rate: 1/s, ... } } }"),
    ("smooth_warming_up", "limits: { a: { smooth_warming_up: { rate: 1/s, warmup: 1s, ... } } }"),
    ("concurrency", "limits: { a: { concurrency: { limit: 1, ... } } }"),
    ("fixed_window", "limits: { a: { fixed_window: { limit: 1, window: 1m, ... } } }"),
    ("bandwidth", "everywhere: [ { name: a, limits: [ { bandwidth: { rate: 1/s, ... } } ] } ]"),
    ("named_limit", "limits: { a: { sliding_log: { limit: 1, window: 1m }, ... } }"),
    ("upstream", "upstreams: { a: { servers: [ \"http://127.0.0.1:1\" ], ... } }"),
    ("server", "upstreams: { a: { servers: [ { url: \"http://127.0.0.1:1\", ... } ] } }"),
    ("health", "upstreams: { a: { servers: [ \"http://127.0.0.1:1\" ], health: { path: /ok, ... } } }"),
    (
        "route",
        "upstreams: { a: { servers: [ \"http://127.0.0.1:1\" ] } }, routes: [ { name: a, upstream: a, ... } ]",
    ),
    (
        "rule",
        "everywhere: [ { name: a, limits: [ { sliding_log: { limit: 1, window: 1m }, key: [] } ], ... } ]",
    ),
    (
        "rule_limit",
        "everywhere: [ { name: a, limits: [ { sliding_log: { limit: 1, window: 1m }, key: [header.a], ... } ] } ]",
    ),
    (
        "header_cost",
        "everywhere: [ { name: a, limits: [ { sliding_log: { limit: 1, window: 1m }, key: [], cost: { header: a, ... } } ] } ]",
    ),
    (
        "reject",
        "everywhere: [ { name: a, limits: [ { sliding_log: { limit: 1, window: 1m }, key: [] } ], excess: { reject: { ... } } } ]",
    ),
    (
        "degrade",
        "everywhere: [ { name: a, limits: [ { sliding_log: { limit: 1, window: 1m }, key: [] } ], excess: { degrade: { ... } } } ]",
    ),
];

#[test]
fn what_is_left_out_is_the_published_default() {
    let published = fs::read_to_string(repository("docs/tollgate.schema.json")).unwrap();
    let published: Value = serde_json::from_str(&published).unwrap();
    let mut checked = 0;
    for (name, definition) in published["$defs"].as_object().unwrap() {
        let written = definition["properties"].as_object().into_iter().flatten().filter_map(|(key, of)| {
            let (_, default) = of["description"].as_str()?.rsplit_once(" Default: ")?;
            let default = default.strip_suffix('.')?;
            // Defaults in words depend on something else.
            let is_value =
                !default.contains(' ') && (name.as_str(), key.as_str()) != ("fixed_window", "time_zone");
            is_value.then(|| (key.clone(), default.to_owned()))
        });
        let written: Vec<(String, String)> = written.collect();
        if written.is_empty() || name == "time" {
            continue;
        }
        let template = WITH_DEFAULTS.iter().find(|(of, _)| of == name);
        let (_, template) = template.unwrap_or_else(|| panic!("{name} has defaults: {written:?}"));
        let read = |keys: &str| {
            let text = format!("{{ version: 1, {} }}", template.replace("...", keys));
            let file = parse_rules(&text, environment).unwrap_or_else(|wrong| panic!("{text}: {wrong}"));
            format!("{file:?} {}", file.store.url)
        };
        let without = read("");
        for (key, default) in written {
            let default = if default.ends_with(':') { format!("{default:?}") } else { default };
            assert_eq!(read(&format!("{key}: {default}")), without, "{name}.{key}");
            checked += 1;
        }
    }
    assert!(checked > 50, "{checked}");
}

/// Every place in a value, as JSON pointers.
fn places(value: &Value, here: String, found: &mut Vec<String>) {
    match value {
        Value::Object(entries) => {
            for (key, value) in entries {
                let key = key.replace('~', "~0").replace('/', "~1");
                places(value, format!("{here}/{key}"), found);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                places(item, format!("{here}/{index}"), found);
            }
        }
        _ => {}
    }
    found.push(here);
}

fn all_places(value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    places(value, String::new(), &mut found);
    found
}

#[test]
fn both_refuse_a_key_that_is_unknown() {
    let file = json(EXAMPLE);
    let mut mappings = 0;
    for place in all_places(&file) {
        let mut changed = file.clone();
        let Some(Value::Object(entries)) = changed.pointer_mut(&place) else { continue };
        // Any word names a header.
        if place == "/telemetry/headers" {
            continue;
        }
        entries.insert("surprise".to_owned(), json!(1));
        assert!(!VALIDATOR.is_valid(&changed), "{place}");
        assert!(!is_read(&changed), "{place}");
        mappings += 1;
    }
    assert!(mappings > 60, "{mappings}");
}

#[test]
fn what_can_be_left_out_for_the_reader_can_for_the_schema() {
    let file = json(EXAMPLE);
    for place in all_places(&file).iter().filter(|place| !place.is_empty()) {
        let mut changed = file.clone();
        let (parent, name) = place.rsplit_once('/').unwrap();
        match changed.pointer_mut(parent).unwrap() {
            Value::Object(entries) => {
                entries.remove(&name.replace("~1", "/").replace("~0", "~"));
            }
            Value::Array(items) => {
                items.remove(name.parse().unwrap());
            }
            _ => continue,
        }
        assert!(!is_read(&changed) || VALIDATOR.is_valid(&changed), "{place}");
    }
}

static PLACES: LazyLock<Vec<String>> = LazyLock::new(|| all_places(&json(EXAMPLE)));

proptest! {
    /// What stands in one place of the file is put into another, or something quite different.
    #[test]
    fn what_the_reader_takes_the_schema_takes(
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), 0..24_usize), 1..4)
    ) {
        let others = [
            json!(null), json!(0), json!(1), json!(-1), json!(1.5), json!(4_294_967_296_u64), json!(true), json!("true"),
            json!(""), json!("x"), json!("${VIP_KEY}"), json!("${GONE}"), json!("10/s"), json!("1m"), json!("5KiB"),
            json!([]), json!({}), json!("none"), json!(["a", 1, true]), json!("/a"),
        ];
        let file = json(EXAMPLE);
        let mut changed = file.clone();
        for (place, from, other) in changes {
            let value = match others.get(other) {
                Some(other) => other.clone(),
                None => file.pointer(&PLACES[from.index(PLACES.len())]).unwrap().clone(),
            };
            if let Some(target) = changed.pointer_mut(&PLACES[place.index(PLACES.len())]) {
                *target = value;
            }
        }
        prop_assert!(!is_read(&changed) || VALIDATOR.is_valid(&changed), "{changed:#}");
    }
}
