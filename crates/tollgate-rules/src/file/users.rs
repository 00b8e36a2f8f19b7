//! Who may look at the admin listener, and from where.

use crate::{
    decode::{Cursor, record},
    model::{Listener, Role, TokenHash, User},
    schema,
};

const ROLES: [(&str, Role); 3] =
    [("viewer", Role::Viewer), ("operator", Role::Operator), ("admin", Role::Admin)];

/// Reads `users`.
pub(super) fn users(users: &Cursor<'_>) -> Option<Vec<User>> {
    let list = users.list("[ { name: ann, role: viewer, token: \"sha256:...\" } ]")?;
    let mut known: Vec<User> = Vec::new();
    let mut is_read = true;
    for here in &list {
        let Some(user) = user(here) else {
            is_read = false;
            continue;
        };
        let other = known.iter().find(|other| other.name == user.name || other.token == user.token);
        if let Some(other) = other {
            let what = if other.name == user.name { "name" } else { "token" };
            here.mistake_without_values(format!("has the same {what} as another user"));
            is_read = false;
        }
        known.push(user);
    }
    is_read.then_some(known)
}

fn user(here: &Cursor<'_>) -> Option<User> {
    let mut fields = here.mapping(&schema::USER)?;
    record!(fields => User {
        name: fields.required("name").and_then(|name| self::name(&name)),
        role: fields.required("role").and_then(|role| role.choice(&ROLES)),
        token: fields.required("token").and_then(|token| hash(&token)),
    })
}

fn name(name: &Cursor<'_>) -> Option<String> {
    const LONGEST: usize = 64;
    let text = name.text("a name")?;
    let is_name = !text.is_empty() && text.len() <= LONGEST && !text.chars().any(char::is_control);
    if !is_name {
        name.mistake_without_values("must be a name of at most 64 characters");
        return None;
    }
    Some(text.to_owned())
}

/// What is there instead of a hash may be the token itself, so it is not shown.
fn hash(token: &Cursor<'_>) -> Option<TokenHash> {
    let read = token.text("the hash of a token")?.strip_prefix("sha256:").and_then(bytes);
    if read.is_none() {
        let wanted = "must be `sha256:` and 64 hexadecimal digits; `tollgate token` prints a token and this line for it";
        token.mistake_without_values(wanted);
    }
    read.map(TokenHash)
}

fn bytes(digits: &str) -> Option<[u8; 32]> {
    let digits: Vec<u8> =
        digits.chars().map(|digit| Some(digit.to_digit(16)? as u8)).collect::<Option<_>>()?;
    let bytes: Vec<u8> = digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect();
    if digits.len() == 64 { bytes.try_into().ok() } else { None }
}

/// What can change rules is not open to other machines: whoever comes says who they are, on a line nobody listens in on.
pub(super) fn guarded(here: &Cursor<'_>, listener: &Listener) -> Option<()> {
    // Behind a proxy everybody comes from this machine.
    if listener.address.ip().is_loopback() && !listener.proxied {
        return Some(());
    }
    if listener.users.is_empty() {
        here.mistake_without_values(
            "listens beyond loopback: set `users`, each with a token (`tollgate token` creates one), or use a loopback \
             address without `proxied`",
        );
        return None;
    }
    if listener.tls.is_none() && !listener.proxied {
        here.mistake_without_values(
            "listens beyond loopback without TLS: set `tls: { cert: ..., key: ... }`, or \
             `proxied: true` if a proxy in front of it provides TLS",
        );
        return None;
    }
    Some(())
}
