//! The rule file as it is meant: every name resolved, every quantity a type, nothing left to get wrong.
//!
//! [`RuleFile`] comes out of `parse_rules` and is compiled into a `Program`. Limits
//! and upstreams are named by their index in the file's lists, so that nobody looks a name up twice.

mod condition;
mod rule;
mod rules_from;
mod settings;
mod taken;
mod telemetry;

pub use condition::{Attribute, DailyTime, Instant, Matcher, PathPattern, Segment, TimeSpan, When};
pub use rule::{
    Cost, Excess, HeaderCost, LimitSource, Missing, NamedLimit, Override, Reply, Route, Rule, RuleLimit,
};
pub use rules_from::{RuleTable, RulesFrom, SourceUrl};
pub use settings::{
    AccessLog, EncodedSlash, HeaderStyle, HealthCheck, Listen, Listener, LogFormat, LogLevel, LogSettings,
    OnRepeat, RefusalLog, RefusalStyle, Role, Server, StoreSettings, TlsFiles, Token, TokenHash, Upstream,
    User,
};
pub use taken::Taken;
pub use telemetry::{Parents, Telemetry};

use crate::{domains::Domains, file::BadRules};
use ipnet::IpNet;

/// A whole rule file.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RuleFile {
    /// The global switch: `false` refuses nothing and touches no store.
    pub enabled: bool,
    /// The database that has the rules; `None` where the file has them.
    pub rules_from: Option<RulesFrom>,
    /// What is opened.
    pub listen: Listen,
    /// Where what was used is kept.
    pub store: StoreSettings,
    /// Whose word on the client's address is believed.
    pub trusted_proxies: Vec<IpNet>,
    /// What becomes of encoded slashes in paths.
    pub encoded_slash: EncodedSlash,
    /// What becomes of values that are given twice.
    pub on_repeat: OnRepeat,
    /// How responses tell of limits.
    pub headers: HeaderStyle,
    /// How a refusal reads.
    pub refusal: RefusalStyle,
    /// What is logged.
    pub log: LogSettings,
    /// Where traces are sent, if anywhere.
    pub telemetry: Option<Telemetry>,
    /// Limits by name.
    pub limits: Vec<NamedLimit>,
    /// Where requests go.
    pub upstreams: Vec<Upstream>,
    /// Envoy's descriptors and their limits: where the files are, and what they say once they are read.
    pub domains: Domains,
    /// Rules of every route, before its own.
    pub everywhere: Vec<Rule>,
    /// The first that matches takes the request.
    pub routes: Vec<Route>,
    /// What of it came from the environment.
    pub taken: Taken,
}

impl Default for RuleFile {
    /// A file that says nothing: nothing is opened, nothing is limited.
    fn default() -> Self {
        crate::file::empty()
    }
}

impl RuleFile {
    /// With what the files of its domains say, each with its name.
    ///
    /// # Errors
    /// Everything that is wrong with any of them, at once.
    pub fn with_domain_files(self, files: &[(&str, &str)]) -> Result<Self, Vec<BadRules>> {
        let domains = Domains::read(self.domains.settings().clone(), files)?;
        Ok(Self { domains, ..self })
    }
}
