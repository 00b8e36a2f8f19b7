//! What a waiter asks for: charges that outlive the call, so they name buckets by fingerprint and not by text.

use super::queues::QueueId;
use crate::{
    few::Few,
    store::{LimitHandle, Tag},
    time::Time,
};

/// Charges to be made together.
#[derive(Clone, Debug)]
pub enum Order {
    One(Toll),
    /// In a box, so that the order of one charge, which nearly all are, is no larger than that.
    Set(Box<SetOrder>),
}

/// Charges of a set.
#[derive(Clone, Debug)]
pub struct SetOrder {
    tolls: Vec<Toll>,
    /// Which toll each of the caller's charges is part of, and what it costs.
    charges: Vec<(usize, u32)>,
    /// In which queues it stands while it waits, by the numbers of the tolls.
    pub(super) queued_at: Vec<usize>,
    /// How often it went from one queue to another.
    pub(super) moves: u32,
}

/// Since when an order waits, and for how long it may.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WaitSpan {
    pub(super) began: Time,
    /// In nanoseconds; as long as it takes where it does not say.
    pub(super) up_to: u64,
}

/// What is to be paid at one bucket.
#[derive(Clone, Debug)]
pub struct Toll {
    pub(crate) bucket: Bucket,
    pub(crate) cost: u64,
    /// How long this charge may wait, in nanoseconds, where it says so itself.
    pub(crate) up_to: Option<u64>,
}

/// Which bucket of a gate.
#[derive(Clone, Debug)]
pub enum Bucket {
    /// The gate has one.
    Only,
    /// A limit's bucket of the key with this fingerprint.
    Of(LimitHandle, [u64; 2]),
}

/// Nothing is to be paid.
impl Default for Order {
    fn default() -> Self {
        Self::One(Toll { bucket: Bucket::Only, cost: 0, up_to: None })
    }
}

impl Order {
    /// From what is to be paid at each bucket, and from which toll each of the caller's charges is part of and costs.
    pub(crate) fn new(mut tolls: Vec<Toll>, charges: Vec<(usize, u32)>) -> Self {
        match (tolls.pop(), tolls.len(), charges.len()) {
            (Some(toll), 0, 1) => Self::One(toll),
            (last, ..) => {
                tolls.extend(last);
                Self::Set(Box::new(SetOrder { tolls, charges, queued_at: Vec::new(), moves: 0 }))
            }
        }
    }

    pub(crate) fn tolls(&self) -> &[Toll] {
        match self {
            Self::One(toll) => std::slice::from_ref(toll),
            Self::Set(set) => &set.tolls,
        }
    }

    pub(crate) fn tolls_mut(&mut self) -> &mut [Toll] {
        match self {
            Self::One(toll) => std::slice::from_mut(toll),
            Self::Set(set) => &mut set.tolls,
        }
    }

    /// Which toll each of the caller's charges is part of, and what it costs; nothing where it is the only one.
    pub(super) fn charges(&self) -> &[(usize, u32)] {
        match self {
            Self::One(_) => &[],
            Self::Set(set) => &set.charges,
        }
    }

    /// The same for so many units each.
    pub(crate) fn cost(mut self, cost: u32) -> Self {
        self.tolls_mut().iter_mut().for_each(|toll| toll.cost = cost.into());
        self
    }

    /// The queues in which it could have to wait, with the number of the toll. Who asks for nothing waits for nobody.
    pub(crate) fn queues(&self) -> impl Iterator<Item = (usize, QueueId)> {
        let asking = self.tolls().iter().enumerate().filter(|(_, toll)| toll.cost > 0);
        asking.map(|(number, toll)| (number, toll.bucket.queue()))
    }

    /// The queue of a toll.
    pub(super) fn queue(&self, toll: usize) -> QueueId {
        self.tolls()[toll].bucket.queue()
    }

    /// The first of the caller's charges that is part of a toll.
    pub(crate) fn charge_of(&self, toll: usize) -> usize {
        self.charges().iter().position(|(of, _)| *of == toll).unwrap_or(0)
    }

    /// Units of every charge, from those of every toll: charges on one bucket count at the first of them.
    pub(super) fn of_charges(&self, mut tolls: Vec<u32>) -> Vec<u32> {
        if self.charges().is_empty() {
            return tolls;
        }
        self.charges().iter().map(|(toll, _)| tolls.get_mut(*toll).map_or(0, std::mem::take)).collect()
    }

    /// What every charge was told, from what every toll was.
    pub(crate) fn spread<T: Copy>(&self, tolls: Few<T>) -> Few<T> {
        match tolls {
            Few::Many(tolls) => {
                Few::Many(self.charges().iter().filter_map(|(toll, _)| tolls.get(*toll).copied()).collect())
            }
            one => one,
        }
    }
}

impl Toll {
    /// Nanoseconds that this charge may still wait, of `left` that all of them may, when it has waited so long already.
    pub(crate) fn patience(&self, waited: u64, left: u64) -> u64 {
        self.up_to.map_or(left, |up_to| up_to.saturating_sub(waited).min(left))
    }

    /// Units, as far as 32 bits go; beyond that no limit gives them.
    pub(crate) fn units(&self) -> u32 {
        u32::try_from(self.cost).unwrap_or(u32::MAX)
    }
}

impl Bucket {
    /// The tag of the limit that it is one of; none for a limiter's only bucket.
    pub(crate) fn tag(&self) -> Option<Tag> {
        match self {
            Self::Only => None,
            Self::Of(limit, _) => Some(limit.tag()),
        }
    }

    /// Names the bucket's queue.
    pub(crate) const fn queue(&self) -> QueueId {
        match self {
            Self::Only => [0, 0],
            Self::Of(_, fingerprint) => *fingerprint,
        }
    }
}
