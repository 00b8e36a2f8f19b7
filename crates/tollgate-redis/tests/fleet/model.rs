//! The same questions at the same times, asked of the memory store: what one machine that saw everything would have said.
//!
//! The server decided each at a moment that is not known, so that this is no proof of anything; but a fleet that passes
//! less than one machine at whichever of the possible times loses something, and totals say how much.

use crate::{clock::ServerClock, history::Ask, kinds::Kind, node::KEYS};
use std::time::Duration;
use tollgate::{Bounds, Charge, LimitHandle, ManualClock, MemoryStore, Time};

/// All windows of the fleet's limits begin at multiples of this.
const ALIGNED: u64 = 300_000_000;

/// How many units pass in memory, of all charges together: the least, of deciding when asked, when answered, and in between.
pub(crate) fn replay(kinds: &[Kind], asks: &[Ask], server: ServerClock) -> Result<u64, String> {
    let times: [fn(&Ask) -> u64; 3] = [|ask| ask.asked, Ask::middle, |ask| ask.answered];
    let mut least = u64::MAX;
    for time in times {
        least = least.min(replay_at(kinds, asks, server, time)?);
    }
    Ok(least)
}

fn replay_at(
    kinds: &[Kind],
    asks: &[Ask],
    server: ServerClock,
    time: fn(&Ask) -> u64,
) -> Result<u64, String> {
    let mut asks: Vec<&Ask> = asks.iter().collect();
    asks.sort_by_key(|ask| time(ask));
    let Some(first) = asks.first() else { return Ok(0) };
    // Limits are born with the first charge; what is aligned to 1970 is aligned to this as well.
    let begin = server.about(time(first));
    let base = begin - begin % ALIGNED;
    let clock = ManualClock::new();
    clock.set_wall(Duration::from_nanos(base));
    let bounds = Bounds { max_keys: 16, ..Bounds::default() };
    let store = MemoryStore::with_clock(bounds, clock.clone());
    let born = if kinds.iter().any(|kind| kind.patience.is_some()) { begin - base } else { 0 };
    clock.set(Time::from_nanos(born));
    let added: Result<Vec<LimitHandle>, _> =
        kinds.iter().map(|kind| store.add("limit", kind.limit.clone())).collect();
    let limits = added.map_err(|problem| problem.to_string())?;
    let mut units = 0;
    for ask in asks {
        let charge = |place: usize| {
            let charge = Charge::new(&limits[place], KEYS[place]).cost(u32::try_from(ask.cost).unwrap_or(1));
            kinds[place].patience.map_or(charge, |patience| charge.up_to(patience))
        };
        let charges: Vec<_> = (0..kinds.len()).filter(|place| ask.charges(*place)).map(charge).collect();
        let now = server.about(time(ask)) - base;
        clock.set(Time::from_nanos(now));
        let status = store.check(&charges).map_err(|problem| problem.to_string())?;
        if !status.is_deny() {
            units += ask.cost;
        }
    }
    Ok(units)
}
