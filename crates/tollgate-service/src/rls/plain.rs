//! HTTP/1.1: the same question in JSON, and whether it is well.

use super::{Rls, call::ByHead, json};
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use std::{convert::Infallible, pin::pin, sync::Arc};
use tokio::time::timeout;
use tollgate::Store;
use tollgate_net::{ActivityStream, ConnectionActivity, ConnectionTimeouts, RequestGuard, supervise};

/// Serves a connection until it ends.
pub(super) async fn serve<S: Store + 'static>(
    door: Arc<Rls<S>>,
    stream: ActivityStream,
    activity: Arc<ConnectionActivity>,
) {
    let settings = &door.settings;
    let service = service_fn(|request| {
        let under_way = RequestGuard::new(Arc::clone(&activity));
        let answer = answer(&door, request);
        async move {
            let _under_way = under_way;
            answer.await
        }
    });
    let serving = http1::Builder::new()
        // The connection is supervised; a timer of hyper's would be set for every request.
        .header_read_timeout(None)
        // Below which the library does not go.
        .max_buf_size((settings.max_header as usize).max(8_192))
        .serve_connection(TokioIo::new(stream), service);
    let timeouts = ConnectionTimeouts::new(settings.patience, settings.idle);
    // That a client broke off is its own affair.
    supervise(pin!(serving), http1::Connection::graceful_shutdown, &activity, &timeouts).await;
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
