//! The server that is watched: its admin listener, asked once a second.
//!
//! Asked with the client that the gateway has for its upstreams, so that TLS is spoken where the listener speaks it.

use super::told::Told;
use crate::{replay::Misuse, token};
use anyhow::{Context, Result, anyhow, bail};
use http::{HeaderValue, Request, StatusCode, header::AUTHORIZATION};
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
/// The seconds of the past that are shown.
const PAST: usize = 300;
/// Keys of each sort that are shown.
const KEYS: usize = 50;

pub(super) struct Server {
    url: String,
    upstream: Arc<Upstream>,
    authorization: Option<HeaderValue>,
    us: ClientInfo,
}

impl Server {
    pub(super) fn new(url: &str, token: Option<&Path>) -> Result<Self> {
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

    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// Everything that is shown.
    pub(super) async fn told(&self) -> Result<Told> {
        Ok(Told {
            overview: self.page("/v1/overview").await?,
            usage: self.page(&format!("/v1/usage?last={PAST}")).await?,
            top: self.page(&format!("/v1/top?n={KEYS}")).await?,
        })
    }

    async fn page<T: DeserializeOwned>(&self, path: &str) -> Result<T> {
        let asked = timeout(PATIENCE, self.ask(path)).await;
        let (status, body) =
            asked.map_err(|_| anyhow!("{} did not answer within {PATIENCE:?}", self.url))??;
        let problem = || {
            let problem: Option<Value> = serde_json::from_slice(&body).ok();
            problem.and_then(|problem| Some(problem.get("detail")?.as_str()?.to_owned()))
        };
        match (status, &self.authorization) {
            (StatusCode::OK, _) => serde_json::from_slice(&body)
                .with_context(|| format!("what {}{path} answers is not understood", self.url)),
            (StatusCode::UNAUTHORIZED, None) => {
                bail!(
                    "{} asks who you are: --token-file FILE names a file with your token, or {} has it",
                    self.url,
                    token::VARIABLE
                )
            }
            (StatusCode::UNAUTHORIZED, Some(_)) => bail!("{} does not know your token", self.url),
            (StatusCode::NOT_FOUND, _) => bail!(
                "what answers at {} is no admin listener of this version; its address is in the server's file at `listen.admin`",
                self.url
            ),
            (status, _) => match problem() {
                Some(detail) => bail!("{} says: {}", self.url, super::told::plain(&detail)),
                None => bail!("{}{path} answered {status}", self.url),
            },
        }
    }

    async fn ask(&self, path: &str) -> Result<(StatusCode, Vec<u8>)> {
        let mut request = Request::new(RequestBody::empty());
        *request.uri_mut() = path.parse()?;
        if let Some(authorization) = &self.authorization {
            request.headers_mut().insert(AUTHORIZATION, authorization.clone());
        }
        let answer = forward(request, &self.us, &self.upstream).await.map_err(|error| {
            anyhow!(
                "{error}\n  is a server there, with `listen: {{ admin: ... }}` of this address in its file?"
            )
        })?;
        let status = answer.status();
        let body = Limited::new(answer.into_body(), LONGEST).collect().await;
        let body = body.map_err(|_| anyhow!("the answer of {} broke off", self.url))?;
        Ok((status, body.to_bytes().to_vec()))
    }
}

fn bearer(token: &str) -> Result<HeaderValue> {
    let mut value = HeaderValue::try_from(format!("Bearer {token}"))?;
    value.set_sensitive(true);
    Ok(value)
}
