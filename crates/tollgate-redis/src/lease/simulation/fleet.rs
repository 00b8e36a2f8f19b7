//! The nodes, the network between them and the server, and the order in which things happen.
//!
//! True time is the server's clock, in microseconds. An exact question is admitted when the server decides it, whether the
//! answer arrives or not; a local decision when the node makes it.

use super::{
    super::{Answer, BucketId, Call, Ledger, Line, Local, Need, Terms},
    clock::{Dice, NodeClock},
    plan::{Act, Arrival, Mode, NodeFault, Plan},
    server::Server,
};
use std::{
    cmp::Reverse,
    collections::{BinaryHeap, HashMap},
};

/// What a run was like.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    /// What was admitted: when, of which bucket, how many units.
    pub(super) admitted: Vec<(u64, BucketId, u32)>,
    /// What was done by hand, and when the server did it.
    pub(super) by_hand: Vec<(u64, BucketId, Act)>,
    /// When first_hit windows were opened.
    pub(super) opened: HashMap<BucketId, Vec<u64>>,
    /// Units that were out when something was done by hand.
    pub(super) out_then: Vec<u32>,
    pub(super) requests: u64,
    pub(super) local_allows: u64,
    pub(super) local_denies: u64,
    /// Calls made, by node.
    pub(super) calls: Vec<u64>,
    /// When calls were made, by node.
    pub(super) call_times: Vec<Vec<u64>>,
}

impl Outcome {
    pub(super) fn units(&self) -> u64 {
        self.admitted.iter().map(|(_, _, units)| u64::from(*units)).sum()
    }
}

struct Fleet<'p> {
    plan: &'p Plan,
    dice: Dice,
    now: u64,
    server: Server,
    nodes: Vec<Node>,
    /// What will happen, by time and then in the order it was arranged.
    events: BinaryHeap<Reverse<(u64, u64)>>,
    arranged: HashMap<u64, Event>,
    count: u64,
    outcome: Outcome,
}

struct Node {
    clock: NodeClock,
    ledger: Ledger,
    /// How many times it has started; whatever belongs to an earlier life is nobody's.
    life: u32,
    is_up: bool,
    calls: HashMap<u64, Call>,
    looks_at: u64,
}

enum Event {
    Arrive(Arrival),
    AtServer { node: usize, life: u32, call: u64, lines: Vec<Line> },
    AtNode { node: usize, life: u32, call: u64, answers: Vec<Answer> },
    GiveUp { node: usize, life: u32, call: u64 },
    Look { node: usize, life: u32 },
    Crash { node: usize, down_for: u64 },
    Start { node: usize },
    ByHand { bucket: BucketId, act: Act },
}

/// Plays a plan to its end.
pub(super) fn play(plan: &Plan) -> Outcome {
    let mut dice = Dice(plan.seed ^ 0xF1EE7);
    let mut server = Server::new(plan.nodes as u32, plan.life, plan.server_fault);
    for (place, numbers) in plan.limits.iter().enumerate() {
        server.add(BucketId(place as u128), numbers);
    }
    let nodes = (0..plan.nodes).map(|_| Node::new(plan, &mut dice)).collect();
    let mut fleet = Fleet {
        plan,
        dice,
        now: 0,
        server,
        nodes,
        events: BinaryHeap::new(),
        arranged: HashMap::new(),
        count: 0,
        outcome: Outcome {
            calls: vec![0; plan.nodes],
            call_times: vec![Vec::new(); plan.nodes],
            ..Outcome::default()
        },
    };
    plan.arrivals.iter().for_each(|arrival| fleet.arrange(arrival.at, Event::Arrive(*arrival)));
    for crash in &plan.crashes {
        fleet.arrange(crash.at, Event::Crash { node: crash.node, down_for: crash.down_for });
    }
    for (at, bucket, act) in &plan.by_hand {
        fleet.arrange(*at, Event::ByHand { bucket: *bucket, act: *act });
    }
    while let Some(Reverse((at, number))) = fleet.events.pop() {
        fleet.now = at;
        if let Some(event) = fleet.arranged.remove(&number) {
            fleet.happen(event);
        }
    }
    fleet.finish()
}

impl Node {
    fn new(plan: &Plan, dice: &mut Dice) -> Self {
        let drift = match plan.node_fault {
            Some(NodeFault::SlowClock) => -50_000,
            _ => dice.between(0, 200) as i64 - 100,
        };
        let offset = dice.between(0, 10_000_000_000) as i64 - 5_000_000_000;
        Self {
            clock: NodeClock { offset, drift },
            ledger: Ledger::new(Terms::new(plan.life), dice.roll()),
            life: 0,
            is_up: true,
            calls: HashMap::new(),
            looks_at: u64::MAX,
        }
    }
}

impl Fleet<'_> {
    fn happen(&mut self, event: Event) {
        match event {
            Event::Arrive(arrival) => self.arrive(&arrival),
            Event::AtServer { node, life, call, lines } => {
                let answers = self.server.ask(self.now, &lines);
                if answers.iter().all(|answer| answer.denied.is_none()) {
                    self.admit(lines.iter().map(|line| Need { bucket: line.bucket, cost: line.cost }));
                }
                if let Some(at) = self.travels() {
                    self.arrange(at, Event::AtNode { node, life, call, answers });
                }
            }
            Event::AtNode { node, life, call, answers } if self.is(node, life) => {
                let fault = self.plan.node_fault;
                let (now, it) = self.node(node);
                if let Some(mut call) = it.calls.remove(&call) {
                    if fault == Some(NodeFault::CountsFromTheAnswer) {
                        call.asked = now;
                    }
                    it.ledger.answered(&call, now, &answers);
                    self.look_later(node);
                }
            }
            Event::GiveUp { node, life, call } if self.is(node, life) => {
                let (_, it) = self.node(node);
                if let Some(call) = it.calls.remove(&call) {
                    it.ledger.failed(&call);
                }
            }
            Event::Look { node, life } if self.is(node, life) => {
                let (now, it) = self.node(node);
                it.looks_at = u64::MAX;
                let calls = it.ledger.due(now);
                calls.into_iter().for_each(|call| self.call(node, call));
                self.look_later(node);
            }
            Event::Crash { node, down_for } if self.nodes[node].is_up => {
                let life = self.nodes[node].life + 1;
                self.nodes[node] = Node { life, is_up: false, ..Node::new(self.plan, &mut self.dice) };
                self.arrange(self.now + down_for, Event::Start { node });
            }
            Event::Start { node } => self.nodes[node].is_up = true,
            Event::ByHand { bucket, act } => self.act(bucket, act),
            Event::AtNode { .. } | Event::GiveUp { .. } | Event::Look { .. } | Event::Crash { .. } => {}
        }
    }

    fn arrive(&mut self, arrival: &Arrival) {
        if !self.nodes[arrival.node].is_up {
            return;
        }
        self.outcome.requests += 1;
        let buckets = (0..self.plan.limits.len()).filter(|place| arrival.buckets >> place & 1 == 1);
        let needs: Vec<Need> =
            buckets.map(|place| Need { bucket: BucketId(place as u128), cost: arrival.cost }).collect();
        let mode = self.plan.mode;
        let (now, node) = self.node(arrival.node);
        if mode == Mode::Exact {
            let line = |need: &Need| Line { cost: need.cost, ..Line::giving_back(need.bucket, [None; 2]) };
            let call = Call { asked: now, lines: needs.iter().map(line).collect() };
            return self.call(arrival.node, call);
        }
        match node.ledger.decide(now, &needs) {
            Local::Allow { wake } => {
                self.admit(needs.into_iter());
                self.outcome.local_allows += 1;
                if wake {
                    self.look_later(arrival.node);
                }
            }
            Local::Deny(_) => self.outcome.local_denies += 1,
            Local::Ask => {
                let call = node.ledger.question(now, &needs);
                self.call(arrival.node, call);
                self.look_later(arrival.node);
            }
        }
    }

    fn admit(&mut self, needs: impl Iterator<Item = Need>) {
        let now = self.now;
        self.outcome
            .admitted
            .extend(needs.filter(|need| need.cost > 0).map(|need| (now, need.bucket, need.cost)));
    }

    fn call(&mut self, node: usize, mut call: Call) {
        if self.plan.node_fault == Some(NodeFault::SpendsAfterSettling) {
            for settled in call.lines.iter_mut().flat_map(|line| line.settle.iter_mut().flatten()) {
                settled.used = settled.used.saturating_sub(2);
            }
        }
        self.outcome.calls[node] += 1;
        self.outcome.call_times[node].push(self.now);
        let (life, number, lines) = (self.nodes[node].life, self.count, call.lines.clone());
        self.nodes[node].calls.insert(number, call);
        self.arrange(self.now + self.plan.network.timeout, Event::GiveUp { node, life, call: number });
        if let Some(at) = self.travels() {
            self.arrange(at, Event::AtServer { node, life, call: number, lines });
        }
    }

    fn act(&mut self, bucket: BucketId, act: Act) {
        self.outcome.out_then.push(self.server.units_out(bucket));
        match act {
            Act::Refund(units) => self.server.refund(self.now, bucket, units),
            Act::Reset => self.server.reset(self.now, bucket),
            Act::Change(numbers) => self.server.change(self.now, bucket, &numbers),
        }
        self.outcome.by_hand.push((self.now, bucket, act));
    }

    /// When a message that is sent now arrives, if it does.
    fn travels(&mut self) -> Option<u64> {
        let network = self.plan.network;
        if self.dice.chance(network.lost) {
            return None;
        }
        let slow = if self.dice.chance(network.slow) { self.dice.between(5_000, 60_000) } else { 0 };
        Some(self.now + self.dice.between(network.least, network.most) + slow)
    }

    fn look_later(&mut self, node: usize) {
        let it = &self.nodes[node];
        let Some(due) = it.ledger.next_due() else { return };
        let (at, life) = (it.clock.when(due).max(self.now), it.life);
        if at < it.looks_at {
            self.nodes[node].looks_at = at;
            self.arrange(at, Event::Look { node, life });
        }
    }

    fn node(&mut self, node: usize) -> (tollgate::Time, &mut Node) {
        let it = &mut self.nodes[node];
        (it.clock.at(self.now), it)
    }

    fn is(&self, node: usize, life: u32) -> bool {
        self.nodes[node].life == life && self.nodes[node].is_up
    }

    fn arrange(&mut self, at: u64, event: Event) {
        self.events.push(Reverse((at, self.count)));
        self.arranged.insert(self.count, event);
        self.count += 1;
    }

    fn finish(mut self) -> Outcome {
        for place in 0..self.plan.limits.len() {
            let bucket = BucketId(place as u128);
            self.outcome.opened.insert(bucket, self.server.opened(bucket).to_vec());
        }
        self.outcome.admitted.sort_unstable_by_key(|(at, ..)| *at);
        self.outcome
    }
}
