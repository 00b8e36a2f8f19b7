//! What happens in a run: limits, arrivals, the network, crashes, what is done by hand.

use super::{
    super::BucketId,
    clock::Dice,
    server::{Align, Fault, Numbers},
};
use std::time::Duration;

/// True time begins here, so that a clock may be seconds behind.
pub(super) const START: u64 = 10_000_000;

pub(super) const SECOND: u64 = 1_000_000;

#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) seed: u64,
    pub(super) mode: Mode,
    pub(super) life: Duration,
    pub(super) nodes: usize,
    /// One bucket a limit.
    pub(super) limits: Vec<Numbers>,
    pub(super) arrivals: Vec<Arrival>,
    pub(super) network: Network,
    pub(super) crashes: Vec<Crash>,
    pub(super) by_hand: Vec<(u64, BucketId, Act)>,
    pub(super) server_fault: Option<Fault>,
    pub(super) node_fault: Option<NodeFault>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Exact,
    Leased,
}

/// Somebody asks a node for `cost` of every bucket in the mask.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    pub(super) at: u64,
    pub(super) node: usize,
    pub(super) cost: u32,
    pub(super) buckets: u8,
}

/// One way, in microseconds; chances in thousandths.
#[derive(Clone, Copy, Debug)]
pub(super) struct Network {
    pub(super) least: u64,
    pub(super) most: u64,
    pub(super) slow: u64,
    pub(super) lost: u64,
    pub(super) timeout: u64,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Crash {
    pub(super) at: u64,
    pub(super) node: usize,
    pub(super) down_for: u64,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Act {
    Refund(u32),
    Reset,
    Change(Numbers),
}

/// What can be wrong with a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NodeFault {
    /// It counts a lease's life from when the answer came.
    CountsFromTheAnswer,
    /// It spends two units more of a lease than it said when it settled.
    SpendsAfterSettling,
    /// Its clock loses a twentieth.
    SlowClock,
}

impl Network {
    pub(super) const GOOD: Self = Self { least: 150, most: 800, slow: 0, lost: 0, timeout: 20_000 };
}

/// How the load is spread over four nodes, in hundredths.
pub(super) const UNEVEN: [u64; 4] = [70, 20, 8, 2];

impl Plan {
    /// A quiet plan: one limit, a good network, nothing by hand.
    pub(super) fn steady(limit: Numbers, a_second: f64, seconds: u64, seed: u64) -> Self {
        let mut dice = Dice(seed);
        let (mut at, end) = (START, START + seconds * SECOND);
        let mut arrivals = Vec::new();
        loop {
            at += dice.gap(SECOND as f64 / a_second);
            if at >= end {
                break;
            }
            arrivals.push(Arrival { at, node: uneven(&mut dice), cost: 1, buckets: 1 });
        }
        Self {
            seed,
            mode: Mode::Leased,
            life: Duration::from_millis(100),
            nodes: 4,
            limits: vec![limit],
            arrivals,
            network: Network::GOOD,
            crashes: Vec::new(),
            by_hand: Vec::new(),
            server_fault: None,
            node_fault: None,
        }
    }

    /// Anything that can happen: bursts and idle times, sets, costs, losses, crashes, refunds and resets.
    pub(super) fn wild(kind: usize, seed: u64) -> Self {
        let mut dice = Dice(seed);
        let mut limits = vec![numbers(kind, &mut dice)];
        if dice.chance(300) {
            let other = dice.between(0, KINDS as u64 - 1) as usize;
            limits.push(numbers(other, &mut dice));
        }
        let pace = limits.iter().map(pace).fold(f64::INFINITY, f64::min);
        let end = START + dice.between(1, 4) * SECOND;
        let mut arrivals = Vec::new();
        let mut at = START;
        while at < end {
            // A phase: anything from idle to ten times what the limit gives.
            let phase_ends = (at + dice.between(20_000, 800_000)).min(end);
            let a_second = pace * [0.0, 0.3, 0.9, 2.0, 10.0][dice.between(0, 4) as usize];
            let most_cost = if dice.chance(250) { 7 } else { 1 };
            loop {
                // Where nobody comes, the next comes after the phase.
                at += dice.gap(SECOND as f64 / a_second.max(1e-3));
                if at >= phase_ends || arrivals.len() > 12_000 {
                    break;
                }
                let cost = dice.between(1, most_cost) as u32;
                let buckets = if limits.len() > 1 { dice.between(1, 3) as u8 } else { 1 };
                arrivals.push(Arrival { at, node: uneven(&mut dice), cost, buckets });
            }
            at = phase_ends;
        }
        let calm = dice.chance(300);
        let when = |dice: &mut Dice| dice.between(START, end);
        let crashes = if calm { 0 } else { dice.between(0, 4) };
        let crashes = (0..crashes).map(|_| Crash {
            at: when(&mut dice),
            node: dice.between(0, 3) as usize,
            down_for: dice.between(1, 300_000),
        });
        let crashes = crashes.collect();
        let acts = if dice.chance(300) { dice.between(1, 4) } else { 0 };
        let by_hand = (0..acts).map(|_| {
            let act = if dice.chance(500) { Act::Reset } else { Act::Refund(dice.between(1, 200) as u32) };
            let bucket = BucketId(dice.between(0, limits.len() as u64 - 1).into());
            (when(&mut dice), bucket, act)
        });
        let by_hand = by_hand.collect();
        let most = dice.between(200, 6_000);
        let trouble = |per_mille| if calm { 0 } else { per_mille };
        Self {
            seed,
            mode: Mode::Leased,
            life: Duration::from_millis([50, 100, 100, 250, 1_000][dice.between(0, 4) as usize]),
            nodes: 4,
            limits,
            arrivals,
            network: Network { least: 50, most, slow: trouble(20), lost: trouble(10), timeout: 20_000 },
            crashes,
            by_hand,
            server_fault: None,
            node_fault: None,
        }
    }
}

fn uneven(dice: &mut Dice) -> usize {
    let mut point = dice.between(0, 99);
    for (node, share) in UNEVEN.into_iter().enumerate() {
        if point < share {
            return node;
        }
        point -= share;
    }
    0
}

pub(super) const KINDS: usize = 5;

/// Some numbers of a kind.
fn numbers(kind: usize, dice: &mut Dice) -> Numbers {
    let limit = [20, 100, 1_000, 5_000][dice.between(0, 3) as usize];
    let window = [100_000, 333_333, 1_000_000, 2_000_000][dice.between(0, 3) as usize];
    match kind {
        0 => {
            let capacity = [17, 100, 1_000][dice.between(0, 2) as usize];
            let initial = if dice.chance(200) { capacity / 3 } else { capacity };
            let (earn, price) =
                [(1, 10_000), (7, 100_000), (1, 1_000), (3, 1_000)][dice.between(0, 3) as usize];
            Numbers::Level { earn, price, capacity, initial }
        }
        1 => Numbers::Fixed { limit, window, align: Align::Epoch },
        2 => Numbers::Fixed { limit, window, align: Align::FirstHit },
        3 => Numbers::Sliding { limit, window, precision: window / [1, 10, 50][dice.between(0, 2) as usize] },
        _ => Numbers::Counter { limit, window },
    }
}

/// Units a second that a limit gives in the long run.
pub(super) fn pace(numbers: &Numbers) -> f64 {
    match *numbers {
        Numbers::Level { earn, price, .. } => earn as f64 * 1e6 / price as f64,
        Numbers::Fixed { limit, window, .. }
        | Numbers::Sliding { limit, window, .. }
        | Numbers::Counter { limit, window } => f64::from(limit) * 1e6 / window as f64,
    }
}
