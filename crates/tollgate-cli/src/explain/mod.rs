//! `tollgate explain`: which route and rules a request would meet, and why not the others; with `--ask`, what its buckets
//! hold in a running server too.

mod held;

use crate::{
    admin_client::AdminClient,
    args::ExplainArgs,
    described::{Described, add_header},
    file,
    replay::Misuse,
};
use anyhow::{Context, Result, bail};
use http::HeaderMap;
use serde_json::{Map, Value};
use std::{
    io::{self, Write},
    path::Path,
    time::{SystemTime, UNIX_EPOCH},
};
use tokio::runtime::Builder;
use tollgate_http::TrustedProxies;
use tollgate_rules::{Program, RuleFile};

/// Explains one request.
pub(crate) fn run(args: &ExplainArgs) -> Result<()> {
    let described = described(args).map_err(|error| Misuse::new(format!("{error:#}")))?;
    let listener = match args.ask.as_deref() {
        Some(url) => Some(AdminClient::new(url, args.token_file.as_deref())?),
        None => None,
    };
    let program = Program::new(file::load(&args.file)?);
    let proxies = TrustedProxies::new(program.file().trusted_proxies.iter().copied());
    let at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_micros();
    let explanation = program.explain(&described.seen(&proxies, i64::try_from(at).unwrap_or(i64::MAX)));
    let told =
        listener.map(|listener| there(&listener, &described, program.file(), &args.file)).transpose()?;

    let mut output = io::stdout().lock();
    match (told, args.json) {
        (None, true) => writeln!(output, "{}", explanation.to_json())?,
        (None, false) => write!(output, "{explanation}")?,
        (Some(told), true) => writeln!(output, "{}", Value::Object(told))?,
        (Some(told), false) => {
            write!(output, "{explanation}")?;
            held::write(&mut output, &told)?;
        }
    }
    Ok(())
}

fn described(args: &ExplainArgs) -> Result<Described> {
    let mut headers = HeaderMap::new();
    for line in &args.headers {
        let (name, value) =
            line.split_once(':').with_context(|| format!("--header must be 'name: value'; read {line:?}"))?;
        add_header(&mut headers, name.trim(), value.trim()).context("--header")?;
    }
    Described::new(&args.method, &args.path, headers, args.host.as_deref(), args.ip)
}

/// What a running server tells about the request. What its buckets hold means something only where it goes by the same rules.
fn there(
    server: &AdminClient,
    described: &Described,
    rules: &RuleFile,
    file: &Path,
) -> Result<Map<String, Value>> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let told: Map<String, Value> = runtime.block_on(server.post("/v1/explain", &described.to_json()))?;
    if told.get("fingerprint") != Some(&file::fingerprint(rules).into()) {
        let url = server.url();
        bail!(
            "{url} goes by other rules than {}: by {}, generation {}\n  \
             was the file changed a moment ago, or could the change not be used? {url}/readyz tells",
            file.display(),
            told.get("file").and_then(Value::as_str).unwrap_or("another file"),
            told.get("generation").cloned().unwrap_or_default(),
        );
    }
    Ok(told)
}
