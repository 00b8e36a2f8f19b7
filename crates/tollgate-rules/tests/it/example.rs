//! A whole rule file, with every key in it, and what it means.

use std::{collections::HashMap, net::SocketAddr, path::PathBuf, time::Duration};
use tollgate::{
    Bandwidth, Calendar, Concurrency, FixedWindow, Limit, OnFailure, Rate, TokenBucket, Unit, WhenFull,
};
use tollgate_rules::{
    RuleFile,
    model::{
        AccessLog, Attribute, Cost, DailyTime, Excess, HeaderStyle, HealthCheck, Instant, LimitSource,
        Listener, LogFormat, LogLevel, Matcher, Missing, Parents, PathPattern, RefusalLog, RefusalStyle,
        Server, TimeSpan, TlsFiles, When,
    },
    parse_rules,
};

pub(crate) const EXAMPLE: &str = include_str!("example.yaml");

/// The environment that the example is read in.
pub(crate) fn environment(name: &str) -> Option<String> {
    let known =
        HashMap::from([("REDIS_PASSWORD", "s3cret"), ("VIP_KEY", "vip: [1]"), ("OTLP_TOKEN", "s3cret-too")]);
    known.get(name).map(|value| (*value).to_owned())
}

fn example() -> RuleFile {
    parse_rules(EXAMPLE, environment).unwrap_or_else(|mistakes| panic!("{mistakes}"))
}

fn bucket(rate: u32, burst: u32) -> Limit {
    TokenBucket::new(Rate::per_second(rate).unwrap(), burst).unwrap().into()
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[test]
fn settings() {
    let file = example();
    assert!(file.enabled);
    let gateway = Listener {
        address: SocketAddr::from(([127, 0, 0, 1], 8080)),
        tls: Some(TlsFiles { cert: PathBuf::from("cert.pem"), key: PathBuf::from("key.pem") }),
        tokens: Vec::new(),
        open: false,
        users: Vec::new(),
        proxied: false,
        max_connections: 5000,
        max_in_flight: 1000,
        backlog: 512,
        max_header: 16 << 10,
        max_body: Some(10 << 20),
        header_timeout: seconds(5),
        idle_timeout: seconds(60),
    };
    assert_eq!(file.listen.gateway, Some(gateway));
    assert_eq!(file.listen.http, Some(Listener::on(SocketAddr::from(([127, 0, 0, 1], 8082)))));
    assert_eq!(file.listen.admin.unwrap().address.to_string(), "[::1]:9090");
    assert_eq!(file.store.url, "redis://:s3cret@127.0.0.1:6379/0");
    assert_eq!((file.store.max_keys, file.store.when_full), (500_000, WhenFull::Deny));
    assert_eq!((file.store.timeout, file.store.on_failure), (Duration::from_millis(30), OnFailure::Closed));
    assert_eq!((file.store.nodes, file.store.lease), (3, Some(Duration::from_millis(100))));
    let proxies: Vec<_> = file.trusted_proxies.iter().map(ToString::to_string).collect();
    assert_eq!(proxies, ["10.0.0.0/8", "192.168.1.1/32", "2001:db8::/32"]);
    assert_eq!((file.headers, file.refusal), (HeaderStyle::XRateLimit, RefusalStyle::Soul));
    assert_eq!(
        (file.log.refusals, file.log.level, file.log.access),
        (RefusalLog::All, LogLevel::Debug, AccessLog::On)
    );
    assert_eq!((file.log.refusals_level, file.log.format), (LogLevel::Warn, LogFormat::Json));
    let telemetry = file.telemetry.unwrap();
    assert_eq!((telemetry.sample, telemetry.parents), (0.25, Parents::Ignore));
    assert_eq!(
        (telemetry.otlp.as_str(), telemetry.service.as_str()),
        ("https://collector.example:4318/base", "edge")
    );
    assert_eq!(telemetry.headers, [("authorization".to_owned(), "Bearer s3cret-too".to_owned())]);
}

#[test]
fn limits_and_their_overrides() {
    let file = example();
    let names: Vec<_> = file.limits.iter().map(|limit| limit.name.as_str()).collect();
    assert_eq!(names, ["per-client", "login", "checkout", "daily"]);
    let per_client = &file.limits[0];
    assert_eq!((&per_client.limit, per_client.max_keys), (&bucket(10, 100), Some(10_000)));
    let overrides: Vec<_> =
        per_client.overrides.iter().map(|other| (other.key.clone(), other.limit.clone())).collect();
    let key = |values: &[&str]| values.iter().map(|value| (*value).to_owned()).collect::<Vec<_>>();
    let expected = [
        (key(&["vip-7"]), bucket(100, 1000)),
        (key(&["acme", "eu"]), bucket(10, 500)),
        (key(&["vip: [1]"]), bucket(1000, 100)),
    ];
    assert_eq!(overrides, expected);
    assert_eq!(file.limits[2].limit, Concurrency::new(20, seconds(30)).unwrap().with_queue(10).into());
    let calendar = Calendar::new(Unit::Day, "Asia/Shanghai").unwrap();
    assert_eq!(file.limits[3].limit, FixedWindow::calendar(1000, calendar).unwrap().into());
}

#[test]
fn upstreams() {
    let file = example();
    let orders = &file.upstreams[0];
    let server = |url: &str, weight| Server { url: url.to_owned(), weight };
    assert_eq!(orders.servers, [server("http://127.0.0.1:9001", 1), server("http://127.0.0.1:9002", 2)]);
    assert_eq!((orders.connect_timeout, orders.timeout), (seconds(2), seconds(20)));
    assert_eq!(orders.idle_timeout, seconds(55));
    assert_eq!(file.upstreams[1].idle_timeout, std::time::Duration::from_millis(1500));
    let health =
        HealthCheck { path: "/ok".to_owned(), every: seconds(3), unhealthy_after: 4, healthy_after: 1 };
    assert_eq!(orders.health, Some(health));
    assert_eq!((file.upstreams[1].name.as_str(), &file.upstreams[1].health), ("spare", &None));
    assert_eq!((file.upstreams[1].connect_timeout, file.upstreams[1].timeout), (seconds(1), seconds(30)));
}

#[test]
fn rules() {
    let file = example();
    assert_eq!((file.everywhere.len(), file.everywhere[0].name.as_str()), (1, "per-ip"));
    let orders = &file.routes[0];
    assert_eq!((orders.name.as_str(), orders.upstream), ("orders", 0));
    assert_eq!(orders.strip_prefix.as_deref(), Some("/orders"));
    let [create, by_tenant, uploads, office_hours, in_flight] = &orders.rules[..] else {
        panic!("five rules")
    };

    assert_eq!((&create.excess, create.on_failure), (&Excess::Reject(None), Some(OnFailure::Closed)));
    assert!(matches!(create.limits[0].limit, LimitSource::Named(0)));
    assert_eq!(create.limits[0].key, [Attribute::Header("x-api-key".parse().unwrap())]);
    assert_eq!((create.limits[0].missing, &create.limits[0].cost), (Missing::Deny, &Cost::Units(1)));
    assert_eq!(
        (&create.limits[1].key[..], &create.limits[1].cost),
        (&[Attribute::IpPrefix(24)][..], &Cost::Units(2))
    );
    assert_eq!(create.limits[2].key, []);
    assert!(matches!(&create.limits[2].limit, LimitSource::Inline(limit) if limit.most() == 100));

    assert_eq!(by_tenant.limits.len(), 1);
    assert_eq!(
        by_tenant.limits[0].key,
        [Attribute::Capture("tenant".to_owned()), Attribute::Route, Attribute::Rule]
    );
    assert_eq!(
        by_tenant.bandwidth,
        Some(Bandwidth::new(Rate::per_second(50 << 10).unwrap()).with_after(1 << 20))
    );
    let Excess::Reject(Some(reply)) = &by_tenant.excess else { panic!("{:?}", by_tenant.excess) };
    assert_eq!((reply.status.as_u16(), reply.body.as_deref()), (503, Some("{}")));

    assert!(!uploads.enabled);
    assert_eq!((&uploads.limits[0].cost, uploads.limits[0].missing), (&Cost::ContentLength, Missing::Skip));
    assert_eq!(uploads.excess, Excess::Wait(Duration::from_millis(500)));
    assert_eq!(office_hours.excess, Excess::Divert(1));
    assert_eq!(in_flight.excess, Excess::Wait(seconds(2)));
    let Excess::Degrade(reply) = &file.routes[1].rules[1].excess else { panic!("degraded") };
    assert_eq!((reply.status.as_u16(), reply.content_type.as_deref()), (200, Some("application/json")));
    assert_eq!(file.routes[1].rules[0].excess, Excess::Shadow);
    assert_eq!(file.warnings(), []);
}

/// A condition as it could be written again, for comparing.
fn shown(when: &When) -> String {
    let several = |all: &[When]| all.iter().map(shown).collect::<Vec<_>>().join(", ");
    match when {
        When::Always => "always".to_owned(),
        When::All(all) => format!("all({})", several(all)),
        When::Any(any) => format!("any({})", several(any)),
        When::Not(not) => format!("not({})", shown(not)),
        When::Is(attribute, Matcher::Glob(PathPattern { text, .. })) => format!("{attribute:?} glob {text}"),
        When::Is(attribute, Matcher::Regex(regex)) => format!("{attribute:?} regex {regex}"),
        When::Is(attribute, matcher) => format!("{attribute:?} {matcher:?}"),
        When::Time(span) => format!("{span:?}"),
    }
}

#[test]
fn conditions() {
    let file = example();
    let rules = &file.routes[0].rules;
    assert_eq!(shown(&file.everywhere[0].when), "always");
    assert_eq!(shown(&file.routes[0].when), "Path glob /orders/{tenant}/**");
    assert_eq!(shown(&rules[0].when), "all(Method Exact(\"POST\"), not(Ip Net(10.9.0.0/16)))");
    assert_eq!(
        shown(&rules[2].when),
        "any(any(Header(\"content-type\") Prefix(\"image/\"), Header(\"content-type\") Prefix(\"video/\")), \
         all(Query(\"upload\") Exists(true), Cookie(\"session\") Blank(false)))"
    );
    let When::Any(spans) = &rules[3].when else { panic!("{:?}", rules[3].when) };
    let daily = |second| Some(Instant::Daily(DailyTime { second, time_zone: "Europe/Paris".to_owned() }));
    let expected = TimeSpan { after: daily(9 * 3600), before: daily(17 * 3600 + 30) };
    assert!(matches!(&spans[0], When::Time(span) if *span == expected));
    let expected = TimeSpan { after: None, before: Some(Instant::Once(1_794_736_800_000_000)) };
    assert!(matches!(&spans[1], When::Time(span) if *span == expected), "{:?}", spans[1]);

    let When::All(written) = &file.routes[1].when else { panic!("{:?}", file.routes[1].when) };
    let parts: Vec<_> = written.iter().map(shown).collect();
    assert_eq!(
        parts,
        [
            r"any(Path glob /, Path glob /static/*.js, Path regex \A(?:/v[0-9]+/.*)\z, Path Suffix(~.html~))"
                .replace('~', "\""),
            r"any(Method Exact(~GET~), Method regex \A(?:P.*)\z)".replace('~', "\""),
            "any(Host Exact(\"api.example.com\"), Host Suffix(\".example.org\"))".to_owned(),
            // Ten in the morning in Shanghai is two at night in UTC.
            "TimeSpan { after: Some(Once(1794708000000000)), before: None }".to_owned(),
        ]
    );
    // Of a whole text only.
    let When::Any(paths) = &written[0] else { panic!("{:?}", written[0]) };
    let When::Is(_, Matcher::Regex(regex)) = &paths[2] else { panic!("{:?}", paths[2]) };
    assert!(regex.is_match("/v1/x") && !regex.is_match("/a/v1/x"));
}

#[test]
fn what_is_left_out_is_as_documented() {
    let file = parse_rules("version: 1", |_| None).unwrap();
    assert!(
        file.enabled && file.listen.gateway.is_none() && file.routes.is_empty() && file.limits.is_empty()
    );
    assert_eq!(file.store.url, "memory:");
    assert_eq!((file.headers, file.refusal), (HeaderStyle::Draft10, RefusalStyle::Problem));
}
