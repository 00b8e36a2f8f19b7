//! The keys of tracing: spans for an OpenTelemetry collector.

use super::{
    Key,
    Kind::{self, Number, Text, Word},
    Shape,
};

/// Traces.
pub(crate) static TELEMETRY: Shape = Shape {
    name: "telemetry",
    about: "Tracing: a span for each sampled request through the gateway, sent to an OpenTelemetry collector and nowhere else.",
    example: "{ otlp: \"http://127.0.0.1:4318\" }",
    keys: &[&[
        Key::required(
            "otlp",
            Text("address of a collector"),
            "\"http://127.0.0.1:4318\"",
            "Collector for OTLP over HTTP; spans go to `/v1/traces` below it",
        ),
        Key::defaulted(
            "sample",
            Number,
            "0.01",
            "Share of the requests without a trace that start one, from 0 to 1",
        ),
        Key::defaulted(
            "parents",
            Word(&["follow", "ignore"]),
            "follow",
            "Whether requests that belong to a trace get a span: `follow` follows the trace's sampled flag, `ignore` decides by `sample`",
        ),
        Key::defaulted("service", Text("name"), "tollgate", "Service name in traces"),
        Key::optional(
            "headers",
            Kind::Named("header", &Text("value")),
            "Headers to send to the collector, such as `authorization`",
        ),
    ]],
    exactly_one: &[],
};
