//! The shapes as a JSON Schema, draft 2020-12.
//!
//! It accepts everything that the decoder accepts, and rejects unknown keys, missing keys and values of the wrong type. Only
//! the decoder checks constraints between keys. Every value may come from the environment.

use super::{FILE, Key, Kind, Need, Shape};
use serde_json::{Map, Value, json};

/// The JSON Schema of rule files, for completion and checks in editors.
///
/// ```
/// assert!(tollgate_rules::json_schema().contains("\"token_bucket\""));
/// ```
#[must_use]
pub fn json_schema() -> String {
    let shapes = shapes();
    let shapes = shapes.iter().map(|shape| (shape.name.to_owned(), mapping(shape, Presence::Demanded)));
    let mut definitions: Map<String, Value> = shapes.collect();
    let environment = json!({
        "description": "A value from the environment.", "type": "string", "pattern": r"\$\{",
    });
    definitions.insert("environment".to_owned(), environment);
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Tollgate rule file",
        "$ref": "#/$defs/file",
        "$defs": definitions,
    });
    format!("{schema:#}\n")
}

/// Every shape that is reachable from a file, in order of first use.
pub(super) fn shapes() -> Vec<&'static Shape> {
    let mut shapes = Vec::new();
    collect(&FILE, &mut shapes);
    shapes
}

fn collect(shape: &'static Shape, shapes: &mut Vec<&'static Shape>) {
    if shapes.iter().all(|known| known.name != shape.name) {
        shapes.push(shape);
        shape.keys().for_each(|key| collect_kind(&key.kind, shapes));
    }
}

fn collect_kind(kind: &Kind, shapes: &mut Vec<&'static Shape>) {
    match kind {
        Kind::Mapping(shape) => collect(shape, shapes),
        Kind::Named(_, inner) | Kind::List(inner) | Kind::OneOrList(inner) => collect_kind(inner, shapes),
        Kind::Either(kinds) => kinds.iter().for_each(|kind| collect_kind(kind, shapes)),
        _ => {}
    }
}

/// Whether required keys are enforced.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Presence {
    Demanded,
    Waived,
}

fn mapping(shape: &Shape, presence: Presence) -> Value {
    let described = |key: &Key| {
        let about = key.about.trim_end_matches('.');
        let about = match key.need {
            Need::Default(default) | Need::Otherwise(default) => format!("{about}. Default: {default}."),
            Need::Required(_) | Need::Optional => format!("{about}."),
        };
        let mut schema = value(&key.kind);
        schema["description"] = about.into();
        schema
    };
    let (families, plain): (Vec<_>, Vec<_>) = shape.keys().partition(|key| key.family().is_some());
    let properties: Map<_, _> = plain.iter().map(|key| (key.name.to_owned(), described(key))).collect();
    let mut schema = json!({
        "description": shape.about, "type": "object", "properties": properties, "additionalProperties": false,
    });
    if !families.is_empty() {
        let pattern = |key: &&Key| {
            let beginning = key.family().unwrap_or_default().replace('.', "\\.");
            (format!("^{beginning}."), described(key))
        };
        schema["patternProperties"] = families.iter().map(pattern).collect::<Map<_, _>>().into();
    }
    let required = shape.keys().filter(|key| matches!(key.need, Need::Required(_))).map(|key| key.name);
    let required: Vec<_> = required.collect();
    if !required.is_empty() && presence == Presence::Demanded {
        schema["required"] = json!(required);
    }
    if !shape.exactly_one.is_empty() {
        schema["oneOf"] = shape.exactly_one.iter().map(|name| json!({ "required": [name] })).collect();
    }
    schema
}

fn value(kind: &Kind) -> Value {
    match kind {
        Kind::Version => or_environment(json!({ "enum": [1, "1"] })),
        Kind::Switch => or_environment(json!({ "type": "boolean" })),
        Kind::Count => whole(0),
        Kind::Positive => whole(1),
        Kind::Number => or_environment(json!({ "type": "number" })),
        // Text without quotes may look like a number or a boolean to an editor.
        Kind::Text(_) => json!({ "type": ["string", "number", "boolean"] }),
        Kind::Rate => pattern(r"^[0-9].*/.*[a-zµ]$|\$\{"),
        Kind::Duration => pattern(r"^[0-9].*[a-zµ]$|\$\{"),
        Kind::Size => json!({
            "anyOf": [{ "type": "integer", "minimum": 0 }, pattern(r"^[0-9.]+[A-Za-z]*$|\$\{")],
        }),
        Kind::Word(words) => or_environment(json!({ "enum": words })),
        Kind::Mapping(shape) => reference(shape.name),
        Kind::PartOf(shapes) => {
            let parts: Vec<_> = shapes.iter().map(|shape| mapping(shape, Presence::Waived)).collect();
            json!({ "anyOf": parts })
        }
        Kind::Named(_, inner) => json!({ "type": "object", "additionalProperties": value(inner) }),
        Kind::List(inner) => json!({ "type": "array", "items": value(inner) }),
        Kind::OneOrList(inner) => {
            json!({ "anyOf": [value(inner), { "type": "array", "items": value(inner) }] })
        }
        Kind::Either(kinds) => json!({ "anyOf": kinds.iter().map(value).collect::<Vec<_>>() }),
    }
}

fn whole(least: u32) -> Value {
    or_environment(json!({ "type": "integer", "minimum": least, "maximum": u32::MAX }))
}

fn pattern(pattern: &str) -> Value {
    json!({ "type": "string", "pattern": pattern })
}

fn or_environment(schema: Value) -> Value {
    json!({ "anyOf": [schema, reference("environment")] })
}

fn reference(name: &str) -> Value {
    json!({ "$ref": format!("#/$defs/{name}") })
}
