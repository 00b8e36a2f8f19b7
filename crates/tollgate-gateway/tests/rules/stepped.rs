//! A schedule of requests, played to the gateway on a clock that moves from one event to the next.
//!
//! The clock moves when everything has come to rest: each request is answered, with the upstream, or in its place in the queue. So
//! every request meets the limits at the time that its schedule says, however busy the machine is, and its outcome is exact.

use crate::stage::Stage;
use std::{
    collections::BTreeMap,
    num::NonZeroUsize,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    thread,
    time::Duration,
};
use testkit::{Arrival, Arrivals, Canned, Fate, Upstream, eventually};
use tollgate::{Bounds, Charge, Clock, Decision, Key, ManualClock, MemoryStore, Time, Timer};

/// What becomes of each request, in front of an upstream that takes so long for each. Every named limit of the rules has to apply
/// to every request: the one called `all` to all of them together, others by address.
#[track_caller]
pub(crate) fn play_ours(rules: &str, schedule: &Arrivals, takes: Duration) -> Vec<Fate> {
    let clock = ManualClock::new();
    let pauses = Arc::new(AtomicUsize::new(0));
    let up = Upstream::start_by(move |_| Canned::text("ok\n").after(takes), {
        let (clock, pauses) = (clock.clone(), Arc::clone(&pauses));
        move |time| {
            let sleep = clock.sleep_until(clock.now() + time);
            pauses.fetch_add(1, SeqCst);
            sleep
        }
    });
    let store = MemoryStore::with_clock(Bounds::default(), clock.clone());
    let stage = Stage::with(Arc::new(store), rules, NonZeroUsize::MAX, up);
    let events = BTreeMap::new();
    let mut play = Play { stage: &stage, clock, pauses, takes, events, inside: 0, through: 0 };
    let mut order: Vec<_> = schedule.iter().enumerate().collect();
    order.sort_by_key(|(_, arrival)| arrival.due());

    thread::scope(|scope| {
        let mut asked = Vec::new();
        for (number, arrival) in order {
            play.run_until(arrival.due());
            let next = play.next(arrival);
            let asking = scope.spawn(|| stage.ask(arrival.clone().at_once()).status());
            let fate = match next {
                Decision::Allow => {
                    play.enters(Duration::ZERO);
                    play.run_until(arrival.due());
                    Fate::Passed(takes)
                }
                Decision::Wait(wait) => {
                    play.enters(wait);
                    play.rests();
                    eventually("a place in the queue", || (play.next(arrival) != next).then_some(()));
                    Fate::Passed(wait + takes)
                }
                Decision::Deny(_) => {
                    eventually("a refusal", || asking.is_finished().then_some(()));
                    play.rests();
                    Fate::Refused
                }
            };
            asked.push((number, fate, asking));
        }
        play.run_until(Duration::MAX);
        asked.sort_by_key(|(number, ..)| *number);
        let fates = asked.into_iter().map(|(number, fate, asking)| {
            let expected = if fate == Fate::Refused { 429 } else { 200 };
            assert_eq!(asking.join().expect("an answer"), expected, "request {number}");
            fate
        });
        fates.collect()
    })
}

struct Play<'a> {
    stage: &'a Stage,
    clock: ManualClock,
    /// How many answers of the upstream are, or were, waited for.
    pauses: Arc<AtomicUsize>,
    takes: Duration,
    /// How many requests reach the upstream, and how many are answered, at a time.
    events: BTreeMap<Duration, (usize, usize)>,
    /// Requests in the gateway, and those that have reached the upstream.
    inside: usize,
    through: usize,
}

impl Play<'_> {
    /// What the limits say of one more request like this.
    fn next(&self, arrival: &Arrival) -> Decision {
        let rules = self.stage.decisions.rules();
        let address = arrival.source().to_string();
        let limits = rules.program().file().limits.iter().enumerate().map(|(place, limit)| {
            let key = if limit.name == "all" { Key::All } else { Key::Text(&address) };
            (rules.at(place, key).clone(), key)
        });
        let limits: Vec<_> = limits.collect();
        let charges: Vec<_> = limits.iter().map(|(limit, key)| Charge::new(limit, *key)).collect();
        self.stage.decisions.store().peek(&charges).expect("an answer").decision()
    }

    /// One more request is in the gateway, and will reach the upstream after this wait.
    fn enters(&mut self, wait: Duration) {
        self.inside += 1;
        self.events.entry(self.now() + wait).or_default().0 += 1;
    }

    /// Moves the clock to this time, from one event to the next. Nothing may happen sooner or later than its time.
    #[track_caller]
    fn run_until(&mut self, until: Duration) {
        while let Some(event) = self.events.first_entry().filter(|event| *event.key() <= until) {
            let (at, (reach, end)) = event.remove_entry();
            self.move_to(at);
            self.inside -= end;
            self.through += reach;
            if self.takes.is_zero() {
                self.inside -= reach;
            } else if reach > 0 {
                self.events.entry(at + self.takes).or_default().1 += reach;
            }
            self.rests();
        }
        if until < Duration::MAX {
            self.move_to(until);
        }
    }

    /// Waits until every request is where it has to be by now.
    #[track_caller]
    fn rests(&self) {
        self.stage.stands(self.inside, self.through);
        let pauses = if self.takes.is_zero() { 0 } else { self.through };
        eventually("the upstream to take its time", || (self.pauses.load(SeqCst) == pauses).then_some(()));
    }

    fn move_to(&self, at: Duration) {
        self.clock.advance(at - self.now());
    }

    fn now(&self) -> Duration {
        self.clock.now() - Time::ZERO
    }
}
