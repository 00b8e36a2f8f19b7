//! The commands there are: what they are called, how many arguments they take, what they do.

use tollgate_rules::nearest;

/// What a command does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    Throttle,
    Gcra,
    Check,
    Peek,
    Refund,
    Reset,
    Enter,
    Renew,
    Leave,
    Ping,
    Echo,
    Quit,
    Hello,
    Auth,
    Select,
    Client,
    Command,
    Info,
    Forget,
    Del,
    Exists,
    Ttl,
    Pttl,
    Get,
}

/// One command.
#[derive(Debug)]
pub(crate) struct Spec {
    /// In capitals.
    pub(crate) name: &'static str,
    pub(crate) verb: Verb,
    /// Arguments, the name among them: exactly so many, or at least as many below zero.
    pub(crate) arity: i64,
    /// Where its key is, for whoever routes by keys; zero where it has none.
    pub(crate) key: i64,
    pub(crate) flags: &'static [&'static str],
    pub(crate) syntax: &'static str,
    pub(crate) summary: &'static str,
}

const WRITE: &[&str] = &["write", "fast"];
const READ: &[&str] = &["readonly", "fast"];
const TALK: &[&str] = &["noscript", "loading", "stale", "fast"];
const BEFORE: &[&str] = &["noscript", "loading", "stale", "fast", "no_auth", "allow_busy"];

const fn spec(
    name: &'static str,
    verb: Verb,
    (arity, key): (i64, i64),
    flags: &'static [&'static str],
    syntax: &'static str,
    summary: &'static str,
) -> Spec {
    Spec { name, verb, arity, key, flags, syntax, summary }
}

/// Those asked most stand first.
pub(crate) static COMMANDS: [Spec; 24] = [
    spec(
        "CL.THROTTLE",
        Verb::Throttle,
        (-5, 1),
        WRITE,
        "<key> <max_burst> <count per period> <period> [<quantity>]",
        "Charges a bucket whose numbers come with the question; answers limited, limit, remaining, retry after, reset \
         after, in seconds. Quantity 0 asks, below 0 gives back.",
    ),
    spec(
        "TG.CHECK",
        Verb::Check,
        (-3, 2),
        WRITE,
        "limit key [cost] | limit KEYS n value [value ...] [cost]",
        "Charges a limit of the rule file; answers limited, limit, remaining, retry after, reset after, in milliseconds. \
         KEYS names a key of several values; KEYS 0, one bucket for all, needs its cost said.",
    ),
    spec(
        "TG.PEEK",
        Verb::Peek,
        (-3, 2),
        READ,
        "limit key [cost] | limit KEYS n value [value ...] [cost]",
        "What TG.CHECK would answer, charging nothing.",
    ),
    spec(
        "TG.ENTER",
        Verb::Enter,
        (-3, 2),
        WRITE,
        "limit key [cost] | limit KEYS n value [value ...] [cost]",
        "Takes a slot of a concurrency limit; answers as TG.CHECK does and with the permit that holds it, null where \
         there is none to give back: refused, switched off, open while the store is away, at a cost of 0. Retry after -2: \
         when somebody leaves.",
    ),
    spec(
        "TG.RENEW",
        Verb::Renew,
        (-4, 2),
        WRITE,
        "limit key permit | limit KEYS n value [value ...] permit",
        "Lets a permit hold its slot for another max_hold; 1 where it still held it.",
    ),
    spec(
        "TG.LEAVE",
        Verb::Leave,
        (-4, 2),
        WRITE,
        "limit key permit | limit KEYS n value [value ...] permit",
        "Gives a slot back; how many units came back.",
    ),
    spec(
        "TG.REFUND",
        Verb::Refund,
        (-3, 2),
        WRITE,
        "limit key [units] | limit KEYS n value [value ...] [units]",
        "Takes units off the newest use of a key.",
    ),
    spec(
        "TG.RESET",
        Verb::Reset,
        (-3, 2),
        WRITE,
        "limit key | limit KEYS n value [value ...]",
        "Forgets what a key has used.",
    ),
    spec(
        "GCRA",
        Verb::Gcra,
        (-5, 1),
        WRITE,
        "key max_burst tokens_per_period period [TOKENS n]",
        "CL.THROTTLE as Redis itself calls it; the period may have a fraction.",
    ),
    spec("PING", Verb::Ping, (-1, 0), TALK, "[message]", "Answers PONG, or the message."),
    spec("ECHO", Verb::Echo, (2, 0), TALK, "message", "Answers the message."),
    spec("QUIT", Verb::Quit, (-1, 0), BEFORE, "", "Answers OK and closes the connection."),
    spec(
        "HELLO",
        Verb::Hello,
        (-1, 0),
        BEFORE,
        "[protover [AUTH username password] [SETNAME clientname]]",
        "Chooses the protocol, 2 or 3.",
    ),
    spec("AUTH", Verb::Auth, (-2, 0), BEFORE, "[username] password", "Lets in whoever knows a token."),
    spec("RESET", Verb::Forget, (1, 0), BEFORE, "", "The connection as if new."),
    spec("SELECT", Verb::Select, (2, 0), TALK, "index", "There is only database 0."),
    spec(
        "CLIENT",
        Verb::Client,
        (-2, 0),
        TALK,
        "GETNAME | SETNAME name | SETINFO attribute value | ID | INFO | LIST | NO-EVICT ON|OFF | NO-TOUCH ON|OFF",
        "What clients say of themselves.",
    ),
    spec(
        "COMMAND",
        Verb::Command,
        (-1, 0),
        TALK,
        "[COUNT | LIST | DOCS [name ...] | INFO [name ...]]",
        "The commands there are.",
    ),
    spec("INFO", Verb::Info, (-1, 0), TALK, "[section ...]", "What this server is."),
    spec("DEL", Verb::Del, (-2, 1), WRITE, "key [key ...]", "Forgets what CL.THROTTLE has charged."),
    spec("EXISTS", Verb::Exists, (-2, 1), READ, "key [key ...]", "How many of these owe anything."),
    spec("TTL", Verb::Ttl, (2, 1), READ, "key", "Seconds until a bucket of CL.THROTTLE is full, or -2."),
    spec(
        "PTTL",
        Verb::Pttl,
        (2, 1),
        READ,
        "key",
        "Milliseconds until a bucket of CL.THROTTLE is full, or -2.",
    ),
    spec("GET", Verb::Get, (2, 1), READ, "key", "When a bucket of CL.THROTTLE is full, in Unix nanoseconds."),
];

/// Names are not longer than this.
const LONGEST: usize = 16;

/// The command of this name, however it is written.
#[inline]
pub(crate) fn find(name: &[u8]) -> Option<&'static Spec> {
    let mut capitals = [0; LONGEST];
    let capitals = capitals.get_mut(..name.len())?;
    capitals.copy_from_slice(name);
    capitals.make_ascii_uppercase();
    COMMANDS.iter().find(|spec| spec.name.as_bytes() == capitals)
}

/// The name that was perhaps meant.
pub(crate) fn nearest_name(name: &[u8]) -> Option<&'static str> {
    let typed = String::from_utf8_lossy(name).to_ascii_uppercase();
    nearest(&typed, COMMANDS.iter().map(|spec| spec.name))
}

impl Spec {
    /// Whether so many arguments, the name among them, can be right.
    pub(crate) const fn takes(&self, arguments: usize) -> bool {
        let arguments = arguments as i64;
        if self.arity < 0 { arguments >= -self.arity } else { arguments == self.arity }
    }

    /// Whether somebody may ask who has not been let in.
    pub(crate) fn is_before_auth(&self) -> bool {
        self.flags.contains(&"no_auth")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_however_they_are_written() {
        for spec in &COMMANDS {
            assert!(spec.name.len() <= LONGEST);
            assert_eq!(find(spec.name.to_ascii_lowercase().as_bytes()).map(|it| it.verb), Some(spec.verb));
        }
        assert!(find(b"").is_none() && find(&[b'x'; 1_000]).is_none());
        assert_eq!(nearest_name(b"cl.throtle"), Some("CL.THROTTLE"));
    }
}
