//! HTTP/1.1: the same question in JSON, and whether it is well.

use super::{Rls, call::ByHead, json, preface::Begun};
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::{convert::Infallible, pin::pin, sync::Arc};
use tokio::time::timeout;
use tollgate::Store;
use tollgate_net::Guard;

/// Serves a connection until it ends.
pub(super) async fn serve<S: Store + 'static>(door: Arc<Rls<S>>, stream: Begun, guard: Guard) {
    let settings = &door.settings;
    let head = settings.max_header as usize;
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(settings.patience)
        // Below which the library does not go.
        .max_buf_size(head.max(8_192))
        .serve_connection(TokioIo::new(stream), service_fn(|request| answer(&door, request)));
    let mut serving = pin!(serving);
    // That a client broke off is its own affair.
    tokio::select! {
        _ = serving.as_mut() => return,
        () = guard.closing() => serving.as_mut().graceful_shutdown(),
    }
    let _ = serving.await;
}

async fn answer<S: Store>(
    door: &Rls<S>,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let (head, body) = request.into_parts();
    let _room = match door.by_head(&head) {
        ByHead::Answered(told) => return Ok(told.map(Full::new)),
        ByHead::Question(room) => room,
    };
    let longest = door.settings.max_message;
    let told = match timeout(door.settings.patience, Limited::new(body, longest).collect()).await {
        Ok(Ok(read)) => json::answer(door, &read.to_bytes()).await,
        Ok(Err(error)) if error.is::<LengthLimitError>() => json::too_long(longest),
        // The second is not heard: the client broke off.
        Err(_) | Ok(Err(_)) => json::timed_out(),
    };
    Ok(told.map(Full::new))
}
