//! A request, and who answers it.

use super::{
    Resp,
    command::{self, Spec, Verb},
    parse::Request,
    reply::{Reply, echoed},
    session::Session,
};
use tollgate::{Cells, Enter};
use tollgate_rules::{
    DecisionService,
    decision::{self, Api, DecisionError},
};

/// A decision session for the requests of one round, opened when it is first needed.
pub(super) struct LazySession<'s, S: Enter> {
    decisions: &'s DecisionService<S>,
    session: &'s mut Option<decision::Session<S>>,
}

impl<S: Enter> LazySession<'_, S> {
    pub(super) fn open(&mut self) -> &decision::Session<S> {
        self.session.get_or_insert_with(|| self.decisions.session(Api::Resp))
    }
}

impl<S: Enter + Cells> Resp<S> {
    /// Answers one request.
    pub(super) async fn answer(
        &self,
        request: &Request<'_>,
        session: &mut Session,
        decision: &mut Option<decision::Session<S>>,
        output: &mut Vec<u8>,
    ) {
        let mut reply = Reply::new(output, session.protocol);
        let Some(spec) = command::find(request.get(0)) else {
            return match session.is_known {
                true => unknown(request, &mut reply),
                false => stranger(&mut reply),
            };
        };
        if !session.is_known && !spec.is_before_auth() {
            return stranger(&mut reply);
        }
        if !spec.takes(request.len()) {
            return spec.wrong_number(&mut reply);
        }
        let mut lazy = LazySession { decisions: &self.decisions, session: decision };
        match spec.verb {
            Verb::Throttle => super::cells::throttle(request, &mut lazy, &mut reply).await,
            Verb::Gcra => super::cells::gcra(request, &mut lazy, &mut reply).await,
            Verb::Del | Verb::Exists => {
                super::cells::count(spec.verb, request, &mut lazy, &mut reply).await;
            }
            Verb::Ttl | Verb::Pttl | Verb::Get => {
                super::cells::owing(spec.verb, request, &mut lazy, &mut reply).await;
            }
            Verb::Check
            | Verb::Peek
            | Verb::Refund
            | Verb::Reset
            | Verb::Enter
            | Verb::Renew
            | Verb::Leave => super::limits::answer(spec, request, &mut lazy, &mut reply).await,
            Verb::Command => super::described::commands(request, &mut reply),
            Verb::Info => super::described::info(request, session, &mut reply),
            _ => self.talk(spec.verb, request, session, output),
        }
    }
}

fn stranger(reply: &mut Reply<'_>) {
    reply.error("NOAUTH Authentication required.");
}

fn unknown(request: &Request<'_>, reply: &mut Reply<'_>) {
    let name = request.get(0);
    let mut text = format!("ERR unknown command '{}'", echoed(name));
    if let Some(nearest) = command::nearest_name(name) {
        text.push_str(&format!("; did you mean {nearest}?"));
    } else {
        text.push_str("; COMMAND LIST names those there are");
    }
    reply.error(&text);
}

impl Spec {
    pub(super) fn wrong_number(&self, reply: &mut Reply<'_>) {
        if self.verb == Verb::Throttle {
            return reply.error(super::cells::USAGE);
        }
        let name = self.name.to_ascii_lowercase();
        let usage = format!("{} {}", self.name, self.syntax);
        reply.error(&format!("ERR wrong number of arguments for '{name}' command: {}", usage.trim_end()));
    }
}

/// Why there is no answer.
pub(super) fn failed(reply: &mut Reply<'_>, error: &DecisionError) {
    let hint = match error {
        DecisionError::UnknownLimit { nearest: None, .. } => {
            "; those there are stand in the rule file at `limits`"
        }
        _ => "",
    };
    reply.error(&format!("ERR {error}{hint}"));
}
