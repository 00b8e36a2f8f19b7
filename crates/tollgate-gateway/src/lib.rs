//! A reverse proxy: it accepts requests, hands each to a [`Handler`], and forwards it to an [`Upstream`].
//!
//! Four parts that know little of each other:
//! - [`serve`](serve()): connections, limits on what clients may send, drain;
//! - [`forward`]: one request to one upstream and its answer back, headers put right on both ways;
//! - [`Upstream`]: servers, their weights and health, connections kept for the next request.
//!
//! The fourth, [`Gateway`], is the handler that knows rules: it decides, and forwards or refuses.
//!
//! How it is built, and why: every worker is a thread with a runtime of its own, and a request never leaves it. An
//! exchange with an HTTP/1.1 upstream is polled within the task of the client's connection; there is no second task, no
//! channel and no box for a body between the two sockets.
//!
//! A request and its response pass through many functions, and each one moves them. So their large parts are boxed (the
//! request's body, the header lines that pass through), and functions on a request's path return `async` blocks: an `async
//! fn` moves its arguments once more. A connection at rest keeps no buffer.

mod body;
mod chunks;
mod client;
mod door;
mod error;
mod forward;
mod framing;
mod guards;
mod interim;
mod outgoing;
mod passed;
mod request;
mod serve;
mod timer;
mod upstream;

pub use body::{Body, BodyError};
pub use client::{ClientInfo, Scheme};
pub use door::{
    Gateway, NoResponseRecorder, PrepareError, Prepared, ResponseRecord, ResponseRecorder, Span, Tracer,
};
pub use error::ForwardError;
pub use forward::forward;
pub use request::RequestBody;
pub use serve::{ALPN, Access, Handler, Limits, Observer, Settings, serve};
pub use upstream::{ServerState, Upstream, UpstreamError};
