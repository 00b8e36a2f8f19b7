//! A running server, asked at its admin listener.
//!
//! Asked with the client that the gateway has for its upstreams, so that TLS is spoken where the listener speaks it.

use crate::{replay::Misuse, token, top::plain};
use anyhow::{Result, anyhow, bail};
use bytes::Bytes;
use http::{
    HeaderValue, Method, Request, StatusCode,
    header::{AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE},
};
use http_body_util::{BodyExt, Limited};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::{net::SocketAddr, path::Path, sync::Arc, time::Duration};
use tokio::time::timeout;
use tollgate_gateway::{ClientInfo, RequestBody, Scheme, Upstream, forward};
use tollgate_rules::model;

/// How long one question may take.
const PATIENCE: Duration = Duration::from_secs(5);
/// Far more than any answer.
const LONGEST: usize = 16 * 1024 * 1024;

/// A client of an admin listener.
pub(crate) struct AdminClient {
    url: String,
    upstream: Arc<Upstream>,
    authorization: Option<HeaderValue>,
    us: ClientInfo,
}

impl AdminClient {
    /// For the listener at this address, with the token of this file or of the environment.
    pub(crate) fn new(url: &str, token: Option<&Path>) -> Result<Self> {
        let url = url.strip_suffix('/').unwrap_or(url);
        let misuse =
            || Misuse::new(format!("--ask must be an address such as http://127.0.0.1:9090; read {url:?}"));
        if !url.starts_with("http://") && !url.starts_with("https://") {
            return Err(misuse().into());
        }
        let mut settings = model::Upstream::new("server", [url.to_owned()]);
        settings.connect_timeout = PATIENCE;
        settings.timeout = PATIENCE;
        let upstream = Upstream::new(settings).map_err(|_| misuse())?;
        let authorization = token::shown(token)?.as_deref().map(bearer).transpose()?;
        let us = ClientInfo::new(SocketAddr::from(([127, 0, 0, 1], 0)), Scheme::Http);
        Ok(Self { url: url.to_owned(), upstream, authorization, us })
    }

    /// Its address.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// What a page shows.
    pub(crate) async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T> {
        self.answer(path, Request::new(RequestBody::empty())).await
    }

    /// What is answered to a question in JSON.
    pub(crate) async fn post<T: DeserializeOwned>(&self, path: &str, question: &Value) -> Result<T> {
        let question = Bytes::from(question.to_string());
        let length = question.len();
        let mut request = Request::new(RequestBody::full(question));
        *request.method_mut() = Method::POST;
        request.headers_mut().insert(CONTENT_LENGTH, length.into());
        request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        self.answer(path, request).await
    }

    async fn answer<T: DeserializeOwned>(&self, path: &str, request: Request<RequestBody>) -> Result<T> {
        let url = &self.url;
        let asked = timeout(PATIENCE, self.ask(path, request)).await;
        let (status, body) = asked.map_err(|_| anyhow!("{url} did not answer within {PATIENCE:?}"))??;
        let problem = || {
            let problem: Option<Value> = serde_json::from_slice(&body).ok();
            problem.and_then(|problem| Some(problem.get("detail")?.as_str()?.to_owned()))
        };
        let other = || {
            anyhow!(
                "what answers at {url} is no admin listener of this version (status {}); \
                 its address is in the server's file at `listen.admin`",
                status.as_u16()
            )
        };
        match (status, &self.authorization) {
            (StatusCode::OK, _) => serde_json::from_slice(&body).map_err(|_| other()),
            (StatusCode::UNAUTHORIZED, None) => {
                let variable = token::VARIABLE;
                bail!(
                    "{url} asks who you are: --token-file FILE names a file with your token, or {variable} has it"
                )
            }
            (StatusCode::UNAUTHORIZED, Some(_)) => bail!("{url} does not know your token"),
            (StatusCode::NOT_FOUND, _) => Err(other()),
            (_, _) => match problem() {
                Some(detail) => bail!("{url} says: {}", plain(&detail)),
                None => Err(other()),
            },
        }
    }

    async fn ask(&self, path: &str, mut request: Request<RequestBody>) -> Result<(StatusCode, Bytes)> {
        *request.uri_mut() = path.parse()?;
        if let Some(authorization) = &self.authorization {
            request.headers_mut().insert(AUTHORIZATION, authorization.clone());
        }
        let url = &self.url;
        let answer = forward(request, &self.us, &self.upstream).await.map_err(|error| {
            let address = url.split_once("://").map_or("", |(_, address)| address);
            anyhow!("{error}\n  is a server there, with `listen: {{ admin: {address} }}` in its file?")
        })?;
        let status = answer.status();
        let body = Limited::new(answer.into_body(), LONGEST).collect().await;
        let body = body.map_err(|_| anyhow!("the answer of {url} broke off"))?;
        Ok((status, body.to_bytes()))
    }
}

fn bearer(token: &str) -> Result<HeaderValue> {
    let mut value = HeaderValue::try_from(format!("Bearer {token}"))?;
    value.set_sensitive(true);
    Ok(value)
}
