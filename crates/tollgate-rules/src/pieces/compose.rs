//! A node's own file and pieces that are kept elsewhere, put together and read.
//!
//! Every text is read by itself into values that know their text and their place in it. Then each piece is put where a rule
//! file would have it, and the whole is read as any rule file. So a piece cannot reach out of its place, whatever its text
//! is, and a mistake is told with its piece, the line there, and the path from there on.

use super::{PieceKind, PieceText, entry, is_named};
use crate::{
    decode::{decode_node_with, listed, path_to},
    file::{self, RULES_KEYS, TO_MOVE},
    mistake::{Mistake, Position},
    model::RuleFile,
    schema::{ROUTE, RULE},
    yaml::{self, Node, Value},
};
use std::{collections::HashMap, fmt};

/// Something that is wrong with rules in pieces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PieceMistake {
    /// The piece it is in, by its place in the list; `None` where it is in the node's own file.
    pub piece: Option<usize>,
    /// Where in that text, which setting from there on, and what is wrong.
    pub mistake: Mistake,
}

impl fmt::Display for PieceMistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.piece {
            Some(piece) => write!(f, "piece {piece}:{}", self.mistake),
            None => self.mistake.fmt(f),
        }
    }
}

/// Reads a node's own file together with pieces that are kept elsewhere, and the global switch that is kept with them; beside a
/// foreign table, which has none, the switch is the file's.
///
/// ```
/// use tollgate_rules::pieces::{PieceKind, PieceText, compose_rules};
///
/// let piece = |kind, name: &str, text: &str| PieceText {
///     kind,
///     route: None,
///     name: name.to_owned(),
///     enabled: true,
///     text: text.to_owned(),
/// };
/// let limit = piece(PieceKind::Limit, "per-client", "token_bucket: { rate: 10/s, burst: 5 }");
/// let rule = piece(PieceKind::Rule, "per-ip", "limits:\n  - { use: per-clint, key: [ip] }");
/// let own = "version: 1\nrules_from: { source: \"sqlite://rules.db\" }";
/// let wrong = compose_rules(own, true, &[limit, rule], |_| None).unwrap_err();
/// assert_eq!(wrong[0].piece, Some(1));
/// assert_eq!(wrong[0].mistake.line(), 2);
/// assert_eq!(wrong[0].mistake.path(), "limits[0].use");
/// ```
///
/// # Errors
/// Everything that is wrong, each with its piece.
pub fn compose_rules(
    own: &str,
    enabled: bool,
    pieces: &[PieceText],
    environment: impl Fn(&str) -> Option<String>,
) -> Result<RuleFile, Vec<PieceMistake>> {
    let composed = compose(own, enabled, pieces)?;
    decode_node_with(composed.root, environment, file::composed)
        .map_err(|mistakes| mistakes.iter().map(|mistake| told(mistake, &composed.prefixes)).collect())
}

/// Values put together, not read yet.
pub(super) struct Composed {
    pub(super) root: Node,
    /// The path to each piece.
    prefixes: Vec<String>,
}

/// Puts the texts together.
pub(super) fn compose(own: &str, enabled: bool, pieces: &[PieceText]) -> Result<Composed, Vec<PieceMistake>> {
    let root = yaml::read(own).map_err(|mistake| vec![PieceMistake { piece: None, mistake }])?;
    let is_foreign = is_foreign(&root);
    let mut wrong = if is_foreign { Vec::new() } else { not_here(&root) };
    let Node { at, value } = root;
    let Value::Mapping(own) = value else {
        // Read for its mistake.
        return Ok(Composed { root: Node { at, value }, prefixes: Vec::new() });
    };
    let mut parts = Parts::default();
    let mut entries = Vec::with_capacity(own.len());
    for (key, value) in own {
        match parts.of_file(&key, value) {
            Some(_) if !is_foreign && is_named(&key, "enabled") => {}
            Some(value) => entries.push((key, value)),
            None => {}
        }
    }
    if !is_foreign {
        entries.push(word("enabled", Value::Plain(enabled.to_string()), at));
    }
    // Rules come after the routes they belong to, in whatever order they are given.
    let mut prefixes = vec![String::new(); pieces.len()];
    let in_turn = |kind: PieceKind| pieces.iter().enumerate().filter(move |(_, piece)| piece.kind == kind);
    for kind in [PieceKind::Limit, PieceKind::Upstream, PieceKind::Route, PieceKind::Rule] {
        for (index, piece) in in_turn(kind) {
            match parts.add(piece, index + 1) {
                Ok(prefix) => prefixes[index] = prefix,
                Err(mistakes) => {
                    wrong.extend(
                        mistakes.into_iter().map(|mistake| PieceMistake { piece: Some(index), mistake }),
                    );
                }
            }
        }
    }
    if !wrong.is_empty() {
        wrong.sort_by_key(|wrong| wrong.piece);
        return Err(wrong);
    }
    entries.extend(parts.into_entries(at));
    Ok(Composed { root: Node { at, value: Value::Mapping(entries) }, prefixes })
}

/// Whether the database has a table of somebody else's, beside which the file has rules of its own.
fn is_foreign(root: &Node) -> bool {
    let table = entry(root, "rules_from").and_then(|from| entry(from, "table"));
    table.is_some_and(|table| table.written() != "native")
}

/// What a file has that stands in the database.
fn not_here(root: &Node) -> Vec<PieceMistake> {
    let Value::Mapping(entries) = &root.value else { return Vec::new() };
    if entry(root, "rules_from").is_none() {
        return Vec::new();
    }
    let wrong = |name: &'static str| {
        let (key, _) = entries.iter().find(|(key, _)| is_named(key, name))?;
        let mistake = Mistake { at: key.at, path: name.to_owned(), message: TO_MOVE.to_owned() };
        Some(PieceMistake { piece: None, mistake })
    };
    RULES_KEYS.iter().filter_map(|name| wrong(name)).collect()
}

/// What the pieces come to.
#[derive(Default)]
struct Parts {
    limits: Vec<(Node, Node)>,
    upstreams: Vec<(Node, Node)>,
    everywhere: Vec<Node>,
    routes: Vec<Node>,
    /// Where each route is, by its name; of two of one name the first, for the reader objects to the second.
    places: HashMap<String, usize>,
    /// The rules of each route.
    rules: Vec<Vec<Node>>,
}

impl Parts {
    /// Takes what the file itself has of these, and gives back whatever else it is.
    fn of_file(&mut self, key: &Node, value: Node) -> Option<Node> {
        let name = match &key.value {
            Value::Plain(name) | Value::Quoted(name) => name.as_str(),
            _ => return Some(value),
        };
        match (name, value.value) {
            ("limits", Value::Mapping(entries)) if self.limits.is_empty() => self.limits = entries,
            ("upstreams", Value::Mapping(entries)) if self.upstreams.is_empty() => self.upstreams = entries,
            ("everywhere", Value::List(items)) if self.everywhere.is_empty() => self.everywhere = items,
            ("routes", Value::List(items)) if self.routes.is_empty() => {
                for route in items {
                    self.own_route(route);
                }
            }
            (_, other) => return Some(Node { at: value.at, value: other }),
        }
        None
    }

    /// A route of the file itself, whose rules may be joined by others.
    fn own_route(&mut self, route: Node) {
        if let Some(name) = entry(&route, "name") {
            self.places.entry(name.written().into_owned()).or_insert(self.routes.len());
        }
        self.routes.push(route);
        self.rules.push(Vec::new());
    }

    /// Puts a piece to its place, and says the path to it.
    fn add(&mut self, piece: &PieceText, source: usize) -> Result<String, Vec<Mistake>> {
        let at = Position { source, line: 1, column: 1 };
        let here = |mistake: Mistake| Mistake { at: Position { source, ..mistake.at }, ..mistake };
        let node = yaml::read(&piece.text).map_err(|mistake| vec![here(mistake)])?.of_source(source);
        let name = Node { at, value: Value::Quoted(piece.name.clone()) };
        match piece.kind {
            PieceKind::Limit => {
                self.limits.push((name, node));
                Ok(path_to("limits", &piece.name))
            }
            PieceKind::Upstream => {
                self.upstreams.push((name, node));
                Ok(path_to("upstreams", &piece.name))
            }
            PieceKind::Route => {
                let node = with_what_stands_beside(piece, node, at, ROUTE.example)?;
                let place = self.routes.len();
                self.places.entry(piece.name.clone()).or_insert(place);
                self.routes.push(node);
                self.rules.push(Vec::new());
                Ok(format!("routes[{place}]"))
            }
            PieceKind::Rule => {
                let node = with_what_stands_beside(piece, node, at, RULE.example)?;
                let Some(route) = &piece.route else {
                    self.everywhere.push(node);
                    return Ok(format!("everywhere[{}]", self.everywhere.len() - 1));
                };
                let Some(&place) = self.places.get(route) else {
                    let message = format!("there is no route called {route:?}, whose rule it is");
                    return Err(vec![Mistake { at, path: String::new(), message }]);
                };
                let before = entry(&self.routes[place], "rules").map_or(0, |rules| match &rules.value {
                    Value::List(items) => items.len(),
                    _ => 0,
                });
                let rules = &mut self.rules[place];
                rules.push(node);
                Ok(format!("routes[{place}].rules[{}]", before + rules.len() - 1))
            }
        }
    }

    fn into_entries(self, at: Position) -> Vec<(Node, Node)> {
        let Self { limits, upstreams, everywhere, routes, rules, .. } = self;
        let mut entries = Vec::new();
        if !limits.is_empty() {
            entries.push(word("limits", Value::Mapping(limits), at));
        }
        if !upstreams.is_empty() {
            entries.push(word("upstreams", Value::Mapping(upstreams), at));
        }
        if !everywhere.is_empty() {
            entries.push(word("everywhere", Value::List(everywhere), at));
        }
        let routes: Vec<_> =
            routes.into_iter().zip(rules).map(|(route, rules)| with_rules(route, rules)).collect();
        if !routes.is_empty() {
            entries.push(word("routes", Value::List(routes), at));
        }
        entries
    }
}

/// A piece's text with its name and its switch.
fn with_what_stands_beside(
    piece: &PieceText,
    node: Node,
    at: Position,
    example: &str,
) -> Result<Node, Vec<Mistake>> {
    let Node { at: begins, value } = node;
    let Value::Mapping(mut entries) = value else {
        let message = format!(
            "must be a mapping such as `{example}`, without {}",
            listed(piece.beside().iter().copied())
        );
        return Err(vec![Mistake { at: begins, path: String::new(), message }]);
    };
    let wrong = |name: &&'static str| {
        let (key, _) = entries.iter().find(|(key, _)| is_named(key, name))?;
        let message = match *name {
            "rules" => "must not stand in the text of a route: every rule is a piece of its own".to_owned(),
            _ => "must not stand in the text: it is kept beside it".to_owned(),
        };
        Some(Mistake { at: key.at, path: (*name).to_owned(), message })
    };
    let wrong: Vec<_> = piece.beside().iter().filter_map(wrong).collect();
    if !wrong.is_empty() {
        return Err(wrong);
    }
    entries.insert(0, word("name", Value::Quoted(piece.name.clone()), at));
    if !piece.enabled {
        entries.insert(1, word("enabled", Value::Plain("false".to_owned()), at));
    }
    // The name may be wrong, and that is told at the beginning of the piece.
    Ok(Node { at: begins, value: Value::Mapping(entries) })
}

/// A route with further rules.
fn with_rules(mut route: Node, more: Vec<Node>) -> Node {
    let at = route.at;
    if let (Value::Mapping(entries), false) = (&mut route.value, more.is_empty()) {
        match entries.iter_mut().find(|(key, _)| is_named(key, "rules")) {
            Some((_, Node { value: Value::List(rules), .. })) => rules.extend(more),
            // The reader objects to what stands there.
            Some(_) => {}
            None => entries.push(word("rules", Value::List(more), at)),
        }
    }
    route
}

fn word(name: &str, value: Value, at: Position) -> (Node, Node) {
    (Node { at, value: Value::Plain(name.to_owned()) }, Node { at, value })
}

/// A mistake with its piece, and the path from there on.
fn told(mistake: &Mistake, prefixes: &[String]) -> PieceMistake {
    let mut mistake = mistake.clone();
    let piece = mistake.at.source.checked_sub(1);
    if let Some(prefix) = piece.and_then(|piece| prefixes.get(piece))
        && let Some(rest) = mistake.path.strip_prefix(prefix.as_str())
    {
        mistake.path = rest.trim_start_matches('.').to_owned();
    }
    PieceMistake { piece, mistake }
}
