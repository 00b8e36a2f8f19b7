//! Charges put to the decision service: check, peek, refund, reset.

use super::{
    Json,
    answer::Answer,
    asked::{Asked, Body, Form, LimitText},
    known::{Print, Turn},
    name::put_charge,
    reply::{Problem, Reply},
};
use bytes::Bytes;
use futures_util::future::join_all;
use http::StatusCode;
use smallvec::SmallVec;
use std::sync::Arc;
use tollgate::{Enter, Key, Limit, Store, StoreError};
use tollgate_rules::{
    Mistake,
    decision::{ChargeRequest, DecisionError, LimitRef, Session},
};

/// What is asked, with the limits found and the keys at hand.
pub(super) struct Prepared<'q, 'a, S: Store> {
    pub(super) asked: &'q Asked<'a>,
    limits: SmallVec<[LimitRef<S>; 1]>,
    keys: SmallVec<[SmallVec<[Option<&'q str>; 4]>; 1]>,
}

impl<'q, 'a, S: Store> Prepared<'q, 'a, S> {
    pub(super) fn new(session: &Session<S>, asked: &'q Asked<'a>) -> Result<Self, Reply>
    where
        S: 'static,
    {
        let mut limits = SmallVec::new();
        for (place, charge) in asked.charges.iter().enumerate() {
            let found = match &charge.limit {
                LimitText::Name(name) => session.named(&**name),
                LimitText::Defined(text) => session.defined(text),
            };
            limits.push(found.map_err(|error| unfound(asked, place, &error))?);
        }
        let keys = asked.charges.iter().map(|charge| charge.key.values()).collect();
        Ok(Self { asked, limits, keys })
    }

    pub(super) fn questions(&self) -> SmallVec<[ChargeRequest<'_, S>; 1]> {
        let mut questions = SmallVec::with_capacity(self.limits.len());
        for ((limit, key), charge) in self.limits.iter().zip(&self.keys).zip(&self.asked.charges) {
            let key = Key::List(key);
            questions.push(ChargeRequest { limit, key, cost: charge.cost, up_to: self.asked.up_to });
        }
        questions
    }

    /// The limit of a charge, with the numbers that hold for its key.
    pub(super) fn limit<'s>(&'s self, session: &'s Session<S>, place: usize) -> &'s Limit {
        session.limit_for(&self.limits[place], Key::List(&self.keys[place]))
    }

    /// Refuses slots, which somebody would have to give back.
    pub(super) fn holds_nothing(self, session: &Session<S>) -> Result<Self, Reply> {
        let slots =
            self.limits.iter().position(|which| matches!(session.limit(which), Limit::Concurrency(_)));
        match slots {
            None => Ok(self),
            Some(place) => {
                let message =
                    "is a concurrency limit, whose slots have to be given back; ask POST /v1/permits";
                Err(Reply::mistake(StatusCode::BAD_REQUEST, &self.asked.mistake(place, "limit", message)))
            }
        }
    }
}

/// There is no such limit.
fn unfound(asked: &Asked<'_>, place: usize, error: &DecisionError) -> Reply {
    match error {
        DecisionError::UnknownLimit { .. } => {
            let message = format!("{error} (GET /v1/limits lists them)");
            Reply::mistake(StatusCode::NOT_FOUND, &asked.mistake(place, "limit", message))
        }
        DecisionError::Definition(mistakes) => {
            let told = |it: &Mistake| match it.path() {
                "" => it.message().to_owned(),
                path => format!("{path}: {}", it.message()),
            };
            let each: Vec<_> = mistakes.iter().map(told).collect();
            Reply::mistake(StatusCode::BAD_REQUEST, &asked.mistake(place, "limit", each.join("; ")))
        }
        DecisionError::Store(StoreError::Unsupported { setting, problem }) => Reply::mistake(
            StatusCode::BAD_REQUEST,
            &asked.mistake(place, "limit", format!("{setting} {problem}")),
        ),
        DecisionError::Bandwidth => {
            Reply::mistake(StatusCode::BAD_REQUEST, &asked.mistake(place, "limit", error.to_string()))
        }
        other => unanswered(other),
    }
}

/// Nobody could decide.
pub(super) fn unanswered(error: &DecisionError) -> Reply {
    let detail = match error {
        DecisionError::TooManyDefinitions => return Problem::capacity(&error.to_string()).reply(),
        DecisionError::Store(StoreError::Unanswered { .. }) => format!("{error}; it may have been charged"),
        _ => format!("{error}; nothing was charged"),
    };
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, &detail).retry_after(1).reply()
}

impl<S: Enter + 'static> Json<S> {
    /// `POST /v1/check`, and `/v1/peek`, which charges nothing.
    pub(super) async fn check(self: &Arc<Self>, body: Bytes, form: Form) -> Reply {
        let parsed = match Body::parse(&body, form) {
            Ok(parsed) => parsed,
            Err(mistake) => return Reply::mistake(StatusCode::BAD_REQUEST, &mistake),
        };
        if parsed.questions.iter().all(|asked| asked.id.is_none()) {
            return self.decide(&parsed, form).await;
        }
        // Whoever gives up and sends it again is to be told what became of it: so it goes on, whoever leaves.
        drop(parsed);
        let door = Arc::clone(self);
        let deciding = tokio::spawn(async move {
            match Body::parse(&body, form) {
                Ok(parsed) => door.decide(&parsed, form).await,
                Err(mistake) => Reply::mistake(StatusCode::BAD_REQUEST, &mistake),
            }
        });
        deciding.await.unwrap_or_else(|_| {
            Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "something went wrong here").reply()
        })
    }

    async fn decide(&self, body: &Body<'_>, form: Form) -> Reply {
        let session = self.session();
        // A mistake in one is found before another is charged.
        let mut prepared: SmallVec<[Prepared<'_, '_, S>; 1]> = SmallVec::with_capacity(body.questions.len());
        for asked in &body.questions {
            let found = Prepared::new(&session, asked);
            match found.and_then(|it| if form == Form::Check { it.holds_nothing(&session) } else { Ok(it) }) {
                Ok(it) => prepared.push(it),
                Err(reply) => return reply,
            }
        }
        if let ([one], false) = (&prepared[..], body.is_batch) {
            return self.ask(&session, one, form).await;
        }
        let replies = join_all(prepared.iter().map(|one| self.ask(&session, one, form))).await;
        let mut out = String::from(r#"{"answers":["#);
        for (index, reply) in replies.iter().enumerate() {
            let is_answer = matches!(reply.status, StatusCode::OK | StatusCode::TOO_MANY_REQUESTS);
            let text = std::str::from_utf8(&reply.body).unwrap_or_default();
            out.push_str(if index == 0 { "" } else { "," });
            out.push_str(if is_answer { "" } else { r#"{"allow":null,"problem":"# });
            out.push_str(text);
            out.push_str(if is_answer { "" } else { "}" });
        }
        out.push_str("]}");
        Reply::json(StatusCode::OK, out)
    }

    async fn ask(&self, session: &Session<S>, prepared: &Prepared<'_, '_, S>, form: Form) -> Reply {
        let asked = prepared.asked;
        let Some(id) = &asked.id else { return ask_now(session, prepared, form).await };
        match self.known.turn(id, print(asked)).await {
            Turn::Told(reply) => reply,
            Turn::Taken => {
                let detail = format!(
                    "id: {id:?} was another question's within the last minute; give every question its own"
                );
                Problem::new(StatusCode::CONFLICT, &detail).field("id").reply()
            }
            Turn::Ask(ticket) => {
                let reply = ask_now(session, prepared, form).await;
                ticket.tell(&reply, reply.status == StatusCode::OK);
                reply
            }
        }
    }

    /// `POST /v1/refund` and `/v1/reset`.
    pub(super) async fn undo(&self, body: &[u8], form: Form) -> Reply {
        let parsed = match Body::parse(body, form) {
            Ok(parsed) => parsed,
            Err(mistake) => return Reply::mistake(StatusCode::BAD_REQUEST, &mistake),
        };
        let session = self.session();
        let prepared = match Prepared::new(&session, &parsed.questions[0]) {
            Ok(prepared) => prepared,
            Err(reply) => return reply,
        };
        let questions = prepared.questions();
        let ChargeRequest { limit, key, cost, .. } = questions[0];
        let done = match form {
            Form::Refund => session.refund(limit, key, cost).await,
            _ => session.reset(limit, key).await,
        };
        match done {
            Ok(()) => Reply::json(StatusCode::NO_CONTENT, Bytes::new()),
            Err(error) => unanswered(&error),
        }
    }
}

async fn ask_now<S: Store>(session: &Session<S>, prepared: &Prepared<'_, '_, S>, form: Form) -> Reply {
    let questions = prepared.questions();
    let decided = match form {
        Form::Check => session.check(&questions).await,
        _ => session.peek(&questions).await,
    };
    match decided {
        Ok(status) => Answer::new(&status, prepared.asked.is_set).reply(),
        Err(error) => unanswered(&error),
    }
}

/// What was asked, so that another question is told apart.
fn print(asked: &Asked<'_>) -> Print {
    let mut bytes = vec![u8::from(asked.is_set)];
    asked.charges.iter().for_each(|charge| put_charge(&mut bytes, charge));
    Key::Bytes(&bytes).hash([0, 0], 0)
}
