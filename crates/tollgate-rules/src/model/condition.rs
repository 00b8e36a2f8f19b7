//! Conditions: attributes of a request, and what they are compared with.

use http::HeaderName;
use ipnet::IpNet;
use regex::Regex;

/// When something applies.
#[derive(Clone, Debug)]
pub enum When {
    /// To every request.
    Always,
    /// Where all of these hold.
    All(Vec<When>),
    /// Where one of these holds.
    Any(Vec<When>),
    /// Where this does not hold.
    Not(Box<When>),
    /// Where the attribute matches.
    Is(Attribute, Matcher),
    /// At some times only.
    Time(TimeSpan),
}

/// What a request has.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Attribute {
    /// The path, normalised, without the query.
    Path,
    /// A part of the path that the route or the rule captured by name.
    Capture(String),
    /// The method.
    Method,
    /// The host asked for, in lower case, without the port.
    Host,
    /// A header's value; several lines are one value with commas.
    Header(HeaderName),
    /// A parameter of the query, decoded.
    Query(String),
    /// The first cookie of that name.
    Cookie(String),
    /// The client's address; in keys, for IPv6, its /64.
    Ip,
    /// The network of so many bits that the client's address is in: up to 32 of IPv4 (IPv6 by its /64), above that of IPv6.
    IpPrefix(u8),
    /// The name of the route. In keys only.
    Route,
    /// The name of the rule. In keys only.
    Rule,
}

/// What an attribute is compared with.
#[derive(Clone, Debug)]
pub enum Matcher {
    /// It is this, letter by letter.
    Exact(String),
    /// It begins with this.
    Prefix(String),
    /// It ends with this.
    Suffix(String),
    /// This is somewhere in it.
    Contains(String),
    /// All of it matches: the expression is anchored at both ends.
    Regex(Regex),
    /// The path has this shape.
    Glob(PathPattern),
    /// The address is in this network.
    Net(IpNet),
    /// It is there, or (`false`) it is not.
    Exists(bool),
    /// It is not there, empty or all blanks; or (`false`) there is something in it.
    Blank(bool),
}

/// The shape of a path, segment by segment.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PathPattern {
    /// As it was written.
    pub text: String,
    /// What stands between the slashes.
    pub segments: Vec<Segment>,
}

/// One segment of a path's shape.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Segment {
    /// This text.
    Literal(String),
    /// Text with `*` (any text, none included) or `?` (one letter) inside, such as `*.json`.
    Wild(String),
    /// `*`: any one segment.
    Any,
    /// `**`: any number of segments, none included.
    Rest,
    /// `{name}`: any one segment, captured.
    Capture(String),
}

/// From when, until when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimeSpan {
    /// Not before this; it counts itself.
    pub after: Option<Instant>,
    /// Before this; it does not count itself.
    pub before: Option<Instant>,
}

/// A point in time, once or every day.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Instant {
    /// Once, in microseconds since 1970 began in UTC.
    Once(i64),
    /// Every day.
    Daily(DailyTime),
}

/// A time of day somewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DailyTime {
    /// Seconds since midnight, by the clock on the wall.
    pub second: u32,
    /// Where the clock hangs: a time zone's name, such as `Asia/Shanghai`.
    pub time_zone: String,
}
