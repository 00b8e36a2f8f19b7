//! A strict reader of both text forms: what it takes, every scraper takes.
//!
//! It panics at the first thing that is not as the forms have it, or that Prometheus would take and misread: a family told
//! twice, samples outside of their family, a series told twice, buckets that do not add up.

use std::collections::{BTreeMap, BTreeSet};
use tollgate_admin::Format;

/// All families, by the name in their `# TYPE`.
pub(crate) type Exposition = BTreeMap<String, Family>;

#[derive(Debug)]
pub(crate) struct Family {
    pub(crate) kind: String,
    pub(crate) help: String,
    pub(crate) samples: Vec<Sample>,
}

#[derive(Debug)]
pub(crate) struct Sample {
    pub(crate) name: String,
    pub(crate) labels: Vec<(String, String)>,
    pub(crate) value: f64,
}

impl Sample {
    fn label(&self, name: &str) -> Option<&str> {
        self.labels.iter().find(|(label, _)| label == name).map(|(_, value)| value.as_str())
    }
}

/// The value of the one sample of this name whose labels have these values, in order.
#[track_caller]
pub(crate) fn value(exposition: &Exposition, name: &str, labels: &[&str]) -> Option<f64> {
    let samples = exposition.values().flat_map(|family| &family.samples).filter(|sample| {
        sample.name == name
            && sample.labels.iter().map(|(_, value)| value.as_str()).eq(labels.iter().copied())
    });
    let values: Vec<f64> = samples.map(|sample| sample.value).collect();
    assert!(values.len() < 2, "{name}{labels:?} is there {} times", values.len());
    values.first().copied()
}

#[track_caller]
pub(crate) fn read(text: &str, format: Format) -> Exposition {
    let body = match format {
        Format::OpenMetrics => text.strip_suffix("# EOF\n").expect("it ends with # EOF"),
        _ => text,
    };
    assert!(body.is_empty() || body.ends_with('\n'), "the last line is not ended");
    let mut families = Exposition::new();
    let mut current: Option<String> = None;
    let mut lines = body.lines();
    while let Some(line) = lines.next() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            let (name, help) = help.split_once(' ').expect("a name and a text");
            let kind =
                lines.next().and_then(|line| line.strip_prefix("# TYPE ")).expect("a TYPE after the HELP");
            let (same, kind) = kind.split_once(' ').expect("a name and a kind");
            assert_eq!(name, same, "HELP and TYPE are about one family");
            let family = Family {
                kind: kind.to_owned(),
                help: unescape(help, format == Format::OpenMetrics),
                samples: Vec::new(),
            };
            assert!(families.insert(name.to_owned(), family).is_none(), "{name} is there twice");
            current = Some(name.to_owned());
        } else {
            let current = current.as_deref().expect("a sample after its family");
            let family = families.get_mut(current).expect("it was made above");
            let sample = sample(line);
            let suffixes: &[&str] = match (family.kind.as_str(), format) {
                ("counter", Format::OpenMetrics) => &["_total"],
                ("counter" | "gauge", _) => &[""],
                ("histogram", _) => &["_bucket", "_sum", "_count"],
                (kind, _) => panic!("{kind} is no kind"),
            };
            let suffix = sample.name.strip_prefix(current).expect("it belongs to the family before it");
            assert!(suffixes.contains(&suffix), "{line} in a {}", family.kind);
            family.samples.push(sample);
        }
    }
    for (name, family) in &families {
        assert!(!family.samples.is_empty(), "{name} has no samples");
        no_series_twice(family);
        if family.kind == "counter" && format == Format::Prometheus {
            assert!(name.ends_with("_total"), "{name} is a counter");
        }
        if family.kind == "histogram" {
            buckets_add_up(name, family);
        }
    }
    families
}

fn sample(line: &str) -> Sample {
    let end = line.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == ':')).expect("a value");
    let (name, mut rest) = line.split_at(end);
    assert!(!name.is_empty() && !name.starts_with(|c: char| c.is_ascii_digit()), "{line}");
    let mut labels = Vec::new();
    if let Some(inside) = rest.strip_prefix('{') {
        rest = inside;
        loop {
            let (label, after) = rest.split_once("=\"").expect("a label and its value");
            assert!(label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_'), "{line}");
            let end = closing_quote(after);
            assert!(!labels.iter().any(|(other, _)| other == label), "{label} twice in {line}");
            labels.push((label.to_owned(), unescape(&after[..end], true)));
            rest = &after[end + 1..];
            if let Some(after) = rest.strip_prefix('}') {
                rest = after;
                break;
            }
            rest = rest.strip_prefix(',').expect("a comma between labels");
        }
    }
    let value = rest.strip_prefix(' ').expect("one space before the value");
    let value: f64 = value.parse().unwrap_or_else(|_| panic!("{value:?} is no number, in {line}"));
    assert!(value >= 0.0 && value.is_finite(), "{line}");
    Sample { name: name.to_owned(), labels, value }
}

fn closing_quote(text: &str) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        match c {
            '"' if !escaped => return at,
            _ => escaped = c == '\\' && !escaped,
        }
    }
    panic!("no closing quote in {text}")
}

fn unescape(text: &str, quotes: bool) -> String {
    let mut out = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some('n') => out.push('\n'),
                Some('\\') => out.push('\\'),
                Some('"') if quotes => out.push('"'),
                other => panic!("\\{other:?} is no escape"),
            },
            '"' if quotes => panic!("a quote that is not escaped in {text}"),
            c => out.push(c),
        }
    }
    out
}

fn no_series_twice(family: &Family) {
    let mut seen = BTreeSet::new();
    for sample in &family.samples {
        let mut labels = sample.labels.clone();
        labels.sort();
        assert!(seen.insert((sample.name.clone(), labels)), "{sample:?} is there twice");
    }
}

fn buckets_add_up(name: &str, family: &Family) {
    let others = |sample: &Sample| {
        sample.labels.iter().filter(|(label, _)| label != "le").cloned().collect::<Vec<_>>()
    };
    let mut series: BTreeMap<_, Vec<&Sample>> = BTreeMap::new();
    for sample in &family.samples {
        series.entry(others(sample)).or_default().push(sample);
    }
    for (labels, samples) in series {
        let (mut bound, mut count) = (f64::NEG_INFINITY, 0.0);
        let (buckets, rest) = samples.split_at(samples.len() - 2);
        for bucket in buckets {
            assert_eq!(bucket.name, format!("{name}_bucket"));
            let le = bucket.label("le").expect("a bound");
            let le = if le == "+Inf" { f64::INFINITY } else { le.parse().expect("a number") };
            assert!(le > bound && bucket.value >= count, "{name}{labels:?}: buckets go up");
            (bound, count) = (le, bucket.value);
        }
        assert_eq!(bound, f64::INFINITY, "{name}{labels:?}: the last bucket takes everything");
        assert_eq!([&rest[0].name, &rest[1].name], [&format!("{name}_sum"), &format!("{name}_count")]);
        assert_eq!(rest[1].value, count, "{name}{labels:?}: the count is what the buckets hold");
    }
}
