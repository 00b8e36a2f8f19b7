//! JSON, written out with its keys in the order they were given: a file that people compare wants no other.

use std::fmt::{self, Write};

/// A JSON value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Json {
    Bool(bool),
    Number(i64),
    Text(String),
    List(Vec<Json>),
    Object(Vec<(String, Json)>),
}

impl Json {
    pub(super) fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    pub(super) fn texts<'a>(texts: impl IntoIterator<Item = &'a str>) -> Self {
        Self::List(texts.into_iter().map(Self::text).collect())
    }

    pub(super) fn object<'a>(entries: impl IntoIterator<Item = (&'a str, Self)>) -> Self {
        Self::Object(entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
    }

    /// With one entry more.
    pub(super) fn with(mut self, key: &str, value: Self) -> Self {
        if let Self::Object(entries) = &mut self {
            entries.push((key.to_owned(), value));
        }
        self
    }

    fn write(&self, out: &mut String, indent: usize) -> fmt::Result {
        match self {
            Self::Bool(value) => write!(out, "{value}"),
            Self::Number(value) => write!(out, "{value}"),
            Self::Text(text) => quoted(text, out),
            Self::List(items) => {
                // Lists of words stay on a line.
                out.push('[');
                for (index, item) in items.iter().enumerate() {
                    out.push_str(if index > 0 { ", " } else { "" });
                    item.write(out, indent)?;
                }
                out.push(']');
                Ok(())
            }
            Self::Object(entries) if entries.is_empty() => out.write_str("{}"),
            Self::Object(entries) => {
                out.push('{');
                for (index, (key, value)) in entries.iter().enumerate() {
                    out.push_str(if index > 0 { ",\n" } else { "\n" });
                    out.extend(std::iter::repeat_n(' ', indent + 2));
                    quoted(key, out)?;
                    out.push_str(": ");
                    value.write(out, indent + 2)?;
                }
                out.push('\n');
                out.extend(std::iter::repeat_n(' ', indent));
                out.push('}');
                Ok(())
            }
        }
    }
}

impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = String::new();
        self.write(&mut out, 0)?;
        f.write_str(&out)
    }
}

fn quoted(text: &str, out: &mut String) -> fmt::Result {
    out.push('"');
    for letter in text.chars() {
        match letter {
            '"' | '\\' => {
                out.push('\\');
                out.push(letter);
            }
            '\n' => out.push_str("\\n"),
            control if control < ' ' => write!(out, "\\u{:04x}", u32::from(control))?,
            letter => out.push(letter),
        }
    }
    out.push('"');
    Ok(())
}
