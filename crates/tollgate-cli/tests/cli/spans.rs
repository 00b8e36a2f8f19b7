//! Spans as a collector gets them: decoded with OpenTelemetry's own messages.

use crate::{folder::Folder, serving::Serving};
use opentelemetry_proto::tonic::{
    collector::trace::v1::ExportTraceServiceRequest,
    common::v1::{KeyValue, any_value::Value},
    trace::v1::{Span, span::SpanKind, status::StatusCode},
};
use prost::Message;
use std::{
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    time::Duration,
};
use testkit::{Arrival, Arrivals, Canned, Upstream, eventually};

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";

fn parent(flags: &str) -> String {
    format!("00-{TRACE}-b7ad6b7169203331-{flags}")
}

fn rules(upstream: &Upstream, collector: &str, settings: &str) -> String {
    format!(
        r#"
version: 1
listen: {{ gateway: "127.0.0.1:0", admin: "127.0.0.1:0" }}
telemetry: {{ otlp: "{collector}", service: edge, {settings} }}
upstreams: {{ app: {{ servers: [ "{}" ] }} }}
routes:
  - name: app
    when: {{ path: /app/** }}
    upstream: app
    rules: [ {{ name: two, limits: [ {{ fixed_window: {{ limit: 2, window: forever }}, key: [] }} ] }} ]
"#,
        upstream.url()
    )
}

/// What a collector got.
fn batches(collector: &Upstream) -> Vec<ExportTraceServiceRequest> {
    let posted = collector.asked();
    posted.iter().map(|asked| ExportTraceServiceRequest::decode(asked.body.as_slice()).unwrap()).collect()
}

fn spans(collector: &Upstream) -> Vec<Span> {
    let of_batch = batches(collector).into_iter().flat_map(|batch| batch.resource_spans);
    of_batch.flat_map(|of| of.scope_spans).flat_map(|of| of.spans).collect()
}

fn attribute<'a>(attributes: &'a [KeyValue], key: &str) -> Option<&'a Value> {
    attributes.iter().find(|it| it.key == key)?.value.as_ref()?.value.as_ref()
}

fn text<'a>(attributes: &'a [KeyValue], key: &str) -> &'a str {
    match attribute(attributes, key) {
        Some(Value::StringValue(text)) => text,
        other => panic!("{key} is {other:?}"),
    }
}

fn get(serving: &Serving, path: &str, headers: &[(&str, &str)]) -> u16 {
    let arrival =
        headers.iter().fold(Arrival::at_ms(0).path(path), |it, (name, value)| it.header(name, value));
    Arrivals::new([arrival]).play(serving.gateway).remove(0).status()
}

#[test]
fn a_span_a_request_in_the_trace_that_it_came_with() {
    let upstream = Upstream::start(|asked| {
        Canned::text("ok").status(if asked.target.starts_with("/app/broken") { 500 } else { 200 })
    });
    let (collector, folder) = (Upstream::ok(), Folder::new());
    let settings = "sample: 0, headers: { authorization: \"Bearer t\" }";
    let file =
        folder.file("tollgate.yaml", rules(&upstream, &format!("{}/base/", collector.url()), settings));
    let serving = Serving::start(&file, &[]);
    let kept = parent("01");
    assert_eq!(get(&serving, "/app/broken?q=secret", &[("traceparent", &kept), ("tracestate", "a=b")]), 500);
    assert_eq!(get(&serving, "/app/unkept", &[("traceparent", &parent("00"))]), 200);
    assert_eq!(get(&serving, "/app/alone", &[]), 429);
    assert_eq!(get(&serving, "/app/refused", &[("traceparent", &kept)]), 429);
    assert_eq!(get(&serving, "/elsewhere", &[("traceparent", &kept)]), 404);
    let spans = eventually("three spans", || Some(spans(&collector)).filter(|spans| spans.len() >= 3));

    // They end when their bodies do, in whatever order.
    let of = |path: &str| spans.iter().find(|span| text(&span.attributes, "url.path") == path).unwrap();
    let (forwarded, refused, lost) = (of("/app/broken"), of("/app/refused"), of("/elsewhere"));
    assert_eq!(spans.len(), 3, "{spans:?}");
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    for span in &spans {
        assert_eq!(hex(&span.trace_id), TRACE);
        assert_eq!(hex(&span.parent_span_id), "b7ad6b7169203331");
        assert_eq!(span.kind(), SpanKind::Server);
        assert!(
            span.end_time_unix_nano > span.start_time_unix_nano
                && span.start_time_unix_nano > 1_700_000_000_000_000_000
        );
        assert_eq!(text(&span.attributes, "client.address"), "127.0.0.1");
    }
    assert_eq!(forwarded.name, "GET app");
    assert_eq!(forwarded.trace_state, "a=b");
    assert_eq!(text(&forwarded.attributes, "url.path"), "/app/broken");
    assert_eq!(text(&forwarded.attributes, "tollgate.decision"), "allow");
    assert_eq!(text(&forwarded.attributes, "tollgate.upstream"), "app");
    assert!(
        matches!(attribute(&forwarded.attributes, "tollgate.upstream_ms"), Some(Value::DoubleValue(ms)) if *ms > 0.0)
    );
    assert_eq!(attribute(&forwarded.attributes, "http.response.status_code"), Some(&Value::IntValue(500)));
    assert_eq!(forwarded.status.as_ref().unwrap().code(), StatusCode::Error);
    assert_eq!(text(&refused.attributes, "tollgate.decision"), "reject");
    assert_eq!(text(&refused.attributes, "tollgate.rule"), "two");
    assert_eq!(refused.status, None);
    assert_eq!((lost.name.as_str(), attribute(&lost.attributes, "tollgate.route")), ("GET", None));

    let asked = upstream.asked();
    let passed_on = format!("00-{TRACE}-{}-01", hex(&forwarded.span_id));
    assert_eq!(asked[0].header("traceparent"), Some(passed_on.as_str()), "our span is the parent upstream");
    assert_eq!(asked[0].header("tracestate"), Some("a=b"));
    assert_eq!(
        asked[1].header("traceparent"),
        Some(parent("00").as_str()),
        "what has no span goes on as it came"
    );

    let posted = &collector.asked()[0];
    assert_eq!((posted.method.as_str(), posted.target.as_str()), ("POST", "/base/v1/traces"));
    assert_eq!(posted.header("content-type"), Some("application/x-protobuf"));
    assert_eq!(posted.header("authorization"), Some("Bearer t"));
    let resource = batches(&collector)[0].resource_spans[0].resource.clone().unwrap();
    assert_eq!(text(&resource.attributes, "service.name"), "edge");
}

#[test]
fn requests_without_a_trace_begin_one_and_the_end_sends_the_last() {
    let (upstream, collector, folder) = (Upstream::ok(), Upstream::ok(), Folder::new());
    let file = folder.file("tollgate.yaml", rules(&upstream, &collector.url(), "sample: 1, parents: ignore"));
    let mut serving = Serving::start(&file, &[]);
    for headers in
        [&[][..], &[("traceparent", "00-zero"), ("tracestate", "a=b")], &[("traceparent", &parent("00"))]]
    {
        get(&serving, "/app/a", headers);
    }
    // Stopped at once: what has not been sent by itself yet is sent now.
    serving.stop();
    eventually("it ends", || serving.is_over());
    let spans = spans(&collector);
    assert_eq!(spans.len(), 3);
    assert!(spans[..2].iter().all(|span| span.parent_span_id.is_empty() && span.trace_id.len() == 16));
    assert_ne!(spans[0].trace_id, spans[1].trace_id);
    assert_eq!(
        spans[2].parent_span_id.len(),
        8,
        "it is part of the trace, though that is not kept elsewhere"
    );
    let asked = upstream.asked();
    assert!(asked.iter().all(|asked| asked.header("traceparent").is_some_and(|it| it.ends_with("-01"))));
    assert_eq!(asked[1].header("tracestate"), None, "it belonged to a trace that nobody could name");
}

#[test]
fn nothing_is_sent_or_added_where_the_file_names_no_collector() {
    let (upstream, folder) = (Upstream::ok(), Folder::new());
    let text = rules(&upstream, "http://127.0.0.1:1", "sample: 1");
    let text: String =
        text.lines().filter(|line| !line.starts_with("telemetry")).map(|line| format!("{line}\n")).collect();
    let serving = Serving::start(&folder.file("tollgate.yaml", text), &[]);
    get(&serving, "/app/a", &[]);
    get(&serving, "/app/a", &[("traceparent", &parent("01"))]);
    let asked = upstream.asked();
    assert_eq!(asked[0].header("traceparent"), None);
    assert_eq!(asked[1].header("traceparent"), Some(parent("01").as_str()));
}

/// One that refuses is not asked again, one that comes back gets what comes then, and what could not be sent is counted.
#[test]
fn a_collector_that_is_ill() {
    static ILL: AtomicBool = AtomicBool::new(true);
    let upstream = Upstream::ok();
    let collector =
        Upstream::start(
            |_| {
                if ILL.load(Relaxed) { Canned::text("later").status(400) } else { Canned::text("") }
            },
        );
    let folder = Folder::new();
    let file = folder.file("tollgate.yaml", rules(&upstream, &collector.url(), "sample: 1"));
    let serving = Serving::start(&file, &[]);
    let metric = |result: &str| {
        let page = crate::serving::get(serving.admin, "/metrics").text();
        let line = format!("tollgate_spans_total{{result=\"{result}\"}} ");
        page.lines().find_map(|it| it.strip_prefix(&line)?.parse::<u64>().ok()).unwrap()
    };
    get(&serving, "/app/a", &[]);
    eventually("a batch to be given up", || (metric("failed") == 1).then_some(()));
    ILL.store(false, Relaxed);
    get(&serving, "/app/b", &[]);
    eventually("a batch to be taken", || (metric("sent") == 1).then_some(()));
    eventually("both to be told", || {
        let log = serving.log();
        (log.contains("takes no spans") && log.contains("takes spans again")).then_some(())
    });
}

#[test]
fn more_spans_than_can_be_sent_are_dropped_and_counted() {
    let upstream = Upstream::ok();
    let collector = Upstream::start(|_| Canned::text("").after(Duration::from_secs(60)));
    let folder = Folder::new();
    let file = folder.file("tollgate.yaml", rules(&upstream, &collector.url(), "sample: 1"));
    let serving = Serving::start(&file, &[]);
    // More than wait in the queue and travel in a batch.
    let arrivals = Arrivals::new((0..6000).map(|n| Arrival::at_ms(0).path("/elsewhere").on(n % 4)));
    let seen = arrivals.play(serving.gateway);
    assert!(seen.iter().all(|seen| seen.status() == 404), "every one was answered");
    eventually("some to be dropped", || {
        let page = crate::serving::get(serving.admin, "/metrics").text();
        let dropped =
            page.lines().find_map(|it| it.strip_prefix("tollgate_spans_total{result=\"dropped\"} "));
        (dropped.unwrap().parse::<u64>().unwrap() >= 6000 - 4096 - 512).then_some(())
    });
}
