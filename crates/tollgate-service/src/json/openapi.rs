//! What can be asked, for programs. Written by hand, since it is for people too; the tests send every example in it, and hold
//! the answers against its schemas.

use bytes::Bytes;

/// The OpenAPI document of the JSON door.
#[must_use]
pub const fn openapi() -> Bytes {
    Bytes::from_static(include_bytes!("openapi.json"))
}
