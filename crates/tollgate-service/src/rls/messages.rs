//! The messages of the wire, as `proto/` has them: the field numbers are everybody's.
//!
//! Written out, so that building needs neither a compiler of proto files nor what it prints. A test holds them to the files.

pub use super::entry::Entry;
pub use prost_types::{Duration, Struct, Value, value::Kind};

use super::json;
use prost::{Enumeration, Message};
use serde::{Deserialize, Serialize};

/// `envoy.service.ratelimit.v3.RateLimitRequest`.
#[derive(Clone, PartialEq, Message, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase", expecting = "an object")]
pub struct RateLimitRequest {
    /// Whose descriptors.
    #[prost(string, tag = "1")]
    #[serde(deserialize_with = "json::optional")]
    pub domain: String,
    /// What is asked about, each by itself.
    #[prost(message, repeated, tag = "2")]
    #[serde(deserialize_with = "json::optional")]
    pub descriptors: Vec<RateLimitDescriptor>,
    /// How many hits; zero is one.
    #[prost(uint32, tag = "3")]
    #[serde(alias = "hits_addend", deserialize_with = "json::number")]
    pub hits_addend: u32,
}

/// `envoy.extensions.common.ratelimit.v3.RateLimitDescriptor`.
#[derive(Clone, PartialEq, Message, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase", expecting = "an object")]
pub struct RateLimitDescriptor {
    /// Its entries, in order.
    #[prost(message, repeated, tag = "1")]
    #[serde(deserialize_with = "json::optional")]
    pub entries: Vec<Entry>,
    /// A limit that comes with the question.
    #[prost(message, optional, tag = "2")]
    pub limit: Option<RateLimitOverride>,
    /// How many hits of this one; zero only asks.
    #[prost(message, optional, tag = "3")]
    #[serde(alias = "hits_addend", deserialize_with = "json::number")]
    pub hits_addend: Option<u64>,
    /// Whether the hits are given back.
    #[prost(bool, tag = "4")]
    #[serde(alias = "is_negative_hits", deserialize_with = "json::optional")]
    pub is_negative_hits: bool,
}

/// A limit that comes with the question.
#[derive(Clone, Copy, PartialEq, Eq, Message, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase", expecting = "an object")]
pub struct RateLimitOverride {
    /// How many a unit.
    #[prost(uint32, tag = "1")]
    #[serde(alias = "requests_per_unit", deserialize_with = "json::number")]
    pub requests_per_unit: u32,
    /// The unit, of `envoy.type.v3.RateLimitUnit`.
    #[prost(enumeration = "WireUnit", tag = "2")]
    #[serde(deserialize_with = "json::unit")]
    pub unit: i32,
}

/// `envoy.service.ratelimit.v3.RateLimitResponse`.
#[derive(Clone, PartialEq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RateLimitResponse {
    /// What the request is told.
    #[prost(enumeration = "Code", tag = "1")]
    #[serde(skip_serializing_if = "json::is_default", serialize_with = "json::code")]
    pub overall_code: i32,
    /// How every descriptor stands, in order.
    #[prost(message, repeated, tag = "2")]
    #[serde(skip_serializing_if = "json::is_default")]
    pub statuses: Vec<DescriptorStatus>,
    /// Headers for the response.
    #[prost(message, repeated, tag = "3")]
    #[serde(skip_serializing_if = "json::is_default")]
    pub response_headers_to_add: Vec<HeaderValue>,
    /// Headers for the request on its way on.
    #[prost(message, repeated, tag = "4")]
    #[serde(skip)]
    pub request_headers_to_add: Vec<HeaderValue>,
    /// The body of a refusal.
    #[prost(bytes = "vec", tag = "5")]
    #[serde(skip)]
    pub raw_body: Vec<u8>,
    /// What is told about it.
    #[prost(message, optional, tag = "6")]
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "json::metadata")]
    pub dynamic_metadata: Option<Struct>,
}

/// How a descriptor stands.
#[derive(Clone, PartialEq, Eq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DescriptorStatus {
    /// What it says.
    #[prost(enumeration = "Code", tag = "1")]
    #[serde(skip_serializing_if = "json::is_default", serialize_with = "json::code")]
    pub code: i32,
    /// The limit that held.
    #[prost(message, optional, tag = "2")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub current_limit: Option<RateLimit>,
    /// How many are left.
    #[prost(uint32, tag = "3")]
    #[serde(skip_serializing_if = "json::is_default")]
    pub limit_remaining: u32,
    /// Until there are all of them again.
    #[prost(message, optional, tag = "4")]
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "json::seconds")]
    pub duration_until_reset: Option<Duration>,
}

/// A limit.
#[derive(Clone, PartialEq, Eq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RateLimit {
    /// How many a unit.
    #[prost(uint32, tag = "1")]
    #[serde(skip_serializing_if = "json::is_default")]
    pub requests_per_unit: u32,
    /// The unit.
    #[prost(enumeration = "WireUnit", tag = "2")]
    #[serde(skip_serializing_if = "json::is_default", serialize_with = "json::unit_name")]
    pub unit: i32,
    /// What it is called.
    #[prost(string, tag = "3")]
    #[serde(skip_serializing_if = "json::is_default")]
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
#[derive(Clone, PartialEq, Eq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HeaderValue {
    /// Its name.
    #[prost(string, tag = "1")]
    pub key: String,
    /// Its value.
    #[prost(string, tag = "2")]
    pub value: String,
    /// Its value, where that is no text.
    #[prost(bytes = "vec", tag = "3")]
    #[serde(skip)]
    pub raw_value: Vec<u8>,
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

/// A service, by its name.
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
