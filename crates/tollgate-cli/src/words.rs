//! How limits, keys and decisions are called where they are printed.

use std::time::Duration;
use tollgate::{Decision, Retry};
use tollgate_rules::{ChargedLimit, Found, Keyed, Program, RuleCharge};

/// What a charge's limit is called: its name, or `route/rule[place]` for a rule's own.
pub(crate) fn limit_name<'p>(program: &'p Program, charge: &RuleCharge) -> &'p str {
    match charge.limit() {
        ChargedLimit::Named(place) => &program.file().limits[place].name,
        ChargedLimit::Inline(place) => &program.inline_limits()[place].name,
    }
}

/// The values of the key that a request's charge is on; none where it is not charged.
pub(crate) fn key_values(found: &Found<'_, '_>, charge: &RuleCharge) -> Option<Vec<Option<String>>> {
    match found.key(charge) {
        Keyed::Key(values) => Some(values.iter().map(|value| value.map(str::to_owned)).collect()),
        Keyed::Skip | Keyed::Deny { .. } | Keyed::Repeated { .. } => None,
    }
}

/// A decision, taken apart: its word, how long to wait, and when to come again, if that can be named.
pub(crate) fn decision(decision: Decision) -> (&'static str, Duration, Option<Duration>) {
    match decision {
        Decision::Allow => ("allow", Duration::ZERO, Some(Duration::ZERO)),
        Decision::Wait(wait) => ("wait", wait, Some(Duration::ZERO)),
        Decision::Deny(Retry::After(after)) => ("deny", Duration::ZERO, Some(after)),
        Decision::Deny(Retry::WhenReleased) => ("deny", Duration::ZERO, None),
        Decision::Deny(Retry::Never) => ("never", Duration::ZERO, None),
    }
}
