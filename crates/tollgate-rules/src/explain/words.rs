//! How attributes, values and conditions are called. What a condition has from the environment is called by its name.

use crate::model::{Attribute, Instant, Matcher, Taken, TimeSpan, When};
use jiff::Timestamp;

/// As it is written in a file.
pub(super) fn attribute(attribute: &Attribute) -> String {
    match attribute {
        Attribute::Path => "path".to_owned(),
        Attribute::Capture(name) => format!("path.{name}"),
        Attribute::Method => "method".to_owned(),
        Attribute::Host => "host".to_owned(),
        Attribute::Header(name) => format!("header.{name}"),
        Attribute::Query(name) => format!("query.{name}"),
        Attribute::Cookie(name) => format!("cookie.{name}"),
        Attribute::Ip => "ip".to_owned(),
        Attribute::IpPrefix(bits) => format!("ip/{bits}"),
        Attribute::Route => "route".to_owned(),
        Attribute::Rule => "rule".to_owned(),
    }
}

/// As it is written in a file.
impl std::fmt::Display for Attribute {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&attribute(self))
    }
}

/// A value, fit for a line on a terminal: what could end it or hide in it is escaped, and it is not endless.
pub(super) fn value(text: &str) -> String {
    const LONGEST: usize = 80;
    let plain = !text.is_empty() && text.chars().all(|letter| letter.is_ascii_graphic() && letter != '"');
    let shown: String = text.chars().take(LONGEST).collect();
    let more = if shown.len() < text.len() { "..." } else { "" };
    if plain { format!("{shown}{more}") } else { format!("\"{}\"{more}", shown.escape_debug()) }
}

/// What a matcher wants, after "wanted".
pub(super) fn wanted(matcher: &Matcher, taken: &Taken) -> String {
    let value = |text: &str| value(&taken.named(text));
    match matcher {
        Matcher::Exact(text) => value(text),
        Matcher::Prefix(text) => format!("one that begins with {}", value(text)),
        Matcher::Suffix(text) => format!("one that ends with {}", value(text)),
        Matcher::Contains(text) => format!("one with {} in it", value(text)),
        Matcher::Regex(regex) => {
            let text = regex.as_str();
            let inner = text.strip_prefix(r"\A(?:").and_then(|text| text.strip_suffix(r")\z"));
            format!("one that matches {}", taken.named(inner.unwrap_or(text)))
        }
        Matcher::Glob(pattern) => format!("the shape {}", taken.named(&pattern.text)),
        Matcher::Net(net) if net.prefix_len() == net.max_prefix_len() => taken.named(&net.addr().to_string()),
        Matcher::Net(net) => format!("one in {}", taken.named(&net.to_string())),
        Matcher::Exists(true) => "any".to_owned(),
        Matcher::Exists(false) => "none".to_owned(),
        Matcher::Blank(true) => "none, or a blank one".to_owned(),
        Matcher::Blank(false) => "one that is not blank".to_owned(),
    }
}

/// A condition, in words.
pub(super) fn condition(when: &When, taken: &Taken) -> String {
    let joined = |list: &[When], word: &str| {
        list.iter().map(|when| condition(when, taken)).collect::<Vec<_>>().join(word)
    };
    match when {
        When::Always => "every request".to_owned(),
        When::All(list) => joined(list, " and "),
        When::Any(list) => joined(list, " or "),
        When::Not(when) => format!("not ({})", condition(when, taken)),
        When::Is(its, matcher) => format!("{}: {}", attribute(its), wanted(matcher, taken)),
        When::Time(span) => format!("time: {}", span_words(span)),
    }
}

pub(super) fn span_words(span: &TimeSpan) -> String {
    let after = span.after.as_ref().map(|it| format!("after {}", instant(it)));
    let before = span.before.as_ref().map(|it| format!("before {}", instant(it)));
    [after, before].into_iter().flatten().collect::<Vec<_>>().join(" and ")
}

fn instant(instant: &Instant) -> String {
    match instant {
        Instant::Once(at) => moment(*at),
        Instant::Daily(daily) => {
            let (hours, minutes, seconds) = (daily.second / 3600, daily.second / 60 % 60, daily.second % 60);
            format!("{hours:02}:{minutes:02}:{seconds:02} {}", daily.time_zone)
        }
    }
}

/// A point in time, as it is written in a file.
pub(super) fn moment(at: i64) -> String {
    Timestamp::from_microsecond(at).map_or_else(|_| format!("{at} us"), |at| at.to_string())
}
