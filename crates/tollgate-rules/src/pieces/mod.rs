//! A rule file in pieces: what a table keeps as rows, and a console edits one at a time.
//!
//! A [`PieceText`] is one limit, upstream, route or rule with its text, which is what a rule file has under its name. The
//! pieces and the file of a node are [composed](compose_rules) as values before they are read, so there is one reader and
//! one set of mistakes; every value knows which text it is from. [`split_rules`] is the way back, [`whole_text`] makes a
//! file of pieces again, and [`switch_text`] turns a switch in a file by changing one word.

mod compose;
mod emit;
mod spans;
mod split;
mod switch;
mod whole;

pub use compose::{PieceMistake, compose_rules};
pub use split::{SplitRules, split_rules};
pub use switch::{SwitchError, WhichSwitch, is_on, switch_text};
pub use whole::whole_text;

use crate::yaml::{Node, Value};

/// What a piece is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PieceKind {
    /// A limit with a name.
    Limit,
    /// Where requests go.
    Upstream,
    /// Which requests go where.
    Route,
    /// A rule of a route, or of every route.
    Rule,
}

/// A part of a rule file, by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PieceText {
    /// What it is.
    pub kind: PieceKind,
    /// Of a rule: whose; `None` for a rule of every route, and for whatever is no rule.
    pub route: Option<String>,
    /// Its name.
    pub name: String,
    /// Whether it is on; limits and upstreams always are.
    pub enabled: bool,
    /// What a rule file has under its name, in YAML, without `name`, `enabled` and a route's `rules`.
    pub text: String,
}

impl PieceText {
    /// Its name for people: `rule orders/create`.
    #[must_use]
    pub fn about(&self) -> String {
        let name = self.name.escape_debug();
        match (self.kind, &self.route) {
            (PieceKind::Limit, _) => format!("limit {name}"),
            (PieceKind::Upstream, _) => format!("upstream {name}"),
            (PieceKind::Route, _) => format!("route {name}"),
            (PieceKind::Rule, Some(route)) => format!("rule {}/{name}", route.escape_debug()),
            (PieceKind::Rule, None) => format!("rule {name}"),
        }
    }

    /// What stands beside the text, and so must not stand in it.
    const fn beside(&self) -> &'static [&'static str] {
        match self.kind {
            PieceKind::Limit | PieceKind::Upstream => &[],
            PieceKind::Rule => &["name", "enabled"],
            PieceKind::Route => &["name", "enabled", "rules"],
        }
    }
}

/// The value under a name of a mapping.
fn entry<'n>(node: &'n Node, name: &str) -> Option<&'n Node> {
    match &node.value {
        Value::Mapping(entries) => {
            entries.iter().find(|(key, _)| is_named(key, name)).map(|(_, value)| value)
        }
        _ => None,
    }
}

fn is_named(key: &Node, name: &str) -> bool {
    matches!(&key.value, Value::Plain(text) | Value::Quoted(text) if text == name)
}

/// Whether two texts of a piece say the same, however they are written. Texts that cannot be read say what they are.
#[must_use]
pub fn same_text(one: &str, other: &str) -> bool {
    one == other
        || match (crate::yaml::read(one), crate::yaml::read(other)) {
            (Ok(one), Ok(other)) => emit::text_of(&one) == emit::text_of(&other),
            _ => false,
        }
}

/// Every text in one that is YAML, keys included, as it reads without quotes and escapes; nothing where it is none.
#[must_use]
pub fn texts_in(text: &str) -> Option<Vec<String>> {
    fn add(node: Node, texts: &mut Vec<String>) {
        match node.value {
            Value::Null => {}
            Value::Plain(text) | Value::Quoted(text) | Value::Taken { written: text, .. } => texts.push(text),
            Value::List(items) => items.into_iter().for_each(|item| add(item, texts)),
            Value::Mapping(entries) => {
                entries.into_iter().flat_map(|(key, value)| [key, value]).for_each(|node| add(node, texts));
            }
        }
    }
    let mut texts = Vec::new();
    add(crate::yaml::read(text).ok()?, &mut texts);
    Some(texts)
}

/// Whether two values say the same, wherever they stand.
fn same(one: &Node, other: &Node) -> bool {
    match (&one.value, &other.value) {
        (Value::List(one), Value::List(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Value::Mapping(one), Value::Mapping(other)) => {
            let pairs = one.iter().zip(other);
            one.len() == other.len()
                && pairs.into_iter().all(|(one, other)| same(&one.0, &other.0) && same(&one.1, &other.1))
        }
        (one, other) => one == other,
    }
}
