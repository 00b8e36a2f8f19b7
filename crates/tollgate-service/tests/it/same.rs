//! One schedule through the library and every API: RESP, JSON, Envoy's service, the gateway and the tower layer. The same
//! decisions.
//!
//! Each has a store of its own on a clock of its own, and all clocks are moved alike. The limits are those that every API can
//! express: they make nobody wait, which Redis clients and Envoy never do. `CL.THROTTLE` knows buckets alone.

use super::{
    json, resp,
    rls::stage::{Rig, hits, rules},
};
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use proptest::prelude::*;
use serde_json::json;
use std::{convert::Infallible, net::SocketAddr, num::NonZeroUsize, sync::Arc, time::Duration};
use testkit::{Canned, Upstream};
use tollgate::{Bounds, Charge, Limit, ManualClock, MemoryStore};
use tollgate_gateway::{ClientInfo, Gateway, Handler, NoResponseRecorder, Prepared, RequestBody, Scheme};
use tollgate_rules::{DecisionService, ParsedLimit, decision::Api, parse_limit, parse_rules};
use tollgate_service::{JsonSettings, rls::messages::Code};
use tollgate_tower::{HeaderStyle, LayerLimit, LimitLayer};
use tower::{ServiceExt, service_fn};

const LIMITS: [(&str, &str); 7] = [
    ("bucket", "token_bucket: { rate: 7/s, burst: 5 }"),
    ("interval", "token_bucket: { rate: 3/s, burst: 6, refill: interval }"),
    ("leaky", "leaky_bucket: { rate: 3/s, capacity: 4 }"),
    ("fixed", "fixed_window: { limit: 4, window: 700ms, align: first_hit }"),
    ("log", "sliding_log: { limit: 4, window: 700ms }"),
    ("window", "sliding_window: { limit: 4, window: 700ms, precision: 100ms }"),
    ("counter", "sliding_counter: { limit: 4, window: 700ms }"),
];

/// The bucket above, as `CL.THROTTLE` has it: how many more than one at once, how many, in how many seconds.
const THROTTLE: &str = "4 7 1";

const KEYS: [&str; 2] = ["alice", "bob"];

/// How long after the one before, which limit, whose, how many units.
fn schedule() -> impl Strategy<Value = Vec<(u64, usize, usize, u32)>> {
    prop::collection::vec((0..400_000_u64, 0..LIMITS.len(), 0..KEYS.len(), 0..7_u32), 1..60)
}

fn limit(numbers: &str) -> Limit {
    match parse_limit(numbers) {
        Ok(ParsedLimit::Limit(limit)) => limit,
        other => panic!("{numbers}: {other:?}"),
    }
}

/// A gateway with a route for each limit, before an upstream that always answers.
struct Proxy {
    clock: ManualClock,
    gateway: Gateway<MemoryStore<ManualClock>>,
    _upstream: Upstream,
}

impl Proxy {
    fn new(limits: &str) -> Self {
        let upstream = Upstream::start(|_| Canned::text("ok"));
        let route = |name: &str| {
            format!(
                "- name: {name}\n  when: {{ path: /{name} }}\n  upstream: up\n  rules: [ {{ name: r, limits: [ {{ use: {name}, \
                 key: [header.k], cost: {{ header: cost, default: 1, min: 0, max: 1000 }} }} ] }} ]\n"
            )
        };
        let routes: String = LIMITS.iter().map(|(name, _)| route(name)).collect();
        let text = format!(
            "version: 1\nheaders: x-ratelimit\nupstreams: {{ up: {{ servers: [ \"{}\" ] }} }}\nlimits:\n{limits}routes:\n{routes}",
            upstream.url()
        );
        let file = parse_rules(&text, |_| None).unwrap_or_else(|mistakes| panic!("{mistakes}\n{text}"));
        let clock = ManualClock::new();
        let store = Arc::new(MemoryStore::with_clock(Bounds::default(), clock.clone()));
        let prepared = Prepared::first(&file).expect("good upstreams");
        let session = DecisionService::new(store, file).expect("kept").session(Api::Gateway);
        let gateway = Gateway::new(session, prepared, Arc::new(NoResponseRecorder), NonZeroUsize::MAX);
        Self { clock, gateway, _upstream: upstream }
    }

    /// Whether a request passed, and how many units are left.
    async fn ask(&self, name: &str, key: &str, cost: u32) -> (bool, u32) {
        let head = Request::get(format!("/{name}")).header("host", "x").header("k", key).header("cost", cost);
        let request = head.body(RequestBody::empty()).expect("a request");
        let client = ClientInfo::new(SocketAddr::from(([192, 0, 2, 1], 1)), Scheme::Http);
        told(&self.gateway.handle(request, client).await)
    }
}

/// A tower layer for each limit, before a service that always answers.
struct Layers {
    clock: ManualClock,
    layers: Vec<LimitLayer>,
}

impl Layers {
    fn new() -> Self {
        let clock = ManualClock::new();
        let store = Arc::new(MemoryStore::with_clock(Bounds::default(), clock.clone()));
        let cost = |request: &http::request::Parts| {
            request.headers["cost"].to_str().expect("text").parse().expect("a number")
        };
        let layer = |(name, numbers): &(&str, &str)| {
            let layer = LimitLayer::in_store(&store, [LayerLimit::new(*name, limit(numbers))]).expect("room");
            layer.by_header("k").cost_of(cost).headers(HeaderStyle::XRateLimit)
        };
        Self { clock, layers: LIMITS.iter().map(layer).collect() }
    }

    async fn ask(&self, limit: usize, key: &str, cost: u32) -> (bool, u32) {
        let ok = async |_: Request<()>| Ok::<_, Infallible>(Response::new(Full::new(Bytes::new())));
        let service = tower::Layer::layer(&self.layers[limit], service_fn(ok));
        let request = Request::get("/").header("k", key).header("cost", cost).body(()).expect("a request");
        told(&service.oneshot(request).await.expect("it never fails"))
    }
}

/// Whether a response is of a request that passed, and how many units it says are left.
fn told<B>(response: &Response<B>) -> (bool, u32) {
    let passed = match response.status().as_u16() {
        200 => true,
        429 => false,
        status => panic!("{status}: {:?}", response.headers()),
    };
    let left = response.headers()["x-ratelimit-remaining"].to_str().expect("text");
    (passed, left.parse().expect("a number"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn every_api_decides_as_the_library_does(schedule in schedule()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let own = ManualClock::new();
        let library = MemoryStore::with_clock(Bounds::default(), own.clone());
        let limits = LIMITS.map(|(_, numbers)| library.add("limits", limit(numbers)).expect("room"));
        let named: String = LIMITS.iter().map(|(name, numbers)| format!("  {name}: {{ {numbers} }}\n")).collect();
        let file = format!("version: 1\nlimits:\n{named}");
        let (http, http_clock) = json::stage::memory_with(&file, JsonSettings::default());
        let redis = resp::stage::open_with(&file, |_| {});
        let descriptors: String =
            LIMITS.iter().map(|(name, numbers)| format!("- {{ key: {name}, algorithm: {{ {numbers} }} }}\n")).collect();
        let envoy = Rig::of(rules("", &format!("domain: d\ndescriptors:\n{descriptors}")));
        let (proxy, layers) = (Proxy::new(&named), Layers::new());
        let (mut http_client, mut redis_client) = (http.client(), redis.connect());

        for (micros, place, key, cost) in schedule {
            let pause = Duration::from_micros(micros);
            for clock in [&own, &http_clock, &redis.clock, &envoy.clock, &proxy.clock, &layers.clock] {
                clock.advance(pause);
            }
            let (name, key) = (LIMITS[place].0, KEYS[key]);
            let expected = library.check_one(&Charge::new(&limits[place], key).cost(cost)).expect("decided");

            let asked = json!({ "limit": name, "key": key, "cost": cost }).to_string();
            let told = http_client.post("/v1/check", &asked).json();
            prop_assert_eq!(&told["allow"], !expected.is_deny(), "JSON, {} {}", name, cost);
            prop_assert_eq!(&told["remaining"], expected.remaining(), "JSON, {} {}", name, cost);

            let told = redis_client.command(&["TG.CHECK", name, key, &cost.to_string()]).expect("an answer");
            let told = resp::stage::numbers(&told);
            prop_assert_eq!(told[0] == 0, !expected.is_deny(), "TG.CHECK, {} {}", name, cost);
            prop_assert_eq!(told[2], i64::from(expected.remaining()), "TG.CHECK, {} {}", name, cost);

            if name == "bucket" {
                let asked = format!("CL.THROTTLE {key} {THROTTLE} {cost}");
                let words: Vec<_> = asked.split(' ').collect();
                let told = resp::stage::numbers(&redis_client.command(&words).expect("an answer"));
                prop_assert_eq!(told[0] == 0, !expected.is_deny(), "CL.THROTTLE, {}", cost);
                prop_assert_eq!(told[2], i64::from(expected.remaining()), "CL.THROTTLE, {}", cost);
            }

            let left = expected.remaining();
            let asked = runtime.block_on(proxy.ask(name, key, cost));
            prop_assert_eq!(asked, (!expected.is_deny(), left), "the gateway, {} {}", name, cost);
            let asked = runtime.block_on(layers.ask(place, key, cost));
            prop_assert_eq!(asked, (!expected.is_deny(), left), "the tower layer, {} {}", name, cost);

            let told = runtime.block_on(envoy.ask([hits(&[(name, key)], cost.into())]));
            prop_assert_eq!(told.overall_code() == Code::Ok, !expected.is_deny(), "Envoy, {} {}", name, cost);
            // Envoy's service says that a refused descriptor has nothing left.
            let left = if expected.is_deny() { 0 } else { left };
            prop_assert_eq!(told.statuses[0].limit_remaining, left, "Envoy, {} {}", name, cost);
        }
    }
}
