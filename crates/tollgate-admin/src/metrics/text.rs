//! The text that Prometheus reads, in both of its forms.
//!
//! They differ in little: OpenMetrics names a counter's family without `_total`, escapes quotes in help texts, and ends with
//! `# EOF`. Bounds are written as `1.0` in both, since a bucket that is `1` in one and `1.0` in the other is two series.

use super::{
    Format,
    family::{Head, Kind},
};
use std::fmt::{self, Write};

/// The text so far.
#[derive(Debug)]
pub(super) struct Text {
    format: Format,
    out: String,
}

/// Writes the samples of one series.
#[derive(Debug)]
pub struct Series<'a> {
    out: &'a mut String,
    name: &'static str,
    labels: &'static [&'static str],
    values: &'a [Box<str>],
}

impl Text {
    pub(super) fn new(format: Format) -> Self {
        Self { format, out: String::with_capacity(16 << 10) }
    }

    pub(super) fn head(&mut self, head: &Head) {
        let name = match self.format {
            Format::Prometheus => head.name,
            Format::OpenMetrics => head.name.strip_suffix("_total").unwrap_or(head.name),
        };
        let kind = match head.kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        };
        let quotes = self.format == Format::OpenMetrics;
        line(&mut self.out, format_args!("# HELP {name} {}", Escaped { text: head.help, quotes }));
        line(&mut self.out, format_args!("# TYPE {name} {kind}"));
    }

    pub(super) fn series<'a>(&'a mut self, head: &Head, values: &'a [Box<str>]) -> Series<'a> {
        Series { out: &mut self.out, name: head.name, labels: head.labels, values }
    }

    pub(super) fn end(mut self) -> String {
        if self.format == Format::OpenMetrics {
            self.out.push_str("# EOF\n");
        }
        self.out
    }
}

impl Series<'_> {
    /// `suffix` is appended to the name, and `label` to the labels.
    pub(super) fn sample(&mut self, suffix: &str, label: Option<(&str, &str)>, value: impl fmt::Display) {
        let Self { out, name, labels, values } = self;
        out.push_str(name);
        out.push_str(suffix);
        let own = labels.iter().copied().zip(values.iter().map(|value| &**value));
        let mut before = '{';
        for (label, value) in own.chain(label) {
            out.push(before);
            // A String takes everything.
            let _ = write!(out, "{label}=\"{}\"", Escaped { text: value, quotes: true });
            before = ',';
        }
        if before == ',' {
            out.push('}');
        }
        line(out, format_args!(" {value}"));
    }
}

/// A text on one line.
struct Escaped<'a> {
    text: &'a str,
    quotes: bool,
}

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for part in self.text.split_inclusive(['\\', '\n', '"']) {
            let (rest, escape) = match part.as_bytes().last() {
                Some(b'\\') => (&part[..part.len() - 1], "\\\\"),
                Some(b'\n') => (&part[..part.len() - 1], "\\n"),
                Some(b'"') if self.quotes => (&part[..part.len() - 1], "\\\""),
                _ => (part, ""),
            };
            f.write_str(rest)?;
            f.write_str(escape)?;
        }
        Ok(())
    }
}

fn line(out: &mut String, text: fmt::Arguments<'_>) {
    let _ = out.write_fmt(text);
    out.push('\n');
}
