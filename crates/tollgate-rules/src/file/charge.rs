//! What a rule charges: a limit, whose bucket, how many units.

use super::{condition, route::Known};
use crate::{
    decode::{Cursor, default_of, did_you_mean, shorten},
    limit::{ParsedLimit, algorithm, defaulted},
    model::{Attribute, Cost, HeaderCost, LimitSource, Missing, RuleLimit},
    nearest::nearest,
    schema,
};
use std::collections::BTreeSet;
use tollgate::{Bandwidth, Limit};

/// One entry of a rule's limits.
pub(super) enum Item {
    /// Something is charged. The limit itself stands here too, where it could be read.
    Charge(Option<RuleLimit>, Option<Limit>),
    /// The response is paced.
    Pace(Bandwidth),
    /// It could not be read.
    Wrong,
}

const MISSING: [(&str, Missing); 3] =
    [("share", Missing::Share), ("skip", Missing::Skip), ("deny", Missing::Deny)];

impl Known<'_> {
    /// Reads one entry. `captured` are the names that the path certainly gives.
    pub(super) fn item(&self, item: &Cursor<'_>, captured: &BTreeSet<&str>) -> Item {
        let Some(mut fields) = item.mapping(&schema::RULE_LIMIT) else { return Item::Wrong };
        let used = fields.optional("use");
        let key = fields.optional("key");
        let missing = fields.optional("missing");
        let cost = fields.optional("cost");
        let found = algorithm(&mut fields, &[]);
        fields.finish();

        let (source, limit, is_shown) = match (&used, found) {
            (Some(name), found) => {
                if let Some(found) = found {
                    found.numbers.mistake("cannot be combined with `use`, which names a limit");
                }
                let place = self.limits.names.find(name);
                let limit = place.and_then(|place| self.limits.numbers(place));
                let is_shown = place.is_some_and(|place| self.limits.is_shown(place));
                (place.map(LimitSource::Named), limit.cloned(), is_shown)
            }
            (None, Some(found)) => match found.parsed {
                Some(ParsedLimit::Bandwidth(bandwidth)) => {
                    let others = [key, missing, cost];
                    for other in others.iter().flatten() {
                        other.mistake(
                            "has no effect with `bandwidth`, which paces one response and charges nothing",
                        );
                    }
                    return if others.iter().any(Option::is_some) {
                        Item::Wrong
                    } else {
                        Item::Pace(bandwidth)
                    };
                }
                Some(ParsedLimit::Limit(limit)) => {
                    (Some(LimitSource::Inline(limit.clone())), Some(limit), !found.numbers.is_taken())
                }
                None if found.name == "bandwidth" => return Item::Wrong,
                None => (None, None, false),
            },
            (None, None) => {
                if !fields.has_unknown() {
                    fields.mistake_here(
                        "names no limit, such as `use: per-client` or an algorithm with its numbers",
                    );
                }
                (None, None, false)
            }
        };
        let attributes = match key {
            Some(key) => self.key(&key, captured),
            None => {
                fields.mistake("key", "is missing, such as `key: [ip]`; `key: []` is one bucket for all");
                None
            }
        };
        let may_lack = attributes.as_ref().is_none_or(|attributes| attributes.iter().any(may_be_missing));
        let missing = match missing {
            Some(missing) if !may_lack => {
                missing.mistake("has no effect: no attribute of the key can be missing");
                None
            }
            Some(missing) => missing.choice(&MISSING),
            None => default_of(&schema::RULE_LIMIT, "missing", |missing| missing.choice(&MISSING)),
        };
        let affordable = |here: &Cursor<'_>| {
            let cost = cost_of(here)?;
            let overrides = match &source {
                Some(LimitSource::Named(place)) => self.limits.overrides(*place),
                _ => &[],
            };
            let overrides = overrides.iter().map(|other| &other.limit);
            let never = limit.iter().chain(overrides).filter_map(|limit| never(limit, &cost)).min();
            let Some(most) = never else { return Some(cost) };
            let most = if is_shown { format!(" ({most})") } else { String::new() };
            here.mistake_without_values(format!(
                "exceeds what the limit allows at once{most}: every request would be denied"
            ));
            None
        };
        let cost = match &cost {
            Some(cost) => affordable(cost),
            None => default_of(&schema::RULE_LIMIT, "cost", cost_of),
        };
        let read = || Some(RuleLimit { limit: source?, key: attributes?, missing: missing?, cost: cost? });
        Item::Charge(read(), limit)
    }

    fn key(&self, key: &Cursor<'_>, captured: &BTreeSet<&str>) -> Option<Vec<Attribute>> {
        let mut attributes = Vec::new();
        let mut is_read = true;
        for item in key.one_or_list() {
            let Some(attribute) = item.parsed("an attribute such as ip or header.x-api-key", attribute)
            else {
                is_read = false;
                continue;
            };
            if let Attribute::Capture(name) = &attribute
                && !captured.contains(name.as_str())
            {
                item.mistake(format!(
                    "is not captured: every path of the route or the rule must have `{{{}}}`",
                    shorten(name)
                ));
                is_read = false;
            }
            if attributes.contains(&attribute) {
                item.mistake("is repeated in the key");
                is_read = false;
            }
            attributes.push(attribute);
        }
        is_read.then_some(attributes)
    }
}

/// What the limit gives at most, where the cost is always above that.
fn never(limit: &Limit, cost: &Cost) -> Option<u32> {
    let least = match cost {
        Cost::Units(units) => *units,
        Cost::Header(header) => header.default,
        Cost::ContentLength => return None,
    };
    // Guava's limiters let anyone pass and make the next one pay.
    let pays_later = matches!(limit, Limit::SmoothBursty(_) | Limit::SmoothWarmingUp(_));
    (!pays_later && least > limit.most()).then(|| limit.most())
}

fn may_be_missing(attribute: &Attribute) -> bool {
    use Attribute::{Capture, Cookie, Header, Host, Ip, IpPrefix, Method, Path, Query, Route, Rule};
    match attribute {
        Header(_) | Query(_) | Cookie(_) | Host => true,
        Path | Capture(_) | Method | Ip | IpPrefix(_) | Route | Rule => false,
    }
}

/// An attribute of a key.
fn attribute(text: &str) -> Result<Attribute, String> {
    const PLAIN: [(&str, Attribute); 6] = [
        ("ip", Attribute::Ip),
        ("host", Attribute::Host),
        ("method", Attribute::Method),
        ("path", Attribute::Path),
        ("route", Attribute::Route),
        ("rule", Attribute::Rule),
    ];
    if let Some((_, attribute)) = PLAIN.iter().find(|(name, _)| *name == text) {
        return Ok(attribute.clone());
    }
    if let Some(bits) = text.strip_prefix("ip/") {
        let is_number = bits.bytes().all(|byte| byte.is_ascii_digit());
        let bits = bits.parse().ok().filter(|bits| is_number && (1..=128).contains(bits));
        let message =
            "must have a prefix of 1 to 128 bits, such as ip/24 (up to 32 it is of IPv4, above of IPv6)";
        return bits.map(Attribute::IpPrefix).ok_or_else(|| message.to_owned());
    }
    let (family, name) = text.split_once('.').unwrap_or((text, ""));
    match (family, name) {
        ("header", "") => Err("must name a header, such as header.x-api-key".to_owned()),
        ("query", "") => Err("must name a parameter, such as query.user".to_owned()),
        ("cookie", "") => Err("must name a cookie, such as cookie.session".to_owned()),
        ("header", _) => http::HeaderName::from_bytes(name.as_bytes())
            .map(Attribute::Header)
            .map_err(|_| format!("{:?} is not a valid header name", shorten(name))),
        ("query", _) => Ok(Attribute::Query(name.to_owned())),
        ("cookie", _) => match http::Method::from_bytes(name.as_bytes()) {
            Ok(_) => Ok(Attribute::Cookie(name.to_owned())),
            Err(_) => Err(format!("{:?} is not a valid cookie name", shorten(name))),
        },
        ("path", name) if !name.is_empty() => Ok(Attribute::Capture(name.to_owned())),
        _ => {
            let plain = PLAIN.iter().map(|(name, _)| *name);
            let families = ["header", "query", "cookie", "path"];
            let meant = match (nearest(family, families), did_you_mean(text, plain)) {
                (Some(family), _) if !name.is_empty() => {
                    format!("; did you mean `{family}.{}`?", shorten(name).escape_debug())
                }
                (_, meant) if !meant.is_empty() => meant,
                _ => {
                    "; known are `ip`, `ip/24`, `header.NAME`, `query.NAME`, `cookie.NAME`, `path.NAME`, `host`, \
                     `method`, `path`, `route`, `rule`"
                        .to_owned()
                }
            };
            Err(format!("there is no attribute {:?}{meant}", shorten(text)))
        }
    }
}

fn cost_of(cost: &Cursor<'_>) -> Option<Cost> {
    if !cost.is_mapping() {
        return match cost.text("a number, `content-length`, or `{ header: x-cost, default: 1, max: 100 }`")? {
            "content-length" => Some(Cost::ContentLength),
            word if word.starts_with(|first: char| first.is_ascii_alphabetic()) => {
                let meant = did_you_mean(word, ["content-length"]);
                cost.mistake(format!(
                    "must be a number, `content-length`, or `{{ header: x-cost, default: 1, max: 100 }}`; read {:?}{meant}",
                    shorten(word)
                ));
                None
            }
            _ => cost.positive().map(Cost::Units),
        };
    }
    let mut fields = cost.mapping(&schema::HEADER_COST)?;
    let header = fields
        .required("header")
        .and_then(|header| condition::header(header.text("the name of a header")?, &header));
    let min = fields.defaulted("min", |it| it.count());
    let max = fields.defaulted("max", |it| it.positive());
    let default = defaulted(fields.optional("default"), min.unwrap_or(1).max(1), Cursor::count);
    fields.finish();
    let (min, max, default) = (min?, max?, default?);
    let wrong = if min > max {
        Some(("min", format!("must not be above `max`, {max}")))
    } else if default > max {
        Some(("default", format!("must not be above `max`, {max}")))
    } else if default < min {
        Some(("default", format!("must not be below `min`, {min}")))
    } else {
        None
    };
    if let Some((key, why)) = wrong {
        fields.mistake(key, why);
        return None;
    }
    Some(Cost::Header(HeaderCost { header: header?, default, min, max }))
}
