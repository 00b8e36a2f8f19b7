//! A program finds what a walk over the whole file finds, for random files and requests.

use crate::{
    build::{Sent, attribute, exact, file, get, is, limit, named, net, not, path, regex},
    oracle::{self, Plain, PlainKey},
};
use proptest::{collection::vec, prelude::*, sample::select};
use tollgate_rules::{
    Keyed, Outcome, Program, RuleFile,
    model::{
        Cost, EncodedSlash, Excess, Instant, LimitSource, Matcher, Missing, OnRepeat, Route, Rule, RuleLimit,
        TimeSpan, When,
    },
};

const PARTS: [&str; 13] = ["a", "b", "c", "ab", LONG, "*", "**", "**", "{x}", "{y}", "a*", "?", "*b"];
/// Of more letters than lie with a node.
const LONG: &str = "a-part-of-many-letters";
const SEGMENTS: [&str; 13] = ["a", "a", "b", "b", "c", "ab", LONG, "cab", "", ".", "..", "%61", "a%2fb"];
const VALUES: [&str; 5] = ["1", "2", "12", "", " "];
const HOSTS: [&str; 4] = ["a.example", "b.example", "a.b.example", "localhost"];

fn shape() -> impl Strategy<Value = When> {
    vec(select(&PARTS[..]), 1..5).prop_map(|parts| {
        let mut seen = Vec::new();
        // A name is captured once in a shape.
        let parts = parts.into_iter().map(|part| {
            if part.starts_with('{') && seen.contains(&part) {
                return "*";
            }
            seen.push(part);
            part
        });
        path(&format!("/{}", parts.collect::<Vec<_>>().join("/")))
    })
}

fn text_matcher(values: &'static [&'static str]) -> impl Strategy<Value = Matcher> {
    let text = || select(values).prop_map(str::to_owned);
    prop_oneof![
        6 => text().prop_map(Matcher::Exact),
        1 => text().prop_map(Matcher::Prefix),
        1 => text().prop_map(Matcher::Suffix),
        1 => text().prop_map(Matcher::Contains),
        1 => select(vec!["1|12", "[12]*", "a.*", ".*b.*", "/a(/.*)?"]).prop_map(regex),
        1 => any::<bool>().prop_map(Matcher::Exists),
        1 => any::<bool>().prop_map(Matcher::Blank),
    ]
}

fn leaf() -> impl Strategy<Value = When> {
    let paths = &["/a", "/a/", "/a/b", "/b", "/", "/c/a", "b"][..];
    let attributes =
        vec!["header.x-a", "header.x-b", "query.q", "query.r", "cookie.c", "path.x", "path.y", "ip/24"];
    prop_oneof![
        6 => shape(),
        1 => text_matcher(paths).prop_map(|matcher| is("path", matcher)),
        1 => select(vec!["GET", "POST"]).prop_map(|method| exact("method", method)),
        3 => text_matcher(&HOSTS).prop_map(|matcher| is("host", matcher)),
        6 => (select(attributes), text_matcher(&VALUES)).prop_map(|(name, matcher)| is(name, matcher)),
        2 => select(vec!["192.0.2.0/24", "192.0.2.7/32", "10.0.0.0/8", "2001:db8::/32", "0.0.0.0/0"])
            .prop_map(net),
        1 => (proptest::option::of(0_i64..4), proptest::option::of(0_i64..4)).prop_map(|(after, before)| {
            When::Time(TimeSpan { after: after.map(Instant::Once), before: before.map(Instant::Once) })
        }),
        1 => Just(When::Always),
    ]
}

fn when() -> impl Strategy<Value = When> {
    leaf().prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            3 => vec(inner.clone(), 0..4).prop_map(When::All),
            2 => vec(inner.clone(), 0..4).prop_map(When::Any),
            1 => inner.prop_map(not),
        ]
    })
}

fn charge() -> impl Strategy<Value = RuleLimit> {
    let attributes = vec![
        "header.x-a",
        "header.x-b",
        "query.q",
        "cookie.c",
        "path.x",
        "path.y",
        "path",
        "method",
        "host",
        "ip",
        "ip/24",
        "route",
        "rule",
    ];
    let missing = select(vec![Missing::Share, Missing::Share, Missing::Skip, Missing::Deny]);
    (vec(select(attributes), 0..4), missing, any::<bool>()).prop_map(|(key, missing, inline)| RuleLimit {
        limit: if inline { LimitSource::Inline(limit()) } else { LimitSource::Named(0) },
        key: key.into_iter().map(attribute).collect(),
        missing,
        cost: Cost::default(),
    })
}

fn rules(most: usize) -> impl Strategy<Value = Vec<Rule>> {
    let rule = (when(), vec(charge(), 0..3), prop::bool::weighted(0.9));
    vec(rule, 0..most).prop_map(|rules| {
        let named = rules.into_iter().enumerate().map(|(place, (when, limits, enabled))| Rule {
            name: format!("rule-{place}"),
            enabled,
            when,
            limits,
            bandwidth: None,
            excess: Excess::Reject(None),
            on_failure: None,
        });
        named.collect()
    })
}

fn rule_file() -> impl Strategy<Value = RuleFile> {
    let route = (when(), rules(8), prop::bool::weighted(0.9));
    let slash = select(vec![EncodedSlash::Reject, EncodedSlash::Decode, EncodedSlash::Keep]);
    let on_repeat = select(vec![OnRepeat::First, OnRepeat::Last]);
    (vec(route, 0..16), rules(12), slash, on_repeat).prop_map(|(routes, everywhere, slash, on_repeat)| {
        let named_routes = routes.into_iter().enumerate().map(|(place, (when, rules, enabled))| Route {
            name: format!("route-{place}"),
            enabled,
            when,
            strip_prefix: None,
            upstream: 0,
            rules,
        });
        let mut made = file(named_routes.collect(), everywhere);
        made.limits = vec![named("shared", &[])];
        made.encoded_slash = slash;
        made.on_repeat = on_repeat;
        made
    })
}

fn sent() -> impl Strategy<Value = Sent> {
    let value = || select(&VALUES[..]);
    let path = vec(select(&SEGMENTS[..]), 0..5).prop_map(|parts| format!("/{}", parts.join("/")));
    let hosts =
        vec![None, Some("a.example"), Some("A.Example:8080"), Some("b.example."), Some("a.b.example")];
    let ips = vec!["192.0.2.7", "192.0.2.8", "10.1.2.3", "::ffff:10.1.2.3", "2001:db8:1:2:3::4"];
    let queries = vec![None, Some("q=1"), Some("q=2&q=1&r"), Some("r=+&&q=%61"), Some("")];
    let headers = (vec(value(), 0..3), vec(value(), 0..2), proptest::option::of(value()));
    let method = select(vec!["GET", "POST", "get"]);
    (path, select(hosts), select(ips), select(queries), headers, method, 0_i64..4).prop_map(
        |(path, host, ip, query, (a, b, cookie), method, at)| {
            let mut sent = get(&path).method(method).ip(ip).at(at);
            sent.host = host.map(str::to_owned);
            sent.query = query.map(str::to_owned);
            let sent = a.into_iter().fold(sent, |sent, value| sent.header("x-a", value));
            let sent = b.into_iter().fold(sent, |sent, value| sent.header("x-b", value));
            match cookie {
                Some(value) => sent.header("cookie", format!("d=9; c={value}; c=1")),
                None => sent,
            }
        },
    )
}

fn found(program: &Program, sent: &Sent) -> Plain {
    let request = sent.request();
    let found = program.find(&request);
    let rules = found.entries().map(|entry| {
        let keys = entry.charges.iter().map(|charge| match found.key(charge) {
            Keyed::Key(values) => PlainKey::Values(values.iter().map(|it| it.map(str::to_owned)).collect()),
            Keyed::Skip => PlainKey::Skip,
            Keyed::Deny { .. } => PlainKey::Deny,
            Keyed::Repeated { .. } => PlainKey::Repeated,
        });
        (entry.id.0, keys.collect())
    });
    Plain { route: found.route().map(|route| route.0), rules: rules.collect() }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, max_shrink_iters: 20_000, ..ProptestConfig::default() })]

    #[test]
    fn a_program_finds_what_a_walk_finds(file in rule_file(), requests in vec(sent(), 1..8)) {
        let program = Program::new(file.clone());
        for sent in &requests {
            prop_assert_eq!(found(&program, sent), oracle::find(&file, sent), "{:?}", sent);
        }
    }

    /// Where values that are given twice are rejected, a request that is not meets what it would by its only values.
    #[test]
    fn rejecting_what_is_given_twice_changes_nothing_else(file in rule_file(), sent in sent()) {
        let with = |on_repeat| {
            let mut file = file.clone();
            file.on_repeat = on_repeat;
            Program::new(file)
        };
        let (first, strict) = (with(OnRepeat::First), with(OnRepeat::Reject));
        if strict.find(&sent.request()).invalid().is_none() {
            let (first, strict) = (found(&first, &sent), found(&strict, &sent));
            prop_assert_eq!(first.route, strict.route);
            prop_assert_eq!(first.rules.len(), strict.rules.len());
            for (first, strict) in first.rules.iter().zip(&strict.rules) {
                prop_assert_eq!(first.0, strict.0);
                for (first, strict) in first.1.iter().zip(&strict.1) {
                    prop_assert!(first == strict || *strict == PlainKey::Repeated);
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    #[test]
    fn an_explanation_has_a_reason_for_everything(file in rule_file(), sent in sent()) {
        let program = Program::new(file);
        let request = sent.request();
        let explanation = program.explain(&request);
        // Whatever does not match has a condition that fails when it is looked at by itself.
        for over in &explanation.passed_over {
            prop_assert_ne!(&over.why, "it does not match", "{:?}", over);
        }
        for rule in &explanation.rules {
            if let Outcome::Not { why } = &rule.outcome {
                prop_assert_ne!(why, "it does not match", "{:?}", rule);
            }
        }
        let applying = explanation.rules.iter().filter(|rule| matches!(rule.outcome, Outcome::Applies { .. }));
        prop_assert_eq!(applying.count(), program.find(&request).rules().len());
        prop_assert!(!explanation.to_string().contains(char::from(0x1b)));
    }
}
