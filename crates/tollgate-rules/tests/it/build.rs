//! Rule files and requests by hand, in few words.

use http::{HeaderMap, HeaderName, HeaderValue};
use regex::Regex;
use tollgate::{Limit, Rate, TokenBucket};
use tollgate_rules::{
    Request, RuleFile,
    model::{
        Attribute, Cost, Excess, LimitSource, Matcher, Missing, NamedLimit, Override, PathPattern, Route,
        Rule, RuleLimit, Segment, When,
    },
};

pub(crate) fn pattern(text: &str) -> PathPattern {
    let segments = text.strip_prefix('/').expect("a pattern begins with a slash").split('/');
    let segment = |part: &str| match part {
        "**" => Segment::Rest,
        "*" => Segment::Any,
        _ if part.starts_with('{') => Segment::Capture(part.trim_matches(['{', '}']).to_owned()),
        _ if part.contains(['*', '?']) => Segment::Wild(part.to_owned()),
        _ => Segment::Literal(part.to_owned()),
    };
    PathPattern { text: text.to_owned(), segments: segments.map(segment).collect() }
}

/// An attribute by the name it has in files.
pub(crate) fn attribute(name: &str) -> Attribute {
    match name.split_once('.') {
        Some(("header", name)) => Attribute::Header(name.parse::<HeaderName>().expect("a header's name")),
        Some(("query", name)) => Attribute::Query(name.to_owned()),
        Some(("cookie", name)) => Attribute::Cookie(name.to_owned()),
        Some(("path", name)) => Attribute::Capture(name.to_owned()),
        _ => match name {
            "path" => Attribute::Path,
            "method" => Attribute::Method,
            "host" => Attribute::Host,
            "ip" => Attribute::Ip,
            "route" => Attribute::Route,
            "rule" => Attribute::Rule,
            _ => {
                let bits = name.strip_prefix("ip/").and_then(|bits| bits.parse().ok());
                Attribute::IpPrefix(bits.expect(name))
            }
        },
    }
}

pub(crate) fn is(name: &str, matcher: Matcher) -> When {
    When::Is(attribute(name), matcher)
}

pub(crate) fn path(shape: &str) -> When {
    is("path", Matcher::Glob(pattern(shape)))
}

pub(crate) fn exact(name: &str, text: &str) -> When {
    is(name, Matcher::Exact(text.to_owned()))
}

pub(crate) fn net(text: &str) -> When {
    is("ip", Matcher::Net(text.parse().expect(text)))
}

pub(crate) fn regex(text: &str) -> Matcher {
    Matcher::Regex(Regex::new(&format!(r"\A(?:{text})\z")).expect(text))
}

pub(crate) fn not(when: When) -> When {
    When::Not(Box::new(when))
}

pub(crate) fn limit() -> Limit {
    TokenBucket::new(Rate::per_second(10).expect("a rate"), 5).expect("a bucket").into()
}

pub(crate) fn named(name: &str, overrides: &[&[&str]]) -> NamedLimit {
    let overrides = overrides
        .iter()
        .map(|key| Override { key: key.iter().map(|value| (*value).to_owned()).collect(), limit: limit() });
    NamedLimit { name: name.to_owned(), limit: limit(), overrides: overrides.collect(), max_keys: None }
}

/// A charge on the rule's own limit.
pub(crate) fn charge(key: &[&str]) -> RuleLimit {
    RuleLimit {
        limit: LimitSource::Inline(limit()),
        key: key.iter().map(|name| attribute(name)).collect(),
        missing: Missing::Share,
        cost: Cost::default(),
    }
}

pub(crate) fn rule(name: &str, when: When, limits: Vec<RuleLimit>) -> Rule {
    Rule {
        name: name.to_owned(),
        enabled: true,
        when,
        limits,
        bandwidth: None,
        excess: Excess::Reject(None),
        on_failure: None,
    }
}

pub(crate) fn route(name: &str, when: When, rules: Vec<Rule>) -> Route {
    Route { name: name.to_owned(), enabled: true, when, strip_prefix: None, upstream: 0, rules }
}

pub(crate) fn file(routes: Vec<Route>, everywhere: Vec<Rule>) -> RuleFile {
    let mut file = RuleFile::default();
    file.routes = routes;
    file.everywhere = everywhere;
    file
}

/// A request that owns what a [`Request`] borrows.
#[derive(Clone, Debug)]
pub(crate) struct Sent {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) query: Option<String>,
    pub(crate) host: Option<String>,
    pub(crate) headers: HeaderMap,
    pub(crate) ip: String,
    pub(crate) at: i64,
}

impl Sent {
    pub(crate) fn request(&self) -> Request<'_> {
        Request {
            method: &self.method,
            path: &self.path,
            query: self.query.as_deref(),
            host: self.host.as_deref(),
            headers: &self.headers,
            ip: self.ip.parse().expect("an address"),
            at: self.at,
        }
    }

    pub(crate) fn method(mut self, method: &str) -> Self {
        self.method = method.to_owned();
        self
    }

    pub(crate) fn header(mut self, name: &str, value: impl AsRef<[u8]>) -> Self {
        let value = HeaderValue::from_bytes(value.as_ref()).expect("a header's value");
        self.headers.append(name.parse::<HeaderName>().expect("a header's name"), value);
        self
    }

    pub(crate) fn query(mut self, query: &str) -> Self {
        self.query = Some(query.to_owned());
        self
    }

    pub(crate) fn host(mut self, host: &str) -> Self {
        self.host = Some(host.to_owned());
        self
    }

    pub(crate) fn ip(mut self, ip: &str) -> Self {
        self.ip = ip.to_owned();
        self
    }

    pub(crate) fn at(mut self, at: i64) -> Self {
        self.at = at;
        self
    }
}

pub(crate) fn get(path: &str) -> Sent {
    Sent {
        method: "GET".to_owned(),
        path: path.to_owned(),
        query: None,
        host: None,
        headers: HeaderMap::new(),
        ip: "192.0.2.7".to_owned(),
        at: 0,
    }
}
