//! Files of the shapes that envoyproxy/ratelimit documents, each with the outcome that is documented for it.

use super::stage::{Rig, codes, descriptor, hits, request, with_limit};
use tollgate_service::rls::messages::{Code, Kind, RateLimitResponse, Struct};

const OK: Code = Code::Ok;
const OVER: Code = Code::OverLimit;

/// A door with this file of the domain `d`.
fn door(descriptors: &str) -> Rig {
    Rig::new("", &format!("domain: d\ndescriptors:{descriptors}"))
}

/// How often in a row this passes, of so many times.
async fn passes(door: &Rig, entries: &[(&str, &str)], times: usize) -> usize {
    let mut passed = 0;
    for _ in 0..times {
        passed += usize::from(door.ask([descriptor(entries)]).await.overall_code() == OK);
    }
    passed
}

fn left(told: &RateLimitResponse) -> Vec<u32> {
    told.statuses.iter().map(|status| status.limit_remaining).collect()
}

#[tokio::test]
async fn values_of_one_key_have_a_limit_each() {
    let door = door(
        "
  - key: database
    value: users
    rate_limit:
      unit: second
      requests_per_unit: 50
  - key: database
    value: orders
    rate_limit:
      unit: second
      requests_per_unit: 20
",
    );
    assert_eq!(passes(&door, &[("database", "users")], 60).await, 50);
    assert_eq!(passes(&door, &[("database", "orders")], 60).await, 20);
    assert_eq!(passes(&door, &[("database", "logs")], 60).await, 60, "nothing limits others");
    assert_eq!(passes(&door, &[("Database", "users")], 60).await, 60, "capitals count");
}

#[tokio::test]
async fn nested_lists_limit_pairs_and_one_that_is_over_refuses_the_request() {
    let door = door(
        "
  # A few advertisements a day to a number,
  - key: message_type
    value: marketing
    descriptors:
      - key: to_number
        rate_limit:
          unit: day
          requests_per_unit: 5
  # and not many of anything.
  - key: to_number
    rate_limit:
      unit: day
      requests_per_unit: 100
",
    );
    let advertisement = |number| descriptor(&[("message_type", "marketing"), ("to_number", number)]);
    let any = |number| descriptor(&[("to_number", number)]);
    for sent in 1..=5_u32 {
        let told = door.ask([advertisement("1"), any("1")]).await;
        assert_eq!((told.overall_code(), left(&told)), (OK, vec![5 - sent, 100 - sent]));
    }
    let told = door.ask([advertisement("1"), any("1")]).await;
    assert_eq!((told.overall_code(), codes(&told)), (OVER, vec![OVER, OK]));
    assert_eq!(door.ask([advertisement("2"), any("2")]).await.overall_code(), OK, "every number has its own");
    assert_eq!(passes(&door, &[("to_number", "1")], 100).await, 94, "six were counted");
    assert_eq!(passes(&door, &[("message_type", "marketing")], 9).await, 9, "a node without a limit");
    assert_eq!(passes(&door, &[("message_type", "receipt"), ("to_number", "1")], 9).await, 9);
}

#[tokio::test]
async fn a_value_that_is_named_goes_before_its_key() {
    let door = door(
        "
  - key: remote_address
    rate_limit:
      unit: second
      requests_per_unit: 10
  - key: remote_address
    value: 192.0.2.5
    rate_limit:
      unit: second
      requests_per_unit: 0
",
    );
    assert_eq!(passes(&door, &[("remote_address", "192.0.2.1")], 12).await, 10);
    assert_eq!(passes(&door, &[("remote_address", "192.0.2.2")], 12).await, 10);
    assert_eq!(passes(&door, &[("remote_address", "192.0.2.5")], 12).await, 0);
}

#[tokio::test]
async fn a_descriptor_has_to_be_as_deep_as_its_rule() {
    let entries = [("tier", "free"), ("method", "PUT")];
    let limit = "rate_limit: { requests_per_unit: 3, unit: second }";
    let flat = door(&format!("\n  - key: tier\n    value: free\n    {limit}\n"));
    assert_eq!(passes(&flat, &entries, 5).await, 5);
    assert_eq!(passes(&flat, &entries[..1], 5).await, 3);
    let nested =
        format!("\n  - key: tier\n    value: free\n    descriptors:\n      - key: method\n        {limit}\n");
    let nested = door(&nested);
    assert_eq!(passes(&nested, &entries, 5).await, 3);
    assert_eq!(passes(&nested, &entries[..1], 5).await, 5);
}

#[tokio::test]
async fn one_that_is_unlimited_is_told_from_one_that_does_not_exist() {
    let door = door(
        "
  - key: directory
    rate_limit:
      unlimited: true
  - key: cloud
    rate_limit:
      unit: minute
      requests_per_unit: 100
",
    );
    let told = door.ask(["directory", "cloud", "elsewhere"].map(|key| descriptor(&[(key, "x")]))).await;
    assert_eq!((codes(&told), left(&told)), (vec![OK, OK, OK], vec![u32::MAX, 99, 0]));
    let has_limit: Vec<bool> = told.statuses.iter().map(|it| it.current_limit.is_some()).collect();
    assert_eq!(has_limit, [false, true, false]);
}

#[tokio::test]
async fn a_rule_in_shadow_refuses_nobody() {
    let door = door(
        "
  - key: service
    descriptors:
      - key: user
        value: ann
        rate_limit:
          requests_per_unit: 10
          unit: second
        shadow_mode: true
      - key: user
        value: ben
        rate_limit:
          requests_per_unit: 20
          unit: second
",
    );
    assert_eq!(passes(&door, &[("service", "auth"), ("user", "ann")], 30).await, 30);
    assert_eq!(passes(&door, &[("service", "auth"), ("user", "ben")], 30).await, 20);
    assert_eq!(passes(&door, &[("service", "mail"), ("user", "ben")], 30).await, 20);
    assert_eq!(passes(&door, &[("service", "auth"), ("user", "cleo")], 30).await, 30);
}

#[tokio::test]
async fn a_rule_replaces_another_and_leaves_what_that_one_has() {
    let door = door(
        "
  - key: kind
    value: read
    descriptors:
      - key: user
        value: ann
        rate_limit:
          name: reads
          requests_per_unit: 5
          unit: second
  - key: path
    value: /search
    descriptors:
      - key: user
        value: ann
        rate_limit:
          replaces:
            - name: reads
          requests_per_unit: 10
          unit: second
",
    );
    let reads = descriptor(&[("kind", "read"), ("user", "ann")]);
    let searches = descriptor(&[("path", "/search"), ("user", "ann")]);
    for searched in 1..=12 {
        let told = door.ask([reads.clone(), searches.clone()]).await;
        let code = if searched > 10 { OVER } else { OK };
        assert_eq!((told.overall_code(), codes(&told)), (code, vec![OK, code]), "{searched}");
    }
    assert_eq!(passes(&door, &[("kind", "read"), ("user", "ann")], 9).await, 5, "none of them was used");
}

#[tokio::test]
async fn what_concerns_metrics_changes_no_limit() {
    let door = door(
        "
  - key: client
    detailed_metric: true
    rate_limit:
      unit: minute
      requests_per_unit: 10
  - key: client
    value: partner
    rate_limit:
      unit: minute
      requests_per_unit: 20
  - key: route
    value: get*
    value_to_metric: true
    descriptors:
      - key: method
        value_to_metric: true
        rate_limit:
          unit: minute
          requests_per_unit: 3
",
    );
    assert_eq!(passes(&door, &[("client", "one")], 30).await, 10);
    assert_eq!(passes(&door, &[("client", "two")], 30).await, 10);
    assert_eq!(passes(&door, &[("client", "partner")], 30).await, 20);
    assert_eq!(passes(&door, &[("route", "get_all"), ("method", "GET")], 9).await, 3);
}

#[tokio::test]
async fn a_star_stands_for_values_that_count_by_themselves_or_together() {
    let door = door(
        "
  - key: item
    value: item*
    rate_limit:
      unit: minute
      requests_per_unit: 20
  - key: file
    value: /srv/*
    share_threshold: true
    rate_limit:
      unit: minute
      requests_per_unit: 20
",
    );
    assert_eq!(passes(&door, &[("item", "item1")], 30).await, 20);
    assert_eq!(passes(&door, &[("item", "item2")], 30).await, 20);
    assert_eq!(passes(&door, &[("item", "other")], 30).await, 30);
    assert_eq!(passes(&door, &[("file", "/srv/a")], 12).await, 12);
    assert_eq!(passes(&door, &[("file", "/srv/b")], 12).await, 8);
}

/// Two services with a quota of their own: the answer's metadata names those that have some left.
const SERVICES: &str = "
  - key: service
    value: service_1
    quota_mode: true
    metadata: { service_with_quota: { name: service_1 } }
    rate_limit: { unit: minute, requests_per_unit: 1 }
  - key: service
    value: service_2
    quota_mode: true
    metadata: { service_with_quota: { name: service_2 } }
    rate_limit: { unit: minute, requests_per_unit: 2 }
";

fn fields(of: &Struct, name: &str) -> Option<Struct> {
    match of.fields.get(name)?.kind.clone()? {
        Kind::StructValue(fields) => Some(fields),
        other => panic!("{name} is {other:?}"),
    }
}

/// The service that an answer routes to.
fn routed_to(told: &RateLimitResponse) -> Option<String> {
    let metadata = fields(told.dynamic_metadata.as_ref().expect("metadata"), "metadata")?;
    match fields(&metadata, "service_with_quota")?.fields["name"].kind.clone() {
        Some(Kind::StringValue(name)) => Some(name),
        other => panic!("{other:?}"),
    }
}

/// The script `multiservice-tokenquota.sh`: both services are asked about with zero hits; the one that served the request
/// is charged with one afterwards.
#[tokio::test]
async fn requests_go_to_the_first_service_that_has_quota_left() {
    let door = Rig::new(", dynamic_metadata: true", &format!("domain: d\ndescriptors:{SERVICES}"));
    let mut served = Vec::new();
    for _ in 0..6 {
        let both = ["service_1", "service_2"].map(|name| hits(&[("service", name)], 0));
        let told = door.ask(both).await;
        let service = routed_to(&told).filter(|_| told.overall_code() == OK);
        if let Some(service) = &service {
            door.ask([hits(&[("service", service)], 1)]).await;
        }
        served.push(service.unwrap_or_else(|| "429".to_owned()));
    }
    assert_eq!(served, ["service_1", "service_1", "service_2", "service_2", "service_2", "429"]);
}

#[tokio::test]
async fn metadata_is_of_descriptors_that_a_limit_let_pass() {
    let limit = "rate_limit: { unit: day, requests_per_unit:";
    let file = format!(
        "domain: d
descriptors:
- {{ key: passes, metadata: {{ passes: 1 }}, {limit} 9, name: few }} }}
- {{ key: over, metadata: {{ over: 1 }}, {limit} 0 }} }}
- {{ key: shadow, shadow_mode: true, metadata: {{ shadow: 1 }}, {limit} 0 }} }}
- {{ key: open, metadata: {{ open: 1 }}, rate_limit: {{ unlimited: true }} }}
- {{ key: strict, metadata: {{ strict: 1 }}, {limit} 9, replaces: [ {{ name: few }} ] }} }}
"
    );
    let door = Rig::new(", dynamic_metadata: true", &file);
    let names = async |keys: &[&str]| {
        let descriptors: Vec<_> = keys.iter().map(|key| descriptor(&[(key, "x")])).collect();
        let told = door.ask(descriptors).await.dynamic_metadata.expect("metadata");
        fields(&told, "metadata").map(|it| it.fields.into_keys().collect::<Vec<_>>())
    };
    let some = |names: &[&str]| Some(names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
    assert_eq!(names(&["passes", "over", "shadow", "open"]).await, some(&["passes", "shadow"]));
    assert_eq!(names(&["passes", "strict"]).await, some(&["strict"]), "what is replaced does not hold");
    assert_eq!(names(&["over", "open"]).await, None);
}

#[tokio::test]
async fn metadata_has_the_hits_of_a_request_that_names_some() {
    let door = Rig::new(", dynamic_metadata: true", &format!("domain: d\ndescriptors:{SERVICES}"));
    let hits_of = async |hits_addend| {
        let mut asked = request([hits(&[("service", "service_1")], 0)]);
        asked.hits_addend = hits_addend;
        let told = door.try_ask(asked).await.expect("an answer").dynamic_metadata.expect("metadata");
        told.fields.get("hitsAddend").and_then(|it| it.kind.clone())
    };
    assert_eq!(hits_of(0).await, None);
    assert_eq!(hits_of(3).await, Some(Kind::NumberValue(3.0)));
}

#[tokio::test]
async fn an_unlimited_rule_that_is_replaced_is_unlimited_still() {
    let door = door(
        "
  - key: partner
    rate_limit: { unlimited: true, name: partners }
  - key: path
    rate_limit: { unit: minute, requests_per_unit: 1, replaces: [ { name: partners } ] }
",
    );
    let both = [descriptor(&[("partner", "x")]), descriptor(&[("path", "/")])];
    for (code, remaining) in [(OK, vec![u32::MAX, 0]), (OVER, vec![u32::MAX, 0])] {
        let told = door.ask(both.clone()).await;
        assert_eq!((told.overall_code(), codes(&told), left(&told)), (code, vec![OK, code], remaining));
    }
}

#[tokio::test]
async fn a_domain_that_is_unknown_has_no_limits_whatever_comes_with_the_request() {
    let door = door("\n  - key: a\n    rate_limit: { unit: day, requests_per_unit: 0 }\n");
    for unit in [0, 2, 7, -1] {
        let mut asked = request([with_limit(&[("a", "x")], 0, unit), descriptor(&[("a", "x")])]);
        asked.domain = "elsewhere".into();
        let told = door.try_ask(asked).await.expect("an answer");
        assert_eq!((told.overall_code(), codes(&told)), (OK, vec![OK, OK]), "{unit}");
        assert!(told.statuses.iter().all(|status| status.current_limit.is_none()), "{unit}");
    }
}

/// What `STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT` is for: a request that one descriptor refuses does not charge the others.
#[tokio::test]
async fn only_atomic_keeps_a_refused_request_from_charging_the_other_descriptors() {
    let limit = "rate_limit: { unit: day, requests_per_unit:";
    let file = format!(
        "domain: d
descriptors:
- {{ key: few, {limit} 1 }} }}
- {{ key: many, {limit} 9 }} }}
- {{ key: blocked, {limit} 0 }} }}
"
    );
    for (settings, remaining) in [("", 2), (", count_refused: false", 2), (", atomic: true", 8)] {
        let door = Rig::new(settings, &file);
        for other in ["few", "few", "few", "few", "blocked", "blocked", "blocked"] {
            door.ask([descriptor(&[(other, "x")]), descriptor(&[("many", "x")])]).await;
        }
        assert_eq!(left(&door.ask([hits(&[("many", "x")], 0)]).await), [remaining], "{settings}");
    }
    let atomic = Rig::new(", atomic: true", &file);
    let mut told = Vec::new();
    for count in [8, 5, 1] {
        told.push(atomic.ask([hits(&[("many", "x")], count), hits(&[("few", "x")], 0)]).await.overall_code());
    }
    assert_eq!(told, [OK, OVER, OK], "unlike there, the descriptor that refuses is not charged either");
}
