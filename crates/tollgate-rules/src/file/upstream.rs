//! Where requests go.

use super::{all, names::Names};
use crate::{
    decode::{Cursor, default_of, did_you_mean, record},
    limit::{defaulted, duration},
    model::{HealthCheck, Server, Upstream},
    schema,
};
use std::{collections::HashSet, net::Ipv6Addr, time::Duration};

/// The file's upstreams, for routes to speak of.
pub(super) struct Upstreams {
    pub(super) names: Names,
    /// `None` where one of them is wrong.
    pub(super) read: Option<Vec<Upstream>>,
}

/// Reads `upstreams`.
pub(super) fn upstreams(upstreams: Option<Cursor<'_>>) -> Upstreams {
    let mut names = Names::new("upstream");
    let Some(upstreams) = upstreams else { return Upstreams { names, read: Some(Vec::new()) } };
    let Some(entries) = upstreams.named("{ orders: { servers: [ \"http://127.0.0.1:9001\" ] } }") else {
        return Upstreams { names, read: None };
    };
    let mut read = Vec::with_capacity(entries.len());
    for (key, value) in entries {
        let name = names.add(&key);
        let upstream = upstream(&value);
        read.push(name.zip(upstream).map(|(name, upstream)| Upstream { name, ..upstream }));
    }
    Upstreams { names, read: all(read) }
}

impl Upstream {
    /// An upstream of servers with the weight 1, everything else as where a rule file leaves it out.
    ///
    /// # Panics
    /// Never: it reads the schema's own defaults.
    pub fn new(name: impl Into<String>, urls: impl IntoIterator<Item = String>) -> Self {
        let default = |key| -> Duration {
            default_of(&schema::UPSTREAM, key, duration).expect("the schema's default can be read")
        };
        Self {
            name: name.into(),
            servers: urls.into_iter().map(|url| Server { url, weight: 1 }).collect(),
            connect_timeout: default("connect_timeout"),
            timeout: default("timeout"),
            idle_timeout: default("idle_timeout"),
            abort_grace: default("abort_grace"),
            tunnel_timeout: default("tunnel_timeout"),
            health: None,
        }
    }
}

/// An upstream; its name is still to come.
fn upstream(value: &Cursor<'_>) -> Option<Upstream> {
    let mut fields = value.mapping(&schema::UPSTREAM)?;
    record!(fields => Upstream {
        servers: fields.required("servers").and_then(|servers| self::servers(&servers)),
        connect_timeout: fields.defaulted("connect_timeout", duration),
        timeout: fields.defaulted("timeout", duration),
        idle_timeout: fields.defaulted("idle_timeout", duration),
        abort_grace: fields.defaulted("abort_grace", duration),
        tunnel_timeout: fields.defaulted("tunnel_timeout", duration),
        health: defaulted(fields.optional("health"), None, |health| self::health(health).map(Some)),
        name: Some(String::new()),
    })
}

fn servers(servers: &Cursor<'_>) -> Option<Vec<Server>> {
    let items = servers.list("[ \"http://127.0.0.1:9001\" ]")?;
    if items.is_empty() {
        servers.mistake("must have at least one server");
        return None;
    }
    let mut seen = HashSet::new();
    let read = items.iter().map(|item| {
        let server = server(item)?;
        if !seen.insert(server.url.to_ascii_lowercase()) {
            item.mistake("is given twice; a `weight` gives a server a larger share");
            return None;
        }
        Some(server)
    });
    all(read.collect::<Vec<_>>())
}

fn server(item: &Cursor<'_>) -> Option<Server> {
    if !item.is_mapping() {
        return Some(Server {
            url: url(item)?,
            weight: default_of(&schema::SERVER, "weight", |it| it.positive())?,
        });
    }
    let mut fields = item.mapping(&schema::SERVER)?;
    record!(fields => Server {
        url: fields.required("url").and_then(|url| self::url(&url)),
        weight: fields.defaulted("weight", |it| it.positive()),
    })
}

fn url(url: &Cursor<'_>) -> Option<String> {
    let text = url.text("the address of a server, such as http://127.0.0.1:9001")?;
    match check_url(text) {
        Ok(()) => Some(text.to_owned()),
        Err(message) => {
            url.mistake(message);
            None
        }
    }
}

/// A scheme, a host, perhaps a port, and nothing else. The messages never show what might be a login.
pub(super) fn check_url(text: &str) -> Result<(), crate::decode::Message> {
    const SCHEMES: [&str; 3] = ["http", "https", "h2c"];
    let Some((scheme, rest)) = text.split_once("://") else {
        return Err("must begin with `http://`, `https://` or `h2c://`, such as http://127.0.0.1:9001".into());
    };
    if !SCHEMES.contains(&scheme) {
        let meant = did_you_mean(scheme, SCHEMES);
        return Err(format!("must begin with `http://`, `https://` or `h2c://`{meant}").into());
    }
    if rest.contains('@') {
        return Err("must not contain a user name or password".into());
    }
    if rest.contains(['/', '?', '#']) {
        return Err("must end with the host or its port: the path comes from the request".into());
    }
    let (host, port) = match rest.strip_prefix('[').map(|rest| rest.split_once(']')) {
        Some(Some((host, after))) => {
            host.parse::<Ipv6Addr>().map_err(|_| "has no IPv6 address between its brackets")?;
            match after {
                "" => return Ok(()),
                _ => ("", after.strip_prefix(':').ok_or("must have nothing but a port after the `]`")?),
            }
        }
        Some(None) => return Err("has a `[` without its `]`".into()),
        None => match rest.split_once(':') {
            Some((_, port)) if port.contains(':') => {
                return Err("must have an IPv6 address in brackets, such as http://[::1]:9001".into());
            }
            Some((host, port)) => (host, port),
            None => (rest, "80"),
        },
    };
    let is_bracketed = rest.starts_with('[');
    let is_host = |host: &str| {
        !host.is_empty() && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_".contains(&byte))
    };
    if !is_bracketed && !is_host(host) {
        return Err("must have a host of letters, digits, `.`, `-` and `_` after the `://`".into());
    }
    match port.bytes().all(|byte| byte.is_ascii_digit()) && port.parse::<u16>().is_ok_and(|port| port > 0) {
        true => Ok(()),
        false => Err("must have a port from 1 to 65535 after its `:`".into()),
    }
}

fn health(health: &Cursor<'_>) -> Option<HealthCheck> {
    let mut fields = health.mapping(&schema::HEALTH)?;
    record!(fields => HealthCheck {
        path: fields.required("path").and_then(|path| match path.text("a path such as /ok")? {
            text if text.starts_with('/') && text.bytes().all(|byte| byte.is_ascii_graphic()) => {
            Some(text.to_owned())
        }
        _ => {
            path.mistake("must begin with `/` and contain only ASCII without spaces, such as /ok");
            None
        }
    }),
        every: fields.defaulted("every", duration),
        unhealthy_after: fields.defaulted("unhealthy_after", |it| it.positive()),
        healthy_after: fields.defaulted("healthy_after", |it| it.positive()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_servers() {
        for good in [
            "http://127.0.0.1:9001",
            "https://orders.example",
            "h2c://orders:80",
            "http://[::1]:9001",
            "http://[2001:db8::1]",
            "http://a_b-c.d:65535",
        ] {
            assert_eq!(check_url(good), Ok(()), "{good}");
        }
        for bad in [
            "",
            "orders:80",
            "ftp://orders",
            "http://",
            "http://:80",
            "http://a:0",
            "http://a:65536",
            "http://a:",
            "http://a:+1",
            "http://a/b",
            "http://a/",
            "http://u:p@a",
            "http://[::1",
            "http://[x]:1",
            "http://[::1]1",
            "http://::1:80",
            "http://a b",
            "http://a?x",
            "HTTP://a",
            "http://ä",
        ] {
            assert!(check_url(bad).is_err(), "{bad}");
        }
    }
}
