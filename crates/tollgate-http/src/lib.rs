//! What HTTP needs to tell of a decision. No server and no I/O: values in, header fields and responses out, for a tower
//! layer, a gateway, or a handler of your own.
//!
//! - [`Policies`] tells of a set of limits in header fields: `RateLimit-Policy` and `RateLimit`
//!   (draft-ietf-httpapi-ratelimit-headers-10), or `X-RateLimit-*`, or nothing, by [`HeaderStyle`]; and `Retry-After` where it
//!   refuses. What is constant is made once.
//! - [`RefusalStyle`] makes the response of a refusal: problem details, Soul's JSON, or plain text; for gRPC a status.
//! - [`TrustedProxies`] finds the client's address behind proxies that are trusted, and only behind those.
//!
//! Times are rounded up, here as everywhere: whoever comes back at the time that was told finds room, if nobody else came.
//!
//! ```
//! use http::HeaderMap;
//! use std::time::Duration;
//! use tollgate::{Charge, Decision, Limit, ManualClock, MemoryStore, Rate, SlidingLog, TokenBucket};
//! use tollgate_http::{HeaderStyle, Policies, Policy, RefusalStyle};
//!
//! let per_client: Limit = TokenBucket::new(Rate::per_second(10)?, 100)?.into();
//! let login: Limit = SlidingLog::new(1, Duration::from_secs(60))?.into();
//! // Once: what does not change from request to request.
//! let policies = Policies::new(
//!     HeaderStyle::Draft10,
//!     [Policy::of("per-client", &per_client), Policy::of("login", &login)],
//! );
//!
//! let store = MemoryStore::with_clock(Default::default(), ManualClock::new());
//! let (per_client, login) = (store.add("per-client", per_client)?, store.add("login", login)?);
//! let charges = [Charge::new(&per_client, "alice"), Charge::new(&login, "alice")];
//!
//! // For every request that passes:
//! let passed = store.check(&charges)?;
//! let mut headers = HeaderMap::new();
//! policies.allow(policies.all(passed.statuses()), &mut headers);
//! assert_eq!(headers["ratelimit-policy"], r#""per-client";q=100;w=10, "login";q=1;w=60"#);
//! assert_eq!(headers["ratelimit"], r#""per-client";r=99;t=1, "login";r=0;t=60"#);
//!
//! // And for every request that does not:
//! let refused = store.check(&charges)?;
//! let Decision::Deny(retry) = refused.decision() else { panic!("one login a minute") };
//! let request = HeaderMap::new();
//! let response = policies.refusal(RefusalStyle::Problem, &request, policies.all(refused.statuses()), retry);
//! assert_eq!(response.status(), 429);
//! assert_eq!(response.headers()["retry-after"], "60");
//! assert_eq!(response.headers()["ratelimit"], r#""login";r=0;t=60"#);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod client;
mod escape;
mod fields;
mod policy;
mod problem;
mod refusal;
mod retry;

pub use client::{TrustedProxies, bucket_of, unmapped};
pub use fields::{HeaderStyle, Policies};
pub use policy::{Policy, Unit};
pub use problem::Problem;
pub use refusal::{RefusalStyle, is_grpc};
pub use retry::{retry_after, whole_seconds};
