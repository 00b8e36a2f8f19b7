//! Which loads are measured, and what each is to come to.
//!
//! - decisions a second. Here more is better;
//! - the time within which half of the answers came, and all but one in a hundred;
//! - Redis's processor time in its commands, a charge; of a set, all of it, too;
//! - all of Redis's processor time a decision: with few charges a call, much of it goes by in reading and answering;
//! - calls a second, where units are taken ahead for a tenth of a second: on one key, of one node.

use super::{
    callers::Callers,
    ours::Ours,
    peers::{Increment, UsualScript},
    server::Server,
    subject::{Decide, Limits, Numbers, Request},
};
use crate::{
    effort::{Effort, short},
    report::{Report, Target},
    rows::{self, Row},
};
use std::{sync::Arc, time::Duration};

const OURS: &str = "ours";
const SCRIPT: &str = "usual script";
const INCR: &str = "INCR";

const LEASE: Duration = Duration::from_millis(100);
const CROWD: usize = 64;

/// Whoever asks Redis all the time leaves it a core: two threads of callers and one of Redis on two cores would show mostly
/// how often the system changes between them. Who decides by leases has both.
const BESIDE_REDIS: usize = 1;
const BY_LEASES: usize = 2;

/// A load.
struct Load {
    name: String,
    limits: Limits,
    users: usize,
    numbers: Numbers,
    lease: Option<Duration>,
    callers: &'static [usize],
    /// That the callers run on.
    threads: usize,
}

/// What is told of a round, in the order of a subject's figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Figure {
    Decisions,
    Median,
    Slow,
    CommandsACharge,
    CommandsADecision,
    RedisADecision,
    Calls,
}

pub(crate) fn run(report: &mut Report, effort: &Effort) {
    let loads = loads(effort.populations[0]);
    let names: Vec<String> = loads.iter().flat_map(Load::rows).map(|row| row.name).collect();
    if !report.wants_any(&names) {
        return;
    }
    let server = Server::start();
    println!("Through Redis {}, on the same machine.", server.version());
    for load in loads {
        let mut rows = load.rows();
        rows.retain(|row| report.wants(&row.name));
        if !rows.is_empty() {
            load.measure(report, effort, rows, &server);
            server.empty();
        }
    }
}

fn loads(users: usize) -> Vec<Load> {
    const EACH: &[usize] = &[1, CROWD, 512];
    let hot = || "hot key".to_owned();
    let many = || format!("{} keys", short(users));
    let load = |name: String, limits, users| {
        let name = match limits {
            Limits::One => format!("redis, 1 charge, {name}"),
            Limits::Three => format!("redis, set of 3, {name}"),
        };
        Load {
            name,
            limits,
            users,
            numbers: Numbers::ALLOW,
            lease: None,
            callers: EACH,
            threads: BESIDE_REDIS,
        }
    };
    vec![
        load(hot(), Limits::One, 1),
        load(many(), Limits::One, users),
        load(hot(), Limits::Three, 1),
        load(many(), Limits::Three, users),
        Load { numbers: Numbers::DENY, callers: &[CROWD], ..load("denied key".to_owned(), Limits::One, 1) },
        Load {
            numbers: Numbers::FAST,
            lease: Some(LEASE),
            callers: &[CROWD],
            threads: BY_LEASES,
            ..load("leased key".to_owned(), Limits::One, 1)
        },
    ]
}

impl Load {
    /// The rows of all its callers.
    fn rows(&self) -> Vec<Row> {
        self.callers.iter().flat_map(|callers| self.rows_of(*callers)).collect()
    }

    fn rows_of(&self, callers: usize) -> Vec<Row> {
        use Figure::*;
        let row = |figure: Figure, peer: &str| {
            let (what, unit) = figure.words();
            let asking = if callers == 1 { "caller" } else { "callers" };
            Row {
                name: format!("{}, {callers} {asking}, {what}, {peer}", self.name),
                unit,
                ours: OURS.to_owned(),
                peer: peer.to_owned(),
                figure: figure as usize,
                target: if peer == SCRIPT { self.target(callers, figure) } else { None },
            }
        };
        if self.lease.is_some() {
            return [Decisions, Median, Slow, Calls].map(|figure| row(figure, SCRIPT)).into();
        }
        let mut rows: Vec<Row> =
            [Decisions, Median, Slow, CommandsACharge].map(|figure| row(figure, SCRIPT)).into();
        if self.limits == Limits::Three {
            rows.push(row(CommandsADecision, SCRIPT));
        }
        rows.push(row(RedisADecision, SCRIPT));
        if self.has_ceiling() {
            rows.extend([Decisions, RedisADecision].map(|figure| row(figure, INCR)));
        }
        rows
    }

    fn target(&self, callers: usize, figure: Figure) -> Option<Target> {
        let is_plain = self.limits == Limits::One && self.numbers.burst > 1;
        match figure {
            Figure::Decisions if self.lease.is_some() => Some(Target::Times(200.0)),
            Figure::Calls => Some(Target::Ours(25.0)),
            Figure::Decisions if is_plain && callers == CROWD => {
                Some(Target::Times(if self.users == 1 { 10.0 } else { 2.5 }))
            }
            Figure::Median if is_plain && callers == 1 => Some(Target::Ratio(1.1)),
            Figure::CommandsACharge => Some(Target::Ours(10.0)),
            Figure::CommandsADecision => Some(Target::Ratio(0.7)),
            _ => None,
        }
    }

    /// Whether it is held next to counting: what counts does not refuse, and knows of one key.
    fn has_ceiling(&self) -> bool {
        self.limits == Limits::One && self.numbers.burst > 1 && self.lease.is_none()
    }

    fn measure(&self, report: &mut Report, effort: &Effort, mut wanted: Vec<Row>, server: &Server) {
        let crowd = &mut Callers::new(self.threads);
        let (url, numbers) = (server.url(), self.numbers);
        let requests: Arc<[Request]> = Request::of_users(self.users).into();
        let ours = Ours::new(&url, self.limits, numbers, self.lease);
        let script = UsualScript::new(&crowd.runtime, &url, self.limits, numbers);
        let incr = Increment::new(&crowd.runtime, &url);
        crowd.enter(&ours, &requests, numbers.first_use);
        crowd.enter(&script, &requests, numbers.first_use);
        if self.has_ceiling() {
            crowd.enter(&incr, &requests, 1);
        }
        let (rounds, lasting) = self.rounds(effort);
        for callers in self.callers {
            let names: Vec<String> = self.rows_of(*callers).into_iter().map(|row| row.name).collect();
            let (rows, rest) = wanted.into_iter().partition(|row| names.contains(&row.name));
            wanted = rest;
            let mut round = |subject: &str| match subject {
                OURS => self.figures(server, crowd, &ours, &requests, *callers, lasting),
                SCRIPT => self.figures(server, crowd, &script, &requests, *callers, lasting),
                _ => self.figures(server, crowd, &incr, &requests, *callers, lasting),
            };
            rows::measure(report, rounds, rows, &mut round);
        }
    }

    /// How many, and how long each. Leases are renewed a few times a second, so that fewer and longer rounds tell more.
    fn rounds(&self, effort: &Effort) -> (usize, Duration) {
        let lasting = Duration::from_millis(effort.shared_millis as u64);
        match self.lease {
            None => (effort.shared_rounds, lasting),
            Some(_) => (effort.shared_rounds.div_ceil(4), 5 * lasting),
        }
    }

    /// Of a round of a subject, in the order of [`Figure`].
    fn figures<D: Decide>(
        &self,
        server: &Server,
        crowd: &mut Callers,
        decider: &D,
        requests: &Arc<[Request]>,
        callers: usize,
        lasting: Duration,
    ) -> Vec<f64> {
        if let Some(lease) = self.lease {
            // Units are taken ahead for keys that were seen to be in demand: not from the first question on.
            crowd.ask(decider, requests, callers, 2 * lease);
        }
        let (mut round, spent) = server.watch(|| crowd.ask(decider, requests, callers, lasting));
        self.numbers.load.must_fit(round.allowed, round.decisions());
        let decisions = round.decisions() as f64;
        let micros = |spent: Duration| spent.as_nanos() as f64 / 1_000.0 / decisions;
        vec![
            decisions / round.lasted.as_secs_f64(),
            round.within(0.5),
            round.within(0.99),
            micros(spent.in_commands) / self.limits.count() as f64,
            micros(spent.in_commands),
            micros(spent.in_all),
            spent.calls as f64 / round.lasted.as_secs_f64(),
        ]
    }
}

impl Figure {
    const fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Decisions => ("decisions", "decisions/s"),
            Self::Median => ("p50", "us"),
            Self::Slow => ("p99", "us"),
            Self::CommandsACharge => ("CPU a charge", "us"),
            Self::CommandsADecision => ("CPU a set", "us"),
            Self::RedisADecision => ("all of Redis's CPU", "us/decision"),
            Self::Calls => ("calls", "calls/s"),
        }
    }
}
