//! What can be asked, for programs.

use bytes::Bytes;

/// The OpenAPI document of this door.
#[must_use]
pub fn openapi() -> Bytes {
    Bytes::from_static(b"{}")
}
