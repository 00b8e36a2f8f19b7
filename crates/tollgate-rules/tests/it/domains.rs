//! The files of envoyproxy/ratelimit: what they may hold, what they may not, and which rule a descriptor finds.

use testkit::Fuzz;
use tollgate_rules::domains::{BucketValues, DomainSettings, Domains, Measure, Metadata, Unit};

const NAME: &str = "shop.yaml";

fn read(text: &str) -> Domains {
    Domains::read(DomainSettings::default(), &[(NAME, text)])
        .unwrap_or_else(|bad| panic!("{}", told(&bad).join("\n")))
}

fn told(bad: &[tollgate_rules::BadRules]) -> Vec<String> {
    bad.iter().flat_map(|bad| bad.to_string().lines().map(str::to_owned).collect::<Vec<_>>()).collect()
}

fn mistakes(text: &str) -> Vec<String> {
    told(&Domains::read(DomainSettings::default(), &[(NAME, text)]).expect_err("a mistake"))
}

/// Which rule the entries find, by its path, and whose bucket it is.
fn find<'a>(domains: &'a Domains, entries: &[(&'a str, &'a str)]) -> Option<(String, BucketValues<'a>)> {
    let found = domains.get("d")?.find("d", entries.iter().copied())?;
    Some((domains.rules()[found.rule].full_key(), found.values))
}

fn rule_of(domains: &Domains, entries: &[(&str, &str)]) -> Option<String> {
    find(domains, entries).map(|(rule, _)| rule)
}

#[test]
fn every_load_error_has_its_words_and_its_place() {
    for (text, told) in [
        ("descriptors: []", "1:1: config file cannot have empty domain"),
        ("domain: ''", "1:9: domain: config file cannot have empty domain"),
        ("domain: d\ndescriptors:\n- value: x", "3:3: descriptors[0]: descriptor has empty key"),
        (
            "domain: d\ndescriptors:\n- key: a\n  descriptors: [ { key: b, value: c }, { key: b, value: c } ]",
            "4:40: descriptors[0].descriptors[1]: duplicate descriptor composite key 'd.a.b_c'",
        ),
        (
            "domain: d\ndescriptors: [ { key: a, rate_limit: { unit: fortnight, requests_per_unit: 1 } } ]",
            "2:46: descriptors[0].rate_limit.unit: invalid rate limit unit 'fortnight'",
        ),
        (
            "domain: d\ndescriptors: [ { key: a, rate_limit: { requests_per_unit: 1 } } ]",
            "2:38: descriptors[0].rate_limit: invalid rate limit unit ''",
        ),
        (
            "domain: d\ndescriptors: [ { key: a, rate_limit: { unlimited: true, unit: day } } ]",
            "2:63: descriptors[0].rate_limit.unit: should not specify rate limit unit when unlimited",
        ),
        (
            "domain: d\ndescriptors: [ { key: a, rate_limit: { unit: day, replaces: [ { name: '' } ] } } ]",
            "2:63: descriptors[0].rate_limit.replaces[0]: should not have an empty replaces entry",
        ),
        (
            "domain: d\ndescriptors: [ { key: a, rate_limit: { unit: day, name: n, replaces: [ { name: n } ] } } ]",
            "2:72: descriptors[0].rate_limit.replaces[0]: replaces should not contain name of same descriptor",
        ),
        (
            "domain: d\ndescriptors: [ { key: a, value: b, share_threshold: true } ]",
            "2:16: descriptors[0]: share_threshold can only be used with wildcard values (containing '*'), but found key 'a'",
        ),
        (
            "domain: d\ndescriptors: [ { key: a, ratelimit: {} } ]",
            "2:26: descriptors[0].ratelimit: config error, unknown key 'ratelimit'; did you mean `rate_limit`?",
        ),
        ("domain: d\n1: x", "2:1: 1: config error, key is not of type string: 1"),
        (
            "domain: d\ndescriptors: [ a ]",
            "2:14: descriptors: config error, yaml file contains list of type other than map: a",
        ),
        (
            "domain: d\ndescriptors: [ { key: 1.5 } ]",
            "2:23: descriptors[0].key: error checking config: 1.5 is a number with a fraction, which no key takes; put it in quotes",
        ),
        (
            "domain: d\ndescriptors: [ { key: a, metadata: x } ]",
            "2:36: descriptors[0].metadata: error parsing metadata: a mapping is wanted here",
        ),
        (
            "domain: d\ndescriptors: [ { key: a, rate_limit: { unit: day, requests_per_unit: -1 } } ]",
            "2:70: descriptors[0].rate_limit.requests_per_unit: error loading config file: \
             a whole number from 0 to 4294967295 is wanted here",
        ),
        (
            "domain: d\ndescriptors: [ { key: a, algorithm: { concurrency: { limit: 1 } } } ]",
            "2:39: descriptors[0].algorithm.concurrency: is not a known key; known here: `token_bucket`, `leaky_bucket`, \
             `smooth_bursty`, `smooth_warming_up`, `fixed_window`, `sliding_log`, `sliding_window`, `sliding_counter`",
        ),
        (
            "domain: d\ndescriptors: [ { key: a, algorithm: { sliding_log: { limit: 5, window: 30s } }, rate_limit: { unit: day } } ]",
            "2:93: descriptors[0].rate_limit: should not specify unit, requests_per_unit or unlimited beside an algorithm",
        ),
        (
            "domain: d\ndescriptors: [ { key: a, algorithm: { sliding_log: { limit: 5, window: 30s } }, algorithm: { sliding_log: { limit: 9, window: 30s } } } ]",
            "2:81: descriptors[0].algorithm: error loading config file: key \"algorithm\" is given twice",
        ),
        ("domain: d\nalgorithm: {}", "2:1: algorithm: config error, unknown key 'algorithm'"),
    ] {
        assert_eq!(mistakes(text), [format!("{NAME}:{told}")], "{text}");
    }
    let broken = mistakes("domain: [");
    assert!(broken[0].contains("error loading config file: is not YAML"), "{broken:?}");
}

#[test]
fn all_mistakes_of_all_files_are_told_at_once() {
    let files = [
        (
            "a.yaml",
            "domain: d\ndescriptors: [ { key: '' }, { key: b, rate_limit: { unit: x } }, { kex: c } ]",
        ),
        ("b.yaml", "domain: d"),
    ];
    let told = told(&Domains::read(DomainSettings::default(), &files).expect_err("mistakes"));
    assert_eq!(
        told,
        [
            "a.yaml:2:23: descriptors[0].key: descriptor has empty key",
            "a.yaml:2:59: descriptors[1].rate_limit.unit: invalid rate limit unit 'x'",
            "a.yaml:2:66: descriptors[2]: descriptor has empty key",
            "a.yaml:2:68: descriptors[2].kex: config error, unknown key 'kex'; did you mean `key`?",
            "b.yaml:1:9: domain: duplicate domain 'd' in config file",
        ]
    );
}

#[test]
fn files_may_continue_a_domain_where_that_is_asked_for() {
    let one = "domain: d\ndescriptors: [ { key: a, rate_limit: { unit: day, requests_per_unit: 1 } } ]";
    let two = "domain: d\ndescriptors: [ { key: b, rate_limit: { unit: day, requests_per_unit: 2 } } ]";
    let mut merge = DomainSettings::default();
    merge.merge = true;
    let domains = Domains::read(merge.clone(), &[("1", one), ("2", two)]).expect("good");
    assert_eq!(rule_of(&domains, &[("b", "x")]).as_deref(), Some("d.b"));
    let told = told(&Domains::read(merge, &[("1", one), ("2", one)]).expect_err("twice the same"));
    assert_eq!(told, ["2:2:16: descriptors[0]: duplicate descriptor composite key 'd.a'"]);
}

#[test]
fn what_the_reference_reads_is_read() {
    // Aliases, merges, numbers as values, keys that mean nothing where they stand, units in any case.
    let domains = read(
        "domain: d
descriptors:
- key: code
  value: 404
  rate_limit: &minute { unit: MINUTE, requests_per_unit: 1_000, name: ok }
- key: flag
  value: true
  unit: nothing
  rate_limit: { <<: *minute, requests_per_unit: 7 }
- key: open
  rate_limit: { unlimited: yes }
- key: nested
  value:
  detailed_metric: true
  value_to_metric: true
  metadata: { owner: team, level: 1.5, deep: { on: true, list: [1, x] } }
  rate_limit: *minute
",
    );
    let measures: Vec<_> = domains.rules().iter().map(|rule| rule.measure.clone()).collect();
    let per_minute = |requests| Measure::PerUnit { requests, unit: Unit::Minute };
    assert_eq!(measures, [per_minute(1_000), per_minute(7), Measure::Unlimited, per_minute(1_000)]);
    assert_eq!(rule_of(&domains, &[("code", "404")]).as_deref(), Some("d.code_404"));
    assert_eq!(rule_of(&domains, &[("flag", "true")]).as_deref(), Some("d.flag_true"));
    assert_eq!(rule_of(&domains, &[("nested", "anything")]).as_deref(), Some("d.nested"));
    let Some(Metadata::Struct(metadata)) = &domains.rules()[3].metadata else { panic!("no metadata") };
    assert_eq!(metadata[1], ("level".to_owned(), Metadata::Number(1.5)));
}

/// The reference's YAML reader takes a leading zero for octal: `010` is 8 there, and 10 to most readers of the file.
#[test]
fn numbers_that_are_not_plain_decimals_are_refused_and_the_message_says_what_to_write() {
    const NO_COUNT: &str = "a whole number from 0 to 4294967295 is wanted here";
    for (number, told) in [
        ("010", "010 has a leading zero, which YAML 1.1 reads as octal; write 8 or 10"),
        ("0_1_0", "0_1_0 has a leading zero, which YAML 1.1 reads as octal; write 8 or 10"),
        ("00", "00 has a leading zero, which YAML 1.1 reads as octal; write 0"),
        ("08", "08 has a leading zero and is no octal number; write 8"),
        ("0x1F", "0x1F is a hexadecimal number; write 31"),
        ("0o10", "0o10 is an octal number; write 8"),
        ("0b101", "0b101 is a binary number; write 5"),
        ("0xyz", NO_COUNT),
        ("_10", NO_COUNT),
        ("-010", NO_COUNT),
        ("+10", NO_COUNT),
        ("1:30", NO_COUNT),
        ("4294967296", NO_COUNT),
        ("'10'", NO_COUNT),
    ] {
        let text = format!(
            "domain: d\ndescriptors: [ {{ key: a, rate_limit: {{ unit: day, requests_per_unit: {number} }} }} ]"
        );
        let place = "2:70: descriptors[0].rate_limit.requests_per_unit: error loading config file:";
        assert_eq!(mistakes(&text), [format!("{NAME}:{place} {told}")], "{number}");
    }
    for (number, requests) in [("0", 0), ("10", 10), ("1_000", 1_000), ("4294967295", u32::MAX)] {
        let domains = read(&format!(
            "domain: d\ndescriptors: [ {{ key: a, rate_limit: {{ unit: day, requests_per_unit: {number} }} }} ]"
        ));
        assert_eq!(domains.rules()[0].measure, Measure::PerUnit { requests, unit: Unit::Day }, "{number}");
    }
}

#[test]
fn metadata_has_the_values_that_the_reference_reads() {
    let file = |value: &str| {
        let limit = "rate_limit: { unit: day, requests_per_unit: 1 }";
        format!(
            "domain: d\ndescriptors: [ {{ key: a, {limit}, metadata: {{ deep: [ {{ it: {value} }} ] }} }} ]"
        )
    };
    let text = |text: &str| Metadata::Text(text.to_owned());
    for (written, value) in [
        ("10", Metadata::Number(10.0)),
        ("-1_000", Metadata::Number(-1_000.0)),
        ("010.5", Metadata::Number(10.5)),
        ("1e3", Metadata::Number(1_000.0)),
        ("Yes", Metadata::Bool(true)),
        ("off", Metadata::Bool(false)),
        ("~", Metadata::Null),
        ("'010'", text("010")),
        ("'yes'", text("yes")),
        ("_10", text("_10")),
        ("0xyz", text("0xyz")),
        ("nan", text("nan")),
        ("1:30", text("1:30")),
    ] {
        let domains = read(&file(written));
        let list = Metadata::List(vec![Metadata::Struct(vec![("it".to_owned(), value)])]);
        let expected = Metadata::Struct(vec![("deep".to_owned(), list)]);
        assert_eq!(domains.rules()[0].metadata.as_ref(), Some(&expected), "{written}");
    }
    for (written, told) in [
        ("010", "010 has a leading zero, which YAML 1.1 reads as octal; write 8 or 10"),
        ("-010", "-010 has a leading zero, which YAML 1.1 reads as octal; write -8 or -10"),
        ("0x10", "0x10 is a hexadecimal number; write 16"),
    ] {
        let place = "2:101: descriptors[0].metadata.deep[0].it: error parsing metadata:";
        let expected = format!("{NAME}:{place} {told}, or put it in quotes if it is text");
        assert_eq!(mistakes(&file(written)), [expected], "{written}");
    }
}

#[test]
fn an_exact_value_goes_before_wildcards_and_they_before_the_key() {
    let limit = "rate_limit: { unit: day, requests_per_unit: 1 }";
    let domains = read(&format!(
        "domain: d
descriptors:
- {{ key: k, {limit} }}
- {{ key: k, value: 'ab*', {limit} }}
- {{ key: k, value: 'a*z', {limit} }}
- {{ key: k, value: abc, {limit} }}
- {{ key: k, value: '*', {limit} }}
- {{ key: other, value: 'v', {limit} }}
"
    ));
    for (value, rule) in [
        ("abc", "d.k_abc"),
        ("abz", "d.k_ab*"),
        ("aqz", "d.k_a*z"),
        ("zzz", "d.k_*"),
        ("", "d.k_*"),
        ("a*z", "d.k_a*z"),
    ] {
        assert_eq!(rule_of(&domains, &[("k", value)]).as_deref(), Some(rule), "{value}");
    }
    assert_eq!(rule_of(&domains, &[("K", "abc")]), None, "letters of another case are other letters");
    assert_eq!(rule_of(&domains, &[("other", "x")]), None);
    assert_eq!(rule_of(&domains, &[]), None);
}

#[test]
fn a_rule_holds_at_its_own_depth_and_there_is_no_way_back() {
    let domains = read(
        "domain: d
descriptors:
- key: a
  rate_limit: { unit: day, requests_per_unit: 1 }
  descriptors: [ { key: b, rate_limit: { unit: day, requests_per_unit: 2 } } ]
- key: a
  value: x
  descriptors: [ { key: c, rate_limit: { unit: day, requests_per_unit: 3 } } ]
",
    );
    assert_eq!(rule_of(&domains, &[("a", "1")]).as_deref(), Some("d.a"));
    assert_eq!(rule_of(&domains, &[("a", "1"), ("b", "2")]).as_deref(), Some("d.a.b"));
    assert_eq!(rule_of(&domains, &[("a", "1"), ("b", "2"), ("c", "3")]), None, "deeper than the file");
    assert_eq!(rule_of(&domains, &[("b", "2"), ("a", "1")]), None, "the order counts");
    assert_eq!(rule_of(&domains, &[("a", "x"), ("c", "1")]).as_deref(), Some("d.a_x.c"));
    assert_eq!(rule_of(&domains, &[("a", "x"), ("b", "1")]), None, "the value matched, and leads no further");
    assert_eq!(rule_of(&domains, &[("a", "x")]), None, "a node without a limit");
}

#[test]
fn keys_that_would_collide_as_joined_strings_stay_apart() {
    let limit = "rate_limit: { unit: day, requests_per_unit: 1 }";
    let domains = read(&format!(
        "domain: d
descriptors:
- {{ key: a_b, {limit} }}
- {{ key: a, value: b, {limit} }}
- {{ key: a_b, value: c, {limit} }}
- {{ key: s, value: 'p*', share_threshold: true, {limit} }}
- {{ key: s, value: q, {limit} }}
"
    ));
    assert_eq!(rule_of(&domains, &[("a", "b_c")]), None, "the reference finds a_b with the value c");
    assert_eq!(rule_of(&domains, &[("a", "b")]).as_deref(), Some("d.a_b"));
    assert_eq!(domains.rules().len(), 5, "a_b and a with the value b are no duplicates");
    let values = |entries: &[(&'static str, &'static str)]| {
        let (_, values) = find(&domains, entries).expect("found");
        values.into_iter().map(|value| value.map(str::to_owned)).collect::<Vec<_>>()
    };
    let text = |value: &str| Some(value.to_owned());
    assert_eq!(values(&[("a_b", "c")]), [text("d"), text("a_b"), text("c")]);
    assert_eq!(values(&[("s", "p1")]), [text("d"), text("s"), None, text("p*")]);
    assert_eq!(values(&[("s", "p1")]), values(&[("s", "p2")]));
    assert_ne!(values(&[("s", "p1")]), values(&[("s", "q")]));
}

#[test]
fn an_algorithm_of_ours_stands_in_the_place_of_a_unit() {
    let domains = read(
        "domain: d
descriptors:
- { key: a, algorithm: { sliding_log: { limit: 5, window: 30s } }, rate_limit: { name: slow } }
- { key: b, algorithm: { token_bucket: { rate: 10/s, burst: 5 } } }
",
    );
    assert!(matches!(&domains.rules()[0].measure, Measure::Limit(limit) if limit.name() == "sliding_log"));
    assert_eq!(&*domains.rules()[0].name, "slow");
    assert!(matches!(&domains.rules()[1].measure, Measure::Limit(limit) if limit.name() == "token_bucket"));
}

/// Whatever a file holds, it is read or its mistakes are told; what is read finds rules or none.
#[test]
fn damaged_files_are_told_and_never_worse() {
    let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/corpus/domains");
    let inputs = Fuzz::from(corpus).run(|input, _| {
        let text = String::from_utf8_lossy(input);
        match Domains::read(DomainSettings::default(), &[(NAME, &text)]) {
            Ok(domains) => {
                let _ = find(&domains, &[("a", "x1"), ("b", "")]);
                let _ = find(&domains, &[("c", "")]);
            }
            Err(bad) => assert!(!told(&bad).is_empty()),
        }
    });
    assert!(inputs > 100, "{inputs} inputs");
}

#[test]
fn the_corpus_is_of_files_that_can_be_read() {
    let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/corpus/domains");
    for file in std::fs::read_dir(corpus).expect("it is there") {
        let path = file.expect("an entry").path();
        read(&std::fs::read_to_string(&path).expect("text"));
    }
}
