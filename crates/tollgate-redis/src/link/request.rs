//! What is asked of a server: the script, by its digest as long as the server knows it, or some other command.
//!
//! A server may forget the script at any time (SCRIPT FLUSH, restart, failover) and then answers NOSCRIPT, having run nothing.
//! Then the text is sent along, as EVAL, which teaches the server too. If a thousand calls were on their way, a thousand get
//! NOSCRIPT; but since a connection is answered in order, one text in front of the others is enough. So the calls race for who
//! sends it ([`Wire::claim_text`]), and the losers send their digests again behind it. A loser that was faster than the text,
//! or behind one that was given up, sends the text itself: nobody waits for anybody, and nobody asks more than three times.

use super::{error::LinkError, wire::Wire};
use redis::{Arg, Cmd, Value};

/// The script and its digest.
#[derive(Debug)]
pub(super) struct Script {
    text: &'static str,
    digest: String,
}

impl Script {
    pub(super) fn new(text: &'static str) -> Self {
        Self { text, digest: sha1_smol::Sha1::from(text).digest().to_string() }
    }

    pub(super) fn call(&self, keys: &[impl AsRef<[u8]>], argument: &[u8]) -> Request<'_> {
        let size = keys.iter().map(|key| key.as_ref().len()).sum::<usize>() + argument.len() + 64;
        let mut command = Cmd::with_capacity(keys.len() + 4, size);
        command.arg("EVALSHA").arg(&self.digest).arg(keys.len());
        for key in keys {
            command.arg(key.as_ref());
        }
        command.arg(argument);
        Request { command, script: Some(self) }
    }
}

/// A command, and the script if it is a call of that.
#[derive(Debug)]
pub(super) struct Request<'a> {
    command: Cmd,
    script: Option<&'a Script>,
}

/// Whether a node is asked for a slot that is only just moving in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Manner {
    Plain,
    Asking,
}

impl Request<'_> {
    pub(super) const fn plain(command: Cmd) -> Self {
        Self { command, script: None }
    }

    /// Asks over a wire, with the script's text if need be.
    pub(super) async fn over(&self, wire: &Wire, manner: Manner) -> Result<Value, LinkError> {
        let seen = wire.texts();
        let answer = send(wire, &self.command, manner).await;
        let Some(script) = self.script.filter(|_| is_unknown(&answer)) else { return answer };
        if !wire.claim_text(seen) {
            let answer = send(wire, &self.command, manner).await;
            if !is_unknown(&answer) {
                return answer;
            }
        }
        send(wire, &with_text(&self.command, script), manner).await
    }
}

async fn send(wire: &Wire, command: &Cmd, manner: Manner) -> Result<Value, LinkError> {
    match manner {
        Manner::Plain => wire.send(command).await,
        Manner::Asking => wire.send_asking(command).await,
    }
}

fn is_unknown(answer: &Result<Value, LinkError>) -> bool {
    answer.as_ref().err().and_then(LinkError::code) == Some("NOSCRIPT")
}

/// EVALSHA digest rest -> EVAL text rest
fn with_text(command: &Cmd, script: &Script) -> Cmd {
    let mut whole = Cmd::new();
    whole.arg("EVAL").arg(script.text);
    for rest in command.args_iter().skip(2) {
        if let Arg::Simple(bytes) = rest {
            whole.arg(bytes);
        }
    }
    whole
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_takes_the_digests_place() {
        let script = Script::new("return 1");
        let request = script.call(&[&b"a\0b"[..], b""], b"\xff");
        let words = |command: &Cmd| -> Vec<Vec<u8>> {
            let word = |arg| if let Arg::Simple(bytes) = arg { Vec::from(bytes) } else { Vec::new() };
            command.args_iter().map(word).collect()
        };
        let digest = b"e0e1f9fabfc9d4800c877a703b823ac0578ff8db";
        let rest: [&[u8]; 4] = [b"2", b"a\0b", b"", b"\xff"];
        assert_eq!(words(&request.command), [&[&b"EVALSHA"[..], digest], &rest[..]].concat());
        assert_eq!(
            words(&with_text(&request.command, &script)),
            [&[&b"EVAL"[..], b"return 1"], &rest[..]].concat()
        );
    }
}
