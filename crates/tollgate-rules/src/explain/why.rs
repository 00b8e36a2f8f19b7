//! Why a condition does not hold, and how far it is from holding.

use super::words;
use crate::{
    model::{Attribute, Matcher, Route, Rule, Segment, Taken, When},
    program::{Found, Span, Subject, Test},
    reading::{Reader, Shape, Text, attribute, segments},
};
use std::cmp::Reverse;

/// Alternatives that are told of one by one.
const TOLD: usize = 3;

/// A request, and whose captures count.
pub(super) struct Asked<'f> {
    found: &'f Found<'f, 'f>,
    /// Conditions whose shapes capture, the first first.
    captures: [Option<&'f When>; 2],
}

/// How far a condition is from holding; the least is nearest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Distance {
    wrong_path: bool,
    shared: Reverse<usize>,
    failed: usize,
}

impl<'f> Asked<'f> {
    pub(super) fn by_route(found: &'f Found<'_, '_>, route: &'f Route) -> Self {
        Self { found, captures: [Some(&route.when), None] }
    }

    pub(super) fn by_rule(found: &'f Found<'_, '_>, rule: &'f Rule) -> Self {
        let route = found.route().map(|route| &found.program().route(route).when);
        Self { found, captures: [Some(&rule.when), route] }
    }

    /// The first condition that fails, and what the request has; `None` where all hold.
    pub(super) fn why_not(&self, when: &When) -> Option<String> {
        match when {
            When::Always => None,
            When::All(list) => list.iter().find_map(|when| self.why_not(when)),
            When::Any(list) => self.why_none(list),
            When::Not(inner) => match self.why_not(inner) {
                Some(_) => None,
                None => Some(self.why_excluded(inner)),
            },
            When::Is(attribute, matcher) => {
                let value = self.value(attribute);
                let value = value.as_ref().map(Text::as_str);
                let (test, counts) = Test::new(&Subject::new(attribute), matcher);
                (!counts.so(test.holds(value))).then(|| self.failed(attribute, matcher, value))
            }
            When::Time(span) => {
                let at = self.found.request().at;
                (!Span::new(span).holds(at))
                    .then(|| format!("time is {}, wanted {}", words::moment(at), words::span_words(span)))
            }
        }
    }

    /// How far the condition is from holding. A path that fits counts most, then how much of it fits.
    pub(super) fn distance(&self, when: &When) -> Distance {
        let parts = match when {
            When::All(list) => list.as_slice(),
            when => std::slice::from_ref(when),
        };
        let failing: Vec<_> = parts.iter().filter(|part| self.why_not(part).is_some()).collect();
        let path = segments(self.found.path());
        Distance {
            wrong_path: failing.iter().any(|part| about_path(part)),
            shared: Reverse(shared(when, &path)),
            failed: failing.len(),
        }
    }

    fn why_none(&self, list: &[When]) -> Option<String> {
        let whys: Option<Vec<String>> = list.iter().map(|when| self.why_not(when)).collect();
        let whys = whys?;
        if let Some((attribute, matchers)) = one_attribute(list)
            && matchers.len() > 1
        {
            let value = self.value(attribute);
            let mut wanted: Vec<_> = matchers.iter().take(TOLD).map(|it| self.wanted(it)).collect();
            if matchers.len() > TOLD {
                wanted.push(format!("one of {} more", matchers.len() - TOLD));
            }
            return Some(format!("{}, wanted {}", has(attribute, value.as_ref()), wanted.join(" or ")));
        }
        match whys.as_slice() {
            [] => Some("there is no alternative that could hold".to_owned()),
            [why] => Some(why.clone()),
            whys => {
                let more = whys.len().saturating_sub(TOLD);
                let told = whys.iter().take(TOLD).cloned().collect::<Vec<_>>().join("; ");
                let more = if more == 0 { String::new() } else { format!("; and {more} more") };
                Some(format!("none of {} alternatives holds: {told}{more}", whys.len()))
            }
        }
    }

    fn why_excluded(&self, when: &When) -> String {
        match when {
            When::Is(attribute, matcher) => {
                let value = self.value(attribute);
                let value = has(attribute, value.as_ref());
                format!("{value}, and that is excluded ({})", self.wanted(matcher))
            }
            When::Any(list) => match list.iter().find(|when| self.why_not(when).is_none()) {
                Some(held) => self.why_excluded(held),
                None => format!("excluded: {}", words::condition(when, self.taken())),
            },
            when => format!("excluded: {}", words::condition(when, self.taken())),
        }
    }

    fn value(&self, wanted: &Attribute) -> Option<Text<'_>> {
        let Attribute::Capture(name) = wanted else {
            let on_repeat = self.found.program().file().on_repeat;
            // A request that has it more than once is invalid, and its conditions are not asked.
            return attribute(self.found.request(), self.found.path(), wanted, Reader::Condition, on_repeat)
                .unwrap_or_default();
        };
        let path = segments(self.found.path());
        self.captures.iter().flatten().find_map(|when| captured(when, &path, name)).map(Text::from)
    }

    fn failed(&self, attribute: &Attribute, matcher: &Matcher, value: Option<&str>) -> String {
        let name = words::attribute(attribute);
        match (matcher, value) {
            (Matcher::Glob(_), Some(path)) => {
                format!("{name} {} does not have {}", words::value(path), self.wanted(matcher))
            }
            (Matcher::Exists(true), None) => format!("{name} is missing"),
            (_, None) => format!("{name} is missing, wanted {}", self.wanted(matcher)),
            (_, Some(value)) => format!("{name} is {}, wanted {}", words::value(value), self.wanted(matcher)),
        }
    }

    fn wanted(&self, matcher: &Matcher) -> String {
        words::wanted(matcher, self.taken())
    }

    fn taken(&self) -> &Taken {
        &self.found.program().file().taken
    }
}

/// What a condition's shapes capture by that name.
fn captured<'p>(when: &When, path: &[&'p str], name: &str) -> Option<&'p str> {
    match when {
        When::All(list) | When::Any(list) => list.iter().find_map(|when| captured(when, path, name)),
        When::Is(Attribute::Path, Matcher::Glob(pattern)) => Shape::new(pattern).capture(path, name),
        _ => None,
    }
}

fn has(attribute: &Attribute, value: Option<&Text<'_>>) -> String {
    let name = words::attribute(attribute);
    match value {
        Some(value) => format!("{name} is {}", words::value(value.as_str())),
        None => format!("{name} is missing"),
    }
}

/// The one attribute that all alternatives are about.
fn one_attribute(list: &[When]) -> Option<(&Attribute, Vec<&Matcher>)> {
    let pairs: Vec<_> = list
        .iter()
        .map(|when| match when {
            When::Is(attribute, matcher) => Some((attribute, matcher)),
            _ => None,
        })
        .collect::<Option<_>>()?;
    let (first, _) = pairs.first()?;
    pairs
        .iter()
        .all(|(attribute, _)| attribute == first)
        .then(|| (*first, pairs.iter().map(|(_, matcher)| *matcher).collect()))
}

fn about_path(when: &When) -> bool {
    match when {
        When::All(list) | When::Any(list) => list.iter().any(about_path),
        When::Is(attribute, _) => *attribute == Attribute::Path,
        _ => false,
    }
}

/// How many segments at the path's front are as the condition wants them.
fn shared(when: &When, path: &[&str]) -> usize {
    match when {
        When::All(list) | When::Any(list) => list.iter().map(|when| shared(when, path)).max().unwrap_or(0),
        When::Is(Attribute::Path, Matcher::Glob(pattern)) => {
            let alike = pattern.segments.iter().zip(path);
            alike.take_while(|(part, text)| matches!(part, Segment::Literal(it) if it == **text)).count()
        }
        When::Is(Attribute::Path, Matcher::Exact(text) | Matcher::Prefix(text)) => {
            segments(text).iter().zip(path).take_while(|(part, text)| part == text).count()
        }
        _ => 0,
    }
}
