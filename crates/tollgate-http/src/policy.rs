//! A limit as a client is told of it: how much, in which time, of what; and when there will be more.
//!
//! A client knows nothing of algorithms. It sees a quota `q` for a window `w`, and may pace itself at `q / w`; so every limit
//! is told in numbers for which that is right:
//!
//! | limit | `q` | `w` |
//! |---|---|---|
//! | `token_bucket` | burst | the time in which the whole burst refills |
//! | `leaky_bucket` | capacity | the time in which the whole bucket drains |
//! | `smooth_bursty`, `smooth_warming_up` | permits that can be stored, at least 1 | so many permits at the stable rate |
//! | `fixed_window`, `sliding_log`, `sliding_window`, `sliding_counter` | limit | window |
//! | `fixed_window` that lasts forever, or follows the calendar | limit | none: it has no length, or not always the same |
//! | `concurrency` | limit, in concurrent requests | none |
//!
//! Seconds are rounded up, so that nobody who paces itself by them is too fast.

use crate::{
    escape::{self, MOST},
    retry::whole_seconds,
};
use http::HeaderValue;
use std::{num::NonZeroU64, time::Duration};
use tollgate::{DecidedBy, Decision, Limit, Numbers, Retry, Status, WindowNumbers};

/// A limit as a client is told of it.
///
/// ```
/// use std::time::Duration;
/// use tollgate::{Rate, TokenBucket};
/// use tollgate_http::{Policy, Unit};
///
/// let burst = Policy::of("burst", &TokenBucket::new(Rate::per_minute(100)?, 50)?.into());
/// assert_eq!(burst.field(), r#""burst";q=50;w=30"#);
///
/// let upload = Policy::new("upload", 65_535).with_window(Duration::from_secs(10)).with_unit(Unit::ContentBytes);
/// assert_eq!(upload.field(), r#""upload";q=65535;qu="content-bytes";w=10"#);
/// # Ok::<(), tollgate::LimitError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Policy {
    name: String,
    quota: u64,
    window: Option<NonZeroU64>,
    unit: Unit,
    more: More,
    /// Its item of `RateLimit-Policy`.
    field: HeaderValue,
    /// Its item of `RateLimit` as far as it does not change: the name, and where what remains is to stand.
    pub(crate) item: Vec<u8>,
}

/// What a policy counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unit {
    /// Requests, or whatever a request costs.
    #[default]
    Requests,
    /// Bytes of content.
    ContentBytes,
    /// Requests in flight at once.
    ConcurrentRequests,
}

/// How it is known when there is one unit more.
#[derive(Clone, Copy, Debug)]
enum More {
    /// `amount` units come every `price / earn` nanoseconds, until there are `capacity`.
    Refill { capacity: u32, amount: u64, price: u64, earn: u64 },
    /// A permit is stored every `cool` microseconds, until there are `max`.
    Stored { max: f64, cool: f64 },
    /// When the window ends, or the last use has left it. Something may come earlier; nothing comes later.
    AtReset,
    /// When somebody leaves.
    Unknown,
}

impl Policy {
    /// A policy of `quota` units.
    ///
    /// Any name is well. What a field cannot hold of it, which is all but printable ASCII, is shown as `%` and two digits for
    /// each byte.
    #[must_use]
    pub fn new(name: impl Into<String>, quota: u64) -> Self {
        let (name, field) = (name.into(), HeaderValue::from_static(""));
        let mut item = Vec::with_capacity(name.len() + 8);
        escape::quoted(&mut item, &name);
        item.extend_from_slice(b";r=");
        Self { name, quota, window: None, unit: Unit::Requests, more: More::AtReset, field, item }.finish()
    }

    /// What clients are told of a limit.
    #[must_use]
    pub fn of(name: impl Into<String>, limit: &Limit) -> Self {
        let policy = Self::new(name, limit.most().into());
        let quota = limit.most();
        let (window, more) = match limit.numbers() {
            Numbers::Bucket(it) => {
                let nanos = (u128::from(it.capacity) * u128::from(it.price)).div_ceil(it.earn.into());
                let more = More::Refill { capacity: it.capacity, amount: 1, price: it.price, earn: it.earn };
                (Some(from_nanos(nanos)), more)
            }
            Numbers::Interval { amount, period, burst, .. } => {
                let periods = u64::from(burst).div_ceil(amount.max(1));
                let nanos = period.as_nanos().saturating_mul(periods.into());
                let price = u64::try_from(period.as_nanos()).unwrap_or(u64::MAX);
                (Some(from_nanos(nanos)), More::Refill { capacity: burst, amount, price, earn: 1 })
            }
            Numbers::Smooth(_, it) => {
                let window = Duration::try_from_secs_f64(f64::from(quota) * it.stable / 1e6);
                (window.ok(), More::Stored { max: it.max, cool: it.cool })
            }
            Numbers::FixedWindow {
                windows: WindowNumbers::Epoch(window) | WindowNumbers::FirstHit(window),
                ..
            }
            | Numbers::SlidingCounter { window, .. }
            | Numbers::Log { window, .. } => (Some(window), More::AtReset),
            Numbers::Concurrency { .. } => {
                return Self { more: More::Unknown, unit: Unit::ConcurrentRequests, ..policy }.finish();
            }
            // Windows without an end, or of another length each time.
            _ => (None, More::AtReset),
        };
        let policy = Self { more, ..policy };
        match window {
            Some(window) => policy.with_window(window),
            None => policy,
        }
    }

    /// The time that the quota is for, told in whole seconds, rounded up, at least one.
    #[must_use]
    pub fn with_window(self, window: Duration) -> Self {
        Self { window: NonZeroU64::new(whole_seconds(window).clamp(1, MOST)), ..self }.finish()
    }

    /// What it counts.
    #[must_use]
    pub fn with_unit(self, unit: Unit) -> Self {
        Self { unit, ..self }.finish()
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Units of its quota.
    #[must_use]
    pub const fn quota(&self) -> u64 {
        self.quota
    }

    /// The seconds that the quota is for, if it is for a time.
    #[must_use]
    pub const fn window(&self) -> Option<NonZeroU64> {
        self.window
    }

    /// What it counts.
    #[must_use]
    pub const fn unit(&self) -> Unit {
        self.unit
    }

    /// Its item in `RateLimit-Policy`, such as `"default";q=100;w=60`.
    #[must_use]
    pub const fn field(&self) -> &HeaderValue {
        &self.field
    }

    /// How long until there is one unit more than now, never told too early. `None` where nothing is used, or nobody knows.
    ///
    /// A status says what remains and when everything is back, to the microsecond, whatever store it is from. Between the two
    /// a bucket gives unit after unit at a pace known from its limit, so the time of the next one is the last one's, less the
    /// pace for all between. Of a window only its end is certain, and of a log when the last use leaves. A charge that is
    /// refused knows more: when it would pass, there is more.
    #[must_use]
    pub fn next_after(&self, status: &Status) -> Option<Duration> {
        let next = self.next_by_state(status).filter(|next| !next.is_zero());
        match status.decision() {
            Decision::Deny(Retry::After(retry)) if status.decided_by() == DecidedBy::Ban => Some(retry),
            Decision::Deny(Retry::After(retry)) => Some(next.map_or(retry, |next| next.min(retry))),
            _ => next,
        }
    }

    fn next_by_state(&self, status: &Status) -> Option<Duration> {
        if status.remaining() >= status.limit() {
            return None;
        }
        let reset = status.reset_after()?;
        match self.more {
            More::Unknown => None,
            More::AtReset => Some(reset),
            // Other numbers than these decided: a node's share, or a change under way.
            More::Refill { capacity, .. } if capacity != status.limit() => Some(reset),
            More::Refill { capacity, amount, price, earn } => {
                let earned_in = |units: u64| u128::from(units) * u128::from(price);
                if reset.is_zero() {
                    // As if never used, and not full: a young bucket that fills for the first time.
                    return Some(from_nanos(earned_in(1).div_ceil(earn.into())));
                }
                let between = u64::from(capacity - status.remaining() - 1) / amount.max(1);
                Some(reset.saturating_sub(from_nanos(earned_in(between) / u128::from(earn.max(1)))))
            }
            // It has what it can store: a limiter slower than its burst stores no whole permit.
            More::Stored { max, .. } if max - f64::from(status.remaining()) < 1.0 => None,
            More::Stored { cool, .. } if reset.is_zero() => from_micros(cool.ceil() + 1.0),
            More::Stored { max, cool } => {
                // Permits are stored in fractions, whose sum may fall short of a whole one by a hair: a microsecond's worth.
                let between = (max - f64::from(status.remaining()) - 1.0) * cool - 1.0;
                Some(reset.saturating_sub(from_micros(between.floor().max(0.0))?))
            }
        }
    }

    fn finish(mut self) -> Self {
        let mut field = Vec::with_capacity(self.name.len() + 32);
        escape::quoted(&mut field, &self.name);
        field.extend_from_slice(b";q=");
        escape::decimal(&mut field, self.quota.min(MOST));
        match self.unit {
            Unit::Requests => {}
            Unit::ContentBytes => field.extend_from_slice(br#";qu="content-bytes""#),
            Unit::ConcurrentRequests => field.extend_from_slice(br#";qu="concurrent-requests""#),
        }
        if let Some(window) = self.window {
            field.extend_from_slice(b";w=");
            escape::decimal(&mut field, window.get());
        }
        self.field = visible(field);
        self
    }

    /// What is told of a status: what remains, and in how many seconds there is more.
    pub(crate) fn told(&self, status: &Status) -> (u64, Option<u64>) {
        let remaining = match status.decided_by() {
            // Whatever is there, it is not to be had.
            DecidedBy::Ban => 0,
            _ => status.remaining().into(),
        };
        (remaining, self.next_after(status).map(|next| whole_seconds(next).min(MOST)))
    }
}

/// A field value of nothing but printable ASCII.
pub(crate) fn visible(bytes: Vec<u8>) -> HeaderValue {
    HeaderValue::try_from(bytes).expect("escaped text and digits are printable")
}

fn from_nanos(nanos: u128) -> Duration {
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

fn from_micros(micros: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(micros / 1e6).ok()
}
