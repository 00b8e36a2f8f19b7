//! The messages of the wire, as `proto/` has them: the field numbers are everybody's.
//!
//! Written out, so that building needs neither a compiler of proto files nor what it prints. A test holds them to the files.

pub use super::entry::Entry;

use prost::{Enumeration, Message};
use std::collections::BTreeMap;

/// `envoy.service.ratelimit.v3.RateLimitRequest`.
#[derive(Clone, PartialEq, Message)]
pub struct RateLimitRequest {
    /// Whose descriptors.
    #[prost(string, tag = "1")]
    pub domain: String,
    /// What is asked about, each by itself.
    #[prost(message, repeated, tag = "2")]
    pub descriptors: Vec<RateLimitDescriptor>,
    /// How many hits; zero is one.
    #[prost(uint32, tag = "3")]
    pub hits_addend: u32,
}

/// `envoy.extensions.common.ratelimit.v3.RateLimitDescriptor`.
#[derive(Clone, PartialEq, Message)]
pub struct RateLimitDescriptor {
    /// Its entries, in order.
    #[prost(message, repeated, tag = "1")]
    pub entries: Vec<Entry>,
    /// A limit that comes with the question.
    #[prost(message, optional, tag = "2")]
    pub limit: Option<RateLimitOverride>,
    /// How many hits of this one; zero only asks.
    #[prost(message, optional, tag = "3")]
    pub hits_addend: Option<u64>,
    /// Whether the hits are given back.
    #[prost(bool, tag = "4")]
    pub is_negative_hits: bool,
}

/// A limit that comes with the question.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct RateLimitOverride {
    /// How many a unit.
    #[prost(uint32, tag = "1")]
    pub requests_per_unit: u32,
    /// The unit, of `envoy.type.v3.RateLimitUnit`.
    #[prost(enumeration = "WireUnit", tag = "2")]
    pub unit: i32,
}

/// `envoy.service.ratelimit.v3.RateLimitResponse`.
#[derive(Clone, PartialEq, Message)]
pub struct RateLimitResponse {
    /// What the request is told.
    #[prost(enumeration = "Code", tag = "1")]
    pub overall_code: i32,
    /// How every descriptor stands, in order.
    #[prost(message, repeated, tag = "2")]
    pub statuses: Vec<DescriptorStatus>,
    /// Headers for the response.
    #[prost(message, repeated, tag = "3")]
    pub response_headers_to_add: Vec<HeaderValue>,
    /// Headers for the request on its way on.
    #[prost(message, repeated, tag = "4")]
    pub request_headers_to_add: Vec<HeaderValue>,
    /// The body of a refusal.
    #[prost(bytes = "vec", tag = "5")]
    pub raw_body: Vec<u8>,
    /// What is told about it.
    #[prost(message, optional, tag = "6")]
    pub dynamic_metadata: Option<Struct>,
}

/// How a descriptor stands.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct DescriptorStatus {
    /// What it says.
    #[prost(enumeration = "Code", tag = "1")]
    pub code: i32,
    /// The limit that held.
    #[prost(message, optional, tag = "2")]
    pub current_limit: Option<RateLimit>,
    /// How many are left.
    #[prost(uint32, tag = "3")]
    pub limit_remaining: u32,
    /// Until there are all of them again.
    #[prost(message, optional, tag = "4")]
    pub duration_until_reset: Option<Duration>,
}

/// A limit.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct RateLimit {
    /// How many a unit.
    #[prost(uint32, tag = "1")]
    pub requests_per_unit: u32,
    /// The unit.
    #[prost(enumeration = "WireUnit", tag = "2")]
    pub unit: i32,
    /// What it is called.
    #[prost(string, tag = "3")]
    pub name: String,
}

/// What a request is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Enumeration)]
#[repr(i32)]
pub enum Code {
    /// Never said: Envoy would let the request pass.
    Unknown = 0,
    /// Go on.
    Ok = 1,
    /// Not now.
    OverLimit = 2,
}

/// A unit of time. Overrides know all but the week.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Enumeration)]
#[repr(i32)]
pub enum WireUnit {
    /// None of them.
    Unknown = 0,
    /// One second.
    Second = 1,
    /// One minute.
    Minute = 2,
    /// One hour.
    Hour = 3,
    /// One day.
    Day = 4,
    /// 30 days.
    Month = 5,
    /// 365 days.
    Year = 6,
    /// One week.
    Week = 7,
}

impl Code {
    /// Its name on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unknown => "UNKNOWN",
            Self::Ok => "OK",
            Self::OverLimit => "OVER_LIMIT",
        }
    }
}

impl WireUnit {
    const ALL: [Self; 8] = [
        Self::Unknown,
        Self::Second,
        Self::Minute,
        Self::Hour,
        Self::Day,
        Self::Month,
        Self::Year,
        Self::Week,
    ];

    /// Its name on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unknown => "UNKNOWN",
            Self::Second => "SECOND",
            Self::Minute => "MINUTE",
            Self::Hour => "HOUR",
            Self::Day => "DAY",
            Self::Month => "MONTH",
            Self::Year => "YEAR",
            Self::Week => "WEEK",
        }
    }

    /// The unit of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|unit| unit.name() == name)
    }
}

/// `envoy.config.core.v3.HeaderValue`.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct HeaderValue {
    /// Its name.
    #[prost(string, tag = "1")]
    pub key: String,
    /// Its value.
    #[prost(string, tag = "2")]
    pub value: String,
    /// Its value, where that is no text.
    #[prost(bytes = "vec", tag = "3")]
    pub raw_value: Vec<u8>,
}

/// `google.protobuf.Duration`.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct Duration {
    /// Whole seconds.
    #[prost(int64, tag = "1")]
    pub seconds: i64,
    /// And nanoseconds.
    #[prost(int32, tag = "2")]
    pub nanos: i32,
}

/// `google.protobuf.Struct`.
#[derive(Clone, PartialEq, Message)]
pub struct Struct {
    /// Its fields.
    #[prost(btree_map = "string, message", tag = "1")]
    pub fields: BTreeMap<String, Value>,
}

/// `google.protobuf.Value`.
#[derive(Clone, PartialEq, Message)]
pub struct Value {
    /// What it is.
    #[prost(oneof = "Kind", tags = "1, 2, 3, 4, 5, 6")]
    pub kind: Option<Kind>,
}

/// What a value is.
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum Kind {
    /// Nothing.
    #[prost(int32, tag = "1")]
    Null(i32),
    /// A number.
    #[prost(double, tag = "2")]
    Number(f64),
    /// Text.
    #[prost(string, tag = "3")]
    Text(String),
    /// `true` or `false`.
    #[prost(bool, tag = "4")]
    Bool(bool),
    /// Several, by name.
    #[prost(message, tag = "5")]
    Struct(Struct),
    /// Several.
    #[prost(message, tag = "6")]
    List(ListValue),
}

/// `google.protobuf.ListValue`.
#[derive(Clone, PartialEq, Message)]
pub struct ListValue {
    /// Its items.
    #[prost(message, repeated, tag = "1")]
    pub values: Vec<Value>,
}

/// `grpc.health.v1.HealthCheckRequest`.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct HealthRequest {
    #[prost(string, tag = "1")]
    pub(super) service: String,
}

/// `grpc.health.v1.HealthCheckResponse`.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(super) struct HealthResponse {
    #[prost(enumeration = "Serving", tag = "1")]
    pub(super) status: i32,
}

/// Whether a service serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Enumeration)]
#[repr(i32)]
pub(super) enum Serving {
    Unknown = 0,
    Yes = 1,
    No = 2,
    ServiceUnknown = 3,
}

/// `grpc.reflection.v1.ServerReflectionRequest`, as far as it is answered; v1alpha has the same numbers.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct ReflectionRequest {
    #[prost(string, tag = "1")]
    pub(super) host: String,
    #[prost(oneof = "Wanted", tags = "3, 4, 5, 6, 7")]
    pub(super) wanted: Option<Wanted>,
}

/// What is asked of reflection.
#[derive(Clone, PartialEq, Eq, prost::Oneof)]
pub(super) enum Wanted {
    #[prost(string, tag = "3")]
    FileByName(String),
    #[prost(string, tag = "4")]
    FileWithSymbol(String),
    #[prost(bytes = "vec", tag = "5")]
    FileWithExtension(Vec<u8>),
    #[prost(string, tag = "6")]
    Extensions(String),
    #[prost(string, tag = "7")]
    Services(String),
}

/// `grpc.reflection.v1.ServerReflectionResponse`.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct ReflectionResponse {
    #[prost(string, tag = "1")]
    pub(super) valid_host: String,
    #[prost(message, optional, tag = "2")]
    pub(super) original_request: Option<ReflectionRequest>,
    #[prost(oneof = "Reflected", tags = "4, 6, 7")]
    pub(super) reflected: Option<Reflected>,
}

/// What reflection answers.
#[derive(Clone, PartialEq, Eq, prost::Oneof)]
pub(super) enum Reflected {
    #[prost(message, tag = "4")]
    Files(FileDescriptors),
    #[prost(message, tag = "6")]
    Services(ServiceList),
    #[prost(message, tag = "7")]
    Error(ReflectionError),
}

/// Files, each as it is encoded.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct FileDescriptors {
    #[prost(bytes = "vec", repeated, tag = "1")]
    pub(super) files: Vec<Vec<u8>>,
}

/// The services there are.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct ServiceList {
    #[prost(message, repeated, tag = "1")]
    pub(super) services: Vec<Named>,
}

/// Something with a name as its first field: a service, a message, a method, an enum.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct Named {
    #[prost(string, tag = "1")]
    pub(super) name: String,
}

/// Why reflection has no answer.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct ReflectionError {
    #[prost(int32, tag = "1")]
    pub(super) code: i32,
    #[prost(string, tag = "2")]
    pub(super) message: String,
}

/// `google.protobuf.FileDescriptorProto`, as far as files are looked up by it.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct FileHead {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(string, tag = "2")]
    pub(super) package: String,
    #[prost(string, repeated, tag = "3")]
    pub(super) dependencies: Vec<String>,
    #[prost(message, repeated, tag = "4")]
    pub(super) messages: Vec<MessageHead>,
    #[prost(message, repeated, tag = "5")]
    pub(super) enums: Vec<Named>,
    #[prost(message, repeated, tag = "6")]
    pub(super) services: Vec<ServiceHead>,
}

/// `google.protobuf.DescriptorProto`, as far as symbols are looked up by it.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct MessageHead {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(message, repeated, tag = "3")]
    pub(super) messages: Vec<MessageHead>,
    #[prost(message, repeated, tag = "4")]
    pub(super) enums: Vec<Named>,
}

/// `google.protobuf.ServiceDescriptorProto`, likewise.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct ServiceHead {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(message, repeated, tag = "2")]
    pub(super) methods: Vec<Named>,
}
