//! The decoder: walks a tree of YAML, knows the path to where it stands, and collects every mistake on the way.
//!
//! A [`Cursor`] stands on one value, [`Fields`] on the entries of a mapping whose shape is known. Whatever cannot be read is
//! noted and comes back as `None`; the walk goes on, so that one run finds all mistakes. Serde's derive would stop at the
//! first and lose its place.
//!
//! Values from the environment may be secrets. They are put in after the text was read as YAML, so they never become
//! structure, and a message about one shows how it was written, `${NAME}`, instead: see [`Message`].

mod cursor;
mod environment;
mod fields;

pub(crate) use cursor::Cursor;
pub(crate) use fields::Fields;

use crate::{
    mistake::{Mistake, Mistakes, Position},
    nearest::nearest,
    schema::Shape,
    yaml,
};
use std::{borrow::Cow, cell::RefCell};

/// What is said of a value. Where it is put together at run time it may hold the value itself, and is not shown of a value
/// that came from the environment; what stands in the program's text holds nobody's value.
pub(crate) type Message = Cow<'static, str>;

/// Where mistakes are noted.
pub(crate) type Noted = RefCell<Vec<Mistake>>;

/// Reads `text` with `walk`: what it found, or everything that is wrong.
pub(crate) fn decode<T>(text: &str, walk: impl FnOnce(&Cursor<'_>) -> Option<T>) -> Result<T, Mistakes> {
    decode_tree(yaml::read(text), walk, |_, _| ())
}

/// The same, where `${NAME}` takes what `environment` has.
pub(crate) fn decode_with<T>(
    text: &str,
    environment: impl Fn(&str) -> Option<String>,
    walk: impl FnOnce(&Cursor<'_>) -> Option<T>,
) -> Result<T, Mistakes> {
    decode_tree(yaml::read(text), walk, |root, noted| environment::fill(root, &environment, noted))
}

/// The same for a tree that was put together.
pub(crate) fn decode_node_with<T>(
    root: yaml::Node,
    environment: impl Fn(&str) -> Option<String>,
    walk: impl FnOnce(&Cursor<'_>) -> Option<T>,
) -> Result<T, Mistakes> {
    decode_tree(Ok(root), walk, |root, noted| environment::fill(root, &environment, noted))
}

/// What a key of a shape says when it is left out.
pub(crate) fn default_of<T>(
    shape: &Shape,
    name: &str,
    read: impl FnOnce(&Cursor<'_>) -> Option<T>,
) -> Option<T> {
    read_value(yaml::Value::Plain(shape.default_text(name).to_owned()), read)
}

/// What a mapping without any entry says.
pub(crate) fn empty_mapping<T>(read: impl FnOnce(&Cursor<'_>) -> Option<T>) -> Option<T> {
    read_value(yaml::Value::Mapping(Vec::new()), read)
}

fn read_value<T>(value: yaml::Value, read: impl FnOnce(&Cursor<'_>) -> Option<T>) -> Option<T> {
    let (found, mistakes) = walk_tree(&yaml::Node { value, ..yaml::Node::default() }, read);
    debug_assert!(found.is_some() && mistakes.is_empty(), "a default is wrong: {mistakes:?}");
    found
}

/// What `walk` makes of a tree, and everything that it found wrong: for files that are judged together with others.
pub(crate) fn walk_tree<T>(
    root: &yaml::Node,
    walk: impl FnOnce(&Cursor<'_>) -> Option<T>,
) -> (Option<T>, Vec<Mistake>) {
    let noted = Noted::default();
    let found = walk(&Cursor::new(root, String::new(), &noted));
    (found, noted.into_inner())
}

fn decode_tree<T>(
    read: Result<yaml::Node, Mistake>,
    walk: impl FnOnce(&Cursor<'_>) -> Option<T>,
    fill: impl FnOnce(&mut yaml::Node, &Noted),
) -> Result<T, Mistakes> {
    let mut root = read.map_err(|mistake| Mistakes::new(mistake, []))?;
    let noted = Noted::default();
    fill(&mut root, &noted);
    let found = walk(&Cursor::new(&root, String::new(), &noted));
    let mut noted = noted.into_inner().into_iter();
    match (noted.next(), found) {
        (None, Some(found)) => Ok(found),
        (Some(first), _) => Err(Mistakes::new(first, noted)),
        (None, None) => {
            let message = "could not be read".to_owned();
            Err(Mistakes::new(Mistake { at: root.at, path: String::new(), message }, []))
        }
    }
}

/// Names in backquotes, with commas.
pub(crate) fn listed<'n>(names: impl IntoIterator<Item = &'n str>) -> String {
    names.into_iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

/// `text`, or its beginning where it is too long for a message.
pub(crate) fn shorten(text: &str) -> String {
    const LONGEST: usize = 60;
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

/// The end of a message about a mistyped name, where a known one is near.
pub(crate) fn did_you_mean<'n>(typed: &str, known: impl IntoIterator<Item = &'n str>) -> String {
    nearest(typed, known).map(|name| format!("; did you mean `{name}`?")).unwrap_or_default()
}

/// The path of what `name` holds in the mapping at `path`.
pub(crate) fn path_to(path: &str, name: &str) -> String {
    // A name of several lines, or of thousands of letters, would hide the message it introduces.
    let name = shorten(name).escape_debug().to_string();
    if path.is_empty() { name } else { format!("{path}.{name}") }
}

fn note(noted: &Noted, at: Position, path: String, message: impl Into<String>) {
    noted.borrow_mut().push(Mistake { at, path, message: message.into() });
}

/// Reads all keys of a mapping into a struct, beside what was read before and is named after the semicolon. Every value is
/// read, and so judged, before one that is wrong ends it.
macro_rules! record {
    ($fields:ident => $Type:ident { $($name:ident: $read:expr),* $(,)? $(; $($known:ident),*)? }) => {{
        $(let $name = $read;)*
        $fields.finish();
        Some($Type { $($name: $name?,)* $($($known: $known?),*)? })
    }};
}
pub(crate) use record;
