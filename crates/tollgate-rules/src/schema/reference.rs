//! The shapes as a page of the book: every key with its value, default and description.

use super::{Key, Kind, Need, Shape, draft::shapes};
use std::fmt::Write;

const HEAD: &str = r#"# Reference: every key of a rule file

Generated from the definitions that the parser and [the JSON Schema](tollgate.schema.json) use. Set the schema in your
editor to complete and check keys while you type; `tollgate schema` prints it.

A rule file is one YAML 1.2 document. Anchors are ignored; aliases, merge keys and tags are mistakes. To use a limit in
several places, give it a name. Unknown keys, repeated keys, zero rates and unknown names are mistakes. All mistakes are
reported at once, each with its line, column and path, and with the nearest known name.

| value | form |
|---|---|
| rate | `10/s`, `0.5/s`, `600/m`, `100/30s`; of bytes `50KiB/s` |
| duration | `20ms`, `1m30s`, `7d` |
| size | `512KiB`, `10MB`, or a plain number of bytes |
| network | `10.0.0.0/8`, `192.168.1.1`, `2001:db8::/32` |
| address | an IP address and a port: `127.0.0.1:8080`, `[::1]:8080` |
| name | up to 128 bytes on one line |

`${NAME}` in a value inserts an environment variable (in a flow mapping such as `{ url: "${URL}" }` it needs quotes). The
inserted text is never parsed as YAML and never shown in a message. A variable that is not set is a mistake. Write `$${`
for a literal `${`. Keys cannot contain variables, except those of `overrides`.
"#;

/// The reference of rule files, in Markdown.
#[must_use]
pub fn reference() -> String {
    let mut page = HEAD.to_owned();
    for shape in shapes() {
        // Writing to a text does not fail.
        let _ = section(&mut page, shape);
    }
    page
}

fn section(page: &mut String, shape: &Shape) -> std::fmt::Result {
    write!(page, "\n## {}\n\n{}\n\n```yaml\n{}\n```\n\n", shape.name, shape.about, shape.example)?;
    page.push_str("| key | value | default | description |\n|---|---|---|---|\n");
    for Key { name, kind, need, about } in shape.keys() {
        let default = match need {
            Need::Required(_) => "required".to_owned(),
            Need::Default(phrase) | Need::Otherwise(phrase) if phrase.contains(' ') => (*phrase).to_owned(),
            Need::Default(value) | Need::Otherwise(value) => format!("`{value}`"),
            Need::Optional => String::new(),
        };
        let about = about.trim_end_matches('.');
        writeln!(page, "| `{name}` | {} | {default} | {about} |", holds(kind))?;
    }
    Ok(())
}

fn holds(kind: &Kind) -> String {
    let several = |kinds: &[Kind]| kinds.iter().map(holds).collect::<Vec<_>>().join(", or ");
    match kind {
        Kind::Version => "`1`".to_owned(),
        Kind::Switch => "`true` or `false`".to_owned(),
        Kind::Count => "whole number".to_owned(),
        Kind::Positive => "whole number above 0".to_owned(),
        Kind::Number => "number".to_owned(),
        Kind::Text(sort) => (*sort).to_owned(),
        Kind::Rate => "rate".to_owned(),
        Kind::Duration => "duration".to_owned(),
        Kind::Size => "size".to_owned(),
        Kind::Word(words) => words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", "),
        Kind::Mapping(shape) => format!("[{0}](#{0})", shape.name),
        Kind::PartOf(_) => "parameters of the limit's algorithm".to_owned(),
        Kind::Named(name, inner) => format!("mapping from: {name}; to: {}", holds(inner)),
        Kind::List(inner) => format!("list of: {}", holds(inner)),
        Kind::OneOrList(inner) => format!("{}, or a list of them", holds(inner)),
        Kind::Either(kinds) => several(kinds),
    }
}
