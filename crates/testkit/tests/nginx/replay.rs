//! What nginx logged, put to our leaky bucket at the same times.
//!
//! nginx's `burst=b` is our capacity `b + 1`, since it does not count the request that is being served; `delay=d` is
//! `d + 1` for the same reason; no `delay` is a delay after 1, and `nodelay` is none.
//!
//! How exact: nginx counts in whole milliseconds of its monotonic clock and logs whole milliseconds of the other, so a
//! logged time is the one it decided by within 1 ms, and a level within 2 ms of draining. So that is how far a request
//! may be from the line and still fall on the other side of it, and how far apart the levels may be. Nothing adds up
//! over time, since an error in a request's time is made good by the next. That holds for rates of whole thousandths of a
//! request a millisecond, as all here are; others nginx rounds.

use std::{collections::HashMap, time::Duration};
use testkit::{Excess, Logged};
use tollgate::{
    Bounds, Charge, Clock, Decision, Delay, LeakyBucket, LimitHandle, ManualClock, MemoryStore, Rate, Retry,
    SetStatus, Time,
};

/// How far nginx's times are from those it decided by.
const GRAIN: Duration = Duration::from_millis(2);

const MILLI: Duration = Duration::from_millis(1);

/// How late a timer and an answer may be on a machine that is busy with other things. Generous, since by how much nginx
/// means to delay is in its error log, to the millisecond.
const LATE: Duration = Duration::from_secs(1);

/// `limit_req` as nginx writes it.
#[derive(Clone, Copy)]
pub(crate) struct Zone {
    pub(crate) name: &'static str,
    /// Requests a second.
    pub(crate) rate: u32,
    pub(crate) burst: u32,
    pub(crate) delay: NginxDelay,
}

#[derive(Clone, Copy)]
pub(crate) enum NginxDelay {
    /// Nothing is written.
    Unsaid,
    /// `delay=`
    After(u32),
    /// `nodelay`
    None,
}

impl Zone {
    /// As our limit.
    pub(crate) fn limit(self) -> LeakyBucket {
        let delay = match self.delay {
            NginxDelay::Unsaid => Delay::After(1),
            NginxDelay::After(count) => Delay::After(count + 1),
            NginxDelay::None => Delay::None,
        };
        let bucket = LeakyBucket::new(Rate::per_second(self.rate).unwrap(), self.burst + 1).unwrap();
        bucket.with_delay(delay).unwrap()
    }

    /// How long a bucket as full as can be takes to drain.
    fn drain(self) -> Duration {
        Duration::from_secs(1) * (self.burst + 1) / self.rate
    }

    /// How long nginx delays whoever has this excess, in thousandths.
    fn delay_of(self, excess: u64) -> Duration {
        let at_once = match self.delay {
            NginxDelay::Unsaid => 0,
            NginxDelay::After(count) => u64::from(count) * 1_000,
            NginxDelay::None => u64::MAX,
        };
        Duration::from_millis(excess.saturating_sub(at_once) / u64::from(self.rate))
    }
}

/// How many of each there were, for a test to say that it saw some.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) passed: usize,
    pub(crate) delayed: usize,
    pub(crate) refused: usize,
    /// Those so near the line that the other side would be right too.
    pub(crate) on_the_line: usize,
}

/// Puts requests to our limits, by where they came from, and panics where one fares otherwise than nginx says.
#[track_caller]
pub(crate) fn assert_same(zones: &[Zone], logged: &[Logged], excesses: &[Excess]) -> Counts {
    let said: HashMap<u64, &Excess> = excesses.iter().map(|excess| (excess.connection, excess)).collect();
    let mut lines: Vec<&Logged> = logged.iter().collect();
    // At one instant whoever fared better was first.
    lines.sort_by_key(|line| {
        let excess = said.get(&line.connection).map_or(0, |said| said.thousandths);
        (line.arrived, verdict(line) == "REJECTED", excess)
    });
    let mut model = Model::new(zones, lines[0].arrived);
    for line in lines {
        model.put(line, said.get(&line.connection).copied());
    }
    model.counts
}

/// Without whether it was a dry run.
fn verdict(line: &Logged) -> &str {
    let status = line.limit_req.as_deref().unwrap_or("-");
    status.strip_suffix("_DRY_RUN").unwrap_or(status)
}

struct Model<'a> {
    zones: &'a [Zone],
    limits: Vec<LimitHandle>,
    store: MemoryStore<ManualClock>,
    begun: Duration,
    counts: Counts,
}

impl<'a> Model<'a> {
    fn new(zones: &'a [Zone], begun: Duration) -> Self {
        let bounds = Bounds { max_keys: 1_000, ..Bounds::default() };
        let store = MemoryStore::with_clock(bounds, ManualClock::new());
        let limits = zones.iter().map(|zone| store.add("limits", zone.limit()).unwrap()).collect();
        Self { zones, limits, store, begun, counts: Counts::default() }
    }

    #[track_caller]
    fn put(&mut self, line: &Logged, said: Option<&Excess>) {
        let at = line.arrived - self.begun;
        self.move_to(at);
        let limits = self.limits.clone();
        let charges: Vec<Charge<'_>> =
            limits.iter().map(|limit| Charge::new(limit, line.from.as_str())).collect();
        match verdict(line) {
            "REJECTED" => self.refused(&charges, line, said.expect("nginx says by how much it refuses")),
            "DELAYED" => {
                let said = said.expect("nginx says by how much it delays");
                let (set, wait) = self.taken(&charges, line, at);
                let place = self.place_of(said);
                let zone = self.zones[place];
                let level = set.statuses()[place].reset_after().unwrap_or_default();
                assert_near(zone, level, said, line);
                // A millisecond more, since nginx rounds down.
                let delay = zone.delay_of(said.thousandths);
                let apart = wait.abs_diff(delay);
                assert!(apart <= GRAIN + MILLI, "ours waits {wait:?}, nginx {delay:?}: {line:?}");
                self.counts.delayed += 1;
            }
            "PASSED" => {
                let (_, wait) = self.taken(&charges, line, at);
                assert!(wait <= GRAIN, "nginx passed {line:?}; ours waits {wait:?}");
                self.counts.passed += 1;
            }
            _ => panic!("no limit applied: {line:?}"),
        }
    }

    /// Charges for a request that nginx took, and says how long it waits.
    #[track_caller]
    fn taken(&mut self, charges: &[Charge<'_>], line: &Logged, at: Duration) -> (SetStatus, Duration) {
        // One that is on the line came a little later than logged.
        if let Decision::Deny(Retry::After(after)) = self.store.peek(charges).unwrap().decision() {
            assert!(after <= GRAIN, "nginx took {line:?}; ours refuses, and would for {after:?} to come");
            self.counts.on_the_line += 1;
            self.move_to(at + after);
        }
        let set = self.store.check(charges).unwrap();
        let wait = match set.decision() {
            Decision::Allow => Duration::ZERO,
            Decision::Wait(wait) => wait,
            Decision::Deny(_) => panic!("refused after its own hint: {line:?}"),
        };
        if line.limit_req.as_deref() == Some(verdict(line)) {
            let is_close = line.took + GRAIN >= wait && line.took <= wait + LATE;
            assert!(is_close, "ours waits {wait:?}, nginx took {:?}: {line:?}", line.took);
        }
        (set, wait)
    }

    #[track_caller]
    fn refused(&mut self, charges: &[Charge<'_>], line: &Logged, said: &Excess) {
        let set = self.store.peek(charges).unwrap();
        let place = self.place_of(said);
        let (zone, status) = (self.zones[place], &set.statuses()[place]);
        match status.retry_after() {
            Some(missing) => {
                // What it would be at if it had passed: as full as can be, and what is missing for that.
                assert_near(zone, zone.drain() + missing, said, line);
                self.counts.refused += 1;
            }
            None => {
                let level = status.reset_after().unwrap_or_default();
                assert!(zone.drain() <= level + GRAIN, "nginx refused {line:?}; ours takes it: {status:?}");
                self.counts.on_the_line += 1;
            }
        }
    }

    fn place_of(&self, said: &Excess) -> usize {
        self.zones.iter().position(|zone| zone.name == said.zone).expect("a zone of this test's")
    }

    fn move_to(&self, at: Duration) {
        let at = Time::from_nanos(u64::try_from(at.as_nanos()).unwrap());
        let clock = self.store.clock();
        clock.set(at.max(clock.now()));
    }
}

/// A level that takes so long to drain is what nginx says: thousandths above the one request that is being served.
#[track_caller]
fn assert_near(zone: Zone, level: Duration, said: &Excess, line: &Logged) {
    let nginx = MILLI * u32::try_from(said.thousandths + 1_000).unwrap() / zone.rate;
    let apart = nginx.abs_diff(level);
    assert!(apart <= GRAIN, "ours drains in {level:?}, nginx's in {nginx:?}: {said:?}, {line:?}");
}
