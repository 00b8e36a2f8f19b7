//! Which path is what, who is let in, and how much is read of what they send.

use super::{
    Json,
    asked::Form,
    connection::Visit,
    limits,
    openapi::openapi,
    reply::{Problem, Reply},
};
use bytes::{Bytes, BytesMut};
use http::{HeaderMap, Method, Request, Response, StatusCode, header, request::Parts};
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Incoming};
use std::time::Duration;
use tollgate::Enter;
use tollgate_net::{Guard, Tokens, check_head};
use tollgate_rules::nearest;

const PATHS: [&str; 9] = [
    "/v1/check",
    "/v1/peek",
    "/v1/refund",
    "/v1/reset",
    "/v1/wait",
    "/v1/permits",
    "/v1/limits",
    "/healthz",
    "/openapi.json",
];

/// Answers a request.
pub(super) async fn answer<S: Enter + 'static>(
    visit: &Visit<S>,
    request: Request<Incoming>,
) -> Response<Full<Bytes>> {
    let (head, mut body) = request.into_parts();
    let reply = match reply(visit, &head, &mut body).await {
        Ok(reply) | Err(reply) => reply,
    };
    let response = reply.into_response();
    // Whoever was too slow would be so again, and whoever waits to be asked for the body should not send it at all.
    let is_slow = response.status() == StatusCode::REQUEST_TIMEOUT;
    let is_waiting = head.headers.contains_key(header::EXPECT);
    if !is_slow && !is_waiting && !body.is_end_stream() {
        throw_away(&visit.door, body).await;
    }
    response
}

/// How long a client is listened to that is answered already.
const THROWN_AWAY_WITHIN: Duration = Duration::from_secs(1);

/// Reads what nobody wanted, up to twice as much as may be sent: some clients do not hear an answer to a request that they are
/// still sending.
async fn throw_away<S: Enter>(door: &Json<S>, mut body: Incoming) {
    let mut left = door.settings.max_body.saturating_mul(2);
    let patience = door.settings.header_timeout.min(THROWN_AWAY_WITHIN);
    let reading = async {
        while let Some(Ok(frame)) = body.frame().await {
            let Some(rest) = left.checked_sub(frame.data_ref().map_or(0, Bytes::len)) else { return };
            left = rest;
        }
    };
    // Who takes longer is answered all the same.
    let _ = tokio::time::timeout(patience, reading).await;
}

async fn reply<S: Enter + 'static>(
    visit: &Visit<S>,
    head: &Parts,
    body: &mut Incoming,
) -> Result<Reply, Reply> {
    check_head(&head.uri, head.version, &head.headers)
        .map_err(|error| Problem::new(StatusCode::BAD_REQUEST, error.reason()).reply())?;
    let door = &visit.door;
    let path = head.uri.path();
    match path {
        // For whoever looks whether it is there, and has no word.
        "/healthz" => return only(&head.method, READ).map(|()| health(visit.guard())),
        "/openapi.json" => return only(&head.method, READ).map(|()| Reply::json(StatusCode::OK, openapi())),
        _ => let_in(&door.settings.tokens, &head.headers)?,
    }
    let form = match path {
        "/v1/check" => Form::Check,
        "/v1/peek" => Form::Peek,
        "/v1/refund" => Form::Refund,
        "/v1/reset" => Form::Reset,
        "/v1/wait" => Form::Wait,
        "/v1/permits" => Form::Permits,
        "/v1/limits" => return only(&head.method, READ).map(|()| limits::list(&door.decisions.rules())),
        _ => {
            let name = path.strip_prefix("/v1/permits/").ok_or_else(|| no_such_path(path))?;
            only(&head.method, "PUT, DELETE")?;
            let _inside = door.in_flight.enter().ok_or_else(full)?;
            return Ok(match head.method {
                Method::PUT => door.renew(name).await,
                _ => door.leave(name).await,
            });
        }
    };
    only(&head.method, "POST")?;
    let _inside = door.in_flight.enter().ok_or_else(full)?;
    must_be_json(&head.headers)?;
    let body = read(door, body).await?;
    Ok(match form {
        Form::Check | Form::Peek => door.check(body, form).await,
        Form::Refund | Form::Reset => door.undo(&body, form).await,
        Form::Wait => door.wait(&body, visit).await,
        Form::Permits => door.permit(&body, visit).await,
    })
}

const READ: &str = "GET, HEAD";

/// Refuses other methods than these.
fn only(method: &Method, methods: &'static str) -> Result<(), Reply> {
    if methods.split(", ").any(|known| known == method.as_str()) {
        return Ok(());
    }
    let detail = format!("this path takes {methods}");
    Err(Problem::new(StatusCode::METHOD_NOT_ALLOWED, &detail).allow(methods).reply())
}

fn health(guard: &Guard) -> Reply {
    if guard.is_leaving() {
        return Problem::capacity("this node is shutting down").reply();
    }
    Reply::json(StatusCode::OK, r#"{"status":"ok"}"#)
}

fn let_in(tokens: &Tokens, headers: &HeaderMap) -> Result<(), Reply> {
    if tokens.is_empty() {
        return Ok(());
    }
    const SCHEME: &[u8] = b"bearer ";
    let word = headers.get(header::AUTHORIZATION).and_then(|value| {
        let (scheme, word) = value.as_bytes().split_at_checked(SCHEME.len())?;
        scheme.eq_ignore_ascii_case(SCHEME).then(|| word.trim_ascii())
    });
    let detail = match word {
        Some(word) if tokens.admits(word) => return Ok(()),
        Some(_) => "the token is none that this door knows",
        None => {
            "a token is needed: send the header `authorization: Bearer TOKEN`, with one of the listener's tokens"
        }
    };
    Err(Problem::new(StatusCode::UNAUTHORIZED, detail).reply())
}

fn no_such_path(path: &str) -> Reply {
    let meant = nearest(path, PATHS).map_or_else(
        || "GET /openapi.json tells what there is".to_owned(),
        |known| format!("did you mean {known}?"),
    );
    Problem::new(StatusCode::NOT_FOUND, &format!("there is nothing under this path; {meant}")).reply()
}

fn full() -> Reply {
    Problem::capacity("too many requests are being answered at once; please try again").reply()
}

/// A page in somebody's browser can send anything but this to another site without asking first.
fn must_be_json(headers: &HeaderMap) -> Result<(), Reply> {
    let kind = headers.get(header::CONTENT_TYPE).map(|value| value.as_bytes()).unwrap_or_default();
    let kind = kind.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
    if kind.eq_ignore_ascii_case(b"application/json") {
        return Ok(());
    }
    let detail = "send JSON and say so: `content-type: application/json` (with curl: --json)";
    Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, detail).reply())
}

/// The whole body, as far as it is not too long and does not take too long.
async fn read<S: Enter>(door: &Json<S>, body: &mut Incoming) -> Result<Bytes, Reply> {
    let (most, patience) = (door.settings.max_body, door.settings.header_timeout);
    let too_long = || {
        let detail = format!("the body is longer than {most} bytes; ask for less at once");
        Problem::new(StatusCode::PAYLOAD_TOO_LARGE, &detail).reply()
    };
    if body.size_hint().lower() > most as u64 {
        return Err(too_long());
    }
    let reading = async {
        let mut read = BytesMut::new();
        while let Some(frame) = body.frame().await {
            let broken = |_| Problem::new(StatusCode::BAD_REQUEST, "the body ended before its end").reply();
            let Ok(data) = frame.map_err(broken)?.into_data() else { continue };
            if read.len() + data.len() > most {
                return Err(too_long());
            }
            if read.is_empty() && body.is_end_stream() {
                return Ok(data);
            }
            read.extend_from_slice(&data);
        }
        Ok(read.freeze())
    };
    tokio::time::timeout(patience, reading).await.unwrap_or_else(|_| {
        let detail = format!("the body did not come within {patience:?}");
        Err(Problem::new(StatusCode::REQUEST_TIMEOUT, &detail).reply())
    })
}
