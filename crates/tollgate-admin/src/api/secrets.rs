//! What of a rule file is not for everybody: tokens, their hashes, passwords in addresses.
//!
//! Where rules are kept in a file the book is that file, listeners and store included. Whoever may change it sees it as it is;
//! everybody else sees it with its secrets covered. Those that come from the environment are not in the text to begin with.

use super::Api;
use serde_json::Value;
use tollgate_rules::{RuleFile, model::Role};

const COVER: &str = "(not shown)";

/// A text of the book, as somebody with this role may see it.
pub(super) fn shown(api: &Api, role: Role, text: &str) -> String {
    if role >= Role::Admin {
        return text.to_owned();
    }
    // What is not in force may have secrets that nobody here knows of.
    if api.state.rules().failure.is_some() {
        return format!("# {COVER}: the file has mistakes, and may hold secrets\n");
    }
    let mut secrets = Vec::new();
    api.program.in_force(&mut |program, _| secrets = known(program.file()));
    covered(text, &secrets)
}

/// The secrets of a file.
fn known(file: &RuleFile) -> Vec<String> {
    let listen = &file.listen;
    let listeners = [&listen.gateway, &listen.grpc, &listen.http, &listen.resp, &listen.admin];
    let tokens = listeners.into_iter().flatten().flat_map(|listener| &listener.tokens);
    let telemetry = file.telemetry.iter().flat_map(|it| it.headers.iter().map(|(_, value)| value.clone()));
    // An empty one would be found everywhere.
    tokens.map(|token| token.0.clone()).chain(telemetry).filter(|secret| !secret.is_empty()).collect()
}

/// The text without these, without hashes of tokens, and without what stands before the host in an address.
fn covered(text: &str, secrets: &[String]) -> String {
    let mut text = text.to_owned();
    for secret in secrets {
        text = text.replace(secret, COVER);
    }
    text = each(&text, "sha256:", |rest| rest.bytes().take_while(u8::is_ascii_hexdigit).count());
    each(&text, "://", |rest| {
        let end = rest.find(|letter: char| letter.is_whitespace() || "/\"',?#[]{}".contains(letter));
        let authority = &rest[..end.unwrap_or(rest.len())];
        authority.rfind('@').unwrap_or(0)
    })
}

/// Shorter ones are no secrets, and would be found everywhere.
const SHORTEST_VARIABLE: usize = 4;

/// Fields that tell in words what a rule says.
const WORDS: [&str; 3] = ["when", "excess", "strip_prefix"];

/// Puts the name of a variable wherever such a field has its value.
pub(super) fn name_variables(told: &mut Value, variables: &[(String, String)]) {
    match told {
        Value::String(text) => {
            for (name, value) in variables.iter().filter(|(_, value)| value.len() >= SHORTEST_VARIABLE) {
                if text.contains(value.as_str()) {
                    *text = text.replace(value.as_str(), &format!("${{{name}}}"));
                }
            }
        }
        Value::Array(list) => list.iter_mut().for_each(|told| name_variables(told, variables)),
        Value::Object(fields) => {
            // Names are what everything else is found by.
            let texts = fields
                .iter_mut()
                .filter(|(field, told)| !told.is_string() || WORDS.contains(&field.as_str()));
            texts.for_each(|(_, told)| name_variables(told, variables));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Covers so many bytes after every mark.
fn each(text: &str, mark: &str, length: impl Fn(&str) -> usize) -> String {
    let mut told = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(mark) {
        let (before, after) = rest.split_at(at + mark.len());
        told.push_str(before);
        let hidden = length(after);
        if hidden > 0 {
            told.push_str(COVER);
        }
        rest = &after[hidden..];
    }
    told + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_from_the_environment_are_shown_by_name() {
        let variables = [("KEY".to_owned(), "s3cret".to_owned()), ("ONE".to_owned(), "1".to_owned())];
        let mut told = serde_json::json!({ "rules": [{ "when": "header.x-key is \"s3cret\"", "rule": "s3cret", "n": 1 }] });
        name_variables(&mut told, &variables);
        assert_eq!(
            told,
            serde_json::json!({ "rules": [{ "when": "header.x-key is \"${KEY}\"", "rule": "s3cret", "n": 1 }] })
        );
    }

    #[test]
    fn secrets_are_covered_and_nothing_else_is() {
        let text = "listen:
  http: { address: 127.0.0.1:1, tokens: [ hunter2, \"${TOKEN}\" ] }
  admin: { users: [ { name: ann, token: \"sha256:00ff\" } ] }
store: { url: \"redis://default:hunter3@10.0.0.1:6379/0\" }
rules_from: { source: mysql://root:p@ss@db/rules }
upstreams: { a: { servers: [ \"http://127.0.0.1:9\" ] } }
";
        assert_eq!(
            covered(text, &["hunter2".to_owned()]),
            "listen:
  http: { address: 127.0.0.1:1, tokens: [ (not shown), \"${TOKEN}\" ] }
  admin: { users: [ { name: ann, token: \"sha256:(not shown)\" } ] }
store: { url: \"redis://(not shown)@10.0.0.1:6379/0\" }
rules_from: { source: mysql://(not shown)@db/rules }
upstreams: { a: { servers: [ \"http://127.0.0.1:9\" ] } }
"
        );
    }
}
