//! The gateway next to nginx, and what its parts cost.
//!
//! - `load.rs`: requests a second, latency and processor time a request, beside nginx with `limit_req`; and what metrics cost;
//! - `matching.rs`: which route and rules, with few routes and with many;
//! - `idle.rs`: memory of connections that rest.
//!
//! Client, gateway and upstream share the machine's cores, so that requests a second say how much processor time all three need. The
//! processor time of the gateway alone is the steadier figure.

mod idle;
mod load;
pub(crate) mod matching;
mod servers;
mod wrk;

use crate::{effort::Effort, report::Report};

pub(crate) fn run(report: &mut Report, effort: &Effort) {
    matching::run(report, effort);
    if servers::binary().is_none() {
        let what = "the gateway next to nginx";
        return report.left_out(what, "no `tollgate` beside this binary; `make bench` builds both");
    }
    load::run(report, effort);
    idle::run(report, effort);
}
