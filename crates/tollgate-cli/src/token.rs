//! `tollgate token`: a fresh token, and the line that a rule file knows it by; and the token that other commands show.

use anyhow::{Context, Result, bail};
use std::{
    env, fs,
    io::{self, Write},
    path::Path,
};

/// The variable of the environment that has the token, where a listener asks for one.
pub(crate) const VARIABLE: &str = "TOLLGATE_TOKEN";

/// The token to show: the file's, else the environment's. It is on no command line, where other users of the machine could
/// read it.
pub(crate) fn shown(file: Option<&Path>) -> Result<Option<String>> {
    let (token, place) = match file {
        Some(file) => {
            let name = file.display().to_string();
            (fs::read_to_string(file).with_context(|| format!("cannot read {name}"))?, name)
        }
        None => match env::var(VARIABLE) {
            Ok(token) => (token, VARIABLE.to_owned()),
            Err(_) => return Ok(None),
        },
    };
    let token = token.trim();
    // One with a line break in it would be two lines of a head.
    if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        bail!("{place} holds no token: it must be one line of visible characters");
    }
    Ok(Some(token.to_owned()))
}

/// Prints both.
pub(crate) fn run() -> Result<()> {
    let (token, hash) = tollgate_admin::fresh_token()?;
    let mut output = io::stdout().lock();
    writeln!(output, "token for them to keep, shown only now:")?;
    writeln!(output, "  {token}")?;
    writeln!(output, "line for listen.admin.users in the rule file:")?;
    writeln!(output, "  - {{ name: NAME, role: viewer, token: \"{hash}\" }}")?;
    Ok(())
}
