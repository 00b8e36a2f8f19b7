//! What a node holds and knows of one bucket: leases, demand, a refusal, what the server said last.

use super::{
    call::{Answer, BucketId, LeaseId, Line, Settlement, Wish},
    demand::Demand,
    terms::Terms,
};
use std::time::Duration;
use tollgate::{Retry, Time};

/// One bucket, as a node sees it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Account {
    pub(super) bucket: BucketId,
    /// The one that ends first is spent first.
    leases: [Option<Held>; 2],
    demand: Demand,
    refusal: Option<Refusal>,
    known: Option<Known>,
    /// The wish that is under way, and since when: two at once would lease twice what is needed.
    wished: Option<(LeaseId, Time)>,
    /// When the last call was made.
    called: Time,
    /// When to look at it in the background.
    pub(super) look: Option<Time>,
    pub(super) touched: Time,
    /// Fewer units than this will not last until a call is answered.
    low: u32,
    /// What a set that is being decided would take, until it is.
    claimed: u32,
}

/// A lease that is held. It is spent from until it ends, is used up, or is settled.
#[derive(Clone, Copy, Debug)]
struct Held {
    lease: LeaseId,
    units: u32,
    used: u32,
    ends: Time,
}

/// What the server refused: as much, or more, would be refused again. When its time is over, one question finds out whether
/// there is room now, and until that is answered the refusal stands: otherwise everybody who comes during the round trip would
/// ask the same. It is forgotten when the server says that there is room for another.
#[derive(Clone, Copy, Debug)]
struct Refusal {
    cost: u32,
    until: Time,
    /// `None` where the cost never passes.
    retry: Option<Time>,
    /// When the question that finds out was asked.
    asked_again: Option<Time>,
    /// How long the server took to refuse.
    trip: Duration,
}

/// What the server said last.
#[derive(Clone, Copy, Debug)]
struct Known {
    limit: u32,
    remaining: u32,
    resets: Option<Time>,
}

/// How a bucket stands, as far as this node knows: what the server said last, and what is left of the leases here. What
/// other nodes did since is not in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Standing {
    pub(crate) limit: u32,
    pub(crate) remaining: u32,
    pub(crate) reset_after: Option<Duration>,
}

/// A key that needs fewer units than this in a period sees a caller or two during a call.
const FEW: u32 = 16;

/// When to come back where an answer is overdue.
const SOON: Duration = Duration::from_millis(1);

impl Held {
    const fn left(&self) -> u32 {
        self.units.saturating_sub(self.used)
    }

    const fn settlement(&self) -> Settlement {
        Settlement { lease: self.lease, used: self.used }
    }
}

impl Account {
    pub(super) fn new(bucket: BucketId, now: Time) -> Self {
        Self {
            bucket,
            leases: [None; 2],
            demand: Demand::new(now),
            refusal: None,
            known: None,
            wished: None,
            called: Time::ZERO,
            look: None,
            touched: now,
            low: 0,
            claimed: 0,
        }
    }

    /// Notes that somebody came for `cost`.
    #[inline]
    pub(super) fn note(&mut self, now: Time, cost: u32, terms: &Terms) {
        self.touched = now;
        self.demand.note(now, cost, terms.period());
    }

    /// Sets `cost` aside if leases cover it, beside what is set aside already.
    #[inline]
    pub(super) fn claim(&mut self, now: Time, cost: u32) -> bool {
        let covers = self.covers(now, cost);
        if covers {
            self.claimed = self.claimed.saturating_add(cost);
        }
        covers
    }

    /// Whether leases cover `cost`, beside what is set aside.
    #[inline]
    pub(super) fn covers(&self, now: Time, cost: u32) -> bool {
        // To ask for nothing is to ask how it stands, which is known while a lease is held.
        self.left(now) >= self.claimed.saturating_add(cost) && (cost > 0 || self.holds_live(now))
    }

    /// Spends what was set aside, the lease that ends first before the other. Says whether a renewal is due.
    #[inline]
    pub(super) fn spend(&mut self, now: Time, terms: &Terms) -> bool {
        let mut due = std::mem::take(&mut self.claimed);
        let mut left = 0;
        for held in self.leases.iter_mut().flatten().filter(|held| now < held.ends) {
            let taken = due.min(held.left());
            held.used += taken;
            due -= taken;
            left += held.left();
        }
        left < self.low && now - self.called >= terms.period() && self.look.is_none_or(|look| look > now)
    }

    /// Spends a sixty-fourth of the lease that is spent from, where that is more than a few units.
    pub(super) fn take_ahead(&mut self, now: Time, terms: &Terms) -> Option<(u32, Time)> {
        let held = self.leases.iter_mut().flatten().find(|held| now < held.ends && held.left() > 0)?;
        let units = (held.left() / 64).min(1_024);
        if units < FEW {
            return None;
        }
        held.used += units;
        let until = held.ends;
        self.note(now, units, terms);
        Some((units, until))
    }

    /// Lets go of what was set aside.
    pub(super) const fn unclaim(&mut self) {
        self.claimed = 0;
    }

    /// When the refusal that is remembered ends, if it covers `cost`. A larger cost than the one that was refused has to wait
    /// at least as long.
    pub(super) fn refuses(&self, now: Time, cost: u32, terms: &Terms) -> Option<Retry> {
        let refusal = self.refusal.filter(|it| cost > 0 && cost >= it.cost)?;
        if self.known.is_some_and(|known| cost > known.limit) {
            return Some(Retry::Never);
        }
        if now < refusal.until {
            return Some(refusal.retry.map_or(Retry::Never, |at| Retry::After(at - now)));
        }
        // A caller that was dropped never says what became of its question; a lease's life is the longest it can hold up.
        let asked = refusal.asked_again.filter(|asked| now - *asked < terms.life())?;
        Some(Retry::After((asked + refusal.trip - now).max(SOON)))
    }

    /// Forgets a refusal: something happened here that may have made room.
    pub(super) const fn forget_refusal(&mut self) {
        self.refusal = None;
    }

    pub(super) fn standing(&self, now: Time) -> Option<Standing> {
        let known = self.known?;
        Some(Standing {
            limit: known.limit,
            remaining: known.remaining.saturating_add(self.left(now)).min(known.limit),
            reset_after: known.resets.map(|at| at - now),
        })
    }

    /// The line of an exact question: what is used up is settled on the way, and a hot key wishes for a lease.
    pub(super) fn question(&mut self, now: Time, cost: u32, id: LeaseId, terms: &Terms) -> Line {
        self.drop_ended(now);
        let settle = self.settle_where(|held| held.left() == 0);
        let enough = self.enough(now, terms);
        self.called = now;
        if let Some(refusal) = self.refusal.as_mut().filter(|it| cost >= it.cost && now >= it.until) {
            refusal.asked_again = Some(now);
        }
        Line { bucket: self.bucket, cost, settle, wish: self.wish(now, enough, id, terms) }
    }

    /// What to call for in the background, if anything; and when to look again.
    pub(super) fn renewal(&mut self, now: Time, id: LeaseId, terms: &Terms) -> Option<Line> {
        self.drop_ended(now);
        self.look = None;
        if !self.holds_live(now) {
            return None;
        }
        self.look = Some(now + terms.period());
        let enough = self.enough(now, terms);
        // What would end before the next look goes back now, and so does everything when nobody comes any more.
        let goes = |held: &Held| held.left() == 0 || held.ends - now < terms.period() || enough == 0;
        let gives_back = self.leases.iter().flatten().any(|held| goes(held) && held.left() > 0);
        let kept: u32 = self.leases.iter().flatten().filter(|held| !goes(held)).map(Held::left).sum();
        // Half will do until the next look. But then the last lease may have to go before another is there, and whoever comes
        // during that call must ask: a few may, the callers of a hot key may not.
        let will_do = if enough < FEW { enough.div_ceil(2) } else { enough };
        if !gives_back && kept >= will_do {
            return None;
        }
        let settle = self.settle_where(goes);
        let wish = self.wish(now, enough, id, terms);
        let line = Line { bucket: self.bucket, cost: 0, settle, wish };
        if !line.is_something() {
            return None;
        }
        self.called = now;
        Some(line)
    }

    /// Takes in how a line was answered, and returns a lease that cannot be had any more.
    pub(super) fn answered(
        &mut self,
        line: &Line,
        asked: Time,
        now: Time,
        answer: &Answer,
        terms: &Terms,
    ) -> Option<Settlement> {
        self.known = Some(Known {
            limit: answer.limit,
            remaining: answer.remaining,
            resets: answer.reset_after.map(|after| now + after),
        });
        match answer.denied {
            // Somebody may leave at any moment: nothing to remember.
            Some(Retry::WhenReleased) => {}
            Some(retry) => {
                let retry = if let Retry::After(after) = retry { Some(now + after) } else { None };
                let longest = now + terms.life();
                let until = retry.map_or(longest, |at| at.min(longest));
                let trip = now - asked;
                self.refusal = Some(Refusal { cost: line.cost, until, retry, asked_again: None, trip });
            }
            None if line.cost > 0 => {
                // Who got the last unit has not made room: the next asks by itself again.
                self.refusal = self.refusal.filter(|it| answer.remaining < it.cost);
                if let Some(refusal) = &mut self.refusal {
                    (refusal.until, refusal.asked_again, refusal.trip) = (now, None, now - asked);
                }
            }
            None => {}
        }
        let wish = line.wish?;
        self.wish_is_over(wish.lease);
        if answer.leased == 0 {
            return None;
        }
        let ends = Terms::ends(asked, answer.life);
        let held = Held { lease: wish.lease, units: answer.leased, used: 0, ends };
        self.drop_ended(now);
        match self.leases.iter_mut().find(|place| place.is_none()) {
            Some(place) if now < ends => *place = Some(held),
            _ => return Some(held.settlement()),
        }
        self.leases.sort_by_key(|place| place.map_or(Time::END, |held| held.ends));
        let next = self.called + terms.period();
        self.look = Some(self.look.map_or(next, |look| look.min(next)).max(now));
        None
    }

    /// A line that was not answered. What it wished for may have been granted, and is never spent from.
    pub(super) fn failed(&mut self, line: &Line, asked: Time) {
        if let Some(wish) = line.wish {
            self.wish_is_over(wish.lease);
        }
        if let Some(refusal) = self.refusal.as_mut().filter(|it| it.asked_again == Some(asked)) {
            refusal.asked_again = None;
        }
    }

    fn wish_is_over(&mut self, lease: LeaseId) {
        if self.wished.is_some_and(|(wished, _)| wished == lease) {
            self.wished = None;
        }
    }

    /// Lets go of every lease.
    pub(super) fn close(&mut self, now: Time) -> Line {
        self.drop_ended(now);
        self.look = None;
        Line::giving_back(self.bucket, self.settle_where(|_| true))
    }

    /// What is left of the leases that may still be spent from.
    #[inline]
    fn left(&self, now: Time) -> u32 {
        let live = self.leases.iter().flatten().filter(|held| now < held.ends);
        live.fold(0, |sum, held| held.left().saturating_add(sum))
    }

    fn holds_live(&self, now: Time) -> bool {
        self.leases.iter().flatten().any(|held| now < held.ends)
    }

    fn enough(&mut self, now: Time, terms: &Terms) -> u32 {
        let enough = self.demand.enough(now, terms.period(), terms.life());
        self.low = enough / 4;
        enough
    }

    /// A lease of what is missing, unless one is wished for already or there is no place for it.
    fn wish(&mut self, now: Time, enough: u32, lease: LeaseId, terms: &Terms) -> Option<Wish> {
        let units = enough.saturating_sub(self.left(now));
        // A caller that was dropped never says what became of its wish; after a lease's life it no longer matters.
        let under_way = self.wished.is_some_and(|(_, since)| now - since < terms.life());
        if units == 0 || under_way || self.leases.iter().all(Option::is_some) {
            return None;
        }
        self.wished = Some((lease, now));
        Some(Wish { lease, units })
    }

    /// Takes leases out of the account, to be settled: from here on they are not spent from, whatever becomes of the call.
    fn settle_where(&mut self, goes: impl Fn(&Held) -> bool) -> [Option<Settlement>; 2] {
        self.leases.each_mut().map(|place| place.take_if(|held| goes(held)).map(|held| held.settlement()))
    }

    /// Those that ended count as used at the server, and can no longer be settled.
    fn drop_ended(&mut self, now: Time) {
        for place in &mut self.leases {
            place.take_if(|held| now >= held.ends);
        }
    }
}
