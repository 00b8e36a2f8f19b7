//! What rules look at: a request, as whoever received it saw it.

use http::HeaderMap;
use std::net::IpAddr;

/// A request, as rules see it.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// Its method, as sent.
    pub method: &'a str,
    /// Its path as sent, without the query.
    pub path: &'a str,
    /// Its query as sent, without the question mark.
    pub query: Option<&'a str>,
    /// The host it asked for, as sent: `Host`, or HTTP/2's authority.
    pub host: Option<&'a str>,
    /// Its headers.
    pub headers: &'a HeaderMap,
    /// The client's address: who is believed about it was decided before.
    pub ip: IpAddr,
    /// When it came, in microseconds since 1970 began in UTC.
    pub at: i64,
}
