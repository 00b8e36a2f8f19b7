//! The dashboard and the alerts ask for what a running server shows, and for all of it.

use crate::{folder::Folder, serving::Serving};
use serde_json::Value;
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::PathBuf,
};
use testkit::{Arrival, Arrivals, RedisServer, Upstream, eventually};

/// Shown, and on purpose in no panel: how many keys the sketch of the busiest forgot is for whoever doubts `/v1/top`.
const LEFT_OUT: [&str; 1] = ["tollgate_top_lost_total"];

/// Prometheus adds it to whatever it reads.
const ADDED: &str = "instance";

/// What a server shows: the labels of each name, and the values of each label.
type Shown = BTreeMap<String, BTreeMap<String, BTreeSet<String>>>;

fn repository(file: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").join(file);
    fs::read_to_string(&path).unwrap()
}

/// Every metric of a server on which everything has happened.
fn shown() -> Shown {
    let (redis, upstream, folder) = (RedisServer::start(), Upstream::ok(), Folder::new());
    let text = format!(
        r#"
version: 1
listen: {{ gateway: "127.0.0.1:0", admin: "127.0.0.1:0", http: "127.0.0.1:0" }}
store: {{ url: "{}", timeout: 5s }}
limits: {{ named: {{ token_bucket: {{ rate: 1/s, burst: 1 }} }} }}
upstreams: {{ app: {{ servers: [ "{}" ] }} }}
routes:
  - name: app
    when: {{ path: /** }}
    upstream: app
    rules: [ {{ name: slow, limits: [ {{ token_bucket: {{ rate: 20/s, burst: 1 }}, key: [] }} ], excess: {{ wait: 10s }} }} ]
"#,
        redis.url(),
        upstream.url()
    );
    let serving = Serving::start(&folder.file("tollgate.yaml", text), &[]);
    Arrivals::new((0..4).map(|_| Arrival::at_ms(0))).play(serving.gateway);
    let question = Arrival::at_ms(0).method("POST").path("/v1/check").body(r#"{"limit":"named","key":"a"}"#);
    Arrivals::new([question.header("content-type", "application/json")]).play(serving.door("http"));
    eventually("a request that waited, and Redis", || {
        let page = crate::serving::get(serving.admin, "/metrics").text();
        let shown = read(&page);
        let all = ["tollgate_wait_seconds_bucket", "tollgate_store_seconds_bucket", "tollgate_answers_total"];
        all.iter().all(|name| shown.contains_key(*name)).then_some(shown)
    })
}

/// Prometheus' text: `name{label="value",...} number`.
fn read(page: &str) -> Shown {
    let mut shown = Shown::new();
    for line in page.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
        let (series, _) = line.rsplit_once(' ').unwrap();
        let (name, labels) = series.split_once('{').unwrap_or((series, "}"));
        let known = shown.entry(name.to_owned()).or_default();
        for label in labels.trim_end_matches('}').split(',').filter(|label| !label.is_empty()) {
            let (label, value) = label.split_once('=').unwrap();
            known.entry(label.to_owned()).or_default().insert(value.trim_matches('"').to_owned());
        }
    }
    shown
}

/// Every query of the dashboard, with the labels that its legend shows.
fn queries() -> Vec<(String, String)> {
    fn look(value: &Value, found: &mut Vec<(String, String)>) {
        match value {
            Value::Object(entries) => {
                let text =
                    |name: &str| entries.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
                if entries.contains_key("expr") {
                    found.push((text("expr"), text("legendFormat") + &text("textFormat")));
                }
                if let Some(query) =
                    entries.get("query").and_then(|query| query.get("query")).and_then(Value::as_str)
                {
                    let asked =
                        query.strip_prefix("label_values(").and_then(|rest| rest.strip_suffix(')')).unwrap();
                    let (name, label) = asked.split_once(", ").unwrap();
                    found.push((format!("sum by ({label}) ({name})"), String::new()));
                }
                entries.values().for_each(|value| look(value, found));
            }
            Value::Array(items) => items.iter().for_each(|value| look(value, found)),
            _ => {}
        }
    }
    let mut found = Vec::new();
    look(&serde_json::from_str(&repository("docs/grafana/tollgate.json")).unwrap(), &mut found);
    found
}

/// The alerts' queries: what stands after `expr:`, and below it where it takes several lines.
fn alerts() -> Vec<(String, String)> {
    let text = repository("docs/grafana/alerts.yaml");
    let of_alert = |alert: &str| {
        let (_, rest) = alert.split_once("expr: ").unwrap();
        let end =
            ["\n        for:", "\n        labels:"].iter().filter_map(|end| rest.find(end)).min().unwrap();
        (rest[..end].trim_start_matches("|\n").to_owned(), rest[end..].replace("$labels.", ""))
    };
    text.split("- alert: ").skip(1).map(of_alert).collect()
}

/// Checks one query, and tells which metrics it asks for.
fn check(query: &str, legend: &str, shown: &Shown) -> BTreeSet<String> {
    let is_name = |letter: char| letter.is_ascii_lowercase() || letter == '_';
    let (mut asked, mut labels) = (BTreeSet::new(), BTreeSet::from([ADDED]));
    for (at, _) in query.match_indices("tollgate_") {
        let rest = &query[at..];
        let (name, rest) = rest.split_at(rest.find(|letter| !is_name(letter)).unwrap_or(rest.len()));
        let known = shown.get(name).unwrap_or_else(|| panic!("no server shows {name}: {query}"));
        asked.insert(name.to_owned());
        labels.extend(known.keys().map(String::as_str));
        let Some((matchers, _)) = rest.strip_prefix('{').and_then(|rest| rest.split_once('}')) else {
            continue;
        };
        for matcher in matchers.split(", ") {
            let (label, value) = matcher.split_at(matcher.find(|letter| !is_name(letter)).unwrap());
            let value = value.trim_start_matches(['=', '!', '~']).trim_matches('"');
            if value.starts_with('$') {
                continue;
            }
            let values = known.get(label).unwrap_or_else(|| panic!("{name} has no label {label}: {query}"));
            for value in value.split('|') {
                assert!(values.contains(value), "{name} never has {label}={value:?}: {query}");
            }
        }
    }
    for (at, _) in query.match_indices(" by (") {
        let (by, _) = query[at + 5..].split_once(')').unwrap();
        for label in by.split(", ") {
            assert!(labels.contains(label), "nothing has the label {label}: {query}");
        }
    }
    for (at, _) in legend.match_indices("{{") {
        let (label, _) = legend[at + 2..].split_once("}}").unwrap();
        assert!(labels.contains(label.trim()), "the legend shows {label}: {query}");
    }
    assert!(!asked.is_empty(), "{query}");
    asked
}

#[test]
fn the_dashboard_and_the_alerts_ask_for_what_there_is() {
    let shown = shown();
    let family = |name: &str| {
        let parts = ["_bucket", "_sum", "_count"].iter().find_map(|part| name.strip_suffix(part));
        parts.unwrap_or(name).to_owned()
    };
    let queries = queries();
    assert!(queries.len() > 25, "{}", queries.len());
    let mut asked = BTreeSet::new();
    for (query, legend) in &queries {
        asked.extend(check(query, legend, &shown).iter().map(|name| family(name)));
    }
    let alerts = alerts();
    assert!(alerts.len() > 5);
    for (query, legend) in &alerts {
        check(query, legend, &shown);
    }
    let shown: BTreeSet<_> =
        shown.keys().map(|name| family(name)).filter(|name| name.starts_with("tollgate_")).collect();
    let unasked: Vec<_> =
        shown.difference(&asked).filter(|name| !LEFT_OUT.contains(&name.as_str())).collect();
    assert!(unasked.is_empty(), "in no panel, and not left out on purpose: {unasked:?}");
    assert!(LEFT_OUT.iter().all(|name| shown.contains(*name) && !asked.contains(*name)));
}
