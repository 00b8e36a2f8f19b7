//! `tollgate token`: a fresh token, and the line that a rule file knows it by.

use anyhow::Result;
use std::io::{self, Write};

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
