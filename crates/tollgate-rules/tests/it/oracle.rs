//! Matching as one would write it without a thought for speed: every route and every rule, one after the other, each
//! condition as it is written. What the program finds has to be the same.

use crate::build::Sent;
use std::net::IpAddr;
use tollgate_rules::{
    RuleFile, decode_path,
    model::{Attribute, Instant, Matcher, Missing, OnRepeat, PathPattern, Rule, Segment, TimeSpan, When},
};

/// What one charge's key is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PlainKey {
    Values(Vec<Option<String>>),
    Skip,
    Deny,
    /// The plain walk never says this: files that reject are compared in another way.
    Repeated,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Plain {
    pub(crate) route: Option<usize>,
    /// The rules that apply, by their number over the whole file, with the keys of their charges.
    pub(crate) rules: Vec<(usize, Vec<PlainKey>)>,
}

pub(crate) fn find(file: &RuleFile, sent: &Sent) -> Plain {
    let Ok(path) = decode_path(&sent.path, file.encoded_slash) else {
        return Plain { route: None, rules: Vec::new() };
    };
    let asked = Asked { sent, path: &path, on_repeat: file.on_repeat };
    let route =
        file.routes.iter().position(|route| route.enabled && asked.holds(&route.when, &[&route.when]));
    let mut rules = Vec::new();
    let mut number = 0;
    let mut look = |list: &[Rule], counts: bool| {
        for rule in list {
            let mut captures = vec![&rule.when];
            captures.extend(route.map(|route| &file.routes[route].when));
            if counts && rule.enabled && asked.holds(&rule.when, &captures) {
                let keys = rule.limits.iter().map(|limit| {
                    let route = route.map(|route| file.routes[route].name.clone());
                    let values = limit.key.iter().map(|wanted| match wanted {
                        Attribute::Route => route.clone(),
                        Attribute::Rule => Some(rule.name.clone()),
                        Attribute::Ip => Some(ip_key(&sent.ip)),
                        wanted => asked.value(wanted, &captures),
                    });
                    let values: Vec<_> = values.collect();
                    match limit.missing {
                        Missing::Skip if values.contains(&None) => PlainKey::Skip,
                        Missing::Deny if values.contains(&None) => PlainKey::Deny,
                        _ => PlainKey::Values(values),
                    }
                });
                rules.push((number, keys.collect()));
            }
            number += 1;
        }
    };
    look(&file.everywhere, true);
    for (place, it) in file.routes.iter().enumerate() {
        look(&it.rules, route == Some(place));
    }
    Plain { route, rules }
}

struct Asked<'a> {
    sent: &'a Sent,
    path: &'a str,
    on_repeat: OnRepeat,
}

impl Asked<'_> {
    /// Which of several values counts.
    fn one(&self, values: Vec<String>) -> Option<String> {
        match self.on_repeat {
            OnRepeat::Last => values.into_iter().next_back(),
            OnRepeat::First | OnRepeat::Reject => values.into_iter().next(),
        }
    }

    fn holds(&self, when: &When, captures: &[&When]) -> bool {
        match when {
            When::Always => true,
            When::All(list) => list.iter().all(|when| self.holds(when, captures)),
            When::Any(list) => list.iter().any(|when| self.holds(when, captures)),
            When::Not(when) => !self.holds(when, captures),
            When::Is(attribute, matcher) => {
                let mut value = self.value(attribute, captures);
                if *attribute == Attribute::Ip {
                    value = Some(address(&self.sent.ip).to_string());
                }
                matches(matcher, value.as_deref())
            }
            When::Time(span) => in_time(span, self.sent.at),
        }
    }

    fn value(&self, attribute: &Attribute, captures: &[&When]) -> Option<String> {
        let headers = &self.sent.headers;
        match attribute {
            Attribute::Path => Some(self.path.to_owned()),
            Attribute::Capture(name) => captures.iter().find_map(|when| captured(when, self.path, name)),
            Attribute::Method => Some(self.sent.method.clone()),
            Attribute::Host => {
                let host = self.sent.host.as_ref()?.to_lowercase();
                Some(host.split(':').next()?.trim_end_matches('.').to_owned())
            }
            Attribute::Header(name) => {
                let lines =
                    headers.get_all(name).iter().map(|line| line.to_str().expect("text").trim().to_owned());
                self.one(lines.collect())
            }
            Attribute::Query(name) => {
                let pairs = self.sent.query.as_ref()?.split('&').filter_map(|pair| {
                    let (its, value) = pair.split_once('=').unwrap_or((pair, ""));
                    (!pair.is_empty() && its == name).then(|| value.replace('+', " ").replace("%61", "a"))
                });
                self.one(pairs.collect())
            }
            Attribute::Cookie(name) => {
                let lines = headers.get_all("cookie").iter().map(|line| line.to_str().expect("text"));
                let pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| {
                    let (its, value) = pair.split_once('=')?;
                    (its.trim() == name).then(|| value.trim().to_owned())
                });
                self.one(pairs.collect())
            }
            Attribute::IpPrefix(24) => Some(match address(&self.sent.ip) {
                IpAddr::V4(four) => {
                    let [a, b, c, _] = four.octets();
                    format!("{a}.{b}.{c}.0/24")
                }
                IpAddr::V6(_) => ip_key(&self.sent.ip),
            }),
            Attribute::Ip | Attribute::IpPrefix(_) | Attribute::Route | Attribute::Rule => None,
        }
    }
}

fn address(text: &str) -> IpAddr {
    text.parse::<IpAddr>().expect("an address").to_canonical()
}

fn ip_key(text: &str) -> String {
    match address(text) {
        IpAddr::V4(four) => four.to_string(),
        IpAddr::V6(six) => {
            let [a, b, c, d, ..] = six.segments();
            format!("{}/64", std::net::Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
        }
    }
}

fn matches(matcher: &Matcher, value: Option<&str>) -> bool {
    match matcher {
        Matcher::Exists(wanted) => value.is_some() == *wanted,
        Matcher::Blank(wanted) => value.unwrap_or_default().trim().is_empty() == *wanted,
        matcher => value.is_some_and(|value| match matcher {
            Matcher::Exact(text) => value == text,
            Matcher::Prefix(text) => value.starts_with(text),
            Matcher::Suffix(text) => value.ends_with(text),
            Matcher::Contains(text) => value.contains(text),
            Matcher::Regex(regex) => regex.find(value).is_some_and(|found| found.as_str() == value),
            Matcher::Glob(pattern) => fits(pattern, value).is_some(),
            Matcher::Net(net) => net.contains(&value.parse::<IpAddr>().expect("an address")),
            Matcher::Exists(_) | Matcher::Blank(_) => unreachable!("looked at above"),
        }),
    }
}

fn in_time(span: &TimeSpan, at: i64) -> bool {
    let once = |instant: &Instant| match instant {
        Instant::Once(at) => *at,
        Instant::Daily(_) => unreachable!("times of day have tests of their own"),
    };
    span.after.as_ref().is_none_or(|after| at >= once(after))
        && span.before.as_ref().is_none_or(|before| at < once(before))
}

fn captured(when: &When, path: &str, name: &str) -> Option<String> {
    match when {
        When::All(list) | When::Any(list) => list.iter().find_map(|when| captured(when, path, name)),
        When::Is(Attribute::Path, Matcher::Glob(pattern)) => {
            fits(pattern, path)?.into_iter().find(|(its, _)| its == name).map(|(_, value)| value)
        }
        _ => None,
    }
}

/// What a path of that shape captures; tried in every way, the shortest `**` first.
fn fits(pattern: &PathPattern, path: &str) -> Option<Vec<(String, String)>> {
    fn all(pattern: &[Segment], path: &[&str]) -> Option<Vec<(String, String)>> {
        let Some((first, others)) = pattern.split_first() else {
            return path.is_empty().then(Vec::new);
        };
        if *first == Segment::Rest {
            return (0..=path.len()).find_map(|taken| all(others, &path[taken..]));
        }
        let (segment, rest) = path.split_first()?;
        let mut captures = Vec::new();
        let takes = match first {
            Segment::Literal(text) => text == segment,
            Segment::Wild(text) => wild(text.as_bytes(), segment.as_bytes()),
            Segment::Any => !segment.is_empty(),
            Segment::Capture(name) => {
                captures.push((name.clone(), (*segment).to_owned()));
                !segment.is_empty()
            }
            Segment::Rest => unreachable!("looked at above"),
        };
        if !takes {
            return None;
        }
        captures.extend(all(others, rest)?);
        Some(captures)
    }
    let path: Vec<_> = path.strip_prefix('/')?.split('/').collect();
    all(&pattern.segments, &path)
}

fn wild(wild_text: &[u8], text: &[u8]) -> bool {
    match wild_text.split_first() {
        None => text.is_empty(),
        Some((b'*', rest)) => (0..=text.len()).any(|taken| wild(rest, &text[taken..])),
        Some((letter, rest)) => text
            .split_first()
            .is_some_and(|(its, text)| (*letter == b'?' || letter == its) && wild(rest, text)),
    }
}
