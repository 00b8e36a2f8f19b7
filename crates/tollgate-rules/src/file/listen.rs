//! What is opened: an address for each door, and how much is taken there.

use super::users;
use crate::{
    decode::{Cursor, Fields, record, shorten},
    limit::{defaulted, duration},
    model::{Listen, Listener, TlsFiles, Token},
    quantity::parse_size,
    schema,
};
use std::{net::SocketAddr, path::PathBuf};

/// Reads `listen`.
pub(super) fn listen(listen: Option<Cursor<'_>>) -> Option<Listen> {
    let Some(listen) = listen else { return Some(Listen::default()) };
    let mut fields = listen.mapping(&schema::LISTEN)?;
    let mut opened: Vec<(SocketAddr, &str)> = Vec::new();
    let mut door = |name| {
        let Some(here) = fields.optional(name) else { return Some(None) };
        let listener = listener(&here)?;
        guarded(name, &here, &listener)?;
        let address = listener.address;
        // Port 0 is a free one, every time another.
        if let Some((_, other)) = opened.iter().find(|(other, _)| *other == address && address.port() != 0) {
            here.mistake_without_values(format!("has the same address as `{other}`"));
            return None;
        }
        opened.push((address, name));
        Some(Some(listener))
    };
    let (gateway, grpc, http) = (door("gateway"), door("grpc"), door("http"));
    let (resp, admin) = (door("resp"), door("admin"));
    fields.finish();
    Some(Listen { gateway: gateway?, grpc: grpc?, http: http?, resp: resp?, admin: admin? })
}

fn listener(here: &Cursor<'_>) -> Option<Listener> {
    if !here.is_mapping() {
        return address(here).map(Listener::on);
    }
    let mut fields = here.mapping(&schema::LISTENER)?;
    let address = fields.required("address").and_then(|address| self::address(&address));
    listener_with(fields, address)
}

/// A listener on an address that stands elsewhere.
pub(super) fn listener_on(here: &Cursor<'_>, address: SocketAddr) -> Option<Listener> {
    let mut fields = here.mapping(&schema::LISTENER)?;
    fields.optional("address");
    listener_with(fields, Some(address))
}

fn listener_with(mut fields: Fields<'_>, address: Option<SocketAddr>) -> Option<Listener> {
    record!(fields => Listener {
        tls: defaulted(fields.optional("tls"), None, |tls| self::tls(tls).map(Some)),
        tokens: defaulted(fields.optional("tokens"), Vec::new(), tokens),
        open: fields.defaulted("open", |it| it.switch()),
        users: defaulted(fields.optional("users"), Vec::new(), users::users),
        proxied: fields.defaulted("proxied", |it| it.switch()),
        max_connections: fields.defaulted("max_connections", |it| it.positive()),
        max_in_flight: fields.defaulted("max_in_flight", |it| it.positive()),
        backlog: fields.defaulted("backlog", |it| it.positive()),
        max_header: fields.defaulted("max_header", |max| {
        u32::try_from(size(max)?).map_err(|_| max.mistake("must be less than 4GiB")).ok()
    }),
        max_body: defaulted(fields.optional("max_body"), None, |max| size(max).map(Some)),
        header_timeout: fields.defaulted("header_timeout", duration),
        idle_timeout: fields.defaulted("idle_timeout", duration);
        address
    })
}

/// The doors that answer questions charge whoever is named: beyond this machine only those may ask who know a word.
fn guarded(name: &str, here: &Cursor<'_>, listener: &Listener) -> Option<()> {
    let asks = matches!(name, "grpc" | "http" | "resp");
    if !asks && (!listener.tokens.is_empty() || listener.open) {
        here.mistake_without_values("does not ask for tokens: only `grpc`, `http` and `resp` do");
        return None;
    }
    if asks && !listener.address.ip().is_loopback() && listener.tokens.is_empty() && !listener.open {
        here.mistake_without_values(
            "listens beyond loopback: set `tokens: [ \"${NAME}\" ]`, or `open: true` to accept every client",
        );
        return None;
    }
    if name == "admin" {
        return users::guarded(here, listener);
    }
    if !listener.users.is_empty() || listener.proxied {
        here.mistake_without_values("cannot have `users`: only `admin` can");
        return None;
    }
    Some(())
}

fn tokens(tokens: &Cursor<'_>) -> Option<Vec<Token>> {
    let list = tokens.list("[ \"${NAME}\" ]")?;
    let read: Vec<Option<Token>> = list.iter().map(token).collect();
    read.into_iter().collect()
}

fn token(token: &Cursor<'_>) -> Option<Token> {
    match token.text("a word")? {
        "" => {
            token.mistake_without_values("must not be empty: every client would be accepted");
            None
        }
        word => Some(Token(word.to_owned())),
    }
}

fn address(address: &Cursor<'_>) -> Option<SocketAddr> {
    const EXPECTED: &str = "an IP address and a port such as 127.0.0.1:8080";
    address.parsed(EXPECTED, |text| {
        text.parse().map_err(|_| {
            let hint = match text.rsplit_once(':') {
                Some(("" | "*", port)) => {
                    format!("; for all addresses use `0.0.0.0:{port}` or `[::]:{port}`")
                }
                Some(("localhost", port)) => format!("; for this machine only use `127.0.0.1:{port}`"),
                _ => String::new(),
            };
            format!("must be {EXPECTED}; read {:?}{}", shorten(text), shorten(&hint))
        })
    })
}

fn tls(tls: &Cursor<'_>) -> Option<TlsFiles> {
    let mut fields = tls.mapping(&schema::TLS)?;
    record!(fields => TlsFiles {
        cert: fields.required("cert").and_then(|cert| file(&cert)),
        key: fields.required("key").and_then(|key| file(&key)),
    })
}

fn file(file: &Cursor<'_>) -> Option<PathBuf> {
    match file.text("the path of a file")? {
        "" => {
            file.mistake("must not be empty: the path of a file in PEM");
            None
        }
        path => Some(path.into()),
    }
}

/// A size above zero.
fn size(size: &Cursor<'_>) -> Option<u64> {
    match size.parsed("a size such as 64KiB", parse_size)? {
        0 => {
            size.mistake("must be greater than zero");
            None
        }
        size => Some(size),
    }
}
