//! A request that somebody describes: on the command line, as a line of a replay, or to the admin listener.
//!
//! It is what a listener would have received: the address is the peer's, and what its headers say about others is believed
//! only where the rules trust it.

use crate::replay::line;
use anyhow::{Context, Result, bail};
use http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use serde::{Deserialize, Deserializer, de::Error};
use serde_json::{Value, json};
use std::net::{IpAddr, Ipv4Addr};
use tollgate_http::TrustedProxies;
use tollgate_rules::{
    Request,
    decision::Body,
    json::{JsonError, Node, expected, present},
};

/// A request, but for its time.
pub(crate) struct Described {
    method: String,
    path: String,
    query: Option<String>,
    host: Option<String>,
    headers: HeaderMap,
    peer: IpAddr,
}

/// A request that is described in JSON.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = r#"an object such as {"at_us":0,"method":"GET","path":"/"}"#)]
pub(crate) struct DescribedText {
    /// When it comes, on a line of a replay.
    #[serde(default, deserialize_with = "at_us")]
    pub(crate) at_us: Option<u64>,
    #[serde(default = "get")]
    method: String,
    path: String,
    #[serde(default, deserialize_with = "headers")]
    headers: HeaderMap,
    #[serde(default, deserialize_with = "present")]
    host: Option<String>,
    #[serde(default = "loopback", deserialize_with = "address")]
    ip: IpAddr,
}

fn at_us<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    line::at_us(from).map(Some)
}

fn get() -> String {
    "GET".to_owned()
}

const fn loopback() -> IpAddr {
    IpAddr::V4(Ipv4Addr::LOCALHOST)
}

impl Described {
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

    /// A question to the admin listener, which says nothing of a time.
    pub(crate) fn read(question: &str) -> Result<Self, JsonError> {
        let node = Node::parse(question.as_bytes())?;
        node.only(&["method", "path", "headers", "host", "ip"])?;
        Self::of(node.read()?).map_err(|error| JsonError::custom(format_args!("{error:#}")))
    }

    /// A request that is described in JSON.
    pub(crate) fn of(text: DescribedText) -> Result<Self> {
        Self::new(&text.method, &text.path, text.headers, text.host.as_deref(), text.ip)
    }

    /// As the object that [`DescribedText`] is read from.
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
    let name = HeaderName::from_bytes(name.as_bytes())
        .with_context(|| format!("{name:?}: not a valid header name"))?;
    // Anything else that HTTP allows could not be told in JSON.
    let value =
        HeaderValue::from_str(value).with_context(|| format!("{value:?}: not a valid header value"))?;
    headers.try_append(name, value).context("there are more headers than a request can have")?;
    Ok(())
}

fn headers<'de, D: Deserializer<'de>>(from: D) -> Result<HeaderMap, D::Error> {
    let wrong = || expected(r#"an object of texts or lists of texts, such as {"x-api-key":"k"}"#);
    let Node::Object(fields) = Node::deserialize(from)? else { return Err(wrong()) };
    let mut headers = HeaderMap::new();
    for (name, value) in &fields {
        let values = match value {
            Node::List(values) => values.as_slice(),
            one => std::slice::from_ref(one),
        };
        for value in values {
            let Node::Text(text) = value else { return Err(wrong()) };
            add_header(&mut headers, name, text)
                .map_err(|error| D::Error::custom(format_args!("{error:#}")))?;
        }
    }
    Ok(headers)
}

fn address<'de, D: Deserializer<'de>>(from: D) -> Result<IpAddr, D::Error> {
    let address = match Node::deserialize(from)? {
        Node::Text(text) => text.parse().ok(),
        _ => None,
    };
    address.ok_or_else(|| expected("an address such as 10.0.0.1 or 2001:db8::1"))
}
