//! What nginx writes about a request, read back.

use crate::arrivals::NUMBER;
use std::time::Duration;

/// A line of the access log: words, and last what may hold anything.
pub(super) const FORMAT: &str = "$msec $request_time $status $limit_req_status $limit_conn_status \
     $body_bytes_sent $connection $remote_addr $http_x_arrival $request_uri";

/// A request as nginx logged it.
///
/// nginx reads the clock once every turn of its loop, in whole milliseconds; all its times are these.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Logged {
    /// Its place in the schedule that was played, if it came from one.
    pub number: Option<usize>,
    /// When nginx began to read it (`$msec` less `$request_time`), since 1970.
    pub arrived: Duration,
    /// From then until the answer was written (`$request_time`).
    pub took: Duration,
    /// As in 200.
    pub status: u16,
    /// `$limit_req_status`, as in `DELAYED`; none where no limit applied.
    pub limit_req: Option<String>,
    /// `$limit_conn_status`, as in `PASSED`; none where no limit applied, or one on requests refused first.
    pub limit_conn: Option<String>,
    /// How much of the body went.
    pub bytes: u64,
    /// The connection it came on, as nginx counts them.
    pub connection: u64,
    /// Where it came from.
    pub from: String,
    /// Path and query.
    pub target: String,
}

/// By how much a request was above what passes at once, in nginx's own words and units.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Excess {
    /// The connection it came on, as nginx counts them.
    pub connection: u64,
    /// In thousandths of a request.
    pub thousandths: u64,
    /// The limit.
    pub zone: String,
}

impl Logged {
    pub(super) fn parse(line: &str) -> Self {
        debug_assert!(FORMAT.contains(&NUMBER.replace('-', "_")));
        Self::words(line)
            .unwrap_or_else(|| panic!("not a line of nginx's log as we told it to write: {line:?}"))
    }

    fn words(line: &str) -> Option<Self> {
        let mut words = line.splitn(10, ' ');
        let mut next = || words.next();
        let unless_unset = |word: &str| (word != "-").then(|| word.to_owned());
        let ended = millis(next()?)?;
        let took = millis(next()?)?;
        Some(Self {
            arrived: ended.checked_sub(took)?,
            took,
            status: next()?.parse().ok()?,
            limit_req: unless_unset(next()?),
            limit_conn: unless_unset(next()?),
            bytes: next()?.parse().ok()?,
            connection: next()?.parse().ok()?,
            from: next()?.to_owned(),
            number: next()?.parse().ok(),
            target: next()?.to_owned(),
        })
    }
}

impl Excess {
    /// From a line of the error log, if it is one of those:
    /// `... *17 limiting requests, excess: 3.450 by zone "one", client: ...`.
    pub(super) fn parse(line: &str) -> Option<Self> {
        let (before, after) = line.split_once(", excess: ")?;
        let (_, connection) = before.rsplit_once('*')?;
        let (number, rest) = after.split_once(" by zone \"")?;
        Some(Self {
            connection: connection.split(' ').next()?.parse().ok()?,
            thousandths: number.trim_end_matches(',').replace('.', "").parse().ok()?,
            zone: rest.split('"').next()?.to_owned(),
        })
    }
}

/// `12.345` seconds.
fn millis(word: &str) -> Option<Duration> {
    let (seconds, thousandths) = word.split_once('.')?;
    let thousandths: u64 = (thousandths.len() == 3).then(|| thousandths.parse().ok())??;
    Some(Duration::from_secs(seconds.parse().ok()?) + Duration::from_millis(thousandths))
}
