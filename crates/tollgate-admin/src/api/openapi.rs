//! `/v1/openapi.json`: the OpenAPI document of the admin API, which is `docs/openapi-admin.json`.

use axum::response::IntoResponse;
use http::header;

/// The document.
pub(super) const DOCUMENT: &str = include_str!("../../../../docs/openapi-admin.json");

pub(super) async fn document() -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "application/json")], DOCUMENT)
}
