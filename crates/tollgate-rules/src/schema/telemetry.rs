//! The keys of what is sent to an OpenTelemetry collector.

use super::{
    Key,
    Kind::{self, Number, Text, Word},
    Shape,
};

/// Traces.
pub(crate) static TELEMETRY: Shape = Shape {
    name: "telemetry",
    about: "A span for requests through the gateway, sent to an OpenTelemetry collector. Nothing is sent anywhere but there.",
    example: "{ otlp: \"http://127.0.0.1:4318\" }",
    keys: &[&[
        Key::required(
            "otlp",
            Text("address of a collector"),
            "\"http://127.0.0.1:4318\"",
            "A collector that takes OTLP over HTTP; spans go to `/v1/traces` below it",
        ),
        Key::defaulted(
            "sample",
            Number,
            "0.01",
            "Of the requests that come without a trace, this share begins one; between 0 and 1",
        ),
        Key::defaulted(
            "parents",
            Word(&["follow", "ignore"]),
            "follow",
            "Requests that come with a trace: its own flag says whether there is a span, or `sample` does",
        ),
        Key::defaulted("service", Text("name"), "tollgate", "What this service is called in traces"),
        Key::optional(
            "headers",
            Kind::Named("header", &Text("value")),
            "Headers that the collector asks for, such as an authorization",
        ),
    ]],
    exactly_one: &[],
};
