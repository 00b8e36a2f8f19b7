//! Units taken ahead from Redis, so that most decisions need no round trip.
//!
//! A node that is asked often for a bucket *leases* units of it: the server counts them as used from that moment on, and the
//! node spends them by itself. So whatever nodes do, crash, lag or lose an answer, the fleet never admits more than the
//! limit; what can go wrong is that units lie idle at one node while another refuses.
//!
//! This is the node's half, and it is pure: no I/O, no clock, time is passed in. The store that drives it does this:
//!
//! ```text
//! decide(now, needs)            Allow or Deny: answer.  Ask: question(now, needs), send it, and then
//! answered(call, now, answers)  or failed(call, now), exactly one of them, whatever became of the request
//! next_due(), due(now)          in the background: renewals, and what is given back; each is a call like any other
//! drop_all(now)                 at the end, and when rules change: everything is given back
//! ```
//!
//! - **A lease's life is counted from before it was asked for**, by the node's own monotonic clock and less a margin for
//!   drift; by the server's clock it ends later. Nobody compares clocks.
//! - **Up to two leases a bucket.** The next is asked for while the last is being spent, so a hot key waits for no round
//!   trip. What is settled is never spent from afterwards: it leaves the account when the call is made.
//! - **Ids are drawn by the node.** A server that lost its state and begins anew cannot give out an id twice, so no
//!   settlement ever meets another node's lease.
//! - **An unanswered call** may have settled the old lease and granted the new one, or neither. The node has let go of both:
//!   at the server they end by themselves, and count as used.
//! - **A cold key never leases**: the first question of a key is exact, and so are all until enough come within one lease.
//!
//! What the server does is modelled in `simulation/server`, and stated there as formulas.
//!
//! Two leases a bucket need about one call every 44 ms while they cover the demand. Where `remaining / (4 * nodes)` is below
//! 1 the key is decided exactly. A denial is remembered for at most one lease, and after it one question at a time looks for
//! room. After a limit is lowered, at most the units then leased are admitted above it, for at most one lease. A lost key,
//! or a server clock that jumps ahead, may add the leased units once.

mod account;
mod call;
mod demand;
mod ledger;
#[cfg(test)]
mod simulation;
mod terms;

#[cfg(test)]
pub(crate) use self::call::{LeaseId, Settlement, Wish};
pub(crate) use self::{
    call::{Answer, BucketId, Call, Line, Need},
    ledger::{Hashed, Ledger, Local},
    terms::Terms,
};
