//! A node's ledger: its accounts by bucket, and what is due in the background.
//!
//! A local decision looks an account up and adds two numbers: it allocates nothing and touches no queue. Memory is bounded:
//! when an account is opened beyond the most there may be, eight others are looked at and the one that was idle longest is
//! closed, its leases given back. The eight go round, so that an account nobody comes for is found in time.

use super::{
    account::{Account, Standing},
    call::{Answer, BucketId, Call, LeaseId, Line, Need, Settlement},
    terms::Terms,
};
use std::{
    cmp::Reverse,
    collections::{BinaryHeap, HashMap},
    hash::{BuildHasherDefault, Hasher},
};
use tollgate::{Retry, Time};

/// What a node decides by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Local {
    /// Leases cover every need, and have been spent.
    Allow {
        /// Whether something became due in the background: wake whoever calls [`Ledger::due`].
        wake: bool,
    },
    /// The server refused this a moment ago.
    Deny(Retry),
    /// The server must say: [`Ledger::question`] has the call.
    Ask,
}

/// The leases of a node, and what it knows of the buckets it is asked for.
#[derive(Debug)]
pub(crate) struct Ledger {
    terms: Terms,
    accounts: Vec<Account>,
    places: HashMap<BucketId, usize, BuildHasherDefault<Hashed>>,
    /// When to look at which account; only the time that the account itself names counts.
    looks: BinaryHeap<Reverse<(Time, BucketId)>>,
    /// Leases of accounts that are closed, and those that came too late.
    orphans: Vec<Line>,
    next_lease: u64,
    hand: usize,
}

/// How many accounts are looked at for one to close.
const CANDIDATES: usize = 8;

impl Ledger {
    /// An empty ledger. Its leases are numbered from `seed`, which must be drawn at random each time a node starts.
    pub(crate) fn new(terms: Terms, seed: u64) -> Self {
        Self {
            terms,
            accounts: Vec::new(),
            places: HashMap::default(),
            looks: BinaryHeap::new(),
            orphans: Vec::new(),
            next_lease: seed,
            hand: 0,
        }
    }

    /// Decides what can be decided here: all of `needs`, or none. What is refused here was refused to somebody who would not
    /// wait; whoever may wait for a turn asks the server instead.
    pub(crate) fn decide(&mut self, now: Time, needs: &[Need]) -> Local {
        let (mut covered, mut known) = (true, true);
        let mut refused = None;
        for need in needs {
            let Some(account) = account(&mut self.accounts, &self.places, need.bucket) else {
                known = false;
                continue;
            };
            account.note(now, need.cost, &self.terms);
            if !account.claim(now, need.cost) {
                covered = false;
                refused = stricter(refused, account.refuses(now, need.cost, &self.terms));
            }
        }
        if covered && known {
            return Local::Allow { wake: self.spend(now, needs) };
        }
        for need in needs {
            if let Some(account) = account(&mut self.accounts, &self.places, need.bucket) {
                account.unclaim();
            }
        }
        // A refusal by one is a refusal of all, but somebody who never asked for the others would not know how they stand.
        refused.filter(|_| known).map_or(Local::Ask, Local::Deny)
    }

    /// How one of the needs of a set that was refused here is refused itself, if it is.
    pub(crate) fn refusal(&self, now: Time, need: &Need) -> Option<Retry> {
        let account = self.accounts.get(*self.places.get(&need.bucket)?)?;
        if account.covers(now, need.cost) { None } else { account.refuses(now, need.cost, &self.terms) }
    }

    /// Spends a part of what is left of a bucket's leases for somebody who will use it by and by: how much, and until when. Nothing
    /// where there is little.
    pub(crate) fn take_ahead(&mut self, now: Time, bucket: BucketId) -> Option<(u32, Time)> {
        account(&mut self.accounts, &self.places, bucket)?.take_ahead(now, &self.terms)
    }

    /// How a bucket stands, for the status of a charge that was decided here. `None` where the server was never asked.
    pub(crate) fn standing(&self, now: Time, bucket: BucketId) -> Option<Standing> {
        self.accounts.get(*self.places.get(&bucket)?)?.standing(now)
    }

    /// The call that asks the server, after [`decide`](Self::decide) said so. `needs` are merged: one a bucket.
    pub(crate) fn question(&mut self, now: Time, needs: &[Need]) -> Call {
        let mut lines = Vec::with_capacity(needs.len());
        for need in needs {
            let (terms, id) = (self.terms, self.draw());
            lines.push(self.open(now, need).question(now, need.cost, id, &terms));
        }
        Call { asked: now, lines }
    }

    /// Takes in the answers to a call, line by line.
    pub(crate) fn answered(&mut self, call: &Call, now: Time, answers: &[Answer]) {
        for (line, answer) in call.lines.iter().zip(answers) {
            let Some(account) = account(&mut self.accounts, &self.places, line.bucket) else {
                let granted = line.wish.filter(|_| answer.leased > 0);
                self.orphan(line.bucket, granted.map(|wish| Settlement { lease: wish.lease, used: 0 }));
                continue;
            };
            let before = account.look;
            let too_late = account.answered(line, call.asked, now, answer, &self.terms);
            if let Some(look) = account.look.filter(|look| before != Some(*look)) {
                self.looks.push(Reverse((look, line.bucket)));
            }
            self.orphan(line.bucket, too_late);
        }
    }

    /// Says that no answer to a call will be waited for. What it settled may not be settled and what it wished for may be
    /// granted: neither is spent from, and both end by themselves at the server.
    pub(crate) fn failed(&mut self, call: &Call) {
        for line in &call.lines {
            if let Some(account) = account(&mut self.accounts, &self.places, line.bucket) {
                account.failed(line, call.asked);
            }
        }
    }

    /// When [`due`](Self::due) has something to say. It may be a little early, never late; look again after a question, an
    /// answer, and a decision that says `wake`.
    pub(crate) fn next_due(&self) -> Option<Time> {
        if !self.orphans.is_empty() {
            return Some(Time::ZERO);
        }
        self.looks.peek().map(|Reverse((time, _))| *time)
    }

    /// The calls to make now, one a bucket: renewals, and what is given back.
    pub(crate) fn due(&mut self, now: Time) -> Vec<Call> {
        let mut lines = std::mem::take(&mut self.orphans);
        while let Some(Reverse((time, bucket))) = self.looks.peek().copied() {
            if time > now {
                break;
            }
            self.looks.pop();
            let (terms, id) = (self.terms, self.draw());
            let account = account(&mut self.accounts, &self.places, bucket);
            let Some(account) = account.filter(|account| account.look == Some(time)) else { continue };
            lines.extend(account.renewal(now, id, &terms));
            if let Some(look) = account.look {
                self.looks.push(Reverse((look, bucket)));
            }
        }
        lines.into_iter().map(|line| Call { asked: now, lines: vec![line] }).collect()
    }

    /// Forgets that a bucket refused: this node has refunded or raised something there.
    pub(crate) fn forget_refusal(&mut self, bucket: BucketId) {
        if let Some(account) = account(&mut self.accounts, &self.places, bucket) {
            account.forget_refusal();
        }
    }

    /// Closes one account, before this node resets its bucket. The line settles what it held.
    pub(crate) fn close(&mut self, now: Time, bucket: BucketId) -> Option<Line> {
        let place = *self.places.get(&bucket)?;
        let line = self.remove(now, place);
        line.is_something().then_some(line)
    }

    /// Closes every account: at the end, and when the rules have changed.
    pub(crate) fn drop_all(&mut self, now: Time) -> Vec<Call> {
        let mut lines = std::mem::take(&mut self.orphans);
        lines.extend(self.accounts.iter_mut().map(|account| account.close(now)));
        self.accounts.clear();
        self.places.clear();
        self.looks.clear();
        let given = lines.into_iter().filter(Line::is_something);
        given.map(|line| Call { asked: now, lines: vec![line] }).collect()
    }

    /// How many buckets are remembered.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.accounts.len()
    }

    fn spend(&mut self, now: Time, needs: &[Need]) -> bool {
        let mut wake = false;
        for need in needs {
            let Some(account) = account(&mut self.accounts, &self.places, need.bucket) else { continue };
            if account.spend(now, &self.terms) {
                account.look = Some(now);
                self.looks.push(Reverse((now, need.bucket)));
                wake = true;
            }
        }
        wake
    }

    /// The account of a bucket, made if there is none.
    fn open(&mut self, now: Time, need: &Need) -> &mut Account {
        if let Some(place) = self.places.get(&need.bucket) {
            return &mut self.accounts[*place];
        }
        if self.accounts.len() >= self.terms.most_buckets() {
            self.close_idle(now);
        }
        let place = self.accounts.len();
        self.places.insert(need.bucket, place);
        self.accounts.push(Account::new(need.bucket, now));
        let account = &mut self.accounts[place];
        account.note(now, need.cost, &self.terms);
        account
    }

    fn close_idle(&mut self, now: Time) {
        let count = self.accounts.len();
        let next = (0..CANDIDATES.min(count)).map(|step| (self.hand + step) % count);
        let idlest = next.min_by_key(|place| self.accounts[*place].touched);
        self.hand = (self.hand + CANDIDATES) % count;
        if let Some(place) = idlest {
            let line = self.remove(now, place);
            if line.is_something() {
                self.orphans.push(line);
            }
        }
    }

    fn remove(&mut self, now: Time, place: usize) -> Line {
        let mut account = self.accounts.swap_remove(place);
        self.places.remove(&account.bucket);
        if let Some(moved) = self.accounts.get(place) {
            self.places.insert(moved.bucket, place);
        }
        account.close(now)
    }

    fn orphan(&mut self, bucket: BucketId, settlement: Option<Settlement>) {
        if settlement.is_some() {
            self.orphans.push(Line::giving_back(bucket, [settlement, None]));
        }
    }

    fn draw(&mut self) -> LeaseId {
        self.next_lease = self.next_lease.wrapping_add(1);
        LeaseId(self.next_lease)
    }
}

/// Apart from the ledger, so that its other fields stay free.
#[inline]
fn account<'a>(
    accounts: &'a mut [Account],
    places: &HashMap<BucketId, usize, BuildHasherDefault<Hashed>>,
    bucket: BucketId,
) -> Option<&'a mut Account> {
    accounts.get_mut(*places.get(&bucket)?)
}

/// The longer refusal: never, then the longest.
fn stricter(one: Option<Retry>, other: Option<Retry>) -> Option<Retry> {
    match (one, other) {
        (Some(Retry::After(a)), Some(Retry::After(b))) => Some(Retry::After(a.max(b))),
        (Some(Retry::After(_)) | None, Some(other)) => Some(other),
        (one, _) => one,
    }
}

/// A bucket's id is a keyed hash already: its halves, folded, are as good as any hash of it.
#[derive(Default)]
pub(crate) struct Hashed(u64);

impl Hasher for Hashed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u128(&mut self, id: u128) {
        self.0 = (id >> 64) as u64 ^ id as u64;
    }
}
