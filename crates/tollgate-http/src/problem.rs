//! A problem that has no type of its own (RFC 9457): a status, a title, and a sentence for whoever reads it.

use crate::escape;
use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header::CONTENT_TYPE};

/// An answer that says what is wrong with the request.
///
/// ```
/// use http::StatusCode;
///
/// let response = tollgate_http::problem(StatusCode::NOT_FOUND, "No route", "no route takes this request");
/// assert_eq!(response.headers()["content-type"], "application/problem+json");
/// assert_eq!(&response.body()[..], br#"{"title":"No route","status":404,"detail":"no route takes this request"}"#);
/// ```
pub fn problem(status: StatusCode, title: &str, detail: &str) -> Response<Bytes> {
    let mut body = String::from(r#"{"title":"#);
    escape::json(&mut body, title);
    body.push_str(r#","status":"#);
    body.push_str(status.as_str());
    body.push_str(r#","detail":"#);
    escape::json(&mut body, detail);
    body.push('}');
    let mut response = Response::new(Bytes::from(body));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
    response
}
