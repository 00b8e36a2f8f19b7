//! An explanation as JSON, for the admin API and for scripts. Small enough to be written by hand.

use super::{ChargeReport, Explanation, KeyReport, Outcome, RuleReport};
use std::fmt::Write;

impl Explanation {
    /// As a JSON object with the names of its fields.
    #[must_use]
    pub fn to_json(&self) -> String {
        let invalid = self.invalid.iter().map(|why| ("invalid", text(why)));
        let fields = [
            ("method", text(&self.method)),
            ("path", text(&self.path)),
            ("enabled", self.enabled.to_string()),
            ("route", optional(self.route.as_deref())),
            ("captures", object(self.captures.iter().map(|(name, value)| (name.as_str(), text(value))))),
            (
                "passed_over",
                list(self.passed_over.iter().map(|over| {
                    object([
                        ("route", text(&over.route)),
                        ("place", over.place.to_string()),
                        ("why", text(&over.why)),
                    ])
                })),
            ),
            ("not_listed", self.not_listed.to_string()),
            ("rules", list(self.rules.iter().map(rule))),
        ];
        object(fields.into_iter().chain(invalid))
    }
}

fn rule(report: &RuleReport) -> String {
    let mut fields = vec![("rule", text(&report.rule)), ("route", optional(report.route.as_deref()))];
    match &report.outcome {
        Outcome::Not { why } => fields.extend([("applies", "false".to_owned()), ("why", text(why))]),
        Outcome::Applies { charges, excess, on_failure } => fields.extend([
            ("applies", "true".to_owned()),
            ("charges", list(charges.iter().map(charge))),
            ("excess", text(excess)),
            ("on_failure", optional(on_failure.as_deref())),
        ]),
    }
    object(fields)
}

fn charge(report: &ChargeReport) -> String {
    let key = match &report.key {
        KeyReport::Values(values) => {
            let values = values.iter().map(|(attribute, value)| {
                object([("attribute", text(attribute)), ("value", optional(value.as_deref()))])
            });
            ("key", list(values))
        }
        KeyReport::Skipped(missing) => ("skipped", text(missing)),
        KeyReport::Refused(missing) => ("refused", text(missing)),
        KeyReport::Repeated(twice) => ("repeated", text(twice)),
    };
    object([
        ("limit", text(&report.limit)),
        ("algorithm", text(&report.algorithm)),
        key,
        ("cost", report.cost.map_or_else(null, |cost| cost.to_string())),
        (
            "override_for",
            report.override_for.as_ref().map_or_else(null, |key| list(key.iter().map(|value| text(value)))),
        ),
    ])
}

fn object<'a>(fields: impl IntoIterator<Item = (&'a str, String)>) -> String {
    let fields: Vec<_> = fields.into_iter().map(|(name, value)| format!("{}:{value}", text(name))).collect();
    format!("{{{}}}", fields.join(","))
}

fn list(values: impl IntoIterator<Item = String>) -> String {
    format!("[{}]", values.into_iter().collect::<Vec<_>>().join(","))
}

fn optional(value: Option<&str>) -> String {
    value.map_or_else(null, text)
}

fn null() -> String {
    "null".to_owned()
}

fn text(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for letter in text.chars() {
        match letter {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            letter if letter.is_control() => {
                // Writing to a text cannot fail; all control letters are below U+10000.
                let _ = write!(out, "\\u{:04x}", u32::from(letter));
            }
            letter => out.push(letter),
        }
    }
    out.push('"');
    out
}
