//! The one place where a decision becomes JSON and a status.

use super::reply::Reply;
use http::StatusCode;
use std::{fmt::Write, time::Duration};
use tollgate::{Decision, Retry, SetStatus, Status};

/// What was decided about one question.
pub(super) struct Answer<'s> {
    status: &'s SetStatus,
    /// Whether every charge is told of.
    is_set: bool,
    waited: Option<Duration>,
    permit: Option<(&'s str, Duration)>,
}

impl<'s> Answer<'s> {
    pub(super) const fn new(status: &'s SetStatus, is_set: bool) -> Self {
        Self { status, is_set, waited: None, permit: None }
    }

    /// It waited so long for its turn.
    pub(super) fn waited(self, waited: Option<Duration>) -> Self {
        Self { waited, ..self }
    }

    /// It holds slots by this name, for so long.
    pub(super) fn permit(self, name: &'s str, expires_in: Duration) -> Self {
        Self { permit: Some((name, expires_in)), ..self }
    }

    /// With the status that says the same.
    pub(super) fn reply(&self) -> Reply {
        let status = match (self.status.is_deny(), self.permit) {
            (true, _) => StatusCode::TOO_MANY_REQUESTS,
            (false, Some(_)) => StatusCode::CREATED,
            (false, None) => StatusCode::OK,
        };
        let mut body = String::with_capacity(256);
        self.write(&mut body);
        Reply::json(status, body).retry_after(self.status.retry_after().map(whole_seconds))
    }

    pub(super) fn write(&self, out: &mut String) {
        let decided = decisive(self.status);
        out.push('{');
        if let Some((name, expires_in)) = self.permit {
            put(out, format_args!(r#""permit":"{name}","expires_in_ms":{},"#, millis(expires_in)));
        }
        members(out, self.status.decision(), decided);
        if let Some(waited) = self.waited {
            put(out, format_args!(r#","waited_ms":{}"#, millis(waited)));
        }
        if self.is_set {
            out.push_str(r#","statuses":["#);
            for (index, status) in self.status.statuses().iter().enumerate() {
                out.push_str(if index == 0 { "{" } else { ",{" });
                members(out, status.decision(), status);
                out.push('}');
            }
            out.push(']');
        }
        out.push('}');
    }
}

/// The charge that a set is told of as a whole: the one that refuses or waits longest, or else the one with least left.
fn decisive(set: &SetStatus) -> &Status {
    let statuses = set.statuses();
    let told = |status: &&Status| status.decision() == set.decision();
    let first = match (set.denied_by(), set.decision()) {
        (Some(place), _) => statuses.get(place),
        (None, Decision::Wait(_)) => statuses.iter().find(told),
        (None, _) => statuses.iter().min_by_key(|status| status.remaining()),
    };
    static NONE: std::sync::LazyLock<Status> =
        std::sync::LazyLock::new(|| Status::new(Decision::Allow, 0, 0, Some(Duration::ZERO)));
    // There is always one: nobody can ask for no charge.
    first.or_else(|| statuses.first()).unwrap_or(&NONE)
}

fn members(out: &mut String, decision: Decision, status: &Status) {
    let (allow, wait) = match decision {
        Decision::Allow => (true, Duration::ZERO),
        Decision::Wait(wait) => (true, wait),
        Decision::Deny(_) => (false, Duration::ZERO),
    };
    let (limit, remaining) = (status.limit(), status.remaining());
    let wait = millis(wait);
    put(
        out,
        format_args!(
            r#""allow":{allow},"wait_ms":{wait},"limit":{limit},"remaining":{remaining},"reset_after_ms":"#
        ),
    );
    match status.reset_after() {
        Some(after) => put(out, format_args!("{}", millis(after))),
        None => out.push_str("null"),
    }
    out.push_str(r#","retry_after_ms":"#);
    match decision {
        Decision::Allow | Decision::Wait(_) => out.push('0'),
        Decision::Deny(Retry::After(after)) => put(out, format_args!("{}", millis(after))),
        Decision::Deny(Retry::WhenReleased) => out.push_str(r#"null,"retry":"when_released""#),
        Decision::Deny(Retry::Never) => out.push_str(r#"null,"retry":"never""#),
    }
    out.push_str(r#","decided_by":""#);
    out.push_str(status.decided_by().as_str());
    out.push('"');
}

fn put(out: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = out.write_fmt(text);
}

/// Rounded up, as every hint is: who comes back then is not early.
pub(super) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}

/// What `Retry-After` says, which never says 0.
fn whole_seconds(time: Duration) -> u64 {
    time.as_secs().saturating_add(u64::from(time.subsec_nanos() > 0)).max(1)
}
