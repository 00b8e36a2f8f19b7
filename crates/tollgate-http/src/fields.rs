//! Header fields that tell of limits: what they are, and how a request stands with them.
//!
//! `RateLimit-Policy` is the same for every request and made once. `RateLimit` is written in one go into a value of exactly
//! its length. Both are lists, so fields that a service behind has set already stay, and ours are further lines of them.
//!
//! What passes is told of every limit. A refusal is told of the limits that refuse, and of no other: so `Retry-After` is never
//! earlier than any `t` beside it, and a limit that has room does not make the client wait for its end. For the same reason a
//! layer in front of one that refuses leaves out a `t` that is later than the `Retry-After` it finds.

use crate::{
    escape::{decimal, digits},
    policy::{Policy, visible},
    refusal::RefusalStyle,
    retry::{delay, retry_after, whole_seconds},
};
use bytes::Bytes;
use http::{
    HeaderMap, HeaderValue, Response, StatusCode,
    header::{HeaderName, RETRY_AFTER},
};
use tollgate::{Retry, Status};

const POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
const RATELIMIT: HeaderName = HeaderName::from_static("ratelimit");
const X_LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");
const X_REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
const X_RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset");

/// Which header fields tell of limits. A refusal has `Retry-After` in any case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum HeaderStyle {
    /// `RateLimit-Policy` and `RateLimit` as in draft-ietf-httpapi-ratelimit-headers-10, which are structured fields.
    #[default]
    Draft10,
    /// `X-RateLimit-Limit`, `X-RateLimit-Remaining` and `X-RateLimit-Reset` (seconds until everything is back) of the limit
    /// that is nearest to its end.
    XRateLimit,
    /// None.
    None,
}

/// A set of policies that requests are told of together.
///
/// How a request stands is given as pairs of a policy's number in the set and a status, since not every request is charged for
/// every limit; [`all`](Self::all) pairs a whole set.
#[derive(Clone, Debug)]
pub struct Policies {
    style: HeaderStyle,
    policies: Vec<Policy>,
    field: HeaderValue,
}

impl Policies {
    /// The policies of a set of limits, in the order of its charges.
    #[must_use]
    pub fn new(style: HeaderStyle, policies: impl IntoIterator<Item = Policy>) -> Self {
        let policies: Vec<_> = policies.into_iter().collect();
        let items: Vec<_> = policies.iter().map(|policy| policy.field().as_bytes()).collect();
        Self { style, field: visible(items.join(&b", "[..])), policies }
    }

    /// Which fields are written.
    #[must_use]
    pub const fn style(&self) -> HeaderStyle {
        self.style
    }

    /// The policies.
    #[must_use]
    pub fn policies(&self) -> &[Policy] {
        &self.policies
    }

    /// The value of `RateLimit-Policy` for the whole set.
    #[must_use]
    pub const fn field(&self) -> &HeaderValue {
        &self.field
    }

    /// Pairs the statuses of a whole set with its policies.
    pub fn all<'s>(
        &self,
        statuses: &'s [Status],
    ) -> impl Iterator<Item = (usize, &'s Status)> + Clone + use<'s> {
        statuses.iter().enumerate()
    }

    /// Tells of a request that passes.
    pub fn allow<'s>(
        &self,
        told: impl Iterator<Item = (usize, &'s Status)> + Clone,
        headers: &mut HeaderMap,
    ) {
        match self.style {
            HeaderStyle::Draft10 => {
                self.write_policy(told.clone(), headers);
                self.write_items(told, number(headers.get(RETRY_AFTER)), headers);
            }
            HeaderStyle::XRateLimit => self.write_tightest(told, headers),
            HeaderStyle::None => {}
        }
    }

    /// As [`allow`](Self::allow) in the style of the draft, as lines of a head: for whoever writes heads without a map. `latest` is the
    /// `Retry-After` that is there already.
    pub fn allow_in_lines<'s>(
        &self,
        told: impl Iterator<Item = (usize, &'s Status)> + Clone,
        latest: Option<&HeaderValue>,
        out: &mut Vec<u8>,
    ) {
        let mut line = |name: &HeaderName, value: &dyn Fn(&mut Vec<u8>)| {
            out.extend_from_slice(name.as_str().as_bytes());
            out.extend_from_slice(b": ");
            value(out);
            out.extend_from_slice(b"\r\n");
        };
        let known = told.filter(|(index, _)| *index < self.policies.len());
        let count = known.clone().count();
        if count == 0 {
            return;
        }
        if count == self.policies.len() {
            line(&POLICY, &|out| out.extend_from_slice(self.field.as_bytes()));
        } else {
            for (index, _) in known.clone() {
                line(&POLICY, &|out| out.extend_from_slice(self.policies[index].field().as_bytes()));
            }
        }
        let items = self.items(known, number(latest));
        line(&RATELIMIT, &|out| write_items(items.clone(), out));
    }

    /// Tells of a request that is refused, and when it may come again: `retry` is what its set was told. A later
    /// `Retry-After` that is there already stays.
    pub fn refuse<'s>(
        &self,
        told: impl Iterator<Item = (usize, &'s Status)> + Clone,
        retry: Retry,
        headers: &mut HeaderMap,
    ) {
        let refusing = told.clone().filter(|(_, status)| status.is_deny());
        match self.style {
            HeaderStyle::Draft10 => {
                self.write_policy(told.clone(), headers);
                self.write_items(refusing, None, headers);
            }
            HeaderStyle::XRateLimit => self.write_tightest(refusing, headers),
            HeaderStyle::None => {}
        }
        if let Some(after) = retry_after(retry, told.map(|(_, status)| status)) {
            let (there, ours) = (number(headers.get(RETRY_AFTER)), delay(after));
            if there.is_none_or(|there| there < ours) {
                headers.insert(RETRY_AFTER, ours.into());
            }
        }
    }

    /// The names of those that refuse.
    pub fn violated<'a>(
        &'a self,
        told: impl Iterator<Item = (usize, &'a Status)>,
    ) -> impl Iterator<Item = &'a str> {
        let refusing = told.filter(|(_, status)| status.is_deny());
        refusing.filter_map(|(index, _)| self.policies.get(index)).map(Policy::name)
    }

    /// The whole response to a request that is refused, with all its fields. `request` are the request's headers, which say
    /// whether it is gRPC.
    #[must_use]
    pub fn refusal<'s>(
        &self,
        style: RefusalStyle,
        request: &HeaderMap,
        told: impl Iterator<Item = (usize, &'s Status)> + Clone,
        retry: Retry,
    ) -> Response<Bytes> {
        self.refusal_as(StatusCode::TOO_MANY_REQUESTS, style, request, told, retry)
    }

    /// As [`refusal`](Self::refusal), under another status than 429, which the body tells as well.
    #[must_use]
    pub fn refusal_as<'s>(
        &self,
        status: StatusCode,
        style: RefusalStyle,
        request: &HeaderMap,
        told: impl Iterator<Item = (usize, &'s Status)> + Clone,
        retry: Retry,
    ) -> Response<Bytes> {
        let after = retry_after(retry, told.clone().map(|(_, status)| status));
        let refusing = told.clone().filter(|(_, status)| status.is_deny());
        let violated: Vec<_> =
            refusing.filter_map(|(index, _)| self.policies.get(index)).map(Policy::name).collect();
        let mut response = style.quota_exceeded_as(status, request, &violated, after);
        self.refuse(told, retry, response.headers_mut());
        response
    }

    /// The whole set in one line, or a line for each where only some apply: nothing is put together for a request.
    fn write_policy<'s>(
        &self,
        told: impl Iterator<Item = (usize, &'s Status)> + Clone,
        headers: &mut HeaderMap,
    ) {
        if told.clone().count() == self.policies.len() {
            if !self.policies.is_empty() {
                headers.append(POLICY, self.field.clone());
            }
            return;
        }
        for policy in told.filter_map(|(index, _)| self.policies.get(index)) {
            headers.append(POLICY, policy.field().clone());
        }
    }

    fn write_items<'s>(
        &self,
        told: impl Iterator<Item = (usize, &'s Status)> + Clone,
        latest: Option<u64>,
        headers: &mut HeaderMap,
    ) {
        let items = self.items(told, latest);
        let length = |(policy, (remaining, next)): Item<'_>| {
            policy.item.len()
                + digits(remaining)
                + next.map_or(0, |next| NEXT.len() + digits(next))
                + BETWEEN.len()
        };
        // As long as it will be and no longer: a value that is shorter than its memory costs another piece to say so.
        let Some(length) = items.clone().map(length).sum::<usize>().checked_sub(BETWEEN.len()) else {
            return;
        };
        let mut value = Vec::with_capacity(length);
        write_items(items, &mut value);
        debug_assert_eq!(value.len(), length);
        headers.append(RATELIMIT, visible(value));
    }

    /// What is told of each. A time that is later than `latest` is left out.
    fn items<'a, 's>(
        &'a self,
        told: impl Iterator<Item = (usize, &'s Status)> + Clone,
        latest: Option<u64>,
    ) -> impl Iterator<Item = Item<'a>> + Clone {
        let is_late = move |next: u64| latest.is_some_and(|latest| next > latest);
        told.filter_map(move |(index, status)| {
            let policy = self.policies.get(index)?;
            let (remaining, next) = policy.told(status);
            Some((policy, (remaining, next.filter(|next| !is_late(*next)))))
        })
    }

    /// Of the limit that has least left. What is there already, from a service behind, stays where it has less.
    fn write_tightest<'s>(&self, told: impl Iterator<Item = (usize, &'s Status)>, headers: &mut HeaderMap) {
        let known = told.filter_map(|(index, status)| Some((self.policies.get(index)?, status)));
        let Some((remaining, policy, status)) = known
            .map(|(policy, status)| (policy.told(status).0, policy, status))
            .reduce(|least, next| if next.0 < least.0 { next } else { least })
        else {
            return;
        };
        if number(headers.get(X_REMAINING)).is_some_and(|there| there < remaining) {
            return;
        }
        headers.insert(X_LIMIT, policy.quota().into());
        headers.insert(X_REMAINING, remaining.into());
        match status.reset_after() {
            Some(reset) => headers.insert(X_RESET, whole_seconds(reset).into()),
            None => headers.remove(X_RESET),
        };
    }
}

/// A policy, what remains of it, and in how many seconds there is more.
type Item<'a> = (&'a Policy, (u64, Option<u64>));

fn write_items<'a>(items: impl Iterator<Item = Item<'a>>, out: &mut Vec<u8>) {
    for (place, (policy, (remaining, next))) in items.enumerate() {
        if place > 0 {
            out.extend_from_slice(BETWEEN);
        }
        out.extend_from_slice(&policy.item);
        decimal(out, remaining);
        if let Some(next) = next {
            out.extend_from_slice(NEXT);
            decimal(out, next);
        }
    }
}

const NEXT: &[u8] = b";t=";
const BETWEEN: &[u8] = b", ";

fn number(value: Option<&HeaderValue>) -> Option<u64> {
    value?.to_str().ok()?.trim().parse().ok()
}
