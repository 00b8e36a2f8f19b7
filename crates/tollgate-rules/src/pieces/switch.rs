//! A switch of a file, turned by changing one word: everything else of the text stays, comments and all.

use super::{
    entry, same,
    spans::{Shape, Spanned},
    split::without,
};
use crate::yaml::{self, Node, Value};
use thiserror::Error;

/// Which switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhichSwitch<'a> {
    /// The global one.
    Global,
    /// That of a rule.
    Rule {
        /// Whose rule; `None` for a rule of every route.
        route: Option<&'a str>,
        /// Its name.
        rule: &'a str,
    },
}

/// Why a switch was not turned.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SwitchError {
    /// There is none.
    #[error("{0}")]
    Unknown(String),
    /// It cannot be turned by changing a word.
    #[error("{0}")]
    Text(String),
}

/// A rule file's text with one switch turned.
///
/// ```
/// use tollgate_rules::pieces::{WhichSwitch, switch_text};
///
/// let off = switch_text("version: 1 # the first\nlisten: {}\n", WhichSwitch::Global, false)?;
/// assert_eq!(off, "version: 1 # the first\nenabled: false\nlisten: {}\n");
/// # Ok::<(), tollgate_rules::pieces::SwitchError>(())
/// ```
///
/// # Errors
/// There is no such rule, the text cannot be read, or its switch comes from the environment.
pub fn switch_text(text: &str, which: WhichSwitch<'_>, enabled: bool) -> Result<String, SwitchError> {
    let before = yaml::read(text)
        .map_err(|mistake| SwitchError::Text(format!("the file cannot be read: {mistake}")))?;
    let root = Spanned::read(text).ok_or_else(|| SwitchError::Text("the file cannot be read".to_owned()))?;
    let mapping = match which {
        WhichSwitch::Global => &root,
        WhichSwitch::Rule { route: None, rule } => {
            root.entry("everywhere").and_then(|rules| rules.named(rule)).ok_or_else(|| {
                SwitchError::Unknown(format!("there is no rule of every route called {rule:?}"))
            })?
        }
        WhichSwitch::Rule { route: Some(route), rule } => root
            .entry("routes")
            .and_then(|routes| routes.named(route))
            .ok_or_else(|| SwitchError::Unknown(format!("there is no route called {route:?}")))?
            .entry("rules")
            .and_then(|rules| rules.named(rule))
            .ok_or_else(|| SwitchError::Unknown(format!("route {route:?} has no rule called {rule:?}")))?,
    };
    let turned = turned(text, mapping, enabled)?;
    // Whatever the text's style, it must say the same as before but for the switch.
    let is_so = yaml::read(&turned).is_ok_and(|after| says_only_that(&before, &after, which, enabled));
    match is_so {
        true => Ok(turned),
        false => Err(SwitchError::Text(
            "the switch cannot be turned in a text of this style; write `enabled: true` there by hand, once"
                .to_owned(),
        )),
    }
}

/// The global switch of a rule file's text; `None` where the text cannot be read, or where the switch is no plain word.
#[must_use]
pub fn is_on(text: &str) -> Option<bool> {
    match yaml::read(text) {
        Ok(root @ Node { value: Value::Mapping(_), .. }) => match entry(&root, "enabled").map(|it| &it.value)
        {
            None => Some(true),
            Some(Value::Plain(word)) => word.parse().ok(),
            Some(_) => None,
        },
        _ => None,
    }
}

fn turned(text: &str, mapping: &Spanned, enabled: bool) -> Result<String, SwitchError> {
    if let Some(switch) = mapping.entry("enabled") {
        let written = &text[switch.span.clone()];
        if !matches!(written.trim_end(), "true" | "false") {
            return Err(SwitchError::Text(format!(
                "`enabled` is written as {written:?}, which is not `true` or `false`; it is turned where that comes from"
            )));
        }
        let end = switch.span.start + written.trim_end().len();
        return Ok(format!("{}{enabled}{}", &text[..switch.span.start], &text[end..]));
    }
    if enabled {
        return Ok(text.to_owned());
    }
    let start = mapping.span.start;
    if text[start..].starts_with('{') {
        let separator = if mapping.entries().is_empty() { "" } else { "," };
        return Ok(format!("{}{{ enabled: false{separator}{}", &text[..start], &text[start + 1..]));
    }
    let Some((key, value)) = mapping.entries().first() else {
        return Err(SwitchError::Text("there is no mapping to put `enabled` into".to_owned()));
    };
    let line = text[..key.span.start].rfind('\n').map_or(0, |end| end + 1);
    let indent = " ".repeat(text[line..key.span.start].chars().count());
    // After a first line such as `- name: create # why`, else in front of everything.
    let is_on_one_line = matches!(value.value, Shape::Scalar(_))
        && !text[key.span.start..value.span.end].trim_end().contains('\n');
    if is_on_one_line {
        let from = key.span.start + text[key.span.start..value.span.end].trim_end().len();
        let end = text[from..].find(['\r', '\n']).map_or(text.len(), |end| from + end);
        Ok(format!("{}\n{indent}enabled: false{}", &text[..end], &text[end..]))
    } else {
        let at = key.span.start;
        Ok(format!("{}enabled: false\n{indent}{}", &text[..at], &text[at..]))
    }
}

/// Whether `after` is `before` with that switch turned.
fn says_only_that(before: &Node, after: &Node, which: WhichSwitch<'_>, enabled: bool) -> bool {
    let is_turned = |node: &Node| {
        let is_on = entry(node, "enabled")
            .is_none_or(|switch| matches!(&switch.value, Value::Plain(word) if word == "true"));
        is_on == enabled
    };
    let (mut one, mut other) = (before.clone(), after.clone());
    match (place(&mut one, which), place(&mut other, which)) {
        (Some(one), Some(other)) if is_turned(other) => {
            *one = without(one, &["enabled"]);
            *other = without(other, &["enabled"]);
        }
        _ => return false,
    }
    same(&one, &other)
}

/// The mapping that has the switch.
fn place<'n>(root: &'n mut Node, which: WhichSwitch<'_>) -> Option<&'n mut Node> {
    match which {
        WhichSwitch::Global => Some(root),
        WhichSwitch::Rule { route: None, rule } => named(under(root, "everywhere")?, rule),
        WhichSwitch::Rule { route: Some(route), rule } => {
            named(under(named(under(root, "routes")?, route)?, "rules")?, rule)
        }
    }
}

fn under<'n>(node: &'n mut Node, name: &str) -> Option<&'n mut Node> {
    match &mut node.value {
        Value::Mapping(entries) => {
            entries.iter_mut().find(|(key, _)| super::is_named(key, name)).map(|(_, value)| value)
        }
        _ => None,
    }
}

fn named<'n>(node: &'n mut Node, name: &str) -> Option<&'n mut Node> {
    match &mut node.value {
        Value::List(items) => {
            items.iter_mut().find(|item| entry(item, "name").is_some_and(|found| found.written() == name))
        }
        _ => None,
    }
}
