//! The OpenAPI document of the JSON API. It is written by hand; the tests send every example in it and validate the responses
//! against its schemas.

use bytes::Bytes;

/// The OpenAPI document of the JSON API.
#[must_use]
pub const fn openapi() -> Bytes {
    Bytes::from_static(include_bytes!("openapi.json"))
}
