//! What is wrong with a JSON document, and where.

use super::Node;
use crate::nearest;
use serde::de::{Error, Expected, Unexpected};
use std::fmt;

/// What is wrong with a JSON document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonError {
    /// Such as `checks[1].cost`; empty for the document itself.
    path: String,
    message: String,
    /// Whether the message says what should have been there.
    is_expectation: bool,
    read: Option<String>,
}

/// The error for a value that should be something else.
#[must_use]
pub fn expected<E: Error>(what: &str) -> E {
    E::invalid_value(Unexpected::Other("another"), &what)
}

impl JsonError {
    /// Something that turns out after the document was read.
    #[must_use]
    pub fn new(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self { path: path.into(), message: message.into(), is_expectation: false, read: None }
    }

    pub(super) fn syntax(error: &serde_json::Error) -> Self {
        let said = error.to_string();
        let said = said.rsplit_once(" at line ").map_or(said.as_str(), |(said, _)| said);
        let (line, column) = (error.line(), error.column());
        Self::new("", format!("is not JSON at line {line}, column {column}: {said}"))
    }

    pub(super) fn unknown(name: &str, known: &[&str]) -> Self {
        Self::new(cut(name), format!("is not a known field; {}", meant(name, known)))
    }

    pub(super) fn repeated(name: &str) -> Self {
        Self::new(cut(name), "is given twice; leave one of them")
    }

    /// The same, of the item of this index.
    #[must_use]
    pub fn in_item(self, index: usize) -> Self {
        self.below(&format!("[{index}]"))
    }

    /// The same, of the field of this name.
    #[must_use]
    pub fn in_field(self, name: &str) -> Self {
        self.below(&cut(name))
    }

    fn below(self, parent: &str) -> Self {
        let dot = if self.path.is_empty() || self.path.starts_with('[') { "" } else { "." };
        Self { path: format!("{parent}{dot}{}", self.path), ..self }
    }

    /// Says what was read, unless that is known.
    pub(super) fn reading(self, node: &Node<'_>) -> Self {
        match self.is_expectation && self.read.is_none() && self.path.is_empty() {
            true => Self { read: Some(cut(&node.to_json())), ..self },
            false => self,
        }
    }

    /// Where it is, such as `checks[1].cost`; empty for the document itself.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The same without the value that was read, which may be a secret.
    #[must_use]
    pub fn without_value(self) -> Self {
        Self { read: None, is_expectation: false, ..self }
    }

    /// In words; `document` is what the whole is called, such as "the body".
    #[must_use]
    pub fn describe(&self, document: &str) -> String {
        let read = self.read.as_ref().map(|read| format!("; read {read}")).unwrap_or_default();
        match self.path.as_str() {
            "" => format!("{document} {}{read}", self.message),
            path => format!("{path}: {}{read}", self.message),
        }
    }
}

impl fmt::Display for JsonError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.describe("the document"))
    }
}

impl std::error::Error for JsonError {}

impl Error for JsonError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::new("", message.to_string())
    }

    fn invalid_type(_: Unexpected<'_>, expected: &dyn Expected) -> Self {
        let message = format!("must be {}", in_words(expected.to_string()));
        Self { is_expectation: true, ..Self::new("", message) }
    }

    fn invalid_value(unexpected: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::invalid_type(unexpected, expected)
    }

    fn unknown_variant(variant: &str, known: &'static [&'static str]) -> Self {
        Self::new("", format!("is not known; {}", meant(variant, known)))
    }

    fn unknown_field(field: &str, known: &'static [&'static str]) -> Self {
        Self::unknown(field, known)
    }

    fn missing_field(field: &'static str) -> Self {
        Self::new(field, "is missing")
    }

    fn duplicate_field(field: &'static str) -> Self {
        Self::repeated(field)
    }
}

fn meant(name: &str, known: &[&str]) -> String {
    match nearest(name, known.iter().copied()) {
        Some(known) => format!("did you mean {known:?}?"),
        None => {
            let known: Vec<_> = known.iter().map(|name| format!("{name:?}")).collect();
            format!("known are {}", known.join(", "))
        }
    }
}

/// What serde expects of its own types, for people.
fn in_words(expected: String) -> String {
    match expected.as_str() {
        "a string" | "a borrowed string" => "text".to_owned(),
        "a boolean" => "true or false".to_owned(),
        "a sequence" => "a list".to_owned(),
        "a map" => "an object".to_owned(),
        "f64" => "a number".to_owned(),
        "u32" => format!("a whole number from 0 to {}", u32::MAX),
        "u64" => format!("a whole number from 0 to {}", u64::MAX),
        "i64" => "a whole number".to_owned(),
        "a nonzero u32" => format!("a whole number from 1 to {}", u32::MAX),
        shape if shape.starts_with("struct ") => "an object".to_owned(),
        _ => expected,
    }
}

/// Text that somebody sent, which may be long.
fn cut(text: &str) -> String {
    const LONGEST: usize = 60;
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use crate::json::{Node, read};
    use serde::Deserialize;
    use std::collections::BTreeMap;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only errors are looked at")]
    struct Order {
        name: String,
        #[serde(default)]
        units: u32,
        #[serde(default)]
        parts: Vec<Order>,
        #[serde(default)]
        notes: BTreeMap<String, bool>,
        #[serde(default)]
        size: Option<Size>,
    }

    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Size {
        Small,
        Large,
    }

    #[test]
    fn what_is_wrong_is_told_with_its_place() {
        for (text, told) in [
            ("{", "the document is not JSON at line 1, column 1: EOF while parsing an object"),
            ("[]", "the document must be an object; read []"),
            ("{}", "name: is missing"),
            (r#"{"name":7}"#, "name: must be text; read 7"),
            (r#"{"name":"a","units":null}"#, "units: must be a whole number from 0 to 4294967295; read null"),
            (
                r#"{"name":"a","units":1e3}"#,
                "units: must be a whole number from 0 to 4294967295; read 1000.0",
            ),
            (r#"{"name":"a","unist":1}"#, "unist: is not a known field; did you mean \"units\"?"),
            (r#"{"name":"a","name":"a"}"#, "name: is given twice; leave one of them"),
            (r#"{"name":"a","\u006eame":"a"}"#, "name: is given twice; leave one of them"),
            (r#"{"name":"a","parts":{}}"#, "parts: must be a list; read {}"),
            (r#"{"name":"a","parts":[["b"]]}"#, "parts[0]: must be an object; read [\"b\"]"),
            (
                r#"{"name":"a","parts":[{"name":"b"},{"name":"c","parts":[{"nam":"d"}]}]}"#,
                "parts[1].parts[0].nam: is not a known field; did you mean \"name\"?",
            ),
            (r#"{"name":"a","notes":{"x":1}}"#, "notes.x: must be true or false; read 1"),
            (
                r#"{"name":"a","notes":{"x":true,"y":true,"x":true}}"#,
                "notes.x: is given twice; leave one of them",
            ),
            (r#"{"name":"a","size":"smal"}"#, "size: is not known; did you mean \"small\"?"),
            (r#"{"name":"a","size":{"small":null}}"#, "size: must be text; read {\"small\":null}"),
        ] {
            let error = read::<Order>(text.as_bytes()).expect_err(text);
            assert_eq!(error.to_string(), told, "{text}");
            assert!(!error.without_value().to_string().contains("; read "), "{text}");
        }
    }

    #[test]
    fn names_given_twice_are_found_in_small_and_large_objects() {
        for many in [1, 16, 17, 5_000] {
            let mut notes: Vec<_> = (0..many).map(|it| format!(r#""n{it}":true"#)).collect();
            let text = |notes: &[String]| format!(r#"{{"name":"a","notes":{{{}}}}}"#, notes.join(","));
            assert!(read::<Order>(text(&notes).as_bytes()).is_ok(), "{many}");
            notes.push(r#""n0":true"#.to_owned());
            let error = read::<Order>(text(&notes).as_bytes()).expect_err("twice");
            assert_eq!(error.path(), "notes.n0", "{many}");
        }
    }

    #[test]
    fn a_long_value_or_name_is_cut() {
        let long = "x".repeat(1_000);
        let error = read::<Order>(format!(r#"{{"{long}":1}}"#).as_bytes()).expect_err("unknown");
        assert_eq!(error.path().len(), 63);
        let error = read::<Order>(format!(r#"{{"name":["{long}"]}}"#).as_bytes()).expect_err("a list");
        assert!(error.to_string().len() < 100, "{error}");
    }

    #[test]
    fn a_node_is_written_as_it_was_read() {
        let text = r#"{"a":[null,true,0,-1,0.5,"\n"],"b":{}}"#;
        assert_eq!(read::<Node<'_>>(text.as_bytes()).expect("JSON").to_json(), text);
    }
}
