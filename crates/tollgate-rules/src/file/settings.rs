//! What a file says once: its version, the store, whom to believe about addresses, the log.

use super::all;
use crate::{
    decode::{Cursor, record, shorten},
    limit::{defaulted, duration},
    model::{AccessLog, LogFormat, LogLevel, LogSettings, RefusalLog, StoreSettings},
    schema,
};
use ipnet::IpNet;
use std::net::IpAddr;
use tollgate::{OnFailure, WhenFull};

/// The version, of which there is one.
pub(super) fn version(version: &Cursor<'_>) -> Option<()> {
    version.parsed("1, the only version there is", |text| match text {
        "1" => Ok(()),
        _ => Err(format!("must be 1, the only version there is; read {:?}", shorten(text))),
    })
}

const WHEN_FULL: [(&str, WhenFull); 2] = [("evict", WhenFull::Evict), ("deny", WhenFull::Deny)];

/// What may be decided while the store does not answer.
pub(super) const ON_FAILURE: [(&str, OnFailure); 3] =
    [("open", OnFailure::Open), ("closed", OnFailure::Closed), ("local", OnFailure::Local)];

/// Reads `store`.
pub(super) fn store(store: &Cursor<'_>) -> Option<StoreSettings> {
    let mut fields = store.mapping(&schema::STORE)?;
    record!(fields => StoreSettings {
        url: fields.defaulted("url", store_url),
        max_keys: fields.defaulted("max_keys", |it| it.positive()),
        when_full: fields.defaulted("when_full", |when| when.choice(&WHEN_FULL)),
        timeout: fields.defaulted("timeout", duration),
        on_failure: fields.defaulted("on_failure", |on| on.choice(&ON_FAILURE)),
        nodes: fields.defaulted("nodes", |it| it.positive()),
        lease: defaulted(fields.optional("lease"), None, |lease| duration(lease).map(Some)),
        busy_poll: fields.defaulted("busy_poll", |it| it.switch()),
    })
}

/// The address of a store. Only its kind is looked at: who connects there knows the rest. Never shown, since it may hold a
/// password.
fn store_url(url: &Cursor<'_>) -> Option<String> {
    const SCHEMES: [&str; 6] =
        ["redis", "rediss", "redis-cluster", "rediss-cluster", "redis-sentinel", "rediss-sentinel"];
    const EXPECTED: &str = "must be `memory:`, or begin with `redis://`, `rediss://`, `redis-cluster://`, \
        `rediss-cluster://`, `redis-sentinel://` or `rediss-sentinel://`; it is not shown, because it can contain a password";
    let text = url.text("the address of a store, such as `memory:` or redis://127.0.0.1:6379")?;
    let message = match text.split_once("://") {
        None if text == "memory:" => return Some(text.to_owned()),
        Some((scheme, rest)) if SCHEMES.contains(&scheme) => {
            let hosts = rest.rsplit_once('@').map_or(rest, |(_, hosts)| hosts);
            match hosts.starts_with(['/', '?']) || hosts.is_empty() {
                true => "has no host, such as redis://127.0.0.1:6379",
                false => return Some(text.to_owned()),
            }
        }
        _ => EXPECTED,
    };
    url.mistake(message);
    None
}

/// Reads `trusted_proxies`.
pub(super) fn trusted_proxies(proxies: &Cursor<'_>) -> Option<Vec<IpNet>> {
    let networks = proxies.list("[ 10.0.0.0/8 ]")?;
    all(networks.iter().map(network).collect::<Vec<_>>())
}

/// An address or a network.
pub(super) fn network(network: &Cursor<'_>) -> Option<IpNet> {
    network.parsed("an address or a network such as 10.0.0.0/8", parse_network)
}

fn parse_network(text: &str) -> Result<IpNet, String> {
    let address = text.parse::<IpAddr>().map(IpNet::from);
    let network = address.or_else(|_| text.parse::<IpNet>()).map_err(|_| {
        format!("must be an address or a network such as 10.0.0.0/8; read {:?}", shorten(text))
    })?;
    if let IpAddr::V6(address) = network.addr()
        && address.to_ipv4_mapped().is_some()
    {
        return Err(format!(
            "must be written as IPv4, which mapped addresses count as; read {:?}",
            shorten(text)
        ));
    }
    match network.trunc() == network {
        true => Ok(network),
        false => Err(format!(
            "has bits beyond its prefix; read {:?}, did you mean `{}` or `{}`?",
            shorten(text),
            network.trunc(),
            network.addr()
        )),
    }
}

const REFUSALS: [(&str, RefusalLog); 3] =
    [("sampled", RefusalLog::Sampled), ("all", RefusalLog::All), ("off", RefusalLog::Off)];

const LEVELS: [(&str, LogLevel); 5] = [
    ("error", LogLevel::Error),
    ("warn", LogLevel::Warn),
    ("info", LogLevel::Info),
    ("debug", LogLevel::Debug),
    ("trace", LogLevel::Trace),
];

const FORMATS: [(&str, LogFormat); 2] = [("text", LogFormat::Text), ("json", LogFormat::Json)];

const ACCESS: [(&str, AccessLog); 2] = [("off", AccessLog::Off), ("on", AccessLog::On)];

/// Reads `log`.
pub(super) fn log(log: &Cursor<'_>) -> Option<LogSettings> {
    let mut fields = log.mapping(&schema::LOG)?;
    record!(fields => LogSettings {
        refusals: fields.defaulted("refusals", |which| which.choice(&REFUSALS)),
        refusals_level: fields.defaulted("refusals_level", |level| level.choice(&LEVELS)),
        level: fields.defaulted("level", |level| level.choice(&LEVELS)),
        format: fields.defaulted("format", |format| format.choice(&FORMATS)),
        access: fields.defaulted("access", |access| access.choice(&ACCESS)),
    })
}
