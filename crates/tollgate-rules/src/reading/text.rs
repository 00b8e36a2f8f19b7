//! One attribute of a request, as text.

use super::{
    Repeated, address::AddressText, address_text, cookie, header, key_text, network_text, normal_host, query,
};
use crate::{
    Request,
    model::{Attribute, OnRepeat},
};
use std::borrow::Cow;

/// A value: borrowed from the request where that is possible, and never on the heap for an address.
#[derive(Clone)]
pub(crate) enum Text<'a> {
    Text(Cow<'a, str>),
    Address(AddressText),
}

impl Text<'_> {
    pub(crate) fn as_str(&self) -> &str {
        match self {
            Self::Text(text) => text,
            Self::Address(text) => text.as_str(),
        }
    }
}

impl<'a> From<Cow<'a, str>> for Text<'a> {
    fn from(text: Cow<'a, str>) -> Self {
        Self::Text(text)
    }
}

impl<'a> From<&'a str> for Text<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(Cow::Borrowed(text))
    }
}

/// What the request has of an attribute, as conditions see it: an address in full. `None` also for attributes that no
/// request has by itself: captures, the route, the rule.
///
/// # Errors
/// Where the request has it more than once, and `on_repeat` rejects that.
pub(crate) fn attribute<'a>(
    request: &Request<'a>,
    path: &'a str,
    attribute: &Attribute,
    reader: Reader,
    on_repeat: OnRepeat,
) -> Result<Option<Text<'a>>, Repeated> {
    Ok(match attribute {
        Attribute::Path => Some(path.into()),
        Attribute::Method => Some(request.method.into()),
        Attribute::Host => request.host.map(|host| normal_host(host).into()),
        Attribute::Header(name) => header(request.headers, name, on_repeat)?.map(Text::Text),
        Attribute::Query(name) => query(request.query, name, on_repeat)?.map(Text::Text),
        Attribute::Cookie(name) => cookie(request.headers, name, on_repeat)?.map(Text::Text),
        Attribute::Ip => Some(Text::Address(match reader {
            Reader::Condition => address_text(request.ip),
            Reader::Key => key_text(request.ip),
        })),
        Attribute::IpPrefix(bits) => Some(Text::Address(network_text(request.ip, *bits))),
        Attribute::Capture(_) | Attribute::Route | Attribute::Rule => None,
    })
}

/// Who asks. A condition may tell apart the addresses of one IPv6 /64; keys do not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reader {
    Condition,
    Key,
}
