//! One file of envoyproxy/ratelimit, read with places. Every mistake is told in that server's words.

use super::{Measure, Metadata, Unit, scalar};
use crate::{
    Mistake,
    decode::{Cursor, did_you_mean, shorten, walk_tree},
    limit::{ParsedLimit, algorithm, names_no_algorithm},
    mistake::Position,
    schema,
    yaml::{self, Value},
};
use tollgate::Limit;

/// A file, before it is known whether it goes with the others.
pub(super) struct Draft {
    pub(super) domain: Option<(Box<str>, Place)>,
    pub(super) descriptors: Vec<Descriptor>,
}

/// A descriptor of a file.
pub(super) struct Descriptor {
    pub(super) at: Place,
    pub(super) key: Box<str>,
    pub(super) value: Option<Box<str>>,
    pub(super) measure: Option<Measure>,
    pub(super) name: Box<str>,
    pub(super) replaces: Vec<Box<str>>,
    pub(super) shadow_mode: bool,
    pub(super) quota_mode: bool,
    pub(super) share_threshold: bool,
    pub(super) metadata: Option<Metadata>,
    pub(super) descriptors: Vec<Self>,
}

/// Where something stands in its file.
pub(super) struct Place {
    at: Position,
    path: String,
}

impl Place {
    fn of(cursor: &Cursor<'_>) -> Self {
        Self { at: cursor.at(), path: cursor.path().to_owned() }
    }

    pub(super) fn mistake(&self, message: String) -> Mistake {
        Mistake { at: self.at, path: self.path.clone(), message }
    }
}

/// What a file says, as far as it can be read, and everything that is wrong with it.
pub(super) fn draft(text: &str) -> (Option<Draft>, Vec<Mistake>) {
    match yaml::read_expanded(text) {
        Ok(root) => walk_tree(&root, file),
        Err(mistake) => {
            let message = format!("error loading config file: {}", mistake.message());
            (None, vec![Mistake { message, ..mistake }])
        }
    }
}

/// Every key that may stand anywhere, whether it means something there or not.
const KEYS: [&str; 16] = [
    "domain",
    "key",
    "value",
    "descriptors",
    "rate_limit",
    "unit",
    "requests_per_unit",
    "unlimited",
    "shadow_mode",
    "quota_mode",
    "name",
    "replaces",
    "detailed_metric",
    "value_to_metric",
    "share_threshold",
    "metadata",
];

/// What a mapping stands for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    File,
    Descriptor,
    Other,
}

/// The entries of a mapping whose keys are known by name, wherever it stands.
struct Entries<'a>(Vec<(&'a str, Cursor<'a>)>);

impl<'a> Entries<'a> {
    /// Those of a mapping, everything in it that no file may hold noted.
    fn of(here: &Cursor<'a>, level: Level) -> Option<Self> {
        if !here.is_mapping() {
            loading(here, "a mapping is wanted here");
            return None;
        }
        let mut entries: Vec<(&'a str, Cursor<'a>)> = Vec::new();
        for (key, value) in here.named("domain: shop")? {
            let name = match &key.node().value {
                Value::Quoted(name) => name.as_str(),
                Value::Plain(name) if !is_other_than_text(name) => name.as_str(),
                _ => {
                    let written = shorten(&key.node().written());
                    key.mistake(format!("config error, key is not of type string: {written}"));
                    continue;
                }
            };
            let is_ours = name == "algorithm" && level == Level::Descriptor;
            if !is_ours && !KEYS.contains(&name) {
                let known = KEYS.into_iter().chain((level == Level::Descriptor).then_some("algorithm"));
                let meant = did_you_mean(name, known);
                key.mistake(format!("config error, unknown key '{}'{meant}", shorten(name)));
                continue;
            }
            if entries.iter().any(|(known, _)| *known == name) {
                loading(&key, &format!("key \"{name}\" is given twice"));
                continue;
            }
            if name != "metadata" && !is_ours {
                check_value(&value, level, name);
            }
            entries.push((name, value));
        }
        Some(Self(entries))
    }

    fn get(&self, name: &str) -> Option<&Cursor<'a>> {
        let found = self.0.iter().find(|(known, _)| *known == name).map(|(_, value)| value);
        found.filter(|value| !matches!(value.node().value, Value::Null))
    }

    /// Text, whatever it looks like; empty where there is none.
    fn text(&self, name: &str) -> &'a str {
        match self.get(name).map(|value| (&value.node().value, value)) {
            Some((Value::Plain(text) | Value::Quoted(text), _)) => text,
            Some((_, value)) => {
                loading(value, "text is wanted here");
                ""
            }
            None => "",
        }
    }

    fn switch(&self, name: &str) -> bool {
        let Some(value) = self.get(name) else { return false };
        if let Value::Plain(text) = &value.node().value
            && let Some(is_on) = scalar::boolean(text)
        {
            return is_on;
        }
        loading(value, "`true` or `false` is wanted here");
        false
    }

    fn count(&self, name: &str) -> u32 {
        let Some(value) = self.get(name) else { return 0 };
        let text = match &value.node().value {
            Value::Plain(text) => text.as_str(),
            _ => "",
        };
        if let Some(refusal) = scalar::refusal(text).filter(|_| !text.starts_with('-')) {
            loading(value, &refusal);
            return 0;
        }
        scalar::digits(text).and_then(|digits| digits.parse().ok()).unwrap_or_else(|| {
            loading(value, &format!("a whole number from 0 to {} is wanted here", u32::MAX));
            0
        })
    }

    fn list(&self, name: &str) -> Vec<Cursor<'a>> {
        let Some(value) = self.get(name) else { return Vec::new() };
        match &value.node().value {
            Value::List(_) => value.one_or_list(),
            _ => {
                loading(value, "a list is wanted here");
                Vec::new()
            }
        }
    }
}

/// Notes what may stand nowhere: lists of anything but mappings, and numbers with a point. Mappings that are read elsewhere
/// are judged there.
fn check_value(value: &Cursor<'_>, level: Level, name: &str) {
    match &value.node().value {
        Value::List(items) => {
            for item in items.iter().filter(|item| !matches!(item.value, Value::Mapping(_))) {
                let written = shorten(&item.written());
                let message =
                    format!("config error, yaml file contains list of type other than map: {written}");
                value.mistake(message);
            }
            let is_read = match level {
                Level::File | Level::Descriptor => name == "descriptors",
                Level::Other => name == "replaces",
            };
            if !is_read {
                for item in value.one_or_list().iter().filter(|item| item.is_mapping()) {
                    Entries::of(item, Level::Other);
                }
            }
        }
        Value::Mapping(_) if !(level == Level::Descriptor && name == "rate_limit") => {
            Entries::of(value, Level::Other);
        }
        Value::Plain(text) if is_fraction(text) => value.mistake(format!(
            "error checking config: {text} is a number with a fraction, which no key takes; put it in quotes"
        )),
        _ => {}
    }
}

/// Whether a word without quotes is something else than text.
fn is_other_than_text(word: &str) -> bool {
    let is_number = word.parse::<i64>().is_ok() || is_fraction(word);
    is_number || matches!(word.to_ascii_lowercase().as_str(), "true" | "false" | "yes" | "no" | "on" | "off")
}

fn is_fraction(word: &str) -> bool {
    let is_numeric = |first: char| first.is_ascii_digit() || matches!(first, '-' | '+' | '.');
    let is_named = matches!(word.to_ascii_lowercase().trim_start_matches(['-', '+']), ".inf" | ".nan");
    let is_finite = || word.parse::<f64>().is_ok_and(f64::is_finite);
    is_named || (word.starts_with(is_numeric) && word.contains(['.', 'e', 'E']) && is_finite())
}

/// Notes what would not even load.
fn loading(here: &Cursor<'_>, why: &str) {
    here.mistake(format!("error loading config file: {why}"));
}

fn file(root: &Cursor<'_>) -> Option<Draft> {
    let entries = Entries::of(root, Level::File)?;
    let name = entries.text("domain");
    let at = Place::of(entries.get("domain").unwrap_or(root));
    if name.is_empty() {
        entries.get("domain").unwrap_or(root).mistake("config file cannot have empty domain");
    }
    let domain = (!name.is_empty()).then(|| (name.into(), at));
    Some(Draft { domain, descriptors: descriptors(&entries) })
}

fn descriptors(entries: &Entries<'_>) -> Vec<Descriptor> {
    let items = entries.list("descriptors");
    items.iter().filter(|item| item.is_mapping()).filter_map(descriptor).collect()
}

fn descriptor(here: &Cursor<'_>) -> Option<Descriptor> {
    let entries = Entries::of(here, Level::Descriptor)?;
    let (key, value) = (entries.text("key"), entries.text("value"));
    if key.is_empty() {
        entries.get("key").unwrap_or(here).mistake("descriptor has empty key");
    }
    let share_threshold = entries.switch("share_threshold");
    if share_threshold && !value.contains('*') {
        here.mistake(format!(
            "share_threshold can only be used with wildcard values (containing '*'), but found key '{}'",
            shorten(key)
        ));
    }
    let limit = entries.get("rate_limit").and_then(|limit| rate_limit(limit, entries.get("algorithm")));
    let algorithm = entries.get("algorithm").and_then(own_limit);
    let metadata = entries.get("metadata").and_then(metadata);
    let (shadow_mode, quota_mode) = (entries.switch("shadow_mode"), entries.switch("quota_mode"));
    // How they are counted in metrics: accepted, and without effect, since no metric here is labelled with a value.
    let _ = (entries.switch("detailed_metric"), entries.switch("value_to_metric"));
    let descriptors = descriptors(&entries);
    let RateLimit { measure, name, replaces } = limit.unwrap_or_default();
    (!key.is_empty()).then(|| Descriptor {
        at: Place::of(here),
        key: key.into(),
        value: (!value.is_empty()).then(|| value.into()),
        measure: algorithm.map(Measure::Limit).or(measure),
        name,
        replaces,
        shadow_mode,
        quota_mode,
        share_threshold,
        metadata,
        descriptors,
    })
}

#[derive(Default)]
struct RateLimit {
    measure: Option<Measure>,
    name: Box<str>,
    replaces: Vec<Box<str>>,
}

fn rate_limit(here: &Cursor<'_>, algorithm: Option<&Cursor<'_>>) -> Option<RateLimit> {
    let entries = Entries::of(here, Level::Other)?;
    let (written, requests, unlimited) =
        (entries.text("unit"), entries.count("requests_per_unit"), entries.switch("unlimited"));
    let unit = Unit::named(written);
    let place = entries.get("unit").unwrap_or(here);
    let measure = match (algorithm, unit) {
        (Some(_), _) if unit.is_some() || unlimited || entries.get("requests_per_unit").is_some() => {
            here.mistake("should not specify unit, requests_per_unit or unlimited beside an algorithm");
            None
        }
        (Some(_), _) => None,
        (None, Some(_)) if unlimited => {
            place.mistake("should not specify rate limit unit when unlimited");
            None
        }
        (None, None) if unlimited => Some(Measure::Unlimited),
        (None, Some(unit)) => Some(Measure::PerUnit { requests, unit }),
        (None, None) => {
            let meant = did_you_mean(&written.to_ascii_lowercase(), Unit::ALL.map(Unit::name));
            place.mistake(format!("invalid rate limit unit '{}'{meant}", shorten(written)));
            None
        }
    };
    let name = entries.text("name");
    let mut replaces = Vec::new();
    for item in entries.list("replaces").iter().filter(|item| item.is_mapping()) {
        let Some(entries) = Entries::of(item, Level::Other) else { continue };
        match entries.text("name") {
            "" => item.mistake("should not have an empty replaces entry"),
            other if other == name => item.mistake("replaces should not contain name of same descriptor"),
            other => replaces.push(other.into()),
        }
    }
    Some(RateLimit { measure, name: name.into(), replaces })
}

/// A limit of ours. Nobody tells when a request ends, so there is nothing to hold.
fn own_limit(here: &Cursor<'_>) -> Option<Limit> {
    const BUT: [&str; 2] = ["concurrency", "bandwidth"];
    let mut fields = here.mapping(&schema::DESCRIPTOR_LIMIT)?;
    let found = algorithm(&mut fields, &BUT);
    if found.is_none() {
        names_no_algorithm(&fields, &BUT);
    }
    fields.finish();
    match found?.parsed? {
        ParsedLimit::Limit(limit) => Some(limit),
        ParsedLimit::Bandwidth(_) => None,
    }
}

fn metadata(here: &Cursor<'_>) -> Option<Metadata> {
    if !here.is_mapping() {
        here.mistake("error parsing metadata: a mapping is wanted here");
        return None;
    }
    Some(Metadata::of(here))
}
