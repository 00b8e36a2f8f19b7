//! Tollgate as a tower layer: limits for axum, tonic, hyper and whatever else speaks tower, serving or calling.
//!
//! ```
//! use bytes::Bytes;
//! use http::{Request, Response};
//! use http_body_util::Full;
//! use std::convert::Infallible;
//! use tollgate::{Rate, TokenBucket};
//! use tollgate_tower::LimitLayer;
//! use tower::{Service, ServiceBuilder, ServiceExt, service_fn};
//!
//! # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
//! let hello = service_fn(|_: Request<()>| async { Ok::<_, Infallible>(Response::new(Full::from("hello"))) });
//! let mut service = ServiceBuilder::new()
//!     .layer(LimitLayer::new(TokenBucket::new(Rate::per_minute(60)?, 1)?).by_header("x-api-key"))
//!     .service(hello);
//!
//! let request = || Request::get("/").header("x-api-key", "alice").body(());
//! let response = service.ready().await?.call(request()?).await?;
//! assert_eq!(response.status(), 200);
//! assert_eq!(response.headers()["ratelimit"], r#""default";r=0;t=1"#);
//!
//! let response = service.ready().await?.call(request()?).await?;
//! assert_eq!(response.status(), 429);
//! assert_eq!(response.headers()["retry-after"], "1");
//! # let _: Response<tollgate_tower::LimitBody<Full<Bytes>>> = response;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! - [`LimitLayer`] stands before a service of HTTP requests. It counts [by address](LimitLayer::by_ip),
//!   [by header](LimitLayer::by_header), [by an extension](LimitLayer::by_extension) or [by what you make](LimitLayer::by) of a
//!   request; one limit, or [several](LimitLayer::of), which are charged all or none. What has no room is refused, or
//!   [waits](LimitLayer::wait).
//! - [`CallLayer`] stands before calls that go out, of any protocol: each waits its turn, or is not made.
//! - **One state**, whatever is cloned: the layer, the service, the router that holds it.
//! - **Ready is not entered**: a clone that is ready and not used holds nothing.
//! - **Slots come back**: those of a [`Concurrency`](tollgate::Concurrency) limit are held until the response's body has ended,
//!   and come back with it, with an error, a panic, or a client who is gone. They are renewed for as long as that takes, by a
//!   task of the tokio runtime that the request runs in.
//! - **Clients are told**: `RateLimit` and `RateLimit-Policy`, `Retry-After`, a problem document; a gRPC request gets
//!   `RESOURCE_EXHAUSTED` instead. See [`HeaderStyle`], [`RefusalStyle`], [`LimitLayer::on_refusal`].
//!
//! | feature | what it brings |
//! |---|---|
//! | `axum` | [`by_ip`](LimitLayer::by_ip) finds axum's `ConnectInfo<SocketAddr>` |
//! | `tonic` | [`by_ip`](LimitLayer::by_ip) finds tonic's `TcpConnectInfo` |
//!
//! Neither is needed to limit axum or tonic. Servers on hyper alone put a [`PeerAddr`] into each request's extensions.
//!
//! What was given to a request that was charged and then failed is spent; a rate counts attempts.

#[cfg(doctest)]
#[cfg_attr(all(feature = "axum", feature = "tonic"), doc = include_str!("../../../docs/tower.md"))]
mod documents {}

mod backend;
mod body;
mod call;
mod key;
mod layer;
mod layer_limit;
mod queued_call;
mod refusal;
mod rules;
mod service;

pub use body::LimitBody;
pub use call::{ByRequest, CallError, CallFuture, CallLayer, CallService, Everyone, KeyOf};
pub use key::{Missing, PeerAddr};
pub use layer::LimitLayer;
pub use layer_limit::LayerLimit;
pub use refusal::{Cause, Refusal};
pub use service::{LimitFuture, LimitService};
pub use tollgate::OwnedKey;
pub use tollgate_http::{HeaderStyle, RefusalStyle};
