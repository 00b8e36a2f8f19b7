//! Turns that are waited for, and slots that are held by somebody who is not here.

use super::{
    Json,
    answer::{Answer, millis},
    asked::{Asked, Body, ChargeText, Form},
    asking::{Prepared, unanswered},
    connection::Visit,
    name::{self, PermitName},
    reply::{Problem, Reply},
};
use bytes::Bytes;
use http::StatusCode;
use std::{num::NonZeroU64, time::Duration};
use tollgate::{Enter, Held, Limit, PermitId, SetStatus};
use tollgate_rules::decision::{DecisionError, Session, SetDecision};

impl<S: Enter + 'static> Json<S> {
    /// `POST /v1/wait`: answered when its turn has come. Who leaves before gives the turn back.
    pub(super) async fn wait(&self, body: &[u8], visit: &Visit<S>) -> Reply {
        let parsed = match Body::parse(body, Form::Wait) {
            Ok(parsed) => parsed,
            Err(mistake) => return Reply::mistake(StatusCode::BAD_REQUEST, &mistake),
        };
        let session = self.session();
        let prepared =
            Prepared::new(&session, &parsed.questions[0]).and_then(|it| it.holds_nothing(&session));
        match prepared {
            Ok(prepared) => match self.enter(&session, &prepared, visit).await {
                Ok(In { status, waited, .. }) => {
                    Answer::new(&status, prepared.asked.is_set).waited(Some(waited)).reply()
                }
                Err(reply) => reply,
            },
            Err(reply) => reply,
        }
    }

    /// `POST /v1/permits`: slots, held until they are given back or not renewed.
    pub(super) async fn permit(&self, body: &[u8], visit: &Visit<S>) -> Reply {
        let parsed = match Body::parse(body, Form::Permits) {
            Ok(parsed) => parsed,
            Err(mistake) => return Reply::mistake(StatusCode::BAD_REQUEST, &mistake),
        };
        let session = self.session();
        match self.hold(&session, &parsed.questions[0], visit).await {
            Ok(reply) | Err(reply) => reply,
        }
    }

    async fn hold(&self, session: &Session<S>, asked: &Asked<'_>, visit: &Visit<S>) -> Result<Reply, Reply> {
        let prepared = Prepared::new(session, asked)?;
        let (held, expires_in) = holding(session, &prepared).ok_or_else(|| {
            let message = "is not a concurrency limit: it has no slots to hold; ask POST /v1/check";
            Reply::mistake(StatusCode::BAD_REQUEST, &asked.mistake(0, "limit", message))
        })?;
        // Found out before anything is held.
        let longest = PermitId::new(NonZeroU64::MAX);
        if name::written(Some(longest), held.iter().copied()).is_none() {
            let message =
                format!("is too long: a permit's name has room for some {} bytes", name::LONGEST / 2);
            return Err(Reply::mistake(StatusCode::BAD_REQUEST, &asked.mistake(0, "key", message)));
        }
        let In { status, waited, permit } = self.enter(session, &prepared, visit).await?;
        let name = name::written(permit, held.iter().copied()).unwrap_or_default();
        let waited = asked.up_to.map(|_| waited);
        Ok(Answer::new(&status, asked.is_set).waited(waited).permit(&name, expires_in).reply())
    }

    async fn enter(
        &self,
        session: &Session<S>,
        prepared: &Prepared<'_, '_, S>,
        visit: &Visit<S>,
    ) -> Result<In, Reply> {
        let questions = prepared.questions();
        let waits = prepared.asked.up_to.is_some_and(|up_to| !up_to.is_zero());
        let _place = if waits {
            let full = || Problem::capacity("too many wait for their turn; please try again").reply();
            Some((self.waiting.enter().ok_or_else(full)?, visit.half_close.waiting()))
        } else {
            None
        };
        let entered = tokio::select! {
            biased;
            entered = session.enter(&questions) => entered,
            // Its turn is given back; another node may have one.
            () = visit.guard().closing() => {
                return Err(Problem::capacity("this node is shutting down; ask another").reply());
            }
        };
        let SetDecision { status, waited, permit } = entered.map_err(|error| unanswered(&error))?;
        if status.is_deny() {
            return Err(Answer::new(&status, prepared.asked.is_set).reply());
        }
        Ok(In { status, waited, permit: permit.and_then(Held::keep) })
    }

    /// `PUT /v1/permits/{name}`: holds on for another while.
    pub(super) async fn renew(&self, name: &str) -> Reply {
        let renewed = self.with_permit(name, async |session, prepared, permit| {
            let questions = prepared.questions();
            if let Some(permit) = permit
                && !session.renew(&questions, permit).await?
            {
                // Some of it may be held still, and is of no use to anybody.
                session.leave(&questions, permit).await?;
                return Ok(gone("the permit was not renewed in time, and is lost"));
            }
            let Some((_, expires_in)) = holding(session, prepared) else {
                return Ok(gone("the limit has no slots any more"));
            };
            let expires_in = millis(expires_in);
            let body = format!(r#"{{"permit":"{name}","expires_in_ms":{expires_in}}}"#);
            Ok(Reply::json(StatusCode::OK, body))
        });
        renewed.await
    }

    /// `DELETE /v1/permits/{name}`: gives back.
    pub(super) async fn leave(&self, name: &str) -> Reply {
        let left = self.with_permit(name, async |session, prepared, permit| {
            let back = match permit {
                Some(permit) => session.leave(&prepared.questions(), permit).await?,
                None => 1,
            };
            Ok(match back {
                0 => gone("the permit was given back before, or not renewed in time"),
                _ => Reply::json(StatusCode::NO_CONTENT, Bytes::new()),
            })
        });
        left.await
    }

    async fn with_permit(
        &self,
        name: &str,
        work: impl AsyncFnOnce(
            &Session<S>,
            &Prepared<'_, '_, S>,
            Option<PermitId>,
        ) -> Result<Reply, DecisionError>,
    ) -> Reply {
        let Some(PermitName { permit, charges }) = PermitName::read(name) else {
            return Problem::new(
                StatusCode::NOT_FOUND,
                "no permit has this name; look whether it is complete",
            )
            .reply();
        };
        let session = self.session();
        let asked = Asked::of(charges);
        match Prepared::new(&session, &asked) {
            Ok(prepared) => {
                work(&session, &prepared, permit).await.unwrap_or_else(|error| unanswered(&error))
            }
            Err(reply) if reply.status == StatusCode::NOT_FOUND => {
                gone("the limit is not in the rules any more, and nothing is held under it")
            }
            Err(reply) => reply,
        }
    }
}

/// Who is in.
struct In {
    status: SetStatus,
    waited: Duration,
    permit: Option<PermitId>,
}

/// The charges that hold slots, and how long they do without a renewal. `None` where none does.
fn holding<'q, 'a, S: Enter>(
    session: &Session<S>,
    prepared: &Prepared<'q, 'a, S>,
) -> Option<(Vec<&'q ChargeText<'a>>, Duration)> {
    let mut held = Vec::new();
    let mut shortest: Option<Duration> = None;
    for (place, charge) in prepared.asked.charges.iter().enumerate() {
        if let Limit::Concurrency(slots) = prepared.limit(session, place) {
            held.push(charge);
            shortest = Some(shortest.map_or(slots.max_hold(), |known| known.min(slots.max_hold())));
        }
    }
    shortest.map(|shortest| (held, shortest))
}

fn gone(detail: &str) -> Reply {
    Problem::new(StatusCode::GONE, detail).reply()
}
