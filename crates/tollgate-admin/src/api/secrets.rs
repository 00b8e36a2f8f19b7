//! What of a rule file is not for everybody: tokens, their hashes, passwords in addresses.
//!
//! Where rules are kept in a file the book is that file, listeners and store included. Whoever may change it sees it as it is;
//! everybody else sees it with its secrets covered. Those that come from the environment are not in the text to begin with.
//!
//! Which they are is told from the text itself, for it need not be what is in force. A text that cannot be read, or has a
//! secret in other letters than these (YAML has ways to write them), is not shown at all.

use super::Api;
use std::env;
use tollgate_book::SourceKind;
use tollgate_rules::{
    RuleFile,
    model::{Role, TokenHash},
    parse_rules,
    pieces::texts_in,
};

const COVER: &str = "(not shown)";

/// Shorter passwords are found everywhere, and are covered in their addresses alone.
const SHORTEST: usize = 4;

/// Covers what somebody may not see.
pub(super) enum Cover {
    /// They may see everything.
    Nothing,
    /// The book is a file. These are the secrets of the one in force.
    File(Secrets),
    /// It is rows, which have none, as far as they are rules.
    Rows(Secrets),
    /// It is rows that are no rules, and may hold anything.
    All,
}

impl Cover {
    /// For somebody with this role.
    pub(super) fn of(api: &Api, role: Role) -> Self {
        if role >= Role::Admin {
            return Self::Nothing;
        }
        let mut secrets = Secrets::default();
        api.program.in_force(&mut |program, _| secrets = Secrets::of(program.file()));
        match api.program.keeper().source().kind {
            SourceKind::File => Self::File(secrets),
            _ if api.state.rules().failure.is_some() => Self::All,
            _ => Self::Rows(secrets),
        }
    }

    /// A text of the book, as they may see it.
    pub(super) fn over(&self, text: &str) -> String {
        let covered = match self {
            Self::Nothing => Some(text.to_owned()),
            Self::File(in_force) => file_covered(text, in_force),
            Self::Rows(in_force) => Some(in_force.covered(text)),
            Self::All => None,
        };
        covered.unwrap_or_else(|| format!("# {COVER}: the file has mistakes, and may hold secrets\n"))
    }
}

/// A file's text without its secrets and those in force; nothing where they cannot be told.
fn file_covered(text: &str, in_force: &Secrets) -> Option<String> {
    let own = Secrets::of(&parse_rules(text, |name| env::var(name).ok()).ok()?);
    let covered = in_force.covered(&own.covered(text));
    let texts = texts_in(&covered)?;
    let is_left = texts.iter().any(|text| own.is_in(text) || in_force.is_in(text));
    (!is_left).then_some(covered)
}

/// What is secret in a file, each with what is shown instead; the longest first, for it may hold others.
#[derive(Default)]
pub(super) struct Secrets(Vec<(String, String)>);

impl Secrets {
    fn of(file: &RuleFile) -> Self {
        let listen = &file.listen;
        let listeners = [&listen.gateway, &listen.grpc, &listen.http, &listen.resp, &listen.admin];
        let mut secrets = Vec::new();
        for listener in listeners.into_iter().flatten() {
            secrets.extend(listener.tokens.iter().map(|token| whole(token.0.clone())));
            secrets.extend(listener.users.iter().map(|user| whole(hex(&user.token))));
        }
        if let Some(telemetry) = &file.telemetry {
            secrets.extend(telemetry.headers.iter().map(|(_, value)| whole(value.clone())));
            secrets.extend(of_address(&telemetry.otlp));
        }
        secrets.extend(of_address(&file.store.url));
        secrets.extend(file.rules_from.iter().flat_map(|from| of_address(&from.source.0)));
        // An empty one would be found everywhere.
        secrets.retain(|(secret, _)| !secret.is_empty());
        secrets.sort_by_key(|(secret, _)| std::cmp::Reverse(secret.len()));
        Self(secrets)
    }

    /// The text without these, without hashes of tokens, and without what stands before the host in an address.
    fn covered(&self, text: &str) -> String {
        let covered =
            self.0.iter().fold(text.to_owned(), |text, (secret, shown)| text.replace(secret, shown));
        let covered =
            each(&covered, "sha256:", |rest| rest.bytes().take_while(u8::is_ascii_hexdigit).count());
        each(&covered, "://", |rest| {
            let end = rest.find(|letter: char| letter.is_whitespace() || "\"'".contains(letter));
            rest[..end.unwrap_or(rest.len())].rfind('@').unwrap_or(0)
        })
    }

    /// Whether one of these is there, in whatever case: a hash may be written in any.
    fn is_in(&self, text: &str) -> bool {
        let text = text.replace(COVER, "").to_ascii_lowercase();
        self.0.iter().any(|(secret, _)| text.contains(&secret.to_ascii_lowercase()))
    }
}

fn whole(secret: String) -> (String, String) {
    (secret, COVER.to_owned())
}

fn hex(hash: &TokenHash) -> String {
    hash.0.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What is secret in an address: what stands before the host, and all that is behind a `?`.
fn of_address(address: &str) -> Vec<(String, String)> {
    let Some((scheme, rest)) = address.split_once("://") else { return Vec::new() };
    let (login, place) = rest.rsplit_once('@').map_or((None, rest), |(login, place)| (Some(login), place));
    let (place, options) = place.find(['?', '#']).map_or((place, ""), |at| place.split_at(at));
    let shown = match login {
        // Nobody can say which of them is the password.
        Some(login) if login.contains(['?', '#', '/']) => format!("{scheme}://{COVER}"),
        Some(_) => format!("{scheme}://{COVER}@{place}"),
        None if options.is_empty() => return Vec::new(),
        None => format!("{scheme}://{place}"),
    };
    let shown = if options.is_empty() { shown } else { format!("{shown}?{COVER}") };
    let password = login.and_then(|login| login.split_once(':')).map(|(_, password)| password);
    let password = password.filter(|password| password.len() >= SHORTEST);
    password.map(|it| whole(it.to_owned())).into_iter().chain([(address.to_owned(), shown)]).collect()
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

    const HASH: &str = "sha256:00112233445566778899aabbccddeeff00112233445566778899AABBCCDDEEFF";

    fn shown(text: &str) -> String {
        Cover::File(Secrets::default()).over(text)
    }

    #[test]
    fn secrets_are_covered_and_nothing_else_is() {
        let text = format!(
            "version: 1
listen:
  http: {{ address: 127.0.0.1:1, tokens: [ hunter2, other ] }}
  admin: {{ address: 127.0.0.1:2, users: [ {{ name: ann, role: viewer, token: \"{HASH}\" }} ] }}
store: {{ url: \"redis://default:pa,ss@10.0.0.1:6379/0\" }}
telemetry: {{ otlp: \"http://127.0.0.1:4317\", headers: {{ x-key: hunter3 }} }}
upstreams: {{ a: {{ servers: [ \"http://127.0.0.1:9\" ] }} }}
# hunter2 came with mysql://root:p@ss@db/rules
"
        );
        assert_eq!(
            shown(&text),
            "version: 1
listen:
  http: { address: 127.0.0.1:1, tokens: [ (not shown), (not shown) ] }
  admin: { address: 127.0.0.1:2, users: [ { name: ann, role: viewer, token: \"sha256:(not shown)\" } ] }
store: { url: \"redis://(not shown)@10.0.0.1:6379/0\" }
telemetry: { otlp: \"http://127.0.0.1:4317\", headers: { x-key: (not shown) } }
upstreams: { a: { servers: [ \"http://127.0.0.1:9\" ] } }
# (not shown) came with mysql://(not shown)@db/rules
"
        );
    }

    #[test]
    fn addresses_are_shown_without_what_lets_somebody_in() {
        for (address, told) in [
            (
                "redis-sentinel://h/primary?sentinel-password=hunter2",
                "redis-sentinel://h/primary?(not shown)",
            ),
            ("redis://:a@h?ca=/b.pem", "redis://(not shown)@h?(not shown)"),
            ("redis://u:pa?ss@h", "redis://(not shown)"),
            ("redis://u:p[a]{s}@h", "redis://(not shown)@h"),
            ("redis://h:6379", "redis://h:6379"),
        ] {
            let text = |address: &str| format!("version: 1\nstore: {{ url: \"{address}\" }}\n");
            assert_eq!(shown(&text(address)), text(told));
        }
        let from = "version: 1\nrules_from: { source: \"postgres://db/rules?password=s3@cret\" }\n";
        assert_eq!(shown(from), "version: 1\nrules_from: { source: \"postgres://(not shown)\" }\n");
    }

    #[test]
    fn what_cannot_be_told_is_not_shown() {
        let cover = "# (not shown): the file has mistakes, and may hold secrets\n";
        for text in [
            "version: 1\nlimits: {",
            "version: 1\nlisten: { http: { address: 127.0.0.1:1, tokens: [ hunter2 ], nonsense: 1 } }\n",
            // The same letters for YAML, and others for everybody else.
            "version: 1\nlisten: { http: { address: 127.0.0.1:1, tokens: [ \"hun\\x74er2\" ] } }\n",
            "version: 1\nstore: { url: \"redis-sentinel://h/p?sentinel-password=hun\\x74er2\" }\n",
        ] {
            assert_eq!(shown(text), cover);
        }
    }

    #[test]
    fn the_secrets_in_force_are_covered_too() {
        let file = parse_rules(
            "version: 1\nlisten: { http: { address: 127.0.0.1:1, tokens: [ hunter2 ] } }",
            |_| None,
        );
        let secrets = Secrets::of(&file.unwrap());
        assert_eq!(Cover::File(secrets).over("version: 1\n# hunter2\n"), "version: 1\n# (not shown)\n");
    }
}
