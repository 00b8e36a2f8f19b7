//! `${NAME}` in any value takes what the environment has under that name.
//!
//! The tree is filled after the text was read: what comes from outside is text, whatever it looks like, and is not looked
//! through again. `$${` stands for `${` itself.

use super::{Noted, note, path_to, shorten};
use crate::yaml::{Node, Value};

/// Puts in what the values of `root` take from `environment`.
pub(super) fn fill(root: &mut Node, environment: &dyn Fn(&str) -> Option<String>, noted: &Noted) {
    Filling { environment, noted }.node(root, "");
}

struct Filling<'a> {
    environment: &'a dyn Fn(&str) -> Option<String>,
    noted: &'a Noted,
}

impl Filling<'_> {
    // Nesting is bounded where YAML is read.
    fn node(&self, node: &mut Node, path: &str) {
        match &mut node.value {
            Value::Null | Value::Taken { .. } => {}
            Value::Plain(text) | Value::Quoted(text) => {
                if !text.contains("${") {
                    return;
                }
                let written = std::mem::take(text);
                node.value = match self.taken(&written) {
                    Ok((text, Source::File)) => Value::Quoted(text),
                    Ok((text, Source::Environment)) => Value::Taken { value: Some(text), written },
                    Err(message) => {
                        note(self.noted, node.at, path.to_owned(), message);
                        Value::Taken { value: None, written }
                    }
                };
            }
            Value::List(items) => {
                for (index, item) in items.iter_mut().enumerate() {
                    self.node(item, &format!("{path}[{index}]"));
                }
            }
            Value::Mapping(entries) => {
                for (key, value) in entries {
                    let path = path_to(path, &key.written());
                    self.node(key, &path);
                    self.node(value, &path);
                }
            }
        }
    }

    /// The text with every name replaced, and whether there was one; or what is wrong with the first that cannot be.
    fn taken(&self, written: &str) -> Result<(String, Source), String> {
        let (mut text, mut source, mut rest) = (String::new(), Source::File, written);
        while let Some(start) = rest.find("${") {
            if let Some(before) = rest[..start].strip_suffix('$') {
                text.push_str(before);
                text.push_str("${");
                rest = &rest[start + 2..];
                continue;
            }
            text.push_str(&rest[..start]);
            let (name, after) = rest[start + 2..]
                .split_once('}')
                .ok_or("has a `${` without its `}`; write `$${` for the signs themselves")?;
            if !is_name(name) {
                let name = shorten(name);
                return Err(format!(
                    "cannot take {name:?} from the environment: names are letters, digits and underscores; \
                     write `$${{` for the signs themselves"
                ));
            }
            let value =
                (self.environment)(name).ok_or_else(|| format!("`{name}` is not set in the environment"))?;
            text.push_str(&value);
            source = Source::Environment;
            rest = after;
        }
        text.push_str(rest);
        Ok((text, source))
    }
}

/// Whose text it is.
#[derive(Debug, PartialEq, Eq)]
enum Source {
    File,
    Environment,
}

fn is_name(name: &str) -> bool {
    let mut letters = name.bytes();
    letters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == b'_')
        && letters.all(|letter| letter.is_ascii_alphanumeric() || letter == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(written: &str) -> Result<(String, Source), String> {
        let environment = |name: &str| match name {
            "A" => Some("1".to_owned()),
            "NESTED" => Some("${A}".to_owned()),
            _ => None,
        };
        let noted = Noted::default();
        Filling { environment: &environment, noted: &noted }.taken(written)
    }

    #[test]
    fn names_are_replaced_once() {
        for (written, text) in
            [("${A}", "1"), ("x${A}y${A}", "x1y1"), ("${NESTED}", "${A}"), ("$${A}${A}", "${A}1")]
        {
            assert_eq!(taken(written), Ok((text.to_owned(), Source::Environment)), "{written}");
        }
        for (written, text) in [("$${A}", "${A}"), ("a$b", "a$b"), ("$$${A}", "$${A}")] {
            assert_eq!(taken(written), Ok((text.to_owned(), Source::File)), "{written}");
        }
    }

    #[test]
    fn what_cannot_be_taken_is_told() {
        for (written, message) in [
            ("${B}", "`B` is not set in the environment"),
            ("${A", "has a `${` without its `}`; write `$${` for the signs themselves"),
            (
                "${A:-x}",
                "cannot take \"A:-x\" from the environment: names are letters, digits and underscores; \
                 write `$${` for the signs themselves",
            ),
        ] {
            assert_eq!(taken(written), Err(message.to_owned()), "{written}");
        }
    }
}
