//! Spans as OTLP writes them: the messages of `opentelemetry.proto.collector.trace.v1` that are sent, and what is put in them.
//!
//! Names of attributes are OpenTelemetry's where it has some (`http.request.method`, `url.path`), else begin with `tollgate.`.

use prost::{Message, Oneof};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tollgate_gateway::Span;

#[derive(Clone, PartialEq, Message)]
pub(super) struct ExportRequest {
    #[prost(message, repeated, tag = "1")]
    resource_spans: Vec<ResourceSpans>,
}

#[derive(Clone, PartialEq, Message)]
struct ResourceSpans {
    #[prost(message, optional, tag = "1")]
    resource: Option<Resource>,
    #[prost(message, repeated, tag = "2")]
    scope_spans: Vec<ScopeSpans>,
}

#[derive(Clone, PartialEq, Message)]
struct Resource {
    #[prost(message, repeated, tag = "1")]
    attributes: Vec<KeyValue>,
}

#[derive(Clone, PartialEq, Message)]
struct ScopeSpans {
    #[prost(message, optional, tag = "1")]
    scope: Option<Scope>,
    #[prost(message, repeated, tag = "2")]
    spans: Vec<WireSpan>,
}

#[derive(Clone, PartialEq, Message)]
struct Scope {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    version: String,
}

#[derive(Clone, PartialEq, Message)]
struct WireSpan {
    #[prost(bytes = "vec", tag = "1")]
    trace_id: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    span_id: Vec<u8>,
    #[prost(string, tag = "3")]
    trace_state: String,
    #[prost(bytes = "vec", tag = "4")]
    parent_span_id: Vec<u8>,
    #[prost(string, tag = "5")]
    name: String,
    #[prost(int32, tag = "6")]
    kind: i32,
    #[prost(fixed64, tag = "7")]
    start_time_unix_nano: u64,
    #[prost(fixed64, tag = "8")]
    end_time_unix_nano: u64,
    #[prost(message, repeated, tag = "9")]
    attributes: Vec<KeyValue>,
    #[prost(message, optional, tag = "15")]
    status: Option<Status>,
}

#[derive(Clone, PartialEq, Message)]
struct Status {
    #[prost(string, tag = "2")]
    message: String,
    #[prost(int32, tag = "3")]
    code: i32,
}

#[derive(Clone, PartialEq, Message)]
struct KeyValue {
    #[prost(string, tag = "1")]
    key: String,
    #[prost(message, optional, tag = "2")]
    value: Option<AnyValue>,
}

#[derive(Clone, PartialEq, Message)]
struct AnyValue {
    #[prost(oneof = "Value", tags = "1, 3, 4")]
    value: Option<Value>,
}

#[derive(Clone, PartialEq, Oneof)]
enum Value {
    #[prost(string, tag = "1")]
    Text(String),
    #[prost(int64, tag = "3")]
    Whole(i64),
    #[prost(double, tag = "4")]
    Number(f64),
}

#[derive(Clone, PartialEq, Message)]
struct ExportResponse {
    #[prost(message, optional, tag = "1")]
    partial_success: Option<PartialSuccess>,
}

#[derive(Clone, PartialEq, Message)]
struct PartialSuccess {
    #[prost(int64, tag = "1")]
    rejected_spans: i64,
}

/// `SPAN_KIND_SERVER`.
const SERVER: i32 = 2;
/// `STATUS_CODE_ERROR`.
const ERROR: i32 = 2;

/// A batch, in the words of the protocol.
pub(super) fn request(service: &str, batch: &[Span]) -> ExportRequest {
    let resource = Resource {
        attributes: vec![
            text("service.name", service),
            text("service.version", env!("CARGO_PKG_VERSION")),
            text("telemetry.sdk.name", "tollgate"),
            text("telemetry.sdk.language", "rust"),
        ],
    };
    let scope = Scope { name: "tollgate".to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() };
    let spans = batch.iter().map(span).collect();
    let scope_spans = vec![ScopeSpans { scope: Some(scope), spans }];
    ExportRequest { resource_spans: vec![ResourceSpans { resource: Some(resource), scope_spans }] }
}

/// How many spans of a batch the collector did not take, by its answer.
pub(super) fn refused(answer: &[u8]) -> u64 {
    let answer = ExportResponse::decode(answer).ok().and_then(|answer| answer.partial_success);
    answer.map_or(0, |partly| u64::try_from(partly.rejected_spans).unwrap_or(0))
}

fn span(span: &Span) -> WireSpan {
    let mut attributes = vec![text("http.request.method", &span.method), text("url.path", &span.path)];
    let mut add = |attribute| attributes.push(attribute);
    if let Some(client) = span.client {
        add(text("client.address", &client.to_string()));
    }
    if let Some(route) = &span.route {
        add(text("tollgate.route", route));
    }
    if let Some(decision) = span.decision {
        add(text("tollgate.decision", decision));
        add(number("tollgate.wait_ms", millis(span.waited)));
    }
    if let Some(rule) = &span.rule {
        add(text("tollgate.rule", rule));
    }
    if let Some((upstream, took)) = &span.upstream {
        add(text("tollgate.upstream", upstream));
        add(number("tollgate.upstream_ms", millis(*took)));
    }
    if let Some(status) = span.status {
        add(whole("http.response.status_code", status.as_u16().into()));
    }
    let error = match span.status {
        Some(status) if status.is_server_error() => Some(String::new()),
        Some(_) => None,
        None => Some("the client went away before it was answered".to_owned()),
    };
    let began = nanos(span.began.unwrap_or(UNIX_EPOCH));
    WireSpan {
        trace_id: span.trace.to_be_bytes().to_vec(),
        span_id: span.id.to_be_bytes().to_vec(),
        trace_state: span.state.clone(),
        parent_span_id: span.parent.map(|parent| parent.to_be_bytes().to_vec()).unwrap_or_default(),
        name: match &span.route {
            Some(route) => format!("{} {route}", span.method),
            None => span.method.clone(),
        },
        kind: SERVER,
        start_time_unix_nano: began,
        end_time_unix_nano: began.saturating_add(u64::try_from(span.took.as_nanos()).unwrap_or(u64::MAX)),
        attributes,
        status: error.map(|message| Status { message, code: ERROR }),
    }
}

fn nanos(at: SystemTime) -> u64 {
    let since = at.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

fn text(key: &str, value: &str) -> KeyValue {
    attribute(key, Value::Text(value.to_owned()))
}

fn whole(key: &str, value: i64) -> KeyValue {
    attribute(key, Value::Whole(value))
}

fn number(key: &str, value: f64) -> KeyValue {
    attribute(key, Value::Number(value))
}

fn attribute(key: &str, value: Value) -> KeyValue {
    KeyValue { key: key.to_owned(), value: Some(AnyValue { value: Some(value) }) }
}
