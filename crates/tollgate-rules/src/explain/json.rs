//! An explanation as JSON, for the admin API and for scripts.

use super::{Explanation, Outcome, RuleReport};
use serde::{Serialize, Serializer, ser::SerializeMap};

impl Explanation {
    /// As a JSON object with the names of its fields.
    #[must_use]
    pub fn to_json(&self) -> String {
        // Fails only for names that are no text.
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// Writes the values of names as an object.
pub(super) fn object<S: Serializer>(values: &[(String, String)], to: S) -> Result<S::Ok, S::Error> {
    to.collect_map(values.iter().map(|(name, value)| (name, value)))
}

/// Writes the values of a key, each with the attribute it is from.
pub(super) fn key<S: Serializer>(values: &[(String, Option<String>)], to: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Part<'a> {
        attribute: &'a str,
        value: Option<&'a str>,
    }
    to.collect_seq(values.iter().map(|(attribute, value)| Part { attribute, value: value.as_deref() }))
}

impl Serialize for RuleReport {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(None)?;
        map.serialize_entry("rule", &self.rule)?;
        map.serialize_entry("route", &self.route)?;
        map.serialize_entry("applies", &matches!(self.outcome, Outcome::Applies { .. }))?;
        match &self.outcome {
            Outcome::Not { why } => map.serialize_entry("why", why)?,
            Outcome::Applies { charges, excess, on_failure } => {
                map.serialize_entry("charges", charges)?;
                map.serialize_entry("excess", excess)?;
                map.serialize_entry("on_failure", on_failure)?;
            }
        }
        map.end()
    }
}
