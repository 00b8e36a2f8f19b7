//! One call: what is asked for by path, answered on its stream.

use super::{
    Rls, RlsSettings,
    grpc::{self, Code, Failure, Inbox},
    health, json,
    messages::{HealthRequest, RateLimitRequest},
    reflection,
};
use bytes::Bytes;
use h2::{RecvStream, SendStream, server::SendResponse};
use http::{HeaderMap, Method, Request, Response, StatusCode, header};
use prost::Message;
use std::{
    future::{Future, poll_fn},
    pin::pin,
    sync::Arc,
    task::Poll,
    time::Duration,
};
use tokio::time::timeout;
use tollgate::Store;
use tollgate_net::{Slot, check_head, check_repeated};

const SHOULD_RATE_LIMIT: &str = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";

/// A call on its stream. That a stream was reset, or its connection is gone, is the client's affair: whatever was being said
/// is not said.
pub(super) async fn answer<S: Store>(
    door: Arc<Rls<S>>,
    request: Request<RecvStream>,
    mut respond: SendResponse<Bytes>,
) {
    let (head, body) = request.into_parts();
    if !is_grpc(&head.headers) {
        let _ = over_http(&door, &head, body, &mut respond).await;
        return;
    }
    let mut calls = Calls { door: &door, body, inbox: Inbox::default() };
    let path = head.uri.path();
    // `:authority` is not checked: nothing reads it, and Envoy sends the name of its cluster there, which need be no host.
    if let Err(error) = check_repeated(&head.headers) {
        let failure = Failure::new(Code::InvalidArgument, error.reason());
        let _ = respond.send_response(grpc::failed(&failure), true);
        return;
    }
    let told = match path {
        SHOULD_RATE_LIMIT => match door.admits(&head.headers) {
            true => calls.should_rate_limit(&mut respond).await,
            false => Err(unauthenticated()),
        },
        "/grpc.health.v1.Health/Check" => calls.health(&mut respond).await,
        "/grpc.health.v1.Health/Watch" => calls.watch(&mut respond).await,
        "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"
        | "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo" => {
            match door.admits(&head.headers) {
                true => calls.reflect(&mut respond).await,
                false => Err(unauthenticated()),
            }
        }
        _ => Err(Failure::new(Code::Unimplemented, format!("there is no method {path}"))),
    };
    if let Err(failure) = told {
        // An answer that had begun has said how it ended.
        let _ = respond.send_response(grpc::failed(&failure), true);
    }
}

fn is_grpc(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).map(http::HeaderValue::as_bytes);
    kind.is_some_and(|kind| kind.starts_with(b"application/grpc"))
}

fn unauthenticated() -> Failure {
    Failure::new(Code::Unauthenticated, "the call needs the metadata `authorization: Bearer <token>`")
}

/// The client is gone, or has reset the stream.
struct Gone;

impl From<h2::Error> for Gone {
    fn from(_: h2::Error) -> Self {
        Self
    }
}

impl From<Gone> for Failure {
    fn from(Gone: Gone) -> Self {
        Self::new(Code::Unavailable, "the client is gone")
    }
}

/// What a client calls on one stream.
struct Calls<'c, S: Store> {
    door: &'c Rls<S>,
    body: RecvStream,
    inbox: Inbox,
}

impl<S: Store> Calls<'_, S> {
    async fn should_rate_limit(&mut self, respond: &mut SendResponse<Bytes>) -> Result<(), Failure> {
        let request: RateLimitRequest = self.only(self.door.settings.max_message).await?;
        let response = self.door.decide(&request).await?;
        Ok(send(respond, &response)?)
    }

    async fn health(&mut self, respond: &mut SendResponse<Bytes>) -> Result<(), Failure> {
        let request: HealthRequest = self.only(health::LONGEST).await?;
        let response = health::check(&request, &self.door.drain)?;
        Ok(send(respond, &response)?)
    }

    /// Tells how it is, and whenever that changes, until the client has heard enough.
    async fn watch(&mut self, respond: &mut SendResponse<Bytes>) -> Result<(), Failure> {
        let request: HealthRequest = self.only(health::LONGEST).await?;
        let mut stream = begin(respond)?;
        for step in health::steps(&request, &self.door.drain) {
            stream.send_data(grpc::write(&step.told), false).map_err(Gone::from)?;
            tokio::select! {
                () = step.lasts(&self.door.drain) => {}
                _ = poll_fn(|context| stream.poll_reset(context)) => return Ok(()),
            }
        }
        Ok(finish(&mut stream)?)
    }

    async fn reflect(&mut self, respond: &mut SendResponse<Bytes>) -> Result<(), Failure> {
        let mut stream = begin(respond)?;
        let RlsSettings { patience, max_message, .. } = self.door.settings;
        loop {
            match self.next(max_message).await {
                Ok(Some(bytes)) => {
                    let request = match grpc::read(bytes) {
                        Ok(request) => request,
                        Err(failure) => return Ok(break_off(&mut stream, &failure)?),
                    };
                    let response = reflection::answer(request);
                    if !send_in_time(&mut stream, grpc::write(&response), patience).await? {
                        return Ok(());
                    }
                }
                Ok(None) => return Ok(finish(&mut stream)?),
                Err(failure) => return Ok(break_off(&mut stream, &failure)?),
            }
        }
    }

    /// The one message that a call brings.
    async fn only<M: Message + Default>(&mut self, longest: usize) -> Result<M, Failure> {
        match self.next(longest).await? {
            Some(bytes) => grpc::read(bytes),
            None => Err(Failure::new(Code::InvalidArgument, "the call brings no message")),
        }
    }

    /// The next message; none where the client has ended.
    async fn next(&mut self, longest: usize) -> Result<Option<Bytes>, Failure> {
        let patience = self.door.settings.patience;
        let mut arrives = pin!(self.arrives(longest));
        // Most messages came with their heads, and need no timer.
        let arrived = poll_fn(|context| match arrives.as_mut().poll(context) {
            Poll::Ready(arrived) => Poll::Ready(Some(arrived)),
            Poll::Pending => Poll::Ready(None),
        });
        if let Some(arrived) = arrived.await {
            return arrived;
        }
        match timeout(patience, arrives).await {
            Ok(arrived) => arrived,
            Err(_) => {
                let message = format!("no message came in {} s", patience.as_secs());
                Err(Failure::new(Code::DeadlineExceeded, message))
            }
        }
    }

    async fn arrives(&mut self, longest: usize) -> Result<Option<Bytes>, Failure> {
        if let Some(message) = self.inbox.next(Bytes::new(), longest)? {
            return Ok(Some(message));
        }
        let mut room = None;
        while let Some(piece) = self.body.data().await {
            let piece = piece.map_err(Gone::from)?;
            // What was read may be sent again; one that is gone needs no room.
            let _ = self.body.flow_control().release_capacity(piece.len());
            if let Some(message) = self.inbox.next(piece, longest)? {
                return Ok(Some(message));
            }
            if room.is_none() && self.inbox.awaited().is_some_and(is_long) {
                room = Some(self.door.room_for_long().ok_or_else(full)?);
            }
        }
        Ok(None)
    }
}

fn send(respond: &mut SendResponse<Bytes>, message: &impl Message) -> Result<(), Gone> {
    let mut stream = respond.send_response(grpc::head(), false)?;
    stream.send_data(grpc::write(message), false)?;
    stream.send_trailers(grpc::end())?;
    Ok(())
}

fn begin(respond: &mut SendResponse<Bytes>) -> Result<SendStream<Bytes>, Gone> {
    Ok(respond.send_response(grpc::head(), false)?)
}

/// Sends when the client has room for it, so that nothing piles up here. Whether it had, in time.
async fn send_in_time(
    stream: &mut SendStream<Bytes>,
    message: Bytes,
    patience: Duration,
) -> Result<bool, Gone> {
    stream.reserve_capacity(message.len());
    while stream.capacity() < message.len() {
        match timeout(patience, poll_fn(|context| stream.poll_capacity(context))).await {
            Ok(Some(room)) => room?,
            _ => return Ok(false),
        };
    }
    stream.send_data(message, false)?;
    Ok(true)
}

fn finish(stream: &mut SendStream<Bytes>) -> Result<(), Gone> {
    Ok(stream.send_trailers(grpc::end())?)
}

fn break_off(stream: &mut SendStream<Bytes>, failure: &Failure) -> Result<(), Gone> {
    let mut trailers = HeaderMap::new();
    grpc::fail(failure, &mut trailers);
    Ok(stream.send_trailers(trailers)?)
}

/// What is asked without gRPC, on HTTP/2.
async fn over_http<S: Store>(
    door: &Rls<S>,
    head: &http::request::Parts,
    mut body: RecvStream,
    respond: &mut SendResponse<Bytes>,
) -> Result<(), Gone> {
    let _room = match door.by_head(head) {
        ByHead::Answered(told) => return answer_http(told, respond),
        ByHead::Question(room) => room,
    };
    let longest = door.settings.max_message;
    let read = async {
        let mut read = Vec::new();
        while let Some(piece) = body.data().await {
            let piece = piece?;
            body.flow_control().release_capacity(piece.len())?;
            if read.len() + piece.len() > longest {
                return Ok(None);
            }
            read.extend_from_slice(&piece);
        }
        Ok::<_, Gone>(Some(read))
    };
    let told = match timeout(door.settings.patience, read).await {
        Ok(read) => match read? {
            Some(read) => json::answer(door, &read).await,
            None => json::too_long(longest),
        },
        Err(_) => json::timed_out(),
    };
    answer_http(told, respond)
}

fn answer_http(told: Response<Bytes>, respond: &mut SendResponse<Bytes>) -> Result<(), Gone> {
    let (head, body) = told.into_parts();
    let mut stream = respond.send_response(Response::from_parts(head, ()), body.is_empty())?;
    if !body.is_empty() {
        stream.send_data(body, true)?;
    }
    Ok(())
}

impl<S: Store> Rls<S> {
    /// Whether a call brings a token that is asked for.
    pub(super) fn admits(&self, headers: &HeaderMap) -> bool {
        let tokens = &self.settings.tokens;
        if tokens.is_empty() {
            return true;
        }
        let given = headers.get(header::AUTHORIZATION).map(http::HeaderValue::as_bytes);
        let is_bearer = |scheme: &[u8]| scheme.eq_ignore_ascii_case(b"bearer ");
        let word = given.and_then(|given| given.split_at_checked(7)).filter(|(scheme, _)| is_bearer(scheme));
        word.is_some_and(|(_, word)| tokens.admits(word.trim_ascii()))
    }

    /// What is asked without gRPC, on either HTTP, as far as its head tells: nothing is read of whoever may not ask.
    pub(super) fn by_head(&self, head: &http::request::Parts) -> ByHead {
        if let Err(error) = check_head(&head.uri, head.version, &head.headers) {
            return ByHead::Answered(json::text(StatusCode::BAD_REQUEST, error.reason()));
        }
        let told = match (head.uri.path(), &head.method) {
            ("/healthcheck", &Method::GET | &Method::HEAD) => match health::is_well(&self.drain) {
                true => json::text(StatusCode::OK, "OK"),
                false => json::text(StatusCode::INTERNAL_SERVER_ERROR, "not serving: on its way out"),
            },
            ("/json", &Method::POST) if !self.admits(&head.headers) => json::unauthorized(),
            ("/json", &Method::POST) if json::is_of_a_page(&head.headers) => json::forbidden(),
            ("/json", &Method::POST) => match json::body_length(&head.headers).is_none_or(is_long) {
                false => return ByHead::Question(None),
                true => match self.room_for_long() {
                    Some(room) => return ByHead::Question(Some(room)),
                    None => json::text(StatusCode::SERVICE_UNAVAILABLE, full().message),
                },
            },
            ("/healthcheck", _) => json::method_not_allowed("GET"),
            ("/json", _) => json::method_not_allowed("POST"),
            _ => json::text(StatusCode::NOT_FOUND, "here are POST /json, GET /healthcheck, and gRPC"),
        };
        ByHead::Answered(told)
    }

    /// A place to read something long; `None` where as many are being read as may be.
    fn room_for_long(&self) -> Option<Slot> {
        self.long.enter()
    }
}

/// What the head of a request without gRPC leads to.
pub(super) enum ByHead {
    /// It is answered.
    Answered(Response<Bytes>),
    /// Its body is a question, to be read in the place that a long one has.
    Question(Option<Slot>),
}

/// Whether so many bytes are more than a question of Envoy's has, and come in more than one piece.
const fn is_long(bytes: usize) -> bool {
    bytes > 16 << 10
}

fn full() -> Failure {
    Failure::new(Code::Unavailable, "too many long messages are being read at once; please try again")
}
