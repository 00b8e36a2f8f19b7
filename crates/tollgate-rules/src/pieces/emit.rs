//! Values written out as YAML again.
//!
//! What fits on a line stands on one, in flow style; the rest is a block. Text without quotes stays so where it reads the same
//! in any place, and gets quotes elsewhere; numbers and switches always do. `${NAME}` stays as it was written.

use crate::yaml::{Node, Value};

/// How long a line may be where a value is put on one.
const WIDE: usize = 100;

/// A value as the text of a piece, with a line break at its end.
pub(super) fn text_of(node: &Node) -> String {
    let mut out = String::new();
    match &node.value {
        Value::Mapping(entries) if !entries.is_empty() => block(&mut out, node, 0),
        _ => out.push_str(&flow(node)),
    }
    if !out.ends_with('\n') {
        out.push('\n');
    }
    out
}

/// Entries or items, one a line from `indent` on; the first follows what stands on its line already.
fn block(out: &mut String, node: &Node, indent: usize) {
    let pad = " ".repeat(indent);
    match &node.value {
        Value::Mapping(entries) => {
            for (index, (key, value)) in entries.iter().enumerate() {
                if index > 0 {
                    out.push_str(&pad);
                }
                out.push_str(&flow(key));
                out.push(':');
                below(out, value, indent);
            }
        }
        Value::List(items) => {
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push_str(&pad);
                }
                out.push('-');
                let line = flow(item);
                if fits(&line, indent + 2) || !is_long(item) {
                    out.push(' ');
                    out.push_str(&line);
                    out.push('\n');
                } else {
                    out.push(' ');
                    block(out, item, indent + 2);
                }
            }
        }
        _ => {}
    }
}

/// The value of a key: on its line where that is short, else below it.
fn below(out: &mut String, value: &Node, indent: usize) {
    let line = flow(value);
    if fits(&line, indent) || !is_long(value) {
        if !line.is_empty() {
            out.push(' ');
            out.push_str(&line);
        }
        out.push('\n');
    } else {
        out.push('\n');
        out.push_str(&" ".repeat(indent + 2));
        block(out, value, indent + 2);
    }
}

fn fits(line: &str, indent: usize) -> bool {
    line.chars().count() + indent <= WIDE
}

/// Whether it can be a block.
const fn is_long(node: &Node) -> bool {
    match &node.value {
        Value::Mapping(entries) => !entries.is_empty(),
        Value::List(items) => !items.is_empty(),
        _ => false,
    }
}

/// On one line.
fn flow(node: &Node) -> String {
    match &node.value {
        Value::Null => "~".to_owned(),
        Value::Plain(text) if is_plain(text) => text.clone(),
        Value::Plain(text) | Value::Quoted(text) | Value::Taken { written: text, .. } => quoted(text),
        Value::List(items) => match items.is_empty() {
            true => "[]".to_owned(),
            false => format!("[{}]", items.iter().map(flow).collect::<Vec<_>>().join(", ")),
        },
        Value::Mapping(entries) => match entries.is_empty() {
            true => "{}".to_owned(),
            false => {
                let pair = |(key, value): &(Node, Node)| format!("{}: {}", flow(key), flow(value));
                format!("{{ {} }}", entries.iter().map(pair).collect::<Vec<_>>().join(", "))
            }
        },
    }
}

/// Whether text reads the same without quotes wherever it stands.
fn is_plain(text: &str) -> bool {
    let is_safe = |letter: char| letter.is_ascii_alphanumeric() || "_./*-+%".contains(letter);
    let begins = |letter: char| letter.is_ascii_alphanumeric() || "_./+".contains(letter);
    text.chars().all(is_safe)
        && (text.starts_with(begins)
            || (text.starts_with('-') && text[1..].starts_with(|c: char| c.is_ascii_digit())))
        && !text.starts_with("...")
}

/// In quotes: single ones where nothing has to be escaped.
fn quoted(text: &str) -> String {
    let is_odd = |letter: char| {
        letter.is_control() || matches!(letter, '\u{85}' | '\u{2028}' | '\u{2029}' | '\u{feff}')
    };
    if text.contains('"') && !text.contains(is_odd) {
        return format!("'{}'", text.replace('\'', "''"));
    }
    let mut out = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            odd if is_odd(odd) => out.push_str(&format!("\\u{:04x}", u32::from(odd))),
            letter => out.push(letter),
        }
    }
    out.push('"');
    out
}
