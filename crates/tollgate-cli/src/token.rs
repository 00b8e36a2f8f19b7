//! `tollgate token`, which creates a token and its line for the rule file, and the token that other commands send.

use anyhow::{Context, Result, bail};
use std::{
    env, fs,
    io::{self, Write},
    path::Path,
};

/// The environment variable with the token for listeners that require one.
pub(crate) const VARIABLE: &str = "TOLLGATE_TOKEN";

/// The token from the file, else from the environment; never from the command line, which other users of the machine can
/// read.
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
    // A line break would start another header line.
    if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        bail!("{place} has no valid token: it must be one line of visible characters");
    }
    Ok(Some(token.to_owned()))
}

/// Prints the token and the line.
pub(crate) fn run() -> Result<()> {
    let (token, hash) = tollgate_admin::fresh_token()?;
    let mut output = io::stdout().lock();
    writeln!(output, "token for the user, shown only once:")?;
    writeln!(output, "  {token}")?;
    writeln!(output, "line for listen.admin.users in the rule file:")?;
    writeln!(output, "  - {{ name: NAME, role: viewer, token: \"{hash}\" }}")?;
    Ok(())
}
