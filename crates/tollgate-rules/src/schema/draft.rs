//! The shapes as a JSON Schema, draft 2020-12.
//!
//! It accepts whatever the decoder accepts, and refuses unknown keys, missing keys and values of the wrong kind; what one
//! key demands of another only the decoder knows. A value from the environment may stand anywhere.

use super::{FILE, Key, Kind, Need, Shape, json::Json};

/// The JSON Schema of rule files, for editors that complete and check while one types.
///
/// ```
/// assert!(tollgate_rules::json_schema().contains("\"token_bucket\""));
/// ```
#[must_use]
pub fn json_schema() -> String {
    let mut definitions: Vec<(String, Json)> =
        shapes().iter().map(|shape| (shape.name.to_owned(), mapping(shape, Presence::Demanded))).collect();
    let environment = Json::object([
        ("description", Json::text("Takes a value from the environment.")),
        ("type", Json::text("string")),
        ("pattern", Json::text(r"\$\{")),
    ]);
    definitions.push(("environment".to_owned(), environment));
    let schema = Json::object([
        ("$schema", Json::text("https://json-schema.org/draft/2020-12/schema")),
        ("title", Json::text("Tollgate rule file")),
        ("$ref", Json::text("#/$defs/file")),
        ("$defs", Json::Object(definitions)),
    ]);
    format!("{schema}\n")
}

/// Every shape that a file leads to, as a reader comes across them.
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

/// Whether required keys must be there.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Presence {
    Demanded,
    Waived,
}

fn mapping(shape: &Shape, presence: Presence) -> Json {
    let described = |key: &Key| {
        let about = key.about.trim_end_matches('.');
        let about = match key.need {
            Need::Default(default) | Need::Otherwise(default) => format!("{about}. Default: {default}."),
            Need::Required(_) | Need::Optional => format!("{about}."),
        };
        match value(&key.kind) {
            Json::Object(mut entries) => {
                entries.insert(0, ("description".to_owned(), Json::Text(about)));
                Json::Object(entries)
            }
            other => other,
        }
    };
    let (families, plain): (Vec<_>, Vec<_>) = shape.keys().partition(|key| key.family().is_some());
    let properties = plain.iter().map(|key| (key.name, described(key)));
    let mut json = Json::object([
        ("description", Json::text(shape.about)),
        ("type", Json::text("object")),
        ("properties", Json::object(properties)),
    ]);
    if !families.is_empty() {
        let pattern = |key: &&Key| {
            let beginning = key.family().unwrap_or_default().replace('.', "\\.");
            (format!("^{beginning}."), described(key))
        };
        json = json.with("patternProperties", Json::Object(families.iter().map(pattern).collect()));
    }
    json = json.with("additionalProperties", Json::Bool(false));
    let required = shape.keys().filter(|key| matches!(key.need, Need::Required(_))).map(|key| key.name);
    let required: Vec<_> = required.collect();
    if !required.is_empty() && presence == Presence::Demanded {
        json = json.with("required", Json::texts(required));
    }
    if !shape.exactly_one.is_empty() {
        let one = |name: &&'static str| Json::object([("required", Json::texts([*name]))]);
        json = json.with("oneOf", Json::List(shape.exactly_one.iter().map(one).collect()));
    }
    json
}

fn value(kind: &Kind) -> Json {
    match kind {
        Kind::Version => {
            or_environment(Json::object([("enum", Json::List(vec![Json::Number(1), Json::text("1")]))]))
        }
        Kind::Switch => or_environment(Json::object([("type", Json::text("boolean"))])),
        Kind::Count => whole(0),
        Kind::Positive => whole(1),
        Kind::Number => or_environment(Json::object([("type", Json::text("number"))])),
        // Text without quotes may look like a number or a boolean to an editor.
        Kind::Text(_) => Json::object([("type", Json::texts(["string", "number", "boolean"]))]),
        Kind::Rate => pattern(r"^[0-9].*/.*[a-zµ]$|\$\{"),
        Kind::Duration => pattern(r"^[0-9].*[a-zµ]$|\$\{"),
        Kind::Size => Json::object([(
            "anyOf",
            Json::List(vec![
                Json::object([("type", Json::text("integer")), ("minimum", Json::Number(0))]),
                pattern(r"^[0-9.]+[A-Za-z]*$|\$\{"),
            ]),
        )]),
        Kind::Word(words) => or_environment(Json::object([("enum", Json::texts(words.iter().copied()))])),
        Kind::Mapping(shape) => reference(shape.name),
        Kind::PartOf(shapes) => {
            let parts = shapes.iter().map(|shape| mapping(shape, Presence::Waived)).collect();
            Json::object([("anyOf", Json::List(parts))])
        }
        Kind::Named(_, inner) => {
            Json::object([("type", Json::text("object")), ("additionalProperties", value(inner))])
        }
        Kind::List(inner) => Json::object([("type", Json::text("array")), ("items", value(inner))]),
        Kind::OneOrList(inner) => {
            let list = Json::object([("type", Json::text("array")), ("items", value(inner))]);
            Json::object([("anyOf", Json::List(vec![value(inner), list]))])
        }
        Kind::Either(kinds) => Json::object([("anyOf", Json::List(kinds.iter().map(value).collect()))]),
    }
}

fn whole(least: i64) -> Json {
    or_environment(Json::object([
        ("type", Json::text("integer")),
        ("minimum", Json::Number(least)),
        ("maximum", Json::Number(u32::MAX.into())),
    ]))
}

fn pattern(pattern: &str) -> Json {
    Json::object([("type", Json::text("string")), ("pattern", Json::text(pattern))])
}

fn or_environment(json: Json) -> Json {
    Json::object([("anyOf", Json::List(vec![json, environment()]))])
}

fn environment() -> Json {
    reference("environment")
}

fn reference(name: &str) -> Json {
    Json::object([("$ref", Json::text(format!("#/$defs/{name}")))])
}
