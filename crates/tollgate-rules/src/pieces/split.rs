//! A whole rule file taken apart.

use super::{PieceKind, PieceText, emit::text_of, entry, is_named};
use crate::{
    file::{RULES_KEYS, parse_rules},
    mistake::{Mistake, Mistakes},
    yaml::{self, Node, Value},
};

/// A rule file in pieces, and what is left of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SplitRules {
    /// The global switch.
    pub enabled: bool,
    /// Limits, upstreams, rules of every route, then every route followed by its rules.
    pub pieces: Vec<PieceText>,
    /// What belongs to a node: the file without these.
    pub own: String,
}

/// Takes a whole file apart. Values that come from the environment stay as they are written.
///
/// ```
/// let text = "version: 1\nlimits: { a: { sliding_log: { limit: 5, window: \"${WINDOW}\" } } }";
/// let split = tollgate_rules::pieces::split_rules(text, |_| Some("1m".to_owned()))?;
/// assert_eq!(split.pieces[0].text, "sliding_log: { limit: 5, window: \"${WINDOW}\" }\n");
/// # Ok::<(), tollgate_rules::Mistakes>(())
/// ```
///
/// # Errors
/// Everything that is wrong with the file; and a switch that comes from the environment, for a piece's is kept beside its
/// text.
pub fn split_rules(text: &str, environment: impl Fn(&str) -> Option<String>) -> Result<SplitRules, Mistakes> {
    parse_rules(text, environment)?;
    let root = yaml::read(text).map_err(|mistake| Mistakes::new(mistake, []))?;
    let mut taking = Taking { pieces: Vec::new(), wrong: Vec::new() };
    let enabled = taking.switch(&root);
    for (key, value) in entries(entry(&root, "limits")) {
        taking.add(PieceKind::Limit, None, key.written().into_owned(), value);
    }
    for (key, value) in entries(entry(&root, "upstreams")) {
        taking.add(PieceKind::Upstream, None, key.written().into_owned(), value);
    }
    for rule in items(entry(&root, "everywhere")) {
        taking.add(PieceKind::Rule, None, name_of(rule), rule);
    }
    for route in items(entry(&root, "routes")) {
        let name = name_of(route);
        taking.add(PieceKind::Route, None, name.clone(), route);
        for rule in items(entry(route, "rules")) {
            taking.add(PieceKind::Rule, Some(name.clone()), name_of(rule), rule);
        }
    }
    let own = text_of(&without(&root, &RULES_KEYS));
    let mut wrong = taking.wrong.into_iter();
    match wrong.next() {
        Some(first) => Err(Mistakes::new(first, wrong)),
        None => Ok(SplitRules { enabled, pieces: taking.pieces, own }),
    }
}

struct Taking {
    pieces: Vec<PieceText>,
    wrong: Vec<Mistake>,
}

impl Taking {
    fn add(&mut self, kind: PieceKind, route: Option<String>, name: String, node: &Node) {
        let is_switched = matches!(kind, PieceKind::Route | PieceKind::Rule);
        let enabled = !is_switched || self.switch(node);
        let mut piece = PieceText { kind, route, name, enabled, text: String::new() };
        piece.text = text_of(&without(node, piece.beside()));
        self.pieces.push(piece);
    }

    fn switch(&mut self, node: &Node) -> bool {
        match entry(node, "enabled") {
            Some(Node { value: Value::Plain(word), .. }) if word == "true" || word == "false" => {
                word == "true"
            }
            Some(other) => {
                let message =
                    "must be written out as `true` or `false`: it is kept beside the text".to_owned();
                self.wrong.push(Mistake { at: other.at, path: "enabled".to_owned(), message });
                true
            }
            None => true,
        }
    }
}

/// A mapping without some of its entries.
pub(super) fn without(node: &Node, names: &[&str]) -> Node {
    let Value::Mapping(entries) = &node.value else { return node.clone() };
    let kept = entries.iter().filter(|(key, _)| !names.iter().any(|name| is_named(key, name)));
    Node { at: node.at, value: Value::Mapping(kept.cloned().collect()) }
}

fn name_of(node: &Node) -> String {
    entry(node, "name").map(|name| name.written().into_owned()).unwrap_or_default()
}

fn entries(node: Option<&Node>) -> &[(Node, Node)] {
    match node.map(|node| &node.value) {
        Some(Value::Mapping(entries)) => entries,
        _ => &[],
    }
}

fn items(node: Option<&Node>) -> &[Node] {
    match node.map(|node| &node.value) {
        Some(Value::List(items)) => items,
        _ => &[],
    }
}
