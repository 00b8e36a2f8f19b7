//! What clients say before they ask: who they are, and how they want to be spoken to.

use super::{
    Resp,
    command::Verb,
    parse::Request,
    reply::{Protocol, Reply, echoed},
    session::Session,
};
use tollgate::{Cells, Enter};

impl<S: Enter + Cells> Resp<S> {
    pub(super) fn talk(
        &self,
        verb: Verb,
        request: &Request<'_>,
        session: &mut Session,
        output: &mut Vec<u8>,
    ) {
        let mut reply = Reply::new(output, session.protocol);
        match verb {
            Verb::Ping if request.len() > 2 => {
                reply.error("ERR wrong number of arguments for 'ping' command: PING [message]");
            }
            Verb::Ping if request.len() == 2 => reply.bulk(request.get(1)),
            Verb::Ping => reply.simple("PONG"),
            Verb::Echo => reply.bulk(request.get(1)),
            Verb::Quit => {
                session.is_over = true;
                reply.ok();
            }
            Verb::Select => match request.get(1) {
                b"0" => reply.ok(),
                _ => reply.error("ERR DB index is out of range: there is only database 0"),
            },
            Verb::Forget => {
                let fresh = Session::new(self.settings.tokens.is_empty());
                *session = Session { id: session.id, ..fresh };
                reply.simple("RESET");
            }
            Verb::Auth => match request.len() {
                2 => self.authenticate(request.get(1), session, &mut reply),
                3 => self.authenticate(request.get(2), session, &mut reply),
                _ => reply.error("ERR syntax error: AUTH [username] password"),
            },
            Verb::Client => client(request, session, &mut reply),
            _ => self.hello(request, session, output),
        }
    }

    fn authenticate(&self, word: &[u8], session: &mut Session, reply: &mut Reply<'_>) {
        match self.admits(word) {
            Ok(()) => {
                session.is_known = true;
                reply.ok();
            }
            Err(why) => reply.error(why),
        }
    }

    /// Whoever the user is, it is the word that counts.
    fn admits(&self, word: &[u8]) -> Result<(), &'static str> {
        if self.settings.tokens.is_empty() {
            return Err("ERR AUTH was called and this listener has no tokens: leave the password out");
        }
        if self.settings.tokens.admits(word) {
            return Ok(());
        }
        Err("WRONGPASS invalid username-password pair or user is disabled.")
    }

    /// `HELLO [2|3 [AUTH user password] [SETNAME name]]`
    fn hello(&self, request: &Request<'_>, session: &mut Session, output: &mut Vec<u8>) {
        match self.greeted(request, session) {
            Ok(()) => greet(session, &mut Reply::new(output, session.protocol)),
            Err(why) => Reply::new(output, session.protocol).error(&why),
        }
    }

    fn greeted(&self, request: &Request<'_>, session: &mut Session) -> Result<(), String> {
        let protocol = match request.get(1) {
            _ if request.len() == 1 => session.protocol,
            b"2" => Protocol::Two,
            b"3" => Protocol::Three,
            _ => return Err("NOPROTO unsupported protocol version".to_owned()),
        };
        let (mut at, mut name, mut is_known) = (2, None, session.is_known);
        while at < request.len() {
            let left = request.len() - at - 1;
            if request.get(at).eq_ignore_ascii_case(b"AUTH") && left >= 2 {
                self.admits(request.get(at + 2)).map_err(str::to_owned)?;
                is_known = true;
                at += 3;
            } else if request.get(at).eq_ignore_ascii_case(b"SETNAME") && left >= 1 {
                name = Some(request.get(at + 1));
                at += 2;
            } else {
                return Err(format!("ERR Syntax error in HELLO option '{}'", echoed(request.get(at))));
            }
        }
        if !is_known {
            return Err("NOAUTH HELLO must be called with the client already authenticated, otherwise the \
                        HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client and \
                        select the RESP protocol version at the same time"
                .to_owned());
        }
        if let Some(name) = name {
            session.name = named(name)?.to_vec();
        }
        (session.protocol, session.is_known) = (protocol, is_known);
        Ok(())
    }
}

fn greet(session: &Session, reply: &mut Reply<'_>) {
    reply.map(7);
    let mut pair = |name: &str, value: &str| {
        reply.bulk(name.as_bytes());
        reply.bulk(value.as_bytes());
    };
    pair("server", "tollgate");
    pair("version", env!("CARGO_PKG_VERSION"));
    pair("mode", "standalone");
    pair("role", "master");
    reply.bulk(b"proto");
    reply.integer(if session.protocol == Protocol::Three { 3 } else { 2 });
    reply.bulk(b"id");
    reply.integer(session.id);
    reply.bulk(b"modules");
    reply.array(0);
}

/// Names are listed by words, so they have no blanks.
fn named(name: &[u8]) -> Result<&[u8], String> {
    if name.iter().all(u8::is_ascii_graphic) {
        return Ok(name);
    }
    Err("ERR Client names cannot contain spaces, newlines or special characters.".to_owned())
}

fn client(request: &Request<'_>, session: &mut Session, reply: &mut Reply<'_>) {
    let word = request.get(1).to_ascii_uppercase();
    match (&word[..], request.len()) {
        (b"SETNAME", 3) => match named(request.get(2)) {
            Ok(name) => {
                session.name = name.to_vec();
                reply.ok();
            }
            Err(why) => reply.error(&why),
        },
        (b"GETNAME", 2) if session.name.is_empty() => reply.null(),
        (b"GETNAME", 2) => reply.bulk(&session.name),
        (b"ID", 2) => reply.integer(session.id),
        (b"INFO", 2) | (b"LIST", 2..) => {
            let resp = if session.protocol == Protocol::Three { 3 } else { 2 };
            let name = String::from_utf8_lossy(&session.name);
            // Clients read all of these as numbers, and stumble over one that is missing.
            reply.text(&format!(
                "id={} name={name} age=0 idle=0 flags=N db=0 sub=0 psub=0 ssub=0 multi=-1 qbuf=0 qbuf-free=0 argv-mem=0 \
                 multi-mem=0 rbs=0 rbp=0 obl=0 oll=0 omem=0 tot-mem=0 events=r cmd=client user=default redir=-1 \
                 resp={resp}\n",
                session.id
            ));
        }
        // Said by clients in passing, and without a meaning here.
        (b"SETINFO", 4) | (b"NO-EVICT" | b"NO-TOUCH", 3) => reply.ok(),
        (_, _) => {
            let word = echoed(request.get(1));
            reply.error(&format!(
                "ERR unknown subcommand or wrong number of arguments for '{word}'. There are CLIENT GETNAME, SETNAME name, \
                 SETINFO attribute value, ID, INFO, LIST, NO-EVICT ON|OFF, NO-TOUCH ON|OFF."
            ));
        }
    }
}
