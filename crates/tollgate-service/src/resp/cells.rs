//! `CL.THROTTLE` and its kin, on cells.

use super::{
    answer::{LazySession, failed},
    command::Verb,
    parse::Request,
    reply::{Reply, echoed},
};
use std::time::Duration;
use tollgate::{Cells, Enter, Key, Throttle, Throttled};

pub(super) const USAGE: &str = "Cell error: Store error: Usage: cl.throttle <key> <max_burst> <count per period> <period> \
                                [<quantity>]";

/// `CL.THROTTLE key max_burst count period [quantity]`
pub(super) async fn throttle<S: Enter + Cells>(
    request: &Request<'_>,
    session: &mut LazySession<'_, S>,
    reply: &mut Reply<'_>,
) {
    if request.len() > 6 {
        return reply.error(USAGE);
    }
    let mut numbers = [0, 0, 0, 1];
    for (number, argument) in numbers.iter_mut().zip(request.from(2)) {
        match whole(argument) {
            Some(value) => *number = value,
            None => {
                let argument = echoed(argument);
                return reply
                    .error(&format!("Cell error: Store error: Couldn't parse as integer: {argument}"));
            }
        }
    }
    let [burst, count, period, quantity] = numbers;
    let unsigned = |number: i64| u64::try_from(number).unwrap_or(0);
    let Ok(asked) = Throttle::per(unsigned(count), Duration::from_secs(unsigned(period))) else {
        return reply.error("Cell error: Store error: Zero rates are not supported");
    };
    ask(request, &asked.burst(burst).quantity(quantity), session, reply).await;
}

/// `GCRA key max_burst tokens_per_period period [TOKENS n]`
pub(super) async fn gcra<S: Enter + Cells>(
    request: &Request<'_>,
    session: &mut LazySession<'_, S>,
    reply: &mut Reply<'_>,
) {
    match gcra_asked(request) {
        Ok(asked) => ask(request, &asked, session, reply).await,
        Err(why) => reply.error(why),
    }
}

fn gcra_asked(request: &Request<'_>) -> Result<Throttle, &'static str> {
    const NO_NUMBER: &str = "ERR value is not an integer or out of range";
    const NO_PERIOD: &str = "ERR period must be > 0 and < 1e12";
    let burst = whole(request.get(2)).filter(|burst| *burst >= 0).ok_or(NO_NUMBER)?;
    let count = whole(request.get(3)).and_then(|it| u64::try_from(it).ok()).filter(|it| *it > 0);
    let count = count.ok_or(NO_NUMBER)?;
    let period = std::str::from_utf8(request.get(4)).ok().and_then(|text| text.parse::<f64>().ok());
    let period = period.filter(|period| *period > 0.0 && *period < 1e12).ok_or(NO_PERIOD)?;
    let quantity = match request.len() {
        5 => 1,
        6 | 7 if !request.get(5).eq_ignore_ascii_case(b"TOKENS") => return Err("ERR syntax error"),
        6 => return Err("ERR Missing TOKENS value"),
        7 => whole(request.get(6)).filter(|it| *it >= 1).ok_or(NO_NUMBER)?,
        _ => return Err("ERR syntax error"),
    };
    // Nothing is shorter than what a period is told apart by.
    let period = Duration::from_secs_f64(period).max(Duration::from_micros(1));
    let asked = Throttle::per(count, period).map_err(|_| NO_PERIOD)?;
    Ok(asked.burst(burst).quantity(quantity))
}

async fn ask<S: Enter + Cells>(
    request: &Request<'_>,
    asked: &Throttle,
    session: &mut LazySession<'_, S>,
    reply: &mut Reply<'_>,
) {
    let key = Key::Bytes(request.get(1));
    match session.open().throttle(key, asked).await {
        Ok(told) => tell(&told, reply),
        Err(error) => failed(reply, &error),
    }
}

fn tell(told: &Throttled, reply: &mut Reply<'_>) {
    reply.array_of(
        5,
        [
            i64::from(!told.is_allow()),
            told.limit(),
            told.remaining(),
            told.retry_after().map_or(-1, seconds),
            seconds(told.reset_after()),
        ],
    );
}

/// `DEL` and `EXISTS`: how many of these keys `CL.THROTTLE` has charged.
pub(super) async fn count<S: Enter + Cells>(
    verb: Verb,
    request: &Request<'_>,
    session: &mut LazySession<'_, S>,
    reply: &mut Reply<'_>,
) {
    let session = session.open();
    let mut many = 0;
    for key in request.from(1) {
        let key = Key::Bytes(key);
        let found = match verb {
            Verb::Del => session.forget(key).await,
            _ => session.owing(key).await.map(|owing| owing.is_some()),
        };
        match found {
            Ok(found) => many += i64::from(found),
            Err(error) => return failed(reply, &error),
        }
    }
    reply.integer(many);
}

/// `TTL`, `PTTL` and `GET`: until when a key owes what `CL.THROTTLE` has charged. One question to the store.
pub(super) async fn owing<S: Enter + Cells>(
    verb: Verb,
    request: &Request<'_>,
    session: &mut LazySession<'_, S>,
    reply: &mut Reply<'_>,
) {
    match (verb, session.open().owing(Key::Bytes(request.get(1))).await) {
        (_, Err(error)) => failed(reply, &error),
        (Verb::Get, Ok(None)) => reply.null(),
        (Verb::Get, Ok(Some(owing))) => reply.bulk(owing.until.to_string().as_bytes()),
        (_, Ok(None)) => reply.integer(-2),
        (Verb::Ttl, Ok(Some(owing))) => reply.integer(seconds(owing.lasting)),
        (_, Ok(Some(owing))) => reply.integer(super::limits::millis(owing.lasting)),
    }
}

/// Whole seconds, rounded up: nobody is told to come early.
fn seconds(duration: Duration) -> i64 {
    let whole = duration.as_secs() + u64::from(duration.subsec_nanos() > 0);
    i64::try_from(whole).unwrap_or(i64::MAX)
}

/// A whole number in decimal, perhaps with a sign.
pub(super) fn whole(text: &[u8]) -> Option<i64> {
    // Most are short and plain; the rest is for whoever knows all the edges.
    plain(text).or_else(|| std::str::from_utf8(text).ok()?.parse().ok())
}

/// Digits and nothing else, so few that they cannot come to too much.
#[inline]
fn plain(text: &[u8]) -> Option<i64> {
    if !(1..=18).contains(&text.len()) {
        return None;
    }
    text.iter().try_fold(0, |number, byte| {
        let digit = byte.wrapping_sub(b'0');
        (digit < 10).then(|| number * 10 + i64::from(digit))
    })
}
