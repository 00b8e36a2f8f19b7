//! The gateway next to nginx and HAProxy, and what its parts cost.
//!
//! - `load.rs`: requests per second, latency and processor time per request, beside each peer; and what metrics cost;
//! - `request_cost.rs`: instructions per request, counted by callgrind;
//! - `matching.rs`: which route and rules, with few routes and with many;
//! - `idle.rs`: memory of connections that rest;
//! - `peers.rs`, `servers.rs`, `client.rs`, `wrk.rs`: what is started for these.
//!
//! Client, gateway and upstream share the machine's cores, so requests per second depend on the processor time of all three. The
//! processor time of the gateway alone is the steadier figure, and instructions per request the steadiest.

mod client;
mod idle;
mod load;
pub(crate) mod matching;
mod peers;
mod request_cost;
mod servers;
mod wrk;

use crate::{effort::Effort, report::Report};

pub(crate) fn run(report: &mut Report, effort: &Effort) {
    matching::run(report, effort);
    let names = load::names().chain([idle::name(effort), request_cost::NAME.to_owned()]).collect::<Vec<_>>();
    if !report.wants_any(&names) {
        return;
    }
    match servers::build(effort) {
        Ok(binary) => {
            load::run(report, effort, &binary);
            request_cost::run(report, effort, &binary);
            idle::run(report, effort, &binary);
        }
        Err(why) => report.left_out("the gateway next to its peers", &why),
    }
}
