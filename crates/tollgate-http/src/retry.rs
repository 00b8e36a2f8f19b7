//! When a refused request is told to come again.

use std::time::Duration;
use tollgate::{Retry, Status};

/// When a refused request may come again: `retry`, which is what its set was told, but not before the last of the charges
/// that refuse. `None` means never: it costs more than a limit can ever give.
///
/// A full concurrency limit cannot say when somebody leaves; then it is a second, the shortest that `Retry-After` can say.
#[must_use]
pub fn retry_after<'s>(retry: Retry, statuses: impl IntoIterator<Item = &'s Status>) -> Option<Duration> {
    let at_least = match retry {
        Retry::After(after) => after,
        Retry::WhenReleased => Duration::from_secs(1),
        Retry::Never => return None,
    };
    Some(statuses.into_iter().filter_map(Status::retry_after).fold(at_least, Duration::max))
}

/// Whole seconds, rounded up: what `Retry-After` says, except that it never says 0.
#[must_use]
pub const fn whole_seconds(time: Duration) -> u64 {
    match time.subsec_nanos() {
        0 => time.as_secs(),
        _ => time.as_secs().saturating_add(1),
    }
}

/// The seconds of `Retry-After`.
pub(crate) fn delay(after: Duration) -> u64 {
    whole_seconds(after).max(1)
}

/// Milliseconds, rounded up, for gRPC.
pub(crate) fn millis(after: Duration) -> u64 {
    u64::try_from(after.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tollgate::Decision;

    fn deny(retry: Retry) -> Status {
        Status::new(Decision::Deny(retry), 1, 0, None)
    }

    #[test]
    fn nobody_is_told_to_come_early_or_at_once() {
        assert_eq!(whole_seconds(Duration::from_nanos(1)), 1);
        assert_eq!(whole_seconds(Duration::from_secs(7)), 7);
        assert_eq!(whole_seconds(Duration::new(7, 1)), 8);
        assert_eq!(delay(Duration::ZERO), 1);
        assert_eq!(millis(Duration::from_micros(1_001)), 2);
        assert_eq!(whole_seconds(Duration::MAX), u64::MAX);
        assert_eq!(millis(Duration::MAX), u64::MAX);
    }

    #[test]
    fn the_last_of_those_that_refuse_counts() {
        let minute = Duration::from_secs(60);
        let statuses = [deny(Retry::WhenReleased), deny(Retry::After(minute))];
        assert_eq!(retry_after(Retry::WhenReleased, &statuses), Some(minute));
        assert_eq!(retry_after(Retry::WhenReleased, &statuses[..1]), Some(Duration::from_secs(1)));
        assert_eq!(retry_after(Retry::Never, &statuses), None);
        assert_eq!(retry_after(Retry::After(2 * minute), &statuses), Some(2 * minute));
    }
}
