//! What is asked of the script, and what it answers.
//!
//! How several travel in one call is in [`call`](crate::call).

use crate::{lease::Line, limit::Edition, numbers::Plain, packing::List, store::LONGEST_WAIT};
use redis::Value;
use smallvec::SmallVec;
use std::sync::Arc;

/// A question about some buckets.
#[derive(Debug)]
pub(crate) struct Question {
    pub(crate) verb: Verb,
    pub(crate) parts: Parts,
}

/// Most questions are about one bucket, which needs no list.
pub(crate) type Parts = SmallVec<[Part; 1]>;

/// A bucket, and what is to be charged there.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    /// The bucket's key in Redis.
    pub(crate) key: Arc<[u8]>,
    pub(crate) edition: Arc<Edition>,
    pub(crate) cost: u64,
    /// How long it may wait, in microseconds; `None` for what the limit prescribes.
    pub(crate) up_to: Option<u64>,
}

/// What is to be done with them.
#[derive(Clone, Debug)]
pub(crate) enum Verb {
    /// Charge all or none. The permit holds what slots there are.
    Check {
        permit: u64,
    },
    Peek,
    /// As check, and say what was taken.
    Reserve {
        permit: u64,
    },
    /// Give back so many units of what was taken, part by part.
    GiveBack {
        taken: Vec<(Taken, u64)>,
        reason: GiveBackReason,
    },
    Refund {
        units: u64,
    },
    Reset,
    Grant {
        units: u64,
    },
    Ban {
        micros: u64,
    },
    Leave {
        permit: u64,
    },
    Renew {
        permit: u64,
    },
    /// Charge whether there is room or not.
    Owe {
        units: u64,
    },
    /// As reserve, until it is confirmed, or given back by time.
    Hold {
        permit: u64,
        id: u64,
        micros: u64,
    },
    Confirm {
        id: u64,
    },
    Abandon {
        id: u64,
    },
    /// Take back what a check charged at that time and nobody heard of, as far as it is still there.
    TakeBack {
        permit: u64,
        since: u64,
    },
    /// Report on leases, charge all or none, and take up to a share of what is left ahead, part by part.
    Lease {
        shares: u64,
        micros: u64,
        lines: Vec<Line>,
    },
}

/// Why units come back, which says how many may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GiveBackReason {
    /// The charge was not used: what no later charge on the bucket stands on comes back.
    Unused,
    /// The charge was used and cost less: exactly the difference comes back.
    Settled,
}

impl Part {
    /// Adds a charge on the same bucket: the less patient of the two has to be content.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.cost += other.cost;
        if self.up_to.is_some() || other.up_to.is_some() {
            let patience =
                |part: &Self| part.up_to.unwrap_or(if part.edition.waits() { LONGEST_WAIT } else { 0 });
            self.up_to = Some(patience(self).min(patience(other)));
        }
    }
}

impl Verb {
    pub(crate) const fn permit(&self) -> Option<u64> {
        match self {
            Self::Check { permit } | Self::Reserve { permit } | Self::Hold { permit, .. } => Some(*permit),
            _ => None,
        }
    }
}

/// What a charge took: the script's own words, kept for it.
pub(crate) type Taken = Vec<u8>;

/// What the script answers to a question.
#[derive(Debug)]
pub(crate) enum Told {
    Statuses(Standings),
    Number(u64),
    /// How many units of each part came back.
    Returned(Vec<u64>),
    /// What this key had was not readable.
    Flawed(Arc<[u8]>, Flaw),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flaw {
    Damaged,
    TooNew,
}

/// How the parts stand, in their order.
pub(crate) type Standings = SmallVec<[Standing; 1]>;

/// How a part stands.
#[derive(Debug)]
pub(crate) struct Standing {
    pub(crate) verdict: i64,
    pub(crate) banned: bool,
    /// Whether it is slots that the permit holds.
    pub(crate) slots: bool,
    pub(crate) time: u64,
    pub(crate) limit: u64,
    pub(crate) remaining: u64,
    /// `None` where it never comes.
    pub(crate) reset: Option<u64>,
    /// Empty where nothing was taken, or nobody asked.
    pub(crate) taken: Taken,
    /// Units taken ahead, and for how many microseconds.
    pub(crate) lent: (u64, u64),
}

/// The answer is none that the script gives.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Garbled;

impl Question {
    /// Whether it is a check on buckets of which nothing but the level is known, as far as the asking node can say.
    pub(crate) fn is_plain(&self) -> bool {
        matches!(self.verb, Verb::Check { .. }) && self.parts.iter().all(|part| part.edition.plain.is_some())
    }

    /// Whether it is to charge plain buckets at once or not at all: equal ones can be answered together.
    pub(crate) fn is_at_once(&self) -> bool {
        let is_at_once = |part: &Part| {
            let fits = |plain: &Plain| plain.passes_or_not && part.cost <= plain.capacity.into();
            part.edition.plain.as_ref().is_some_and(fits) && part.cost > 0 && part.up_to.unwrap_or(0) == 0
        };
        matches!(self.verb, Verb::Check { .. }) && self.parts.iter().all(is_at_once)
    }

    /// Whether it charges what another about the same buckets does: whoever says that it does not wait is told so by other
    /// numbers too, should those hold by now.
    pub(crate) fn charges_as(&self, other: &Self) -> bool {
        let charge = |part: &Part| (part.cost, part.up_to);
        self.parts.iter().map(charge).eq(other.parts.iter().map(charge))
    }
}

impl Question {
    /// Writes it down. `places` are those of its parts' keys in the call.
    pub(crate) fn put(&self, list: &mut List, places: &[usize]) {
        let place = |part: usize| places.get(part).map_or(0, |place| *place as u64 + 1);
        list.number(self.verb.number());
        match &self.verb {
            Verb::Check { permit } | Verb::Reserve { permit } => list.number(*permit),
            Verb::Peek => list.number(0),
            Verb::Hold { permit, id, micros } => {
                [*permit, *id, *micros].into_iter().for_each(|it| list.number(it));
            }
            Verb::Leave { permit } | Verb::Renew { permit } => list.number(*permit),
            Verb::TakeBack { permit, since } => {
                list.number(*permit);
                list.number(*since);
            }
            Verb::Confirm { id } | Verb::Abandon { id } => list.number(*id),
            Verb::GiveBack { reason, .. } => list.number((*reason == GiveBackReason::Unused).into()),
            Verb::Lease { shares, micros, .. } => {
                [*shares, *micros].into_iter().for_each(|it| list.number(it));
            }
            Verb::Refund { .. } | Verb::Reset | Verb::Grant { .. } | Verb::Ban { .. } | Verb::Owe { .. } => {
                list.number(place(0));
                if let Some(amount) = self.verb.amount() {
                    list.number(amount);
                }
                return;
            }
        }
        list.number(self.parts.len() as u64);
        for (index, part) in self.parts.iter().enumerate() {
            list.number(place(index));
            match &self.verb {
                Verb::Check { .. } | Verb::Peek | Verb::Reserve { .. } | Verb::Hold { .. } => {
                    list.number(part.cost);
                    list.number_or_none(part.up_to);
                }
                Verb::GiveBack { taken, .. } => {
                    let (taken, units) =
                        taken.get(index).map_or((&[][..], 0), |(taken, units)| (taken, *units));
                    list.bytes(taken);
                    list.number(units);
                }
                Verb::TakeBack { .. } => list.number(part.cost),
                Verb::Lease { lines, .. } => put_line(list, part.cost, lines.get(index)),
                _ => {}
            }
        }
    }
}

/// What a call wants of one bucket beside its cost: to settle leases, and a new one.
fn put_line(list: &mut List, cost: u64, line: Option<&Line>) {
    list.number(cost);
    let settled = line.map_or([None; 2], |line| line.settle);
    list.number(settled.iter().flatten().count() as u64);
    for settled in settled.iter().flatten() {
        list.number(settled.lease.0 & LEASE_BITS);
        list.number(settled.used.into());
    }
    let wish = line.and_then(|line| line.wish);
    list.number(wish.map_or(0, |wish| wish.lease.0 & LEASE_BITS));
    list.number(wish.map_or(0, |wish| wish.units.into()));
}

/// What a double can tell apart.
const LEASE_BITS: u64 = (1 << 52) - 1;

impl Verb {
    const fn number(&self) -> u64 {
        match self {
            Self::Check { .. } => 1,
            Self::Peek => 2,
            Self::Reserve { .. } => 3,
            Self::GiveBack { .. } => 4,
            Self::Refund { .. } => 5,
            Self::Reset => 6,
            Self::Grant { .. } => 7,
            Self::Ban { .. } => 8,
            Self::Leave { .. } => 9,
            Self::Renew { .. } => 10,
            Self::Owe { .. } => 11,
            Self::Hold { .. } => 12,
            Self::Confirm { .. } => 13,
            Self::Abandon { .. } => 14,
            Self::Lease { .. } => 15,
            Self::TakeBack { .. } => 17,
        }
    }

    const fn amount(&self) -> Option<u64> {
        match self {
            Self::Refund { units } | Self::Grant { units } | Self::Owe { units } => Some(*units),
            Self::Ban { micros } => Some(*micros),
            _ => None,
        }
    }

    const fn has_statuses(&self) -> bool {
        matches!(
            self,
            Self::Check { .. }
                | Self::Peek
                | Self::Reserve { .. }
                | Self::Hold { .. }
                | Self::Abandon { .. }
                | Self::Lease { .. }
        )
    }

    const fn has_taken(&self) -> bool {
        matches!(self, Self::Reserve { .. } | Self::Hold { .. })
    }
}

pub(crate) fn read_one(
    values: &mut impl Iterator<Item = Value>,
    keys: &[Arc<[u8]>],
    question: &Question,
    first: i64,
) -> Result<Told, Garbled> {
    if first < 0 {
        let place = usize::try_from(number(values.next())?).unwrap_or(usize::MAX);
        let key = place.checked_sub(1).and_then(|place| keys.get(place)).ok_or(Garbled)?;
        if question.parts.iter().all(|part| part.key != *key) {
            return Err(Garbled);
        }
        return Ok(Told::Flawed(Arc::clone(key), if first == -1 { Flaw::Damaged } else { Flaw::TooNew }));
    }
    if let Verb::GiveBack { .. } = question.verb {
        let first = u64::try_from(first).map_err(|_| Garbled);
        let others = (1..question.parts.len()).map(|_| number(values.next()));
        return std::iter::once(first).chain(others).collect::<Result<_, _>>().map(Told::Returned);
    }
    if !question.verb.has_statuses() {
        return u64::try_from(first).map(Told::Number).map_err(|_| Garbled);
    }
    let mut first = Some(first);
    let mut standings = Standings::with_capacity(question.parts.len());
    for _ in &question.parts {
        let code = match first.take() {
            Some(code) => code,
            None => integer(values.next())?,
        };
        standings.push(Standing {
            verdict: code & 7,
            banned: code & 8 != 0,
            slots: code & 16 != 0,
            time: number(values.next())?,
            limit: number(values.next())?,
            remaining: number(values.next())?,
            reset: u64::try_from(integer(values.next())?).ok(),
            taken: if question.verb.has_taken() { bytes(values.next())? } else { Taken::new() },
            lent: match question.verb {
                Verb::Lease { .. } => (number(values.next())?, number(values.next())?),
                _ => (0, 0),
            },
        });
    }
    Ok(Told::Statuses(standings))
}

pub(crate) fn integer(value: Option<Value>) -> Result<i64, Garbled> {
    match value {
        Some(Value::Int(integer)) => Ok(integer),
        _ => Err(Garbled),
    }
}

pub(crate) fn number(value: Option<Value>) -> Result<u64, Garbled> {
    u64::try_from(integer(value)?).map_err(|_| Garbled)
}

fn bytes(value: Option<Value>) -> Result<Vec<u8>, Garbled> {
    match value {
        Some(Value::BulkString(bytes)) => Ok(bytes.to_vec()),
        _ => Err(Garbled),
    }
}
