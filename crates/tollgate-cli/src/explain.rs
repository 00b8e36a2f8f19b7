//! `tollgate explain`: which route and rules a request would meet, and why not the others.

use crate::{args::ExplainArgs, file};
use anyhow::{Context, Result, bail};
use http::{HeaderMap, HeaderName, HeaderValue};
use std::{
    io::{self, Write},
    time::{SystemTime, UNIX_EPOCH},
};
use tollgate_rules::{Program, Request};

/// Explains one request.
pub(crate) fn run(args: &ExplainArgs) -> Result<()> {
    let program = Program::new(file::load(&args.file)?);
    let headers = headers(&args.headers)?;
    let (path, query) = match args.path.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (args.path.as_str(), None),
    };
    if !path.starts_with('/') {
        bail!("--path must begin with /; read {path:?}");
    }
    let host = args.host.as_deref().or_else(|| headers.get(http::header::HOST)?.to_str().ok());
    let at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_micros();
    let request = Request {
        method: &args.method,
        path,
        query,
        host,
        headers: &headers,
        ip: args.ip,
        at: i64::try_from(at).unwrap_or(i64::MAX),
    };
    let explanation = program.explain(&request);
    let mut output = io::stdout().lock();
    if args.json {
        writeln!(output, "{}", explanation.to_json())?;
    } else {
        write!(output, "{explanation}")?;
    }
    Ok(())
}

fn headers(lines: &[String]) -> Result<HeaderMap> {
    let mut headers = HeaderMap::new();
    for line in lines {
        let (name, value) =
            line.split_once(':').with_context(|| format!("--header must be 'name: value'; read {line:?}"))?;
        let name = HeaderName::from_bytes(name.trim().as_bytes())
            .with_context(|| format!("--header {line:?}: not a header's name"))?;
        let value = HeaderValue::from_str(value.trim())
            .with_context(|| format!("--header {line:?}: not a header's value"))?;
        headers.append(name, value);
    }
    Ok(headers)
}
