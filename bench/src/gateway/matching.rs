//! Which route takes a request, which rules apply, and whose buckets they charge: with ten routes, a thousand, ten thousand.
//!
//! Every route has a path of its own and three rules with a limit each; two of them apply to the request. Requests go to routes in a
//! shuffled order. The peer is ourselves with ten routes: what more routes cost is the ratio.

use crate::{
    effort::{Effort, short},
    instructions,
    measure::{Pair, alternate, kept},
    report::{Report, Target},
    subject::shuffled,
};
use http::{HeaderMap, HeaderValue};
use std::{fmt::Write, hint::black_box, net::IpAddr, time::Instant};
use tollgate_rules::{Keyed, Program, Request, parse_rules};

pub(crate) const CHILD: &str = "matching";

const ROUTES: [usize; 3] = [10, 1_000, 10_000];

/// Nanoseconds that it may take.
const MOST: f64 = 2_000.0;
/// How much ten thousand routes may cost, of what ten do.
const GROWTH: Target = Target::Ratio(2.0);

pub(crate) fn run(report: &mut Report, effort: &Effort) {
    let [few, .., most] = ROUTES;
    for routes in ROUTES {
        let name = name(routes);
        if report.wants(&name) {
            let (ours, peer, calls) = (Asked::new(routes), Asked::new(few), effort.keyed_calls);
            let pair = alternate(effort.rounds, |_| ours.nanos(calls), |_| peer.nanos(calls));
            report.compare(&name, "ns/request", pair, Some(Target::Ours(MOST)));
        }
    }
    // Ten thousand routes take long to read under callgrind.
    let name = format!("instructions, {}", name(most));
    if report.wants(&name) {
        let count =
            |routes: usize| instructions::counted(CHILD, &routes.to_string(), effort.counted_calls / 10);
        match (count(most), count(few)) {
            (Ok(ours), Ok(peer)) => {
                report.compare(&name, "instructions", Pair { ours, peer, ratio: ours / peer }, Some(GROWTH));
            }
            (Err(why), _) | (_, Err(why)) => report.left_out(&name, &why),
        }
    }
}

fn name(routes: usize) -> String {
    format!("matching, {} routes of 3 rules, 10 routes", short(routes))
}

/// In the child: so many requests and nothing to print.
pub(crate) fn child(routes: &str, calls: usize) -> Vec<f64> {
    let asked = Asked::new(routes.parse().expect("a number of routes"));
    counted_calls(calls, &asked);
    Vec::new()
}

/// What callgrind counts: it is told this name.
#[inline(never)]
fn counted_calls(calls: usize, asked: &Asked) {
    asked.ask(calls);
}

/// A program, and what it is asked.
struct Asked {
    program: Program,
    paths: Vec<String>,
    headers: HeaderMap,
}

impl Asked {
    fn new(routes: usize) -> Self {
        let rules = parse_rules(&file(routes), |_| None).unwrap_or_else(|mistakes| panic!("{mistakes}"));
        let ids = shuffled::<u64>(routes);
        let paths = ids.iter().map(|id| format!("/v1/service-{id}/items/17")).collect();
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("host", "api.example.com"),
            ("user-agent", "bench"),
            ("accept", "*/*"),
            ("x-api-key", "acme-7f3a"),
        ] {
            headers.insert(name, HeaderValue::from_static(value));
        }
        Self { program: Program::new(rules), paths, headers }
    }

    fn nanos(&self, calls: usize) -> f64 {
        let begun = Instant::now();
        self.ask(calls);
        begun.elapsed().as_nanos() as f64 / calls as f64
    }

    fn ask(&self, calls: usize) {
        let mut keys = 0;
        for path in self.paths.iter().cycle().take(calls) {
            let request = Request {
                method: "GET",
                path: black_box(path),
                query: None,
                host: Some("api.example.com"),
                headers: &self.headers,
                ip: IpAddr::from([192, 0, 2, 7]),
                at: 0,
            };
            let found = self.program.find(&request);
            assert!(found.route().is_some(), "{path} has no route");
            for charge in found.entries().flat_map(|entry| entry.charges) {
                if let Keyed::Key(values) = kept(found.key(charge)) {
                    kept(values.texts().key());
                    keys += 1;
                }
            }
        }
        assert_eq!(keys, 2 * calls, "two rules apply to every request");
    }
}

fn file(routes: usize) -> String {
    let mut text = "version: 1\nlisten: { gateway: '127.0.0.1:0' }\nupstreams:\n  u: { servers: ['http://127.0.0.1:1'] }\n\
        limits:\n  shared: { token_bucket: { rate: 10/s, burst: 100 } }\nroutes:\n"
        .to_owned();
    for route in 0..routes {
        write!(
            text,
            "  - name: service-{route}
    when: {{ path: '/v1/service-{route}/**' }}
    upstream: u
    rules:
      - {{ name: address, limits: [{{ token_bucket: {{ rate: 10/s, burst: 20 }}, key: [ip] }}] }}
      - {{ name: key, limits: [{{ use: shared, key: [header.x-api-key, route] }}] }}
      - {{ name: writes, when: {{ method: [POST, PUT] }}, limits: [{{ token_bucket: {{ rate: 1/s, burst: 2 }}, key: [ip] }}] }}
"
        )
        .expect("text grows");
    }
    text
}
