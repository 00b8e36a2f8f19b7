//! Whether refusals were called for: a limiter that admits too little keeps every bound.
//!
//! Soundly again: a refusal is called needless only if all that may have been in use at that moment would have left room.

use crate::{
    bounds::Bound,
    clock::ServerClock,
    history::{Ask, Told},
    kinds::DEAREST,
};

/// Of what a rate gives between two refusals, this much must have been used.
const AT_LEAST: f64 = 0.99;

/// Looks at every refusal of the exact store, where anything can be said; and says what.
pub(crate) fn verify(bound: Bound, asks: &[&Ask], clock: ServerClock) -> Result<Option<String>, String> {
    match bound {
        Bound::Line { burst, a_second } => return by_rate(asks, burst, a_second),
        // While it warms up, and between steps, only the model knows what is given.
        Bound::Starts { burst, .. } if burst <= DEAREST as f64 => return Ok(None),
        Bound::Steps { .. } | Bound::Weighed { .. } => return Ok(None),
        Bound::Starts { burst, a_second, booked } => {
            return by_rate(asks, if booked.is_finite() { booked } else { burst }, a_second);
        }
        Bound::Log { limit, window, precision } => within(asks, limit, window + precision)?,
        Bound::Windows { limit, window, aligned: true } => in_window(asks, limit, window, clock)?,
        Bound::Windows { limit, window, aligned: false } => within(asks, limit, window)?,
        Bound::Slots { limit } => in_flight(asks, limit)?,
    }
    Ok(Some("no refusal needless".to_owned()))
}

/// At two refusals less was left than one charge costs: in between all that the rate gave was used, but for that. Unless the
/// bucket was full meanwhile, and overflowed: so this looks at the longest time in which refusals came too soon for that.
fn by_rate(asks: &[&Ask], burst: f64, a_second: f64) -> Result<Option<String>, String> {
    let fills_in = (burst * 1e9 / a_second) as u64;
    let refused = asks.iter().filter(|ask| ask.told == Told::Deny).copied().collect::<Vec<&Ask>>();
    let in_time = |one: &&Ask, next: &&Ask| next.answered.saturating_sub(one.asked) < fills_in / 2;
    let span = |run: &[&Ask]| match run {
        [first, .., last] => (first.answered, last.asked.max(first.answered)),
        _ => (0, 0),
    };
    let longest = refused.chunk_by(in_time).map(span).max_by_key(|(first, last)| last - first);
    let Some((first, last)) = longest.filter(|(first, last)| last > first) else { return Ok(None) };
    let given = a_second * (last - first) as f64 / 1e9;
    let passed = asks.iter().filter(|ask| ask.passed() && ask.answered >= first && ask.asked <= last);
    let used: u64 = passed.map(|ask| ask.cost).sum();
    if (used + DEAREST) as f64 <= AT_LEAST * given {
        return Err(format!(
            "TOO FEW: {used} units passed between two refusals, where {given:.0} were given"
        ));
    }
    Ok(Some(format!("{:.1}% of the rate", used as f64 * 100.0 / given)))
}

fn within(asks: &[&Ask], limit: f64, counts_for: u64) -> Result<(), String> {
    each_refusal(asks, limit, |refused, passed| {
        passed.answered + counts_for >= refused.asked && passed.asked <= refused.answered
    })
}

fn in_window(asks: &[&Ask], limit: f64, window: u64, clock: ServerClock) -> Result<(), String> {
    let index = |at: u64, ahead: u64| (at + ahead) / window;
    each_refusal(asks, limit, |refused, passed| {
        index(passed.answered, clock.most) >= index(refused.asked, clock.least)
            && index(passed.asked, clock.least) <= index(refused.answered, clock.most)
    })
}

fn in_flight(asks: &[&Ask], limit: u64) -> Result<(), String> {
    each_refusal(asks, limit as f64, |refused, passed| {
        passed.asked <= refused.answered && passed.left.is_none_or(|(_, left)| left >= refused.asked)
    })
}

/// `may_count` says whether what passed may have counted when the other was refused.
fn each_refusal(asks: &[&Ask], limit: f64, may_count: impl Fn(&Ask, &Ask) -> bool) -> Result<(), String> {
    let passed: Vec<&&Ask> = asks.iter().filter(|ask| ask.passed()).collect();
    for refused in asks.iter().filter(|ask| ask.told == Told::Deny) {
        let counting = passed.iter().filter(|passed| may_count(refused, passed));
        let sum: u64 = counting.map(|passed| passed.cost).sum();
        if (sum + refused.cost) as f64 <= limit {
            return Err(format!(
                "TOO FEW: {} units were refused when at most {sum} of {limit} were used",
                refused.cost
            ));
        }
    }
    Ok(())
}
