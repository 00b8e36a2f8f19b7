//! A request that somebody describes: on the command line, as a line of a replay, or to the admin listener.
//!
//! It is what a listener would have received: the address is the peer's, and what its headers say about others is believed
//! only where the rules trust it.

use crate::fields::{Fields, shown};
use anyhow::{Context, Result, anyhow, bail};
use http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use serde_json::{Value, json};
use std::net::{IpAddr, Ipv4Addr};
use tollgate_http::TrustedProxies;
use tollgate_rules::{Request, decision::Body};

/// A request, but for its time.
pub(crate) struct Described {
    method: String,
    path: String,
    query: Option<String>,
    host: Option<String>,
    headers: HeaderMap,
    peer: IpAddr,
}

/// How an object of [`Described::FIELDS`] looks.
pub(crate) const EXAMPLE: &str = r#"{"method":"GET","path":"/"}"#;

impl Described {
    /// The fields of one that is described in JSON.
    pub(crate) const FIELDS: [&str; 5] = ["method", "path", "headers", "host", "ip"];

    pub(crate) fn new(
        method: &str,
        target: &str,
        headers: HeaderMap,
        host: Option<&str>,
        peer: IpAddr,
    ) -> Result<Self> {
        if Method::from_bytes(method.as_bytes()).is_err() {
            bail!("method must be a word such as GET; read {method:?}");
        }
        if !target.starts_with('/') {
            bail!("path must begin with /; read {target:?}");
        }
        let (path, query) = match target.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (target, None),
        };
        let host = host.or_else(|| headers.get(header::HOST)?.to_str().ok()).map(str::to_owned);
        Ok(Self {
            method: method.to_owned(),
            path: path.to_owned(),
            query: query.map(str::to_owned),
            host,
            headers,
            peer,
        })
    }

    /// Takes its fields out of an object.
    pub(crate) fn take(fields: &mut Fields) -> Result<Self> {
        let method = fields.text("method")?.unwrap_or_else(|| "GET".to_owned());
        let target =
            fields.text("path")?.ok_or_else(|| anyhow!("\"path\" is missing; expected one such as \"/\""))?;
        let headers = fields.take("headers").map_or_else(|| Ok(HeaderMap::new()), |value| headers(&value))?;
        let host = fields.text("host")?;
        let peer = match fields.text("ip")? {
            Some(text) => text.parse().ok().ok_or_else(|| {
                anyhow!("\"ip\" must be an address such as 10.0.0.1 or 2001:db8::1; read {text:?}")
            })?,
            None => Ipv4Addr::LOCALHOST.into(),
        };
        Self::new(&method, &target, headers, host.as_deref(), peer)
    }

    /// As the object that [`take`](Self::take) reads.
    pub(crate) fn to_json(&self) -> Value {
        let mut headers = serde_json::Map::new();
        for name in self.headers.keys() {
            let values = self.headers.get_all(name).iter().map(|value| value.to_str().unwrap_or_default());
            headers.insert(name.to_string(), values.collect());
        }
        let target = match &self.query {
            Some(query) => format!("{}?{query}", self.path),
            None => self.path.clone(),
        };
        let mut told =
            json!({ "method": self.method, "path": target, "headers": headers, "ip": self.peer.to_string() });
        if let Some(host) = &self.host {
            told["host"] = json!(host);
        }
        told
    }

    /// As rules see it that came at this time, in microseconds since 1970, behind these proxies.
    pub(crate) fn seen(&self, proxies: &TrustedProxies, at: i64) -> Request<'_> {
        Request {
            method: &self.method,
            path: &self.path,
            query: self.query.as_deref(),
            host: self.host.as_deref(),
            headers: &self.headers,
            ip: proxies.client(self.peer, &self.headers),
            at,
        }
    }

    /// Its body, of which only the headers tell.
    pub(crate) fn body(&self) -> Body {
        let is_open = self.headers.contains_key(header::TRANSFER_ENCODING)
            && !self.headers.contains_key(header::CONTENT_LENGTH);
        if is_open { Body::Open } else { Body::Known }
    }
}

/// Adds a header to others.
pub(crate) fn add_header(headers: &mut HeaderMap, name: &str, value: &str) -> Result<()> {
    let name =
        HeaderName::from_bytes(name.as_bytes()).with_context(|| format!("{name:?}: no header's name"))?;
    // Anything else that HTTP allows could not be told in JSON.
    let value = HeaderValue::from_str(value).with_context(|| format!("{value:?}: no header's value"))?;
    headers.append(name, value);
    Ok(())
}

fn headers(value: &Value) -> Result<HeaderMap> {
    let wrong = |value: &Value| {
        let expected = r#"an object of texts or lists of texts, such as {"x-api-key":"k"}"#;
        anyhow!("\"headers\" must be {expected}; read {}", shown(value))
    };
    let mut headers = HeaderMap::new();
    for (name, value) in value.as_object().ok_or_else(|| wrong(value))? {
        let values = match value {
            Value::Array(values) => values.as_slice(),
            one => std::slice::from_ref(one),
        };
        for value in values {
            let text = value.as_str().ok_or_else(|| wrong(value))?;
            add_header(&mut headers, name, text).context("\"headers\"")?;
        }
    }
    Ok(headers)
}
