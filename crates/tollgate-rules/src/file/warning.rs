//! What is no mistake, and yet hardly meant.

use crate::model::{Excess, RuleFile, When};
use std::fmt;

/// Something in a good file that does nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    path: String,
    message: String,
}

impl Warning {
    /// What it is about, such as `routes[2]`.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Why it does nothing.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }
}

/// `path: message`.
impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.message)
    }
}

impl RuleFile {
    /// What does nothing in this file: routes that no request reaches, upstreams that no request is sent to.
    #[must_use]
    pub fn warnings(&self) -> Vec<Warning> {
        let mut warnings = Vec::new();
        let takes_all = |route: &crate::model::Route| route.enabled && matches!(route.when, When::Always);
        if let Some(first) = self.routes.iter().position(takes_all) {
            for index in first + 1..self.routes.len() {
                warnings.push(Warning {
                    path: format!("routes[{index}]"),
                    message: format!("is never reached: routes[{first}] takes every request"),
                });
            }
        }
        let rules = self.everywhere.iter().chain(self.routes.iter().flat_map(|route| &route.rules));
        let diverted = rules.filter_map(|rule| match rule.excess {
            Excess::Divert(upstream) => Some(upstream),
            _ => None,
        });
        let used: Vec<usize> = self.routes.iter().map(|route| route.upstream).chain(diverted).collect();
        for (index, upstream) in self.upstreams.iter().enumerate() {
            if !used.contains(&index) {
                warnings.push(Warning {
                    path: format!("upstreams.{}", upstream.name.escape_debug()),
                    message: "is not used: no route and no `divert` names it".to_owned(),
                });
            }
        }
        warnings
    }
}
