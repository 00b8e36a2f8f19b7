//! The admin API: what the console shows is an API first.
//!
//! | file | what |
//! |---|---|
//! | `guarded.rs`, `gate.rs` | pages, each with whom it is for; who gets through |
//! | `access.rs`, `token.rs`, `sessions.rs`, `login.rs` | who somebody is |
//! | `asked.rs`, `problem.rs` | what is asked, and what cannot be done |

mod access;
pub(crate) mod asked;
mod gate;
pub(crate) mod guarded;
mod login;
pub(crate) mod problem;
mod sessions;
mod token;

pub use access::{Access, Line, Who};
pub use gate::Needs;
pub(crate) use gate::Peer;
pub use guarded::Operation;
pub use token::{NoRandomness, fresh_token};

use axum::{Router, middleware, response::Response};
use guarded::Guarded;
use http::{HeaderName, HeaderValue, Method, header};
use tollgate_rules::model::Role;

/// Adds who one is, and how to become somebody.
pub(crate) fn add_login(pages: Guarded, access: &Access) -> Guarded {
    pages
        .page(Needs::Role(Role::Viewer), (Method::GET, "/v1/me"), login::me, access)
        .page(Needs::Nobody, (Method::POST, "/v1/login"), login::login, access)
        .page(Needs::Nobody, (Method::POST, "/v1/logout"), login::logout, access)
}

/// What every answer tells a browser: run nothing that is not ours, show us in nobody's frame, guess no types, tell nobody
/// where one came from.
const HEADERS: [(HeaderName, &str); 5] = [
    (
        header::CONTENT_SECURITY_POLICY,
        "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; form-action 'self'; \
         frame-ancestors 'none'",
    ),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::REFERRER_POLICY, "no-referrer"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];

/// Puts on every answer what browsers are to be told.
pub(crate) fn headers(router: Router) -> Router {
    router.layer(middleware::map_response(async |mut response: Response| {
        for (name, value) in HEADERS {
            response.headers_mut().insert(name, HeaderValue::from_static(value));
        }
        response
    }))
}
