//! Questions that are not answered by a lookup: parts of texts, expressions, networks, times. Each distinct one is asked
//! at most once a request.

use super::{
    Map,
    subjects::{Subject, SubjectId, Whole},
    times::Span,
};
use crate::{
    model::{Matcher, TimeSpan},
    reading::{Shape, segments},
};
use ipnet::IpNet;
use regex::Regex;
use std::net::IpAddr;

pub(super) type CheckId = u32;

pub(super) struct Check {
    pub(super) subject: SubjectId,
    pub(super) test: Test,
}

/// What a value, or the lack of one, is asked.
pub(crate) enum Test {
    Exact(String),
    Prefix(String),
    Suffix(String),
    Contains(String),
    Regex(Regex),
    Shape(Shape),
    Nets(Nets),
    Exists,
    Blank,
    Time(Span),
}

impl Test {
    /// What a matcher asks of a subject, and whether the answer counts as it is or the other way round.
    pub(crate) fn new(subject: &Subject, matcher: &Matcher) -> (Self, Counts) {
        let part = |text: &str| subject.spelled(text, Whole::No);
        let test = match matcher {
            Matcher::Exact(text) => match address_of(subject, text) {
                Some(net) => Self::Nets(Nets::new(&[net])),
                None => Self::Exact(subject.spelled(text, Whole::Yes)),
            },
            Matcher::Prefix(text) => Self::Prefix(part(text)),
            Matcher::Suffix(text) => Self::Suffix(part(text)),
            Matcher::Contains(text) => Self::Contains(part(text)),
            Matcher::Regex(regex) => Self::Regex(regex.clone()),
            Matcher::Glob(pattern) => Self::Shape(Shape::new(pattern)),
            Matcher::Net(net) => Self::Nets(Nets::new(&[*net])),
            Matcher::Exists(yes) => return (Self::Exists, Counts::when(*yes)),
            Matcher::Blank(yes) => return (Self::Blank, Counts::when(*yes)),
        };
        (test, Counts::AsItIs)
    }

    pub(crate) fn holds(&self, value: Option<&str>) -> bool {
        match (self, value) {
            (Self::Exists, value) => value.is_some(),
            (Self::Blank, value) => value.is_none_or(|value| value.trim().is_empty()),
            (_, None) | (Self::Time(_), _) => false,
            (Self::Exact(text), Some(value)) => value == text,
            (Self::Prefix(text), Some(value)) => value.starts_with(text.as_str()),
            (Self::Suffix(text), Some(value)) => value.ends_with(text.as_str()),
            (Self::Contains(text), Some(value)) => value.contains(text.as_str()),
            (Self::Regex(regex), Some(value)) => regex.is_match(value),
            (Self::Shape(shape), Some(value)) => shape.fits(&segments(value)),
            (Self::Nets(nets), Some(value)) => {
                // The address of a network counts for the network.
                let address = value.split_once('/').map_or(value, |(address, _)| address);
                address.trim().parse().is_ok_and(|address| nets.holds(address))
            }
        }
    }
}

/// How an answer counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Counts {
    AsItIs,
    Reversed,
}

impl Counts {
    fn when(yes: bool) -> Self {
        if yes { Self::AsItIs } else { Self::Reversed }
    }

    pub(crate) fn so(self, holds: bool) -> bool {
        holds == (self == Self::AsItIs)
    }
}

/// The network that a client's address, given as text, stands for.
pub(super) fn address_of(subject: &Subject, text: &str) -> Option<IpNet> {
    if *subject != Subject::Address {
        return None;
    }
    text.parse::<IpAddr>().map(IpNet::from).or_else(|_| text.parse()).ok()
}

/// What makes two checks the same.
#[derive(PartialEq, Eq, Hash)]
enum Same {
    Text(u8, String),
    Shape(Shape),
    Nets(Vec<IpNet>),
    Exists,
    Blank,
    Time(String),
}

impl Same {
    fn new(matcher: &Matcher) -> Self {
        match matcher {
            Matcher::Exact(text) => Self::Text(0, text.clone()),
            Matcher::Prefix(text) => Self::Text(1, text.clone()),
            Matcher::Suffix(text) => Self::Text(2, text.clone()),
            Matcher::Contains(text) => Self::Text(3, text.clone()),
            Matcher::Regex(regex) => Self::Text(4, regex.as_str().to_owned()),
            Matcher::Glob(pattern) => Self::Shape(Shape::new(pattern)),
            Matcher::Net(net) => Self::Nets(vec![*net]),
            Matcher::Exists(_) => Self::Exists,
            Matcher::Blank(_) => Self::Blank,
        }
    }
}

#[derive(Default)]
pub(super) struct Checks {
    list: Vec<Check>,
    known: Map<(SubjectId, Same), CheckId>,
    any_time: bool,
}

impl Checks {
    /// What a matcher asks of a subject, and how the answer counts.
    pub(super) fn add(&mut self, id: SubjectId, subject: &Subject, matcher: &Matcher) -> (CheckId, Counts) {
        let counts = match matcher {
            Matcher::Exists(yes) | Matcher::Blank(yes) => Counts::when(*yes),
            _ => Counts::AsItIs,
        };
        (self.add_new(id, Same::new(matcher), || Test::new(subject, matcher).0), counts)
    }

    /// Whether the address is in one of these networks.
    pub(super) fn add_nets(&mut self, id: SubjectId, nets: Vec<IpNet>) -> CheckId {
        let test = Nets::new(&nets);
        self.add_new(id, Same::Nets(nets), || Test::Nets(test))
    }

    pub(super) fn add_time(&mut self, id: SubjectId, span: &TimeSpan) -> CheckId {
        self.any_time = true;
        self.add_new(id, Same::Time(format!("{span:?}")), || Test::Time(Span::new(span)))
    }

    fn add_new(&mut self, subject: SubjectId, same: Same, test: impl FnOnce() -> Test) -> CheckId {
        let fresh = self.list.len() as CheckId;
        let id = *self.known.entry((subject, same)).or_insert(fresh);
        if id == fresh {
            self.list.push(Check { subject, test: test() });
        }
        id
    }

    pub(super) fn finish(&mut self) {
        self.known = Map::default();
    }

    /// Whether the time is asked for.
    pub(super) const fn any_time(&self) -> bool {
        self.any_time
    }

    pub(super) fn count(&self) -> usize {
        self.list.len()
    }

    pub(super) fn check(&self, id: CheckId) -> &Check {
        &self.list[id as usize]
    }
}

/// Networks, as ranges of addresses that neither touch nor overlap: ten thousand are one search.
pub(crate) struct Nets {
    four: Vec<(u32, u32)>,
    six: Vec<(u128, u128)>,
}

impl Nets {
    pub(super) fn new(nets: &[IpNet]) -> Self {
        let mut four = Vec::new();
        let mut six = Vec::new();
        for net in nets.iter().map(unmapped) {
            match net {
                IpNet::V4(net) => four.push((net.network().to_bits(), net.broadcast().to_bits())),
                IpNet::V6(net) => six.push((net.network().to_bits(), net.broadcast().to_bits())),
            }
        }
        Self { four: merged(four), six: merged(six) }
    }

    pub(super) fn holds(&self, address: IpAddr) -> bool {
        match address.to_canonical() {
            IpAddr::V4(address) => within(&self.four, address.to_bits()),
            IpAddr::V6(address) => within(&self.six, address.to_bits()),
        }
    }
}

/// A network of mapped addresses is the network of IPv4 addresses it means.
fn unmapped(net: &IpNet) -> IpNet {
    if let IpNet::V6(six) = net
        && six.prefix_len() >= 96
        && let Some(four) = six.addr().to_ipv4_mapped()
        && let Ok(four) = ipnet::Ipv4Net::new(four, six.prefix_len() - 96)
    {
        return IpNet::V4(four);
    }
    *net
}

fn merged<T: Ord + Copy>(mut ranges: Vec<(T, T)>) -> Vec<(T, T)> {
    ranges.sort_unstable();
    let mut merged: Vec<(T, T)> = Vec::with_capacity(ranges.len());
    for (first, last) in ranges {
        match merged.last_mut() {
            Some(before) if first <= before.1 => before.1 = before.1.max(last),
            _ => merged.push((first, last)),
        }
    }
    merged
}

fn within<T: Ord + Copy>(ranges: &[(T, T)], address: T) -> bool {
    let after = ranges.partition_point(|(first, _)| *first <= address);
    after > 0 && address <= ranges[after - 1].1
}
