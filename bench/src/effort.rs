//! How much is measured: all of it, or enough to see that the harness works.

/// Counts of calls, keys and rounds.
///
/// A round is a few milliseconds: shorter than a time slice of the scheduler, so that on a busy machine most rounds are
/// not interrupted, and the median is of one that was not.
pub(crate) struct Effort {
    /// Rounds of a comparison.
    pub(crate) rounds: usize,
    /// Rounds of filling or cleaning a whole table.
    pub(crate) fills: usize,
    /// Calls on one bucket in a round.
    pub(crate) direct_calls: usize,
    /// Most calls on keys in a round.
    pub(crate) keyed_calls: usize,
    /// A small, the usual, and a large table.
    pub(crate) populations: [usize; 3],
    /// Keys that come in a flood, against the usual table.
    pub(crate) flood: usize,
    /// Calls under the instruction counter.
    pub(crate) counted_calls: usize,
    /// Requests to a gateway under the instruction counter.
    pub(crate) counted_requests: usize,
    /// Rounds of a crowd that waits, and how long one is watched, in milliseconds.
    pub(crate) crowd_rounds: usize,
    pub(crate) crowd_millis: usize,
    /// Tasks whose turns lie far ahead.
    pub(crate) waiters: usize,
    /// Rounds in which they are watched.
    pub(crate) waiters_rounds: usize,
    /// Rounds of asking Redis, and how long one is, in milliseconds: server and client share the cores, so that a round has
    /// to be many time slices long.
    pub(crate) shared_rounds: usize,
    pub(crate) shared_millis: usize,
    /// Rounds of asking a door for Redis clients, as long as those: what is held side by side differs by less than a neighbour's
    /// noise, so that it takes more of them to tell.
    pub(crate) door_rounds: usize,
    /// Rounds of asking a gateway, and how long one is, in seconds, of which wrk knows no parts.
    pub(crate) gateway_rounds: usize,
    pub(crate) gateway_seconds: usize,
    /// Rounds of asking it for responses of up to 10 KiB, next to its peers. Their p99 is a matter of who gets a core when: of one
    /// program's 41 rounds, medians of any 15 lay between 0.91 and 1.18 of nginx's, nine times of ten.
    pub(crate) small_rounds: usize,
    /// Connections that rest at a gateway.
    pub(crate) idle_connections: usize,
}

impl Effort {
    /// What the published figures are taken with.
    pub(crate) const fn full() -> Self {
        Self {
            rounds: 101,
            fills: 3,
            direct_calls: 100_000,
            keyed_calls: 20_000,
            populations: [100_000, 1_000_000, 10_000_000],
            flood: 100_000_000,
            counted_calls: 1_000_000,
            counted_requests: 10_000,
            crowd_rounds: 5,
            crowd_millis: 800,
            waiters: 10_000,
            waiters_rounds: 3,
            shared_rounds: 21,
            shared_millis: 200,
            door_rounds: 61,
            gateway_rounds: 15,
            gateway_seconds: 1,
            small_rounds: 41,
            idle_connections: 10_000,
        }
    }

    /// A smoke run.
    pub(crate) const fn quick() -> Self {
        Self {
            rounds: 5,
            fills: 1,
            direct_calls: 10_000,
            // All of the usual table: of a part of it a few strays may be more than their share.
            keyed_calls: 10_000,
            populations: [1_000, 10_000, 100_000],
            flood: 1_000_000,
            counted_calls: 10_000,
            counted_requests: 100,
            crowd_rounds: 1,
            crowd_millis: 200,
            waiters: 1_000,
            waiters_rounds: 1,
            shared_rounds: 1,
            shared_millis: 20,
            door_rounds: 1,
            gateway_rounds: 1,
            gateway_seconds: 1,
            small_rounds: 1,
            idle_connections: 200,
        }
    }

    pub(crate) const fn is_quick(&self) -> bool {
        self.rounds < Self::full().rounds
    }

    /// The table that most rows are about.
    pub(crate) const fn usual(&self) -> usize {
        self.populations[1]
    }
}

/// A round number as a person says it: 1e6.
pub(crate) fn short(count: usize) -> String {
    let zeros = count.to_string().bytes().rev().take_while(|digit| *digit == b'0').count();
    match zeros {
        0..3 => count.to_string(),
        _ => format!("{}e{zeros}", count / 10_usize.pow(zeros as u32)),
    }
}
