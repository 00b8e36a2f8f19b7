//! An explanation on a terminal.

use super::{ChargeReport, Explanation, KeyReport, Outcome, RuleReport, words};
use std::fmt;

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} {}", words::value(&self.method), words::value(&self.path))?;
        if !self.enabled {
            writeln!(f, "rules are not in force: `enabled` is false in the file")?;
        }
        if let Some(why) = &self.invalid {
            return writeln!(f, "answered 400: {why}");
        }
        match &self.route {
            Some(route) => writeln!(f, "route {route}")?,
            None => writeln!(f, "no route matches: 404")?,
        }
        for (name, value) in &self.captures {
            writeln!(f, "  path.{name} = {}", words::value(value))?;
        }
        if !self.passed_over.is_empty() {
            let title = if self.route.is_some() { "earlier routes" } else { "routes" };
            writeln!(f, "{title} that do not match, closest first")?;
        }
        for over in &self.passed_over {
            writeln!(f, "  {}: {}", over.route, over.why)?;
        }
        if self.not_listed > 0 {
            writeln!(f, "  and {} more", self.not_listed)?;
        }
        if !self.rules.is_empty() {
            writeln!(f, "rules")?;
        }
        self.rules.iter().try_for_each(|rule| rule.fmt(f))
    }
}

impl fmt::Display for RuleReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "  {}", self.rule)?;
        if self.route.is_none() {
            write!(f, " (everywhere)")?;
        }
        match &self.outcome {
            Outcome::Not { why } => writeln!(f, " does not apply: {why}"),
            Outcome::Applies { charges, excess, on_failure } => {
                writeln!(f, " applies")?;
                charges.iter().try_for_each(|charge| writeln!(f, "    {charge}"))?;
                write!(f, "    excess: {excess}")?;
                if let Some(policy) = on_failure {
                    write!(f, "; on failure: {policy}")?;
                }
                writeln!(f)
            }
        }
    }
}

impl fmt::Display for ChargeReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}): ", self.limit, self.algorithm)?;
        let values = match &self.key {
            KeyReport::Values(values) => values,
            KeyReport::Skipped(missing) => return write!(f, "not charged, because {missing} is missing"),
            KeyReport::Refused(missing) => return write!(f, "denied, because {missing} is missing"),
            KeyReport::Repeated(twice) => {
                return write!(f, "denied, because {twice} is given more than once");
            }
        };
        match self.cost {
            Some(1) => write!(f, "1 unit")?,
            Some(units) => write!(f, "{units} units")?,
            None => write!(f, "one unit for each byte of its body, whose length is not announced,")?,
        }
        match values.as_slice() {
            [] => write!(f, " of the one bucket for all")?,
            values => {
                for (place, (attribute, value)) in values.iter().enumerate() {
                    let joint = if place == 0 { " for" } else { "," };
                    write!(f, "{joint} {attribute} ")?;
                    match value {
                        Some(value) => write!(f, "{}", words::value(value))?,
                        None => write!(f, "missing (shared by all that lack it)")?,
                    }
                }
            }
        }
        match &self.override_for {
            Some(key) => {
                let key: Vec<_> = key.iter().map(|value| words::value(value)).collect();
                write!(f, "; by the override for {}", key.join(", "))
            }
            None => Ok(()),
        }
    }
}
