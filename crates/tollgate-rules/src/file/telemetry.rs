//! `telemetry`: where traces are sent.

use super::{all, upstream::check_url};
use crate::{
    decode::{Cursor, Message, record},
    limit::defaulted,
    model::{Parents, Telemetry},
    schema,
};
use http::{HeaderName, HeaderValue};

const PARENTS: [(&str, Parents); 2] = [("follow", Parents::Follow), ("ignore", Parents::Ignore)];

/// Reads `telemetry`.
pub(super) fn telemetry(telemetry: &Cursor<'_>) -> Option<Telemetry> {
    let mut fields = telemetry.mapping(&schema::TELEMETRY)?;
    record!(fields => Telemetry {
        otlp: fields.required("otlp").and_then(|otlp| collector(&otlp)),
        sample: fields.defaulted("sample", share),
        parents: fields.defaulted("parents", |it| it.choice(&PARENTS)),
        service: fields.defaulted("service", service),
        headers: defaulted(fields.optional("headers"), Vec::new(), headers),
    })
}

fn collector(otlp: &Cursor<'_>) -> Option<String> {
    let text = otlp.text("the address of a collector, such as http://127.0.0.1:4318")?;
    match check_collector(text) {
        Ok(()) => Some(text.trim_end_matches('/').to_owned()),
        Err(message) => {
            otlp.mistake(message);
            None
        }
    }
}

/// As the address of a server, with a path perhaps. The messages show none of it: it may hold a key.
fn check_collector(text: &str) -> Result<(), Message> {
    let Some((scheme @ ("http" | "https"), rest)) = text.split_once("://") else {
        return Err("must begin with `http://` or `https://`, such as http://127.0.0.1:4318".into());
    };
    if rest.contains('@') {
        return Err("must not contain a user name or password; set `authorization` in `headers`".into());
    }
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let is_plain = |byte: u8| byte.is_ascii_graphic() && !b"?#".contains(&byte);
    if !path.bytes().all(is_plain) {
        return Err("must have a host and a path, and nothing after them".into());
    }
    check_url(&format!("{scheme}://{host}"))
}

fn share(share: &Cursor<'_>) -> Option<f64> {
    match share.number()? {
        number if (0.0..=1.0).contains(&number) => Some(number),
        _ => {
            share.mistake("must be from 0 (none) to 1 (all), such as 0.01");
            None
        }
    }
}

fn service(service: &Cursor<'_>) -> Option<String> {
    match service.text("a name such as tollgate")? {
        "" => {
            service.mistake("must not be empty");
            None
        }
        text => Some(text.to_owned()),
    }
}

fn headers(headers: &Cursor<'_>) -> Option<Vec<(String, String)>> {
    let entries = headers.named("{ authorization: \"${OTLP_AUTHORIZATION}\" }")?;
    let header = |(key, value): &(Cursor<'_>, Cursor<'_>)| {
        if key.is_taken() {
            key.mistake_without_values("cannot come from the environment: write the key out");
            return None;
        }
        let name = key.text("the name of a header")?;
        if HeaderName::from_bytes(name.as_bytes()).is_err() {
            key.mistake("must be the name of a header");
            return None;
        }
        let text = value.text("the value of a header")?;
        if HeaderValue::from_str(text).is_err() {
            value.mistake("must be the value of a header: visible characters on one line");
            return None;
        }
        Some((name.to_ascii_lowercase(), text.to_owned()))
    };
    all(entries.iter().map(header).collect::<Vec<_>>())
}
