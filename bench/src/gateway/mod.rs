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
    let names = load::names().chain([idle::name(effort)]).collect::<Vec<_>>();
    if !report.wants_any(&names) {
        return;
    }
    match servers::build(effort) {
        Ok(binary) => {
            load::run(report, effort, &binary);
            idle::run(report, effort, &binary);
        }
        Err(why) => report.left_out("the gateway next to nginx", &why),
    }
}
