//! How a call can fail. The one thing that matters to whoever charges is whether the script may have run.

use redis::ServerError;
use std::sync::Arc;

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum LinkError {
    /// It never left this process.
    #[error("not sent: {why}")]
    NotSent { why: Arc<str> },
    /// It may have arrived, and may have run: it must not be made again.
    #[error("no answer: {why}")]
    Unanswered { why: Arc<str> },
    /// The server answered, with an error.
    #[error("refused with {code}: {message}")]
    Refused { code: Arc<str>, message: Arc<str> },
}

/// Refusals made before anything of a script was run.
///
/// Some are made at a script's first write, which for a script without a `#!` line is the moment when a server looks whether
/// writes are allowed now; after the first write it no longer looks. NOPERM is not among them: a user may be allowed one
/// command of a script and not the next.
const BEFORE_RUNNING: [&str; 14] = [
    "NOSCRIPT",
    "MOVED",
    "ASK",
    "TRYAGAIN",
    "CLUSTERDOWN",
    "CROSSSLOT",
    "LOADING",
    "READONLY",
    "MASTERDOWN",
    "BUSY",
    "OOM",
    "NOREPLICAS",
    "MISCONF",
    "NOAUTH",
];

impl LinkError {
    /// Whether the call may have been executed, in full or in part.
    pub(crate) fn may_have_run(&self) -> bool {
        match self {
            Self::NotSent { .. } => false,
            Self::Unanswered { .. } => true,
            Self::Refused { code, .. } => !BEFORE_RUNNING.contains(&&**code),
        }
    }

    /// The server's code, if it was the server that refused.
    pub(super) fn code(&self) -> Option<&str> {
        match self {
            Self::Refused { code, .. } => Some(code),
            _ => None,
        }
    }

    /// Whoever would have heard the answer is gone.
    pub(crate) fn shutting_down() -> Self {
        Self::Unanswered { why: "the runtime is shutting down".into() }
    }

    pub(super) fn not_sent(why: impl Into<Arc<str>>) -> Self {
        Self::NotSent { why: why.into() }
    }

    pub(super) fn refused(error: &ServerError) -> Self {
        Self::Refused { code: error.code().into(), message: error.details().unwrap_or_default().into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(line: &str) -> LinkError {
        match redis::parse_redis_value(format!("-{line}\r\n").as_bytes()) {
            Ok(redis::Value::ServerError(error)) => LinkError::refused(&error),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_surely_did_not_run_may_be_made_again() {
        assert!(!LinkError::not_sent("down").may_have_run());
        assert!(LinkError::Unanswered { why: "cut".into() }.may_have_run());
        for line in
            ["NOSCRIPT No matching script.", "MOVED 1 h:1", "OOM command not allowed", "BUSY Redis is busy"]
        {
            assert!(!refusal(line).may_have_run(), "{line}");
        }
        for line in
            ["ERR user_script:1: boom", "NOPERM no", "WRONGTYPE Operation", "UNKILLABLE x", "EXECABORT x"]
        {
            assert!(refusal(line).may_have_run(), "{line}");
        }
    }

    #[test]
    fn a_refusal_keeps_the_servers_words() {
        let error = refusal("OOM command not allowed when used memory > 'maxmemory'.");
        assert_eq!(
            error.to_string(),
            "refused with OOM: command not allowed when used memory > 'maxmemory'."
        );
        assert_eq!(refusal("MOVED 3999 h:6381").to_string(), "refused with MOVED: 3999 h:6381");
        assert_eq!(refusal("LONELY").to_string(), "refused with LONELY: ");
    }
}
