//! The rule file as it is written, turned into the rule file as it is meant.
//!
//! Every part is read by a function of its own that notes what is wrong and goes on, so one reading tells all mistakes.
//! Names are resolved on the way: limits and upstreams first, then the routes and rules that speak of them. Nothing is read
//! from a disk here, and the environment is whatever the caller says it is.

mod charge;
mod condition;
mod domains;
mod excess;
mod limits;
mod listen;
mod names;
mod pattern;
mod route;
mod rules_from;
mod settings;
mod telemetry;
mod time;
mod upstream;
mod users;
mod warning;

pub use pattern::PatternError;
pub(crate) use rules_from::{RULES_KEYS, TO_MOVE};
pub use warning::Warning;

use crate::{
    decode::{Cursor, decode, decode_with, empty_mapping},
    domains::{DomainSettings, Domains},
    limit::defaulted,
    mistake::Mistakes,
    model::{EncodedSlash, HeaderStyle, Listener, OnRepeat, RefusalStyle, RuleFile, StoreSettings, Taken},
    schema,
};
use std::{fmt, net::SocketAddr};
use thiserror::Error;

/// Reads a rule file. `${NAME}` in it takes what `environment` has under that name.
///
/// ```
/// use tollgate_rules::parse_rules;
///
/// let file = parse_rules("version: 1\nstore: { url: \"${STORE}\" }", |name| {
///     (name == "STORE").then(|| "redis://127.0.0.1:6379".to_owned())
/// })?;
/// assert_eq!(file.store.url, "redis://127.0.0.1:6379");
///
/// let mistakes = parse_rules("version: 1\nlimit: {}", |_| None).unwrap_err();
/// assert_eq!(mistakes.to_string(), "2:1: limit: is not a known key; did you mean `limits`?");
/// # Ok::<(), tollgate_rules::Mistakes>(())
/// ```
///
/// # Errors
/// Everything that is wrong with the text, at once. What came from the environment is never shown.
pub fn parse_rules(text: &str, environment: impl Fn(&str) -> Option<String>) -> Result<RuleFile, Mistakes> {
    decode_with(text, environment, file)
}

/// The same for a text that has a name, which every mistake then begins with: `tollgate.yaml:3:5: ...`.
///
/// # Errors
/// Everything that is wrong with the text, at once.
pub fn read_rules(
    name: &str,
    text: &str,
    environment: impl Fn(&str) -> Option<String>,
) -> Result<RuleFile, BadRules> {
    parse_rules(text, environment).map_err(|mistakes| BadRules { name: name.to_owned(), mistakes })
}

/// A rule file that cannot be used: its name, and everything that is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub struct BadRules {
    name: String,
    mistakes: Mistakes,
}

impl BadRules {
    /// What the file is called.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What is wrong with the file of this name.
    #[must_use]
    pub fn new(name: &str, mistakes: Mistakes) -> Self {
        Self { name: name.to_owned(), mistakes }
    }

    /// What is wrong with it.
    #[must_use]
    pub const fn mistakes(&self) -> &Mistakes {
        &self.mistakes
    }
}

/// One line a mistake: `name:line:column: path: message`, which editors know how to jump to.
impl fmt::Display for BadRules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, mistake) in self.mistakes.iter().enumerate() {
            let end = if index > 0 { "\n" } else { "" };
            write!(f, "{end}{}:{mistake}", self.name)?;
        }
        Ok(())
    }
}

const ENCODED_SLASH: [(&str, EncodedSlash); 3] =
    [("reject", EncodedSlash::Reject), ("decode", EncodedSlash::Decode), ("keep", EncodedSlash::Keep)];

const ON_REPEAT: [(&str, OnRepeat); 3] =
    [("reject", OnRepeat::Reject), ("first", OnRepeat::First), ("last", OnRepeat::Last)];

const HEADERS: [(&str, HeaderStyle); 3] = [
    ("draft-10", HeaderStyle::Draft10),
    ("x-ratelimit", HeaderStyle::XRateLimit),
    ("none", HeaderStyle::None),
];

const REFUSALS: [(&str, RefusalStyle); 3] =
    [("problem", RefusalStyle::Problem), ("soul", RefusalStyle::Soul), ("plain", RefusalStyle::Plain)];

/// How the rules came into what is read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rules {
    /// They stand in the file, unless it says otherwise.
    Written,
    /// They were put there from where they are kept.
    Composed,
}

/// A file that says nothing but its version.
pub(crate) fn empty() -> RuleFile {
    let empty = decode("version: 1", file);
    empty.unwrap_or_else(|mistakes| unreachable!("every default can be read: {mistakes}"))
}

/// The store of a file that does not name one.
pub(crate) fn default_store() -> StoreSettings {
    default_mapping(settings::store)
}

/// A listener on this address, with everything else as it is when left out.
pub(crate) fn default_listener(address: SocketAddr) -> Listener {
    default_mapping(|here| listen::listener_on(here, address))
}

/// The settings of domains that only name files.
pub(crate) fn default_domains(files: Vec<String>) -> DomainSettings {
    default_mapping(|here| domains::settings(here, files))
}

fn default_mapping<T>(read: impl FnOnce(&Cursor<'_>) -> Option<T>) -> T {
    empty_mapping(read).unwrap_or_else(|| unreachable!("every default can be read"))
}

fn file(root: &Cursor<'_>) -> Option<RuleFile> {
    read(root, Rules::Written)
}

/// A file with rules that are kept elsewhere.
pub(crate) fn composed(root: &Cursor<'_>) -> Option<RuleFile> {
    read(root, Rules::Composed)
}

fn read(root: &Cursor<'_>, rules: Rules) -> Option<RuleFile> {
    let mut fields = root.mapping(&schema::FILE)?;
    let version = fields.required("version").and_then(|version| settings::version(&version));
    let enabled = fields.defaulted("enabled", |it| it.switch());
    let rules_from =
        defaulted(fields.optional("rules_from"), None, |from| rules_from::rules_from(from).map(Some));
    if let (Some(Some(from)), Rules::Written) = (&rules_from, rules) {
        rules_from::alone(&fields, from);
    }
    let listen = listen::listen(fields.optional("listen"));
    let store = fields.mapping_or_empty("store", settings::store);
    let trusted_proxies =
        defaulted(fields.optional("trusted_proxies"), Vec::new(), settings::trusted_proxies);
    let encoded_slash = fields.defaulted("encoded_slash", |slash| slash.choice(&ENCODED_SLASH));
    let on_repeat = fields.defaulted("on_repeat", |repeat| repeat.choice(&ON_REPEAT));
    let headers = fields.defaulted("headers", |headers| headers.choice(&HEADERS));
    let refusal = fields.defaulted("refusal", |style| style.choice(&REFUSALS));
    let log = fields.mapping_or_empty("log", settings::log);
    let telemetry = defaulted(fields.optional("telemetry"), None, |it| telemetry::telemetry(it).map(Some));
    let limits = limits::limits(fields.optional("limits"));
    let upstreams = upstream::upstreams(fields.optional("upstreams"));
    let domains = domains::domains(fields.optional("domains"));
    let known = route::Known { limits: &limits, upstreams: &upstreams.names };
    let (everywhere, names) = known.everywhere(fields.optional("everywhere"));
    let routes = known.routes(fields.optional("routes"), &names);
    fields.finish();

    version?;
    Some(RuleFile {
        enabled: enabled?,
        rules_from: rules_from?,
        listen: listen?,
        store: store?,
        trusted_proxies: trusted_proxies?,
        encoded_slash: encoded_slash?,
        on_repeat: on_repeat?,
        headers: headers?,
        refusal: refusal?,
        log: log?,
        telemetry: telemetry?,
        limits: limits.into_limits()?,
        upstreams: upstreams.read?,
        domains: Domains::named(domains?),
        everywhere: everywhere?,
        routes: routes?,
        taken: Taken::new(root.node().taken()),
    })
}

/// All of them, or nothing where one could not be read.
fn all<T>(read: impl IntoIterator<Item = Option<T>>) -> Option<Vec<T>> {
    read.into_iter().collect()
}
