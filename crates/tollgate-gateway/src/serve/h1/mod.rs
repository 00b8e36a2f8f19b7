//! HTTP/1.1 with a client: heads read strictly, one request at a time, all of it in the connection's task.
//!
//! While a request is answered its body is read as it is wanted, and the client is watched: who leaves ends the request. Requests that come
//! before the last one was answered wait, in bounds. A connection that rests keeps no buffer, and nothing of a request.

mod answer;
mod head;
mod intake;
mod switch;
mod wire;

pub(crate) use intake::Inlet;
pub(crate) use switch::Switching;

use super::{
    connection::{Visit, answer, refuse},
    handler::Handler,
};
use crate::{framing::Framing, interim::InterimQueue, request::RequestBody};
use answer::{Answer, Asked, attend};
use head::{Head, Refused};
use http::{Method, Request, StatusCode};
use intake::{Fed, Intake};
use std::{
    future::poll_fn,
    io,
    pin::{Pin, pin},
    task::{Context, Poll},
};
use tokio::sync::oneshot;
use tollgate_net::ActivityStream;
use wire::Wire;

/// What comes after a request.
enum After {
    Next,
    /// Nothing more is said.
    Close,
    /// Nothing more is said, though the client may still be sending.
    Linger,
    /// The client is gone, or must see that the answer broke off.
    Cut,
    Switch(oneshot::Sender<ActivityStream>),
}

/// Serves a connection to its end.
pub(super) async fn serve<H: Handler>(visit: Visit<H>, io: ActivityStream) {
    let mut wire = Wire::new(io);
    loop {
        let after = match next(&visit, &mut wire).await {
            Ok(Some(head)) => exchange(&visit, &mut wire, head).await,
            // Seldom, and so in a box: a connection is as large as the largest that it may do.
            Err(why) => Box::pin(turn_away(&visit, &mut wire, why)).await,
            Ok(None) => {
                wire.shut().await;
                return;
            }
        };
        match after {
            After::Next => {}
            After::Close => {
                wire.shut().await;
                // Closing with bytes unread would take the answer back.
                if !wire.ahead.is_empty() || wire.has_more().await {
                    wire.throw_away().await;
                }
                return;
            }
            After::Linger => {
                wire.shut().await;
                wire.throw_away().await;
                return;
            }
            After::Cut => return,
            After::Switch(to) => {
                let _ = to.send(wire.into_io());
                return;
            }
        }
    }
}

/// Waits for the next head; none if there is none.
async fn next<H: Handler>(visit: &Visit<H>, wire: &mut Wire) -> Result<Option<Head>, Refused> {
    let Visit { activity, serving, .. } = visit;
    let mut look = !wire.ahead.is_empty();
    poll_fn(|context| {
        loop {
            if look {
                match head::take(&mut wire.ahead, &serving.settings.limits) {
                    Ok(Some(head)) => {
                        activity.end_head();
                        return Poll::Ready(Ok(Some(head)));
                    }
                    Ok(None) if wire.ahead.is_empty() => {}
                    Ok(None) => activity.begin_head(),
                    Err(refused) => return Poll::Ready(Err(refused)),
                }
            }
            if wire.ahead.is_empty() && activity.is_finishing() {
                return Poll::Ready(Ok(None));
            }
            match wire.poll_fill(context) {
                Poll::Ready(Ok(read @ 1..)) => {
                    // A head that comes byte by byte is not read anew for every byte.
                    let from = wire.ahead.len() - read;
                    look = wire.ahead.len() > serving.settings.limits.head
                        || wire.ahead[from..].contains(&b'\n');
                    if !look {
                        activity.begin_head();
                    }
                }
                Poll::Ready(_) => return Poll::Ready(Ok(None)),
                Poll::Pending => return Poll::Pending,
            }
        }
    })
    .await
}

/// One request and its answer.
async fn exchange<H: Handler>(visit: &Visit<H>, wire: &mut Wire, head: Head) -> After {
    let limits = &visit.serving.settings.limits;
    let mut asked =
        Asked { head_only: head.method == Method::HEAD, version: head.version, keep_alive: head.keep_alive };
    let (mut intake, body) = match head.framing {
        Framing::None => (None, RequestBody::empty()),
        framing => {
            let (intake, inlet) = Intake::new(framing, head.expects);
            (Some(intake), RequestBody::http1(inlet, limits.body, limits.body_timeout))
        }
    };
    let mut request = Request::new(body);
    *request.method_mut() = head.method;
    *request.uri_mut() = head.uri;
    *request.version_mut() = head.version;
    *request.headers_mut() = head.headers;
    let switch = head.upgrade.then(|| {
        let (sender, switching) = Switching::new();
        request.extensions_mut().insert(switching);
        sender
    });
    let mut answering = pin!(answer(visit, request));
    // Put where it is used: it is large, and what a future gives is moved.
    let mut response = None;
    poll_fn(|context| {
        loop {
            if let Poll::Ready(answered) = answering.as_mut().poll(context) {
                response = Some(answered);
                return Poll::Ready(());
            }
            if visit.interim.is_filled() {
                match poll_interim(&visit.interim, wire, intake.as_mut(), context) {
                    Poll::Ready(Ok(())) => {}
                    Poll::Ready(Err(_)) => return Poll::Ready(()),
                    // An invitation must not be written in the middle of it.
                    Poll::Pending if intake.as_ref().is_some_and(Intake::has_invitation) => {
                        return Poll::Pending;
                    }
                    Poll::Pending => {}
                }
            }
            match attend(wire, intake.as_mut(), context) {
                Fed::Some => {}
                Fed::Pending => return Poll::Pending,
                Fed::Gone => return Poll::Ready(()),
            }
        }
    })
    .await;
    let Some(response) = response else { return After::Cut };
    let status = response.status();
    asked.keep_alive &= !visit.activity.is_last_response();
    let mut rest: &[u8] = b"";
    if let Some(intake) = &mut intake {
        rest = intake.answered();
        if !intake.is_done() && !intake.is_wanted() {
            let all = poll_fn(|context| Poll::Ready(intake.discard(wire, context))).await;
            asked.keep_alive &= all;
        }
        // An answer that comes before its request is over is the last: what the client still sends is thrown away.
        asked.keep_alive &= intake.is_done();
    }
    let interim;
    if visit.interim.is_filled() {
        interim = [rest, &visit.interim.take()].concat();
        rest = &interim;
    }
    let mut sending = Answer::new(rest, response, asked);
    if poll_fn(|context| sending.poll(wire, intake.as_mut(), context)).await.is_err() {
        return After::Cut;
    }
    match switch {
        Some(to) if status == StatusCode::SWITCHING_PROTOCOLS => After::Switch(to),
        _ if status == StatusCode::SWITCHING_PROTOCOLS => After::Cut,
        _ if intake.is_some_and(|intake| !intake.is_done()) => After::Linger,
        _ if sending.keeps_alive() => After::Next,
        _ => After::Close,
    }
}

/// Writes interim responses while the final one is waited for.
fn poll_interim(
    interim: &InterimQueue,
    wire: &mut Wire,
    intake: Option<&mut Intake>,
    context: &mut Context<'_>,
) -> Poll<io::Result<()>> {
    match intake {
        Some(intake) => intake.poll_interim(interim, wire, context),
        None => interim.poll_write(Pin::new(&mut wire.io), context),
    }
}

/// Says why a head is refused. What else comes on its connection is not to be trusted.
async fn turn_away<H: Handler>(visit: &Visit<H>, wire: &mut Wire, (status, why): Refused) -> After {
    let version = http::Version::HTTP_11;
    let asked = Asked { head_only: false, version, keep_alive: false };
    let mut sending = Answer::new(b"", refuse(version, status, why), asked);
    visit.activity.begin_head();
    match poll_fn(|context| sending.poll(wire, None, context)).await {
        Ok(()) => After::Linger,
        Err(_) => After::Cut,
    }
}
