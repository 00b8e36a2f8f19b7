//! YAML as an editor sees it, for tests: where its scalars stand, and which JSON it is.

use saphyr_parser::{Event, Parser, ScalarStyle};
use serde_json::{Map, Value};
use std::ops::Range;

/// Where the scalars of `text` stand, keys included.
pub(crate) fn scalars(text: &str) -> Vec<Range<usize>> {
    let bytes: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
    let mut found = Vec::new();
    for event in Parser::new_from_str(text) {
        let (event, span) = event.unwrap();
        if let Event::Scalar(..) = event {
            found.push(bytes[span.start.index()]..bytes[span.end.index()]);
        }
    }
    found
}

/// The JSON that a file is, by the rules of YAML 1.2. Entries whose key is no scalar are left out: JSON has none.
pub(crate) fn json(text: &str) -> Value {
    let mut open: Vec<(bool, Vec<Value>)> = Vec::new();
    let mut root = Value::Null;
    for event in Parser::new_from_str(text) {
        let value = match event.unwrap().0 {
            Event::Scalar(text, style, ..) => scalar(&text, style),
            Event::SequenceStart(..) => {
                open.push((false, Vec::new()));
                continue;
            }
            Event::MappingStart(..) => {
                open.push((true, Vec::new()));
                continue;
            }
            Event::SequenceEnd => Value::Array(open.pop().unwrap().1),
            Event::MappingEnd => Value::Object(object(&open.pop().unwrap().1)),
            _ => continue,
        };
        match open.last_mut() {
            Some((_, children)) => children.push(value),
            None => root = value,
        }
    }
    root
}

fn object(children: &[Value]) -> Map<String, Value> {
    let mut entries = Map::new();
    for pair in children.chunks(2) {
        match &pair[0] {
            Value::String(key) => entries.insert(key.clone(), pair[1].clone()),
            Value::Array(_) | Value::Object(_) => None,
            other => entries.insert(other.to_string(), pair[1].clone()),
        };
    }
    entries
}

fn scalar(text: &str, style: ScalarStyle) -> Value {
    match text {
        _ if style != ScalarStyle::Plain => Value::from(text),
        "" | "~" | "null" => Value::Null,
        "true" | "false" => Value::from(text == "true"),
        _ => match (text.parse::<i64>(), text.parse::<f64>()) {
            (Ok(number), _) => Value::from(number),
            (_, Ok(number)) if text.starts_with(|first: char| first.is_ascii_digit()) => Value::from(number),
            _ => Value::from(text),
        },
    }
}
