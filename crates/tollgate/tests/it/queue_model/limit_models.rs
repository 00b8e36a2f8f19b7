//! Naive models of the limits, in whole nanoseconds and exact credits.
//!
//! They share no code with the library, only the definitions in its documentation, and favour plainness over speed: a log is a
//! list of uses, slots are a list of holders.

/// One limit, with its granted units and the end of its ban.
#[derive(Clone, Debug)]
pub(super) struct LimitModel {
    pub(super) kind: Kind,
    granted: u32,
    banned_until: u64,
}

#[derive(Clone, Debug)]
pub(super) enum Kind {
    Bucket(Bucket),
    Window(Window),
    Log(Log),
    Slots(Slots),
}

/// A token bucket on its credit line: a nanosecond earns `earn` credits, a unit costs `price`, and everything used is earned
/// when the line reaches `due`.
#[derive(Clone, Debug)]
pub(super) struct Bucket {
    pub(super) earn: u128,
    pub(super) price: u128,
    pub(super) burst: u32,
    due: u128,
}

/// A fixed window, aligned to the clock's zero or started by the first use.
#[derive(Clone, Debug)]
pub(super) struct Window {
    pub(super) limit: u32,
    pub(super) length: u64,
    pub(super) first_hit: bool,
    start: Option<u64>,
    used: u32,
}

/// The uses, each with its time.
#[derive(Clone, Debug)]
pub(super) struct Log {
    pub(super) limit: u32,
    pub(super) window: u64,
    uses: Vec<(u64, u32)>,
}

/// The holders of slots: which waiter, how many, until when.
#[derive(Clone, Debug)]
pub(super) struct Slots {
    pub(super) limit: u32,
    pub(super) max_hold: u64,
    holders: Vec<(usize, u32, u64)>,
}

impl LimitModel {
    pub(super) fn new(kind: Kind) -> Self {
        Self { kind, granted: 0, banned_until: 0 }
    }

    pub(super) fn capacity(&self) -> u32 {
        match &self.kind {
            Kind::Bucket(it) => it.burst,
            Kind::Window(it) => it.limit,
            Kind::Log(it) => it.limit,
            Kind::Slots(it) => it.limit,
        }
    }

    /// Whether the cost is above the capacity.
    pub(super) fn never_gives(&self, units: u32) -> bool {
        self.own(units) > self.capacity()
    }

    /// The earliest time from `from` on at which the cost fits, without further charges and returns.
    pub(super) fn room_at(&self, from: u64, units: u32) -> u64 {
        let (from, units) = (from.max(self.banned_until), self.own(units));
        match &self.kind {
            _ if units == 0 => from,
            Kind::Bucket(it) => it.room_at(from, units),
            Kind::Window(it) => it.room_at(from, units),
            Kind::Log(it) => it.room_at(from, units),
            Kind::Slots(it) => it.room_at(from, units),
        }
    }

    /// Charges units at `at` to a waiter that has been at the head of the queue since `from`.
    pub(super) fn charge(&mut self, from: u64, at: u64, units: u32, who: usize) {
        let own = self.own(units);
        self.granted -= units - own;
        let from = from.max(self.banned_until);
        match &mut self.kind {
            _ if own == 0 => {}
            Kind::Bucket(it) => it.charge(from, at, own),
            Kind::Window(it) => it.charge(at, own),
            Kind::Log(it) => {
                it.uses.retain(|(time, _)| time + it.window > at);
                it.uses.push((at, own));
            }
            Kind::Slots(it) => {
                it.holders.retain(|(.., until)| *until > at);
                it.holders.push((who, own, at + it.max_hold));
            }
        }
    }

    /// Whole units that remain.
    pub(super) fn remaining(&self, now: u64) -> u32 {
        let left = match &self.kind {
            Kind::Bucket(it) => it.remaining(now),
            Kind::Window(it) => it.limit.saturating_sub(it.used_at(now)),
            Kind::Log(it) => it.limit.saturating_sub(it.used_at(now)),
            Kind::Slots(it) => it.limit.saturating_sub(it.held_at(now)),
        };
        left + self.granted
    }

    pub(super) fn leave(&mut self, who: usize) {
        if let Kind::Slots(it) = &mut self.kind {
            it.holders.retain(|(holder, ..)| *holder != who);
        }
    }

    pub(super) fn reset(&mut self) {
        match &mut self.kind {
            Kind::Bucket(it) => it.due = 0,
            Kind::Window(it) => (it.start, it.used) = (None, 0),
            Kind::Log(it) => it.uses.clear(),
            Kind::Slots(it) => it.holders.clear(),
        }
    }

    pub(super) fn refund(&mut self, now: u64, units: u32) {
        match &mut self.kind {
            Kind::Bucket(it) => it.refund(now, units),
            Kind::Window(it) => {
                if it.is_open(now) {
                    it.used = it.used.saturating_sub(units);
                }
            }
            Kind::Log(it) => it.refund(now, units),
            Kind::Slots(_) => {}
        }
    }

    pub(super) fn grant(&mut self, units: u32) {
        self.granted += units;
    }

    pub(super) fn ban(&mut self, until: u64) {
        self.banned_until = until;
    }

    /// Changes the numbers and keeps what was consumed. The kind stays.
    pub(super) fn change(&mut self, now: u64, to: &Self) {
        match (&mut self.kind, &to.kind) {
            (Kind::Bucket(it), Kind::Bucket(to)) => *it = it.under(now, to),
            (Kind::Window(it), Kind::Window(to)) => it.limit = to.limit,
            (Kind::Log(it), Kind::Log(to)) => it.limit = to.limit,
            (Kind::Slots(it), Kind::Slots(to)) => (it.limit, it.max_hold) = (to.limit, to.max_hold),
            (one, other) => panic!("{one:?} does not become {other:?}"),
        }
    }

    fn own(&self, units: u32) -> u32 {
        units - units.min(self.granted)
    }
}

impl Bucket {
    pub(super) fn new(amount: u64, period: u64, burst: u32) -> Self {
        let divisor = common_divisor(amount, period);
        let (earn, price) = (u128::from(amount / divisor), u128::from(period / divisor));
        Self { earn, price, burst, due: 0 }
    }

    fn line(&self, at: u64) -> u128 {
        u128::from(at) * self.earn
    }

    fn credits(&self, units: u32) -> u128 {
        u128::from(units) * self.price
    }

    /// The time at which the credit line has earned the cost, rounded up to the nanosecond.
    fn paid_at(&self, units: u32) -> u64 {
        let line = (self.due + self.credits(units)).saturating_sub(self.credits(self.burst));
        u64::try_from(line.div_ceil(self.earn)).expect("within the clock")
    }

    fn room_at(&self, from: u64, units: u32) -> u64 {
        self.paid_at(units).max(from)
    }

    /// A waiter that waited for this bucket is charged at the exact point of the line where its cost fits, which may lie
    /// between two nanoseconds, so that no remainder is lost. Any other is charged at `at`.
    fn charge(&mut self, from: u64, at: u64, units: u32) {
        let waited_for_the_pace = at > from && at == self.paid_at(units);
        if !waited_for_the_pace {
            self.due = self.due.max(self.line(at));
        }
        self.due += self.credits(units);
    }

    fn remaining(&self, now: u64) -> u32 {
        let level = self.due.saturating_sub(self.line(now));
        u32::try_from(self.credits(self.burst).saturating_sub(level) / self.price).expect("within the burst")
    }

    fn refund(&mut self, now: u64, units: u32) {
        let line = self.line(now);
        self.due = self.due.max(line).saturating_sub(self.credits(units)).max(line);
    }

    /// Keeps the consumed fraction, rounded up.
    fn under(&self, now: u64, to: &Self) -> Self {
        let level = self.due.saturating_sub(self.line(now));
        let level = (level * to.credits(to.burst)).div_ceil(self.credits(self.burst));
        Self { due: to.line(now) + level, ..to.clone() }
    }
}

impl Window {
    pub(super) fn new(limit: u32, length: u64, first_hit: bool) -> Self {
        Self { limit, length, first_hit, start: None, used: 0 }
    }

    fn is_open(&self, at: u64) -> bool {
        self.start.is_some_and(|start| at < start + self.length)
    }

    fn used_at(&self, at: u64) -> u32 {
        if self.is_open(at) { self.used } else { 0 }
    }

    fn room_at(&self, from: u64, units: u32) -> u64 {
        let next = self.start.map_or(from, |start| start + self.length);
        if self.used_at(from) + units <= self.limit { from } else { next }
    }

    fn charge(&mut self, at: u64, units: u32) {
        if !self.is_open(at) {
            let start = if self.first_hit { at } else { at / self.length * self.length };
            (self.start, self.used) = (Some(start), 0);
        }
        self.used += units;
    }
}

impl Log {
    pub(super) fn new(limit: u32, window: u64) -> Self {
        Self { limit, window, uses: Vec::new() }
    }

    fn used_at(&self, at: u64) -> u32 {
        self.uses.iter().filter(|(time, _)| time + self.window > at).map(|(_, units)| units).sum()
    }

    fn room_at(&self, from: u64, units: u32) -> u64 {
        let leave = self.uses.iter().map(|(time, _)| time + self.window).filter(|time| *time > from);
        let mut times: Vec<u64> = std::iter::once(from).chain(leave).collect();
        times.sort_unstable();
        times.into_iter().find(|at| self.used_at(*at) + units <= self.limit).expect("the cost fits the limit")
    }

    fn refund(&mut self, now: u64, mut units: u32) {
        for (time, used) in self.uses.iter_mut().rev() {
            let back = if *time + self.window > now { units.min(*used) } else { 0 };
            *used -= back;
            units -= back;
        }
        self.uses.retain(|(_, used)| *used > 0);
    }
}

impl Slots {
    pub(super) fn new(limit: u32, max_hold: u64) -> Self {
        Self { limit, max_hold, holders: Vec::new() }
    }

    fn held_at(&self, at: u64) -> u32 {
        self.holders.iter().filter(|(.., until)| *until > at).map(|(_, units, _)| units).sum()
    }

    fn room_at(&self, from: u64, units: u32) -> u64 {
        let expire = self.holders.iter().map(|(.., until)| *until).filter(|time| *time > from);
        let mut times: Vec<u64> = std::iter::once(from).chain(expire).collect();
        times.sort_unstable();
        times.into_iter().find(|at| self.held_at(*at) + units <= self.limit).expect("the cost fits the limit")
    }
}

fn common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { common_divisor(b, a % b) }
}
