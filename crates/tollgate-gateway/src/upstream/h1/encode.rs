//! The head of a request as bytes.
//!
//! Header names go as they are kept, in lower case. What frames the body is not among the headers: it is written here,
//! from what the body is.

use super::exchange::Outbound;
use crate::{forward::host, framing::Framing, outgoing::line};
use bytes::{BufMut, BytesMut};
use http::{Method, header};

/// Writes the head of a request. Its headers hold neither `Content-Length` nor `Transfer-Encoding`, and are for one hop
/// already.
pub(super) fn request(out: &mut BytesMut, request: &Outbound<'_>, framing: Framing) {
    let Outbound { method, target, headers, told, .. } = *request;
    out.reserve(method.as_str().len() + target.len() + 192 + headers.len() * 48);
    out.put_slice(method.as_str().as_bytes());
    out.put_u8(b' ');
    out.put_slice(target.as_bytes());
    out.put_slice(b" HTTP/1.1\r\n");
    // The host first, as RFC 9110 would have it.
    if let Some(host) = host(headers) {
        out.put_slice(b"host: ");
        out.put_slice(host.as_bytes());
        out.put_slice(b"\r\n");
    }
    for (name, value) in headers {
        if name != header::HOST {
            line(out, name, value);
        }
    }
    if let Some(told) = told {
        told.write(out);
    }
    // A body was possible and there is none: say so, as servers may ask for the length.
    if framing == Framing::None && matches!(*method, Method::POST | Method::PUT | Method::PATCH) {
        Framing::Length(0).write_header(out);
    }
    framing.write_header(out);
    out.put_slice(b"\r\n");
}
