//! What descriptors are told, in the reference's own meaning and in ours.

use super::stage::{Rig, codes, descriptor, hits, request, rules, rules_on, with_limit};
use std::time::Duration;
use tollgate_service::rls::{
    AskError,
    messages::{Code, Kind, RateLimitDescriptor, RateLimitRequest, WireUnit},
};

const DOMAIN: &str = "
domain: d
descriptors:
- key: three
  rate_limit: { unit: minute, requests_per_unit: 3, name: few }
- key: one
  rate_limit: { unit: hour, requests_per_unit: 1 }
- key: none
  rate_limit: { unit: day, requests_per_unit: 0 }
- key: open
  rate_limit: { unlimited: true }
- key: shadow
  shadow_mode: true
  rate_limit: { unit: day, requests_per_unit: 1 }
- key: shared
  value: 'a*'
  share_threshold: true
  rate_limit: { unit: day, requests_per_unit: 2 }
- key: quota
  quota_mode: true
  rate_limit: { unit: day, requests_per_unit: 1 }
- key: log
  algorithm: { sliding_log: { limit: 2, window: 30s } }
- key: strict
  rate_limit: { unit: day, requests_per_unit: 1, name: strict, replaces: [ { name: few } ] }
- key: told
  metadata: { team: { name: a, level: 1 }, on: true }
  rate_limit: { unit: day, requests_per_unit: 9 }
- key: told too
  metadata: { team: { name: b, more: [ x ] } }
  rate_limit: { unit: day, requests_per_unit: 9 }
";

const OK: Code = Code::Ok;
const OVER: Code = Code::OverLimit;

#[tokio::test]
async fn a_limit_of_n_admits_exactly_n_a_window() {
    let door = Rig::new("", DOMAIN);
    // 1,000,000,000 s since 1970 is 40 s into a minute.
    for left in [2, 1, 0] {
        let told = door.ask([descriptor(&[("three", "x")])]).await;
        assert_eq!((told.overall_code(), told.statuses[0].limit_remaining), (OK, left));
        let limit = told.statuses[0].current_limit.clone().expect("a limit");
        assert_eq!((limit.requests_per_unit, limit.unit(), &*limit.name), (3, WireUnit::Minute, "few"));
        assert_eq!(told.statuses[0].duration_until_reset.expect("a time").seconds, 20);
    }
    assert_eq!(door.hit("three", "x").await, (OVER, 0));
    assert_eq!(door.hit("three", "y").await, (OK, 2), "another value is another counter");
    door.clock.advance(Duration::from_millis(19_500));
    let told = door.ask([descriptor(&[("three", "x")])]).await;
    assert_eq!(told.overall_code(), OVER);
    assert_eq!(told.statuses[0].duration_until_reset.expect("a time").seconds, 1, "rounded up");
    door.clock.advance(Duration::from_millis(500));
    assert_eq!(door.hit("three", "x").await, (OK, 2));
}

#[tokio::test]
async fn hits_are_counted_refused_or_not_and_never_granted_in_part() {
    let door = Rig::new("", DOMAIN);
    let ask = async |count| {
        let told = door.ask([hits(&[("three", "x")], count)]).await;
        (told.overall_code(), told.statuses[0].limit_remaining)
    };
    assert_eq!(ask(0).await, (OK, 3), "a peek");
    assert_eq!(ask(2).await, (OK, 1));
    assert_eq!(ask(2).await, (OVER, 0));
    assert_eq!(ask(0).await, (OVER, 0), "what was refused is counted");
    assert_eq!(ask(1).await, (OVER, 0));

    let door = Rig::new("", DOMAIN);
    let mut asked = request([descriptor(&[("three", "x")]), hits(&[("three", "y")], 1)]);
    asked.hits_addend = 3;
    let told = door.try_ask(asked).await.expect("an answer");
    assert_eq!([told.statuses[0].limit_remaining, told.statuses[1].limit_remaining], [0, 2]);
    let told = door.ask([hits(&[("three", "x")], 0)]).await;
    assert_eq!((told.overall_code(), told.statuses[0].limit_remaining), (OK, 0), "full is not over");
}

#[tokio::test]
async fn more_hits_than_a_number_holds_are_all_there_are() {
    let door = Rig::new("", DOMAIN);
    assert_eq!(door.hit("three", "x").await, (OK, 2));
    for count in [u64::MAX, 1 << 40, 1] {
        assert_eq!(door.ask([hits(&[("three", "x")], count)]).await.overall_code(), OVER);
    }
    assert_eq!(door.ask([hits(&[("three", "x")], 0)]).await.overall_code(), OVER);
}

#[tokio::test]
async fn negative_hits_give_back_down_to_nothing() {
    let door = Rig::new("", DOMAIN);
    let back = |count| RateLimitDescriptor { is_negative_hits: true, ..hits(&[("three", "x")], count) };
    assert_eq!(door.ask([back(5)]).await.statuses[0].limit_remaining, 3, "nobody was counted");
    for _ in 0..4 {
        door.hit("three", "x").await;
    }
    let told = door.ask([back(3)]).await;
    assert_eq!((told.overall_code(), told.statuses[0].limit_remaining), (OK, 2));
    assert_eq!(door.ask([back(9)]).await.statuses[0].limit_remaining, 3, "never below none");
}

#[tokio::test]
async fn zero_blocks_and_unlimited_is_not_counted() {
    let door = Rig::new("", DOMAIN);
    assert_eq!(door.hit("none", "x").await, (OVER, 0));
    let told = door.ask([descriptor(&[("open", "x")]), descriptor(&[("unheard", "x")])]).await;
    assert_eq!(codes(&told), [OK, OK]);
    assert_eq!([told.statuses[0].limit_remaining, told.statuses[1].limit_remaining], [u32::MAX, 0]);
    assert!(told.statuses.iter().all(|it| it.current_limit.is_none() && it.duration_until_reset.is_none()));
}

#[tokio::test]
async fn each_descriptor_is_by_itself_and_one_that_is_over_refuses() {
    let door = Rig::new("", DOMAIN);
    let both = [descriptor(&[("one", "x")]), descriptor(&[("three", "x")])];
    let told = door.ask(both.clone()).await;
    assert_eq!((told.overall_code(), codes(&told)), (OK, vec![OK, OK]));
    let told = door.ask(both).await;
    assert_eq!((told.overall_code(), codes(&told)), (OVER, vec![OVER, OK]));
    assert_eq!(told.statuses[1].limit_remaining, 1, "it was counted all the same");
}

#[tokio::test]
async fn values_that_share_a_threshold_share_a_counter() {
    let door = Rig::new("", DOMAIN);
    assert_eq!(door.hit("shared", "a1").await, (OK, 1));
    assert_eq!(door.hit("shared", "a2").await, (OK, 0));
    assert_eq!(door.hit("shared", "a3").await, (OVER, 0));
    assert_eq!(door.hit("shared", "b").await, (OK, 0), "nothing limits it");
}

#[tokio::test]
async fn a_shadow_is_counted_and_refuses_nobody() {
    let door = Rig::new("", DOMAIN);
    for left in [0, 0, 0] {
        let told = door.ask([descriptor(&[("shadow", "x")])]).await;
        assert_eq!((told.overall_code(), codes(&told)), (OK, vec![OK]));
        assert_eq!(told.statuses[0].limit_remaining, left);
        assert!(told.statuses[0].current_limit.is_some());
    }
    let door = Rig::new(", shadow_mode: true", DOMAIN);
    let told = door.ask([descriptor(&[("none", "x")])]).await;
    assert_eq!((told.overall_code(), codes(&told)), (OK, vec![OVER]), "its status says what it would be");
}

#[tokio::test]
async fn quotas_refuse_only_all_together() {
    let door = Rig::new("", DOMAIN);
    let (one, two) = (descriptor(&[("quota", "1")]), descriptor(&[("quota", "2")]));
    assert_eq!(door.ask([one.clone()]).await.overall_code(), OK);
    let told = door.ask([one.clone(), two.clone()]).await;
    assert_eq!((told.overall_code(), codes(&told)), (OK, vec![OVER, OK]));
    assert_eq!(door.ask([one.clone(), two.clone()]).await.overall_code(), OVER);
    let free = descriptor(&[("unheard", "x")]);
    assert_eq!(door.ask([one.clone(), free.clone()]).await.overall_code(), OVER, "no quota, no say");
    assert_eq!(door.ask([one.clone(), descriptor(&[("none", "x")])]).await.overall_code(), OVER);

    let door = Rig::new(", quota_mode: true", DOMAIN);
    let blocked = descriptor(&[("none", "x")]);
    assert_eq!(door.ask([blocked.clone(), free]).await.overall_code(), OK, "one that nothing limits passes");
    assert_eq!(door.ask([blocked, descriptor(&[("open", "x")])]).await.overall_code(), OVER);
}

#[tokio::test]
async fn a_limit_with_the_question_is_only_another_number() {
    let door = Rig::new("", DOMAIN);
    let entries = [("anything", "x")];
    for expected in [OK, OK, OVER] {
        let told = door.ask([with_limit(&entries, 2, 2)]).await;
        assert_eq!(told.overall_code(), expected);
        let limit = told.statuses[0].current_limit.clone().expect("a limit");
        assert_eq!((limit.requests_per_unit, limit.unit()), (2, WireUnit::Minute));
    }
    assert_eq!(door.ask([with_limit(&entries, 9, 2)]).await.statuses[0].limit_remaining, 5);
    assert_eq!(
        door.ask([with_limit(&entries, 9, 3)]).await.statuses[0].limit_remaining,
        8,
        "an hour is another"
    );
    for unit in [0, 7, 8, -1] {
        let told =
            door.try_ask(request([descriptor(&[("three", "x")]), with_limit(&entries, 2, unit)])).await;
        assert_eq!(told, Err(AskError::OverrideUnit { descriptor: 1 }));
    }
    let mut elsewhere = request([with_limit(&entries, 0, 2)]);
    elsewhere.domain = "elsewhere".into();
    let told = door.try_ask(elsewhere).await.expect("an answer");
    assert_eq!((told.overall_code(), told.statuses[0].current_limit.clone()), (OK, None));
}

#[tokio::test]
async fn a_rule_replaces_others_of_its_request() {
    let door = Rig::new("", DOMAIN);
    let both = [descriptor(&[("three", "x")]), descriptor(&[("strict", "x")])];
    assert_eq!(codes(&door.ask(both.clone()).await), [OK, OK]);
    let told = door.ask(both).await;
    assert_eq!((codes(&told), told.statuses[0].current_limit.clone()), (vec![OK, OVER], None));
    assert_eq!(door.hit("three", "x").await, (OK, 2), "it was not counted");
}

#[tokio::test]
async fn an_algorithm_decides_in_its_own_way() {
    let door = Rig::new("", DOMAIN);
    assert_eq!(door.hit("log", "x").await, (OK, 1));
    door.clock.advance(Duration::from_secs(20));
    assert_eq!(door.hit("log", "x").await, (OK, 0));
    assert_eq!(door.hit("log", "x").await, (OVER, 0));
    door.clock.advance(Duration::from_secs(10));
    assert_eq!(door.hit("log", "x").await, (OK, 0), "refused hits were not counted");
}

#[tokio::test]
async fn refused_hits_are_not_counted_where_that_is_said() {
    let door = Rig::new(", count_refused: false", DOMAIN);
    let ask = async |count| {
        let told = door.ask([hits(&[("three", "x")], count)]).await;
        (told.overall_code(), told.statuses[0].limit_remaining)
    };
    assert_eq!(ask(2).await, (OK, 1));
    assert_eq!(ask(2).await, (OVER, 0));
    assert_eq!(ask(1).await, (OK, 0));
    assert_eq!(door.hit("none", "x").await, (OVER, 0));
}

#[tokio::test]
async fn with_several_limits_one_denies_and_the_others_stay_untouched_where_they_are_atomic() {
    let door = Rig::new(", atomic: true", DOMAIN);
    let both = [descriptor(&[("one", "x")]), descriptor(&[("three", "x")])];
    assert_eq!(door.ask(both.clone()).await.overall_code(), OK);
    for _ in 0..5 {
        let told = door.ask(both.clone()).await;
        assert_eq!((told.overall_code(), codes(&told)), (OVER, vec![OVER, OK]));
        assert_eq!(told.statuses[1].limit_remaining, 2);
    }
    let with_shadow = [descriptor(&[("shadow", "x")]), descriptor(&[("three", "x")])];
    for _ in 0..2 {
        assert_eq!(door.ask(with_shadow.clone()).await.overall_code(), OK);
    }
    assert_eq!(door.hit("three", "x").await, (OVER, 0));
}

#[tokio::test]
async fn headers_tell_of_the_descriptor_that_matters_most() {
    let door = Rig::new(", headers: true", DOMAIN);
    let headers = |told: &tollgate_service::rls::messages::RateLimitResponse| {
        let of = |it: &tollgate_service::rls::messages::HeaderValue| format!("{}: {}", it.key, it.value);
        told.response_headers_to_add.iter().map(of).collect::<Vec<_>>()
    };
    let told = door.ask([descriptor(&[("three", "x")]), descriptor(&[("told", "x")])]).await;
    assert_eq!(headers(&told), ["RateLimit-Limit: 3", "RateLimit-Remaining: 2", "RateLimit-Reset: 20"]);
    let told = door.ask([descriptor(&[("none", "x")]), descriptor(&[("three", "x")])]).await;
    assert_eq!(headers(&told)[0], "RateLimit-Limit: 0");
    assert!(headers(&door.ask([descriptor(&[("unheard", "x")])]).await).is_empty());
    let plain = Rig::new("", DOMAIN);
    assert!(headers(&plain.ask([descriptor(&[("three", "x")])]).await).is_empty());
}

#[tokio::test]
async fn metadata_tells_what_was_asked_and_what_the_files_say() {
    let door = Rig::new(", dynamic_metadata: true", DOMAIN);
    let told = door.ask([descriptor(&[("told", "x")]), hits(&[("told too", "y")], 2)]).await;
    let told = told.dynamic_metadata.expect("metadata");
    let text = format!("{told:?}");
    assert!(text.contains("told=x") && text.contains("told too=y"), "{text}");
    let Some(Kind::StructValue(metadata)) = told.fields["metadata"].kind.clone() else { panic!("{told:?}") };
    let Some(Kind::StructValue(team)) = metadata.fields["team"].kind.clone() else { panic!("{metadata:?}") };
    assert_eq!(team.fields["name"].kind, Some(Kind::StringValue("a".into())), "the first stays");
    assert!(team.fields.contains_key("more") && team.fields.contains_key("level"), "{team:?}");
}

#[tokio::test]
async fn requests_that_make_no_sense_are_told_so() {
    let door = Rig::new("", DOMAIN);
    let no_domain = RateLimitRequest { domain: String::new(), ..request([descriptor(&[("three", "x")])]) };
    assert_eq!(door.try_ask(no_domain).await, Err(AskError::NoDomain));
    assert_eq!(door.try_ask(request([])).await, Err(AskError::NoDescriptors));
    let many = vec![descriptor(&[("three", "x")]); 1_001];
    assert_eq!(door.try_ask(request(many)).await, Err(AskError::TooManyDescriptors));
    let empty = Rig::of(tollgate_rules::parse_rules("version: 1", |_| None).expect("good"));
    assert_eq!(empty.try_ask(request([descriptor(&[("a", "b")])])).await, Err(AskError::NotLoaded));
    let told = door.ask([RateLimitDescriptor::default()]).await;
    assert_eq!(codes(&told), [OK], "no entries find no limit");
}

#[tokio::test]
async fn the_switch_refuses_nobody() {
    let door = Rig::of(rules_on("enabled: false", "", DOMAIN));
    assert_eq!(door.hit("none", "x").await, (OK, 0));
}

#[tokio::test]
async fn other_files_keep_what_was_counted() {
    let door = Rig::new("", DOMAIN);
    assert_eq!(door.hit("three", "x").await, (OK, 2));
    assert_eq!(door.hit("log", "x").await, (OK, 1));
    let changed =
        DOMAIN.replace("requests_per_unit: 3", "requests_per_unit: 2").replace("limit: 2", "limit: 3");
    door.decisions.reload(rules("", &changed)).expect("kept");
    assert_eq!(door.hit("three", "x").await, (OK, 0));
    assert_eq!(door.hit("three", "x").await, (OVER, 0));
    assert_eq!(door.hit("log", "x").await, (OK, 1));
}

#[tokio::test]
async fn keys_that_would_collide_as_joined_strings_do_not() {
    let limit = "rate_limit: { unit: day, requests_per_unit: 1 }";
    let domain = format!("domain: d\ndescriptors: [ {{ key: a, {limit} }}, {{ key: a_b, {limit} }} ]");
    let door = Rig::new("", &domain);
    assert_eq!(door.hit("a", "b_c").await, (OK, 0));
    assert_eq!(door.hit("a_b", "c").await, (OK, 0));
    assert_eq!(door.hit("a", "").await, (OK, 0), "an empty value is a value");
    assert_eq!(door.hit("a", "b_c").await, (OVER, 0));
}
