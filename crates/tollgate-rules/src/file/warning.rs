//! Warnings: what is no mistake, and yet hardly meant. Parts that do nothing, and rules that clients can dodge.

use crate::model::{Attribute, EncodedSlash, Excess, Matcher, Rule, RuleFile, Segment, When};
use http::HeaderName;
use std::fmt;

/// Something in a good file that is hardly meant.
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

    /// What is wrong with it, and what to do.
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
    /// What is hardly meant in this file: routes that no request reaches, upstreams that no request is sent to, rules that
    /// clients can dodge.
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
        self.warn_of_dodges(&mut warnings);
        warnings
    }

    /// Rules that depend on how a path is encoded, or on a header that clients may set to anything.
    fn warn_of_dodges(&self, warnings: &mut Vec<Warning>) {
        for (index, rule) in self.everywhere.iter().enumerate() {
            self.warn_of_rule(&format!("everywhere[{index}]"), rule, warnings);
        }
        for (index, route) in self.routes.iter().enumerate() {
            let path = format!("routes[{index}]");
            self.warn_of_condition(&format!("{path}.when"), &route.when, warnings);
            for (index, rule) in route.rules.iter().enumerate() {
                self.warn_of_rule(&format!("{path}.rules[{index}]"), rule, warnings);
            }
        }
    }

    fn warn_of_rule(&self, path: &str, rule: &Rule, warnings: &mut Vec<Warning>) {
        self.warn_of_condition(&format!("{path}.when"), &rule.when, warnings);
        for (index, limit) in rule.limits.iter().enumerate() {
            let path = format!("{path}.limits[{index}].key");
            limit.key.iter().for_each(|attribute| self.warn_of_attribute(&path, attribute, warnings));
        }
    }

    fn warn_of_condition(&self, path: &str, when: &When, warnings: &mut Vec<Warning>) {
        match when {
            When::All(list) | When::Any(list) => {
                list.iter().for_each(|when| self.warn_of_condition(path, when, warnings));
            }
            When::Not(inner) => self.warn_of_condition(path, inner, warnings),
            When::Is(Attribute::Path, matcher) if names_encoded_slash(matcher) => {
                let message = match self.encoded_slash {
                    EncodedSlash::Keep => {
                        "depends on `encoded_slash: keep`: servers that decode %2F see another path than this rule does"
                    }
                    EncodedSlash::Reject | EncodedSlash::Decode => {
                        "never matches: paths are compared without encoded slashes; see `encoded_slash`"
                    }
                };
                warnings.push(Warning { path: path.to_owned(), message: message.to_owned() });
            }
            When::Is(attribute, _) => self.warn_of_attribute(path, attribute, warnings),
            When::Always | When::Time(_) => {}
        }
    }

    fn warn_of_attribute(&self, path: &str, attribute: &Attribute, warnings: &mut Vec<Warning>) {
        let Attribute::Header(name) = attribute else { return };
        let message = if tells_an_address(name) {
            format!(
                "header.{name} can be set by any client: use `ip`, and name your proxies in `trusted_proxies`"
            )
        } else if tells_an_identity(name) && self.trusted_proxies.is_empty() {
            format!(
                "header.{name} can be set by any client: make sure that a proxy in front sets it, and name that \
                 proxy in `trusted_proxies`"
            )
        } else {
            return;
        };
        warnings.push(Warning { path: path.to_owned(), message });
    }
}

/// Headers in which proxies tell the client's address.
fn tells_an_address(name: &HeaderName) -> bool {
    matches!(
        name.as_str(),
        "x-forwarded-for"
            | "forwarded"
            | "x-real-ip"
            | "x-client-ip"
            | "x-cluster-client-ip"
            | "true-client-ip"
            | "cf-connecting-ip"
    )
}

/// Headers in which proxies tell who the client is.
fn tells_an_identity(name: &HeaderName) -> bool {
    const BEGINNINGS: [&str; 9] = [
        "x-user",
        "remote-user",
        "x-remote-user",
        "x-auth-",
        "x-authenticated-",
        "x-webauth-",
        "x-forwarded-",
        "x-tenant",
        "x-ssl-client",
    ];
    BEGINNINGS.iter().any(|beginning| name.as_str().starts_with(beginning))
}

fn names_encoded_slash(matcher: &Matcher) -> bool {
    let has = |text: &str| {
        let text = text.to_ascii_lowercase();
        text.contains("%2f") || text.contains("%5c")
    };
    match matcher {
        Matcher::Exact(text) | Matcher::Prefix(text) | Matcher::Suffix(text) | Matcher::Contains(text) => {
            has(text)
        }
        Matcher::Regex(regex) => has(regex.as_str()),
        Matcher::Glob(pattern) => pattern.segments.iter().any(|segment| match segment {
            Segment::Literal(text) | Segment::Wild(text) => has(text),
            _ => false,
        }),
        Matcher::Net(_) | Matcher::Exists(_) | Matcher::Blank(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use crate::parse_rules;

    fn warnings(top: &str, when: &str, key: &str) -> Vec<String> {
        let text = format!(
            "version: 1\n{top}\nupstreams: {{ up: {{ servers: [ \"http://127.0.0.1:1\" ] }} }}\nroutes:\n\
             - {{ name: r, when: {{ {when} }}, upstream: up, rules: [ {{ name: x, limits: [ {{ token_bucket: \
             {{ rate: 1/s, burst: 1 }}, key: [{key}] }} ] }} ] }}\n"
        );
        let file = parse_rules(&text, |_| None).unwrap_or_else(|mistakes| panic!("{mistakes}\n{text}"));
        file.warnings().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn rules_that_clients_can_dodge_are_warned_of() {
        let none: [&str; 0] = [];
        assert_eq!(warnings("", "path: /a/**", "header.x-api-key"), none);
        for name in ["x-forwarded-for", "x-real-ip", "forwarded"] {
            let said = warnings("trusted_proxies: [ 10.0.0.0/8 ]", "path: /a", &format!("header.{name}"));
            assert!(said[0].starts_with("routes[0].rules[0].limits[0].key: header."), "{said:?}");
        }
        assert_eq!(warnings("", "path: /a", "header.x-user").len(), 1);
        assert_eq!(warnings("trusted_proxies: [ 10.0.0.0/8 ]", "path: /a", "header.x-user"), none);
        assert_eq!(warnings("", "header.x-user-id: a", "").len(), 1);
    }

    #[test]
    fn rules_that_depend_on_an_encoded_slash_are_warned_of() {
        let said = warnings("", "path: /a%2Fb", "");
        assert!(said[0].starts_with("routes[0].when: never matches"), "{said:?}");
        let said = warnings("encoded_slash: keep", "path: { prefix: /a%5cb }", "");
        assert!(said[0].contains("depends on `encoded_slash: keep`"), "{said:?}");
    }
}
